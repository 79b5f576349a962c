"""Exports what was learned, for programs that have none of our code."""

from gnr_keras.export.folders import check_new
from gnr_keras.export.litert import write_litert
from gnr_keras.export.saved_model import write_saved_model

__all__ = ["check_new", "write_litert", "write_saved_model"]
