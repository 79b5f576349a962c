"""Generative negative replay, and continual learning, for Keras."""

import importlib
from types import ModuleType

from gnr_keras import quiet

# Before all that imports TensorFlow.
quiet.start()

# isort: split
from gnr_keras import backbones
from gnr_keras import callbacks
from gnr_keras import datasets
from gnr_keras import evaluation
from gnr_keras import export
from gnr_keras import guards
from gnr_keras import layers
from gnr_keras import losses
from gnr_keras import metrics
from gnr_keras import objectives
from gnr_keras import optimizers
from gnr_keras import protocols
from gnr_keras import quality
from gnr_keras import replay
from gnr_keras import schedules
from gnr_keras import statistics
from gnr_keras import strategies
from gnr_keras import streams
from gnr_keras.backbones import application
from gnr_keras.backbones import mobilenet_v1
from gnr_keras.backbones import resnet_18
from gnr_keras.backbones import split
from gnr_keras.backbones import with_batch_renormalization
from gnr_keras.centered import CenteredVAE
from gnr_keras.gaussian import ClassGaussian
from gnr_keras.gaussian import GaussianTrainer
from gnr_keras.generator import ConditionalVAE
from gnr_keras.learner import Learner
from gnr_keras.replay import GeneratedReplay
from gnr_keras.replay import NoReplay
from gnr_keras.replay import OriginalReplay
from gnr_keras.replay import RandomReplay
from gnr_keras.trainers import ClassifierTrainer
from gnr_keras.trainers import GeneratorTrainer
from gnr_keras.trainers import Phase

__version__ = "0.1.0"

# Imported when they are asked for: most programs have no use for them, and
# one of them imports gin.
_LATER = ("continuing", "profiling", "progress", "tensorboard")

__all__ = [
    "CenteredVAE",
    "ClassGaussian",
    "ClassifierTrainer",
    "ConditionalVAE",
    "GaussianTrainer",
    "GeneratedReplay",
    "GeneratorTrainer",
    "Learner",
    "NoReplay",
    "OriginalReplay",
    "Phase",
    "RandomReplay",
    "application",
    "backbones",
    "callbacks",
    "datasets",
    "evaluation",
    "export",
    "guards",
    "layers",
    "losses",
    "metrics",
    "objectives",
    "optimizers",
    "protocols",
    "quality",
    "mobilenet_v1",
    "replay",
    "resnet_18",
    "schedules",
    "split",
    "statistics",
    "strategies",
    "streams",
    "with_batch_renormalization",
]


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
