"""Labelled image sources that streams are cut from."""

from gnr_keras.datasets.core50 import core50
from gnr_keras.datasets.embedded import embedded_objects
from gnr_keras.datasets.files import FileSource
from gnr_keras.datasets.imagenet import imagenet
from gnr_keras.datasets.source import ArraySource
from gnr_keras.datasets.source import Source

__all__ = [
    "ArraySource",
    "FileSource",
    "Source",
    "core50",
    "embedded_objects",
    "imagenet",
]
