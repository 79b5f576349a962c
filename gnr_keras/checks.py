"""Checks of arguments, with messages that are alike everywhere."""

import math
import numbers

import numpy as np

# Patterns at a time that are looked at.
_SLICE = 64


def check_whole(name, value, least=1):
    """Raises `ValueError` unless a value is a whole number.

    Args:
        name: name of the argument.
        value: its value.
        least: the smallest that it may be.
    """
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(
            f"`{name}` must be a whole number of at least {least}. Received: "
            f"{value!r}."
        )


def check_number(name, value, least=0.0, most=math.inf):
    """Raises `ValueError` unless a value is a finite number within bounds.

    Args:
        name: name of the argument.
        value: its value.
        least: the smallest that it may be.
        most: the largest that it may be.
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not least <= value <= most or not math.isfinite(value):
        bounds = (
            f"from {least:g} to {most:g}"
            if most < math.inf
            else (f"of at least {least:g}")
        )
        raise ValueError(
            f"`{name}` must be a finite number {bounds}. Received: {value!r}."
        )


def check_range(x, output_activation, low, high):
    """Raises `ValueError` for patterns that a generator cannot give.

    Args:
        x: array of patterns; it may be a file that is mapped into memory.
        output_activation: name of the activation that its patterns come from.
        low: the smallest number of a pattern then.
        high: the largest.
    """
    if not len(x):
        return
    slices = [x[i : i + _SLICE] for i in range(0, len(x), _SLICE)]
    if low == 0 and x.dtype == np.float16:
        # Processors compare half precision slowly. As whole numbers its bits
        # have the order of what is positive; all else lies above, -0 too.
        top = np.float16(high).view(np.uint16)
        if all(part.view(np.uint16).max() <= top for part in slices):
            return
    wide = np.result_type(x.dtype, np.float32)
    extremes = [
        (part.min(), part.max())
        for part in (np.asarray(part, wide) for part in slices)
    ]
    # Numbers that are none stay so, and lie in no range.
    lowest, highest = np.min(extremes), np.max(extremes)
    if not (low <= lowest and highest <= high):
        raise ValueError(
            f"With output_activation={output_activation!r} the generator's "
            f"patterns lie in [{low}, {high}], but those that it should learn "
            f"lie in [{lowest}, {highest}]. Choose an activation that fits "
            'the latent layer, or "linear".'
        )


def check_function(name, value):
    """Raises `ValueError` unless a value can be called.

    Args:
        name: name of the argument.
        value: its value.
    """
    if not callable(value):
        raise ValueError(
            f"`{name}` must be a function; in a gin file, @ and its name "
            f"without brackets behind. Received: {value!r}."
        )


def as_labels(name, labels) -> np.ndarray:
    """Returns labels as an array, or raises `ValueError` for other things.

    Args:
        name: name of the argument.
        labels: one integer per pattern, in a row or a column.
    """
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    whole = np.issubdtype(labels.dtype, np.integer)
    if not labels.size:
        # An empty list has no type of its own.
        return np.zeros(0, labels.dtype if whole else np.int64)
    if labels.ndim != 1 or not whole:
        raise ValueError(
            f"`{name}` must hold one integer per pattern. Received: shape "
            f"{labels.shape}, dtype {labels.dtype}."
        )
    return labels


def check_classes(labels, num_classes):
    """Raises `ValueError` for labels of classes that there are not.

    Args:
        labels: an array of integers; it may be empty.
        num_classes: how many there are, from 0 on.
    """
    if labels.size and not (labels.min() >= 0 and labels.max() < num_classes):
        raise ValueError(
            f"Labels must lie in [0, {num_classes}). Received: "
            f"{labels.min()} to {labels.max()}."
        )
