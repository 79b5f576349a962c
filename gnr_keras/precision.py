"""In which precision layers compute; weights are always in float32."""

import contextlib
import contextvars
import functools

import keras

# Dtype policies of the layers of a network.
PRECISIONS = (
    "float32",
    "mixed_bfloat16",
    "mixed_float16",
    "bfloat16_products",
)
# What is made of few channels and costs nothing: pixels, and their scale.
_WHOLE = (keras.layers.Rescaling, keras.layers.Normalization)
# Matrix products, which is where the work is.
_PRODUCTS = (keras.layers.Conv2D, keras.layers.Dense)
_IN_SCOPE = contextvars.ContextVar[str | None]("precision", default=None)


def check_precision(precision):
    """Raises `ValueError` for a name that is none."""
    if precision not in PRECISIONS:
        raise ValueError(
            f"`precision` must be one of {', '.join(PRECISIONS)}. Received: "
            f"{precision!r}."
        )


def policy_of(layer, precision):
    """Names the dtype policy of a layer.

    Args:
        layer: a Keras layer.
        precision: one of `PRECISIONS`. The mixed ones are those of Keras,
            with scaling and normalisation of pixels in float32;
            "bfloat16_products" leaves all in float32 but convolutions and
            dense layers: processors gain by these, and lose by the rest.
    """
    if isinstance(layer, _WHOLE):
        return "float32"
    if precision == "bfloat16_products":
        # Not its subclasses, such as the depthwise one.
        return "mixed_bfloat16" if type(layer) in _PRODUCTS else "float32"
    return precision


def of_inference(precision):
    """Names the policy of a folded network, `None` for its layers' own.

    Where nothing trains, activations are part of the convolutions, and
    processors gain by all of it.
    """
    return "bfloat16" if precision == "bfloat16_products" else None


@contextlib.contextmanager
def scope(precision):
    """Builds generators in a precision, which their arguments do not name.

    Args:
        precision: one of `PRECISIONS`.
    """
    token = _IN_SCOPE.set(precision)
    try:
        yield
    finally:
        _IN_SCOPE.reset(token)


def policy_in_scope():
    """Returns what names the policy of a layer; `None` outside a scope."""
    precision = _IN_SCOPE.get()
    if precision is None:
        return None
    return functools.partial(policy_of, precision=precision)
