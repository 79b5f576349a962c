"""Guards against NaN and infinity, which would spread to all that is learned.

What is on the host anyway is looked at there, and weights once a training: no
step waits for a guard.
"""

import functools
import math
from collections.abc import Callable
from typing import TypeVar
from typing import cast

import keras
import numpy as np

# What other programs have a use for.
__all__ = ["NotFiniteError"]

_Fit = TypeVar("_Fit", bound=Callable)
# The largest number in half precision, which latents are kept in.
LARGEST_HALF = float(np.finfo(np.float16).max)


class NotFiniteError(ValueError):
    """A loss, a latent or a weight is NaN or infinite: a `ValueError`."""


def name_experience(fit: _Fit) -> _Fit:
    """Decorates the `fit` of a learner: a guard's message says in which."""

    @functools.wraps(fit)
    def named(learner, *args, **kwargs):
        try:
            return fit(learner, *args, **kwargs)
        except NotFiniteError as error:
            number = learner.experiences_learned + 1
            raise NotFiniteError(f"Experience {number}: {error}") from error

    return cast(_Fit, named)


def check_loss(logs, owner, epoch, step, steps):
    """Raises `NotFiniteError` for a loss that is none.

    Args:
        logs: the loss and its terms by name, as numbers.
        owner: name of what is trained.
        epoch: number of the epoch, from 1.
        step: steps of it that are done.
        steps: steps of an epoch.
    """
    if math.isfinite(logs["loss"]):
        return
    terms = ", ".join(
        f"{name} {value:.4g}" for name, value in logs.items() if name != "loss"
    )
    raise NotFiniteError(
        f"The loss of {owner!r} is {logs['loss']} in epoch {epoch}, by step "
        f"{step} of {steps} ({terms}): the training diverged. Lower its "
        "learning rates."
    )


def check_variables(variables, owner, cause):
    """Raises `NotFiniteError` where a Keras variable holds NaN or infinity.

    Args:
        variables: Keras variables.
        owner: what they belong to, for the message.
        cause: what is likely wrong, and how to mend it.
    """
    for variable in variables:
        # Far less work than to look at each, and no copy; it may overflow.
        if math.isfinite(keras.ops.sum(variable)):
            continue
        value = keras.ops.convert_to_numpy(variable)
        finite = np.isfinite(value)
        if not finite.all():
            raise NotFiniteError(
                f"{owner} holds NaN or infinity: {np.sum(~finite)} of "
                f"{value.size} numbers in {variable.path}. {cause}"
            )


def all_finite(state):
    """Whether no array holds NaN or infinity.

    Args:
        state: arrays by name.
    """
    arrays = map(np.asarray, state.values())
    return all(
        np.isfinite(array).all() for array in arrays if array.dtype.kind == "f"
    )


def check_memory(memory, owner):
    """Raises `NotFiniteError` for replayed patterns that are not finite.

    Args:
        memory: a `gnr_keras.replay.Memory`.
        owner: name of the replay that it comes from.
    """
    if not np.isfinite(memory.latents).all():
        bad = _first_bad(memory.latents)
        raise NotFiniteError(
            f"Pattern {bad} of {len(memory)} that {owner} replays, of class "
            f"{memory.labels[bad]}, is not finite in half precision. Either "
            "its generator diverged (lower the learning rate of its trainer) "
            f"or makes numbers beyond {LARGEST_HALF:.0f}: give it an "
            "`output_activation` with bounds, and split the backbone after "
            "such a one."
        )


def check_latents(latents, recompute, layer):
    """Raises `NotFiniteError` for latents that half precision cannot hold.

    Args:
        latents: in half precision.
        recompute: returns them in single precision; called only where they
            are not finite, to tell an overflow from a divergence.
        layer: name of the layer that they come from.
    """
    if np.isfinite(latents).all():
        return
    bad = _first_bad(latents)
    whole = np.asarray(recompute(), np.float32)
    if np.isfinite(whole).all():
        raise NotFiniteError(
            f"The latents of {layer!r} are not finite in half precision: "
            f"pattern {bad} of a batch reaches {np.abs(whole).max():.6g}, "
            f"beyond {LARGEST_HALF:.0f}. Split the backbone after a "
            "normalisation or a bounded activation, or scale its images down."
        )
    raise NotFiniteError(
        f"The latents of {layer!r} are not finite in half precision, nor in "
        f"any other: pattern {bad} of a batch holds NaN or infinity, from "
        "weights that are not finite or numbers that overflow below this "
        "layer. If it was trained, its training diverged: lower its learning "
        "rates."
    )


def _first_bad(patterns):
    finite = np.isfinite(patterns).reshape(len(patterns), -1).all(axis=1)
    return int(np.argmin(finite))
