"""Keras layers of the package."""

import keras
import tensorflow as tf
from keras import ops

# Options of the parent class that mean nothing here.
_REPLACED = ("momentum", "renorm", "renorm_clipping", "renorm_momentum")


@keras.saving.register_keras_serializable(package="gnr_keras")
class BatchRenormalization(keras.layers.BatchNormalization):
    """Batch renormalisation whose limits can move while it trains.

    In training, with batch statistics `mean_B`, `std_B` and moving ones
    `mean`, `std`:

        r = clip(std_B / std, 1 / r_max, r_max)
        d = clip((mean_B - mean) / std, -d_max, d_max)
        y = gamma * ((x - mean_B) / std_B * r + d) + beta
        mean += update_rate * (mean_B - mean)
        std  += update_rate * (std_B - std)

    with no gradient through `r` and `d`, and `std = sqrt(variance + epsilon)`.
    With `r_max=1, d_max=0` this is batch normalisation. In inference it
    always is, and the variables have the names and the meaning of
    `keras.layers.BatchNormalization`, so a pretrained layer's weights fit.
    As there, what a mask leaves out has no part in the batch statistics.

    `r_max`, `d_max` and `update_rate` are variables: assigning to them, as
    `gnr_keras.callbacks.BatchRenormalizationSchedule` does, changes neither
    the graph nor the number of traces. Under `tf.distribute` the batch
    statistics are those of the global batch, so all replicas hold the same
    moving statistics.

    Args:
        r_max: upper limit of the scale correction, at least 1.
        d_max: limit of the shift correction, at least 0.
        update_rate: share of the batch statistics in the moving ones.
        **kwargs: of `keras.layers.BatchNormalization` (`axis`, `epsilon`,
            `center`, `scale`, initializers, ...).

    Example:

    >>> layer = BatchRenormalization(r_max=1.25, d_max=0.5)
    >>> layer(np.ones((8, 4), "float32"), training=True).shape
    TensorShape([8, 4])

    Reference:
        Ioffe, "Batch Renormalization: Towards Reducing Minibatch Dependence
        in Batch-Normalized Models", 2017.
    """

    def __init__(
        self,
        r_max: float = 1.0,
        d_max: float = 0.0,
        update_rate: float = 0.01,
        **kwargs: object,
    ) -> None:
        unused = sorted(set(kwargs) & set(_REPLACED))
        if unused:
            raise ValueError(
                f"BatchRenormalization has no {unused}; use `r_max`, `d_max` "
                "and `update_rate`."
            )
        if r_max < 1 or d_max < 0 or not 0 <= update_rate <= 1:
            raise ValueError(
                "Expected r_max >= 1, d_max >= 0 and update_rate in [0, 1]. "
                f"Received: r_max={r_max}, d_max={d_max}, "
                f"update_rate={update_rate}."
            )
        super().__init__(**kwargs)
        self._initial = {
            "r_max": float(r_max),
            "d_max": float(d_max),
            "update_rate": float(update_rate),
        }

    def build(self, input_shape):
        super().build(input_shape)
        for name, value in self._initial.items():
            variable = self.add_weight(
                name=name,
                shape=(),
                initializer=keras.initializers.Constant(value),
                trainable=False,
                autocast=False,
            )
            setattr(self, name, variable)

    def call(self, inputs, training=None, mask=None):
        if not (training and self.trainable):
            return super().call(inputs, training=False, mask=mask)
        # Half-precision activations overflow when squared.
        x = ops.cast(inputs, "float32")
        batch_mean, batch_variance = self._batch_moments(x, mask)
        batch_std = ops.sqrt(batch_variance + self.epsilon)
        std = ops.sqrt(self.moving_variance + self.epsilon)
        r = ops.clip(batch_std / std, 1.0 / self.r_max, self.r_max)
        d = (batch_mean - self.moving_mean) / std
        d = ops.clip(d, -self.d_max, self.d_max)
        r, d = ops.stop_gradient(r), ops.stop_gradient(d)

        scale = r * self.gamma if self.scale else r
        offset = d * self.gamma if self.scale else d
        offset = offset + self.beta if self.center else offset
        outputs = ops.batch_normalization(
            x,
            batch_mean,
            batch_variance,
            axis=self.axis,
            offset=offset,
            scale=scale,
            epsilon=self.epsilon,
        )

        rate = self.update_rate
        self.moving_mean.assign_add(rate * (batch_mean - self.moving_mean))
        new_std = std + rate * (batch_std - std)
        self.moving_variance.assign(ops.square(new_std) - self.epsilon)
        return ops.cast(outputs, self.compute_dtype)

    def _batch_moments(self, x, mask):
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        if mask is None:
            return ops.moments(
                x, axes=self._reduction_axes, synchronized=replicas > 1
            )
        if len(mask.shape) != len(x.shape) - 1:
            raise ValueError(
                "Expected a mask with all axes of the inputs but the last. "
                f"Received: mask of shape {tuple(mask.shape)}, inputs of shape "
                f"{tuple(x.shape)}."
            )
        mask = ops.broadcast_to(
            ops.expand_dims(ops.cast(mask, "bool"), -1), ops.shape(x)
        )

        def total(values):
            found = ops.sum(
                ops.where(mask, values, 0.0),
                axis=self._reduction_axes,
                keepdims=True,
            )
            if replicas > 1:
                context = tf.distribute.get_replica_context()
                found = context.all_reduce(tf.distribute.ReduceOp.SUM, found)
            return found

        count = ops.maximum(total(ops.ones_like(x)), 1.0)
        mean = total(x) / count
        variance = total(ops.square(x - mean)) / count
        return ops.reshape(mean, (-1,)), ops.reshape(variance, (-1,))

    def get_config(self):
        config = super().get_config()
        for name in _REPLACED:
            config.pop(name, None)
        return {**config, **self._initial}

    @classmethod
    def from_batch_normalization(cls, config: dict) -> "BatchRenormalization":
        """Builds the layer that takes the place of a batch normalisation.

        Args:
            config: `get_config()` of a `keras.layers.BatchNormalization`.
        """
        kept = {k: v for k, v in config.items() if k not in _REPLACED}
        return cls.from_config(kept)


