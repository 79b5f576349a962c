"""Names for the types that many signatures share."""

from __future__ import annotations

import os
from collections.abc import Callable
from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeAlias
from typing import Union

import numpy as np

if TYPE_CHECKING:
    from gnr_keras.datasets.source import Source
    from gnr_keras.streams import Experience

# What is learned or tested: images with their labels, and maybe sessions.
Data: TypeAlias = Union[
    "Source",
    "Experience",
    tuple[np.ndarray, np.ndarray],
    tuple[np.ndarray, np.ndarray, np.ndarray],
]
# Batches of images and labels.
Batches: TypeAlias = Iterator[tuple[np.ndarray, np.ndarray]]
Path: TypeAlias = str | os.PathLike[str]
# Is told that so many parts of so many are done.
Progress: TypeAlias = Callable[[int, int], None]
# All that was learned, as arrays by name.
State: TypeAlias = dict[str, np.ndarray]
# Keras has no type for those of all its backends.
Tensor: TypeAlias = Any
