"""Labelled image sources that streams are cut from."""

from gnr_keras.datasets.conversion import from_dataset
from gnr_keras.datasets.core50 import core50
from gnr_keras.datasets.embedded import embedded_objects
from gnr_keras.datasets.files import FileSource
from gnr_keras.datasets.folders import image_folder
from gnr_keras.datasets.fruits360 import fruits360
from gnr_keras.datasets.images import random_flip
from gnr_keras.datasets.images import random_resized_crop
from gnr_keras.datasets.loading import load_images
from gnr_keras.datasets.source import ArraySource
from gnr_keras.datasets.source import Source
from gnr_keras.datasets.tfds_sets import tfds_images
from gnr_keras.datasets.tiny_imagenet import tiny_imagenet

__all__ = [
    "ArraySource",
    "FileSource",
    "Source",
    "core50",
    "embedded_objects",
    "from_dataset",
    "fruits360",
    "image_folder",
    "load_images",
    "random_flip",
    "random_resized_crop",
    "tfds_images",
    "tiny_imagenet",
]