@keras.saving.register_keras_serializable(package="gnr_keras")
class ReverseChannels(keras.layers.Layer):
    """Reverses the last axis: RGB pixels become BGR, and the other way."""

    def call(self, inputs):
        return ops.flip(inputs, axis=-1)


def leaves(model: keras.Model) -> list[keras.layers.Layer]:
    """Returns the layers of a model, with those of nested models in place."""
    found = []
    for layer in model.layers:
        nested = isinstance(layer, keras.Model)
        found.extend(leaves(layer) if nested else [layer])
    return found


def all_layers(model: keras.Model) -> list[keras.layers.Layer]:
    """Returns the layers of a model, with those inside layers and models."""
    return model._flatten_layers(include_self=False)


def find_layer(
    model: keras.Model, layer: str | keras.layers.Layer
) -> keras.layers.Layer:
    """Returns a layer of a model of any kind, however deep it lies.

    Args:
        model: functional, sequential or subclassed.
        layer: its name, or the layer itself. Of layers with one name, that
            of the model itself goes before those inside others.

    Raises:
        ValueError: where the model has no such layer, or several.
    """
    known = all_layers(model)
    if isinstance(layer, keras.layers.Layer):
        if not any(layer is other for other in known):
            raise ValueError(
                f"The layer {layer!r} is not one of the model {model.name!r}. "
                "A model that was copied or loaded has layers of its own: "
                "give one of them, or its name."
            )
        return layer
    found = [other for other in model.layers if other.name == layer]
    found = found or [other for other in known if other.name == layer]
    if not found:
        names = ", ".join(other.name for other in known)
        raise ValueError(
            f"The model has no layer {layer!r}. Its layers are: {names}."
        )
    if len(found) > 1:
        raise ValueError(
            f"The model has {len(found)} layers {layer!r}. Give the layer "
            "itself instead of its name."
        )
    return found[0]
