"""Labelled image sources that streams are cut from."""

from gnr_keras.datasets.embedded import embedded_objects
from gnr_keras.datasets.source import ArraySource
from gnr_keras.datasets.source import Source

__all__ = ["ArraySource", "Source", "embedded_objects"]
