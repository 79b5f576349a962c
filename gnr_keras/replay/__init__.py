"""Replay memories: original, generated, random or none, one interface."""

from gnr_keras.replay.base import Memory
from gnr_keras.replay.base import NoReplay
from gnr_keras.replay.base import Replay
from gnr_keras.replay.generated import GeneratedReplay
from gnr_keras.replay.mixing import mix_batches
from gnr_keras.replay.original import OriginalReplay
from gnr_keras.replay.random import RandomReplay

__all__ = [
    "GeneratedReplay",
    "Memory",
    "NoReplay",
    "OriginalReplay",
    "RandomReplay",
    "Replay",
    "mix_batches",
]
