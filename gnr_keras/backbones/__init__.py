"""Backbones, and the split of one at a latent layer into front and back."""

from gnr_keras.backbones.applications import application
from gnr_keras.backbones.mobilenet import mobilenet_v1
from gnr_keras.backbones.resnet import resnet_18
from gnr_keras.backbones.surgery import above
from gnr_keras.backbones.surgery import output_activation
from gnr_keras.backbones.surgery import resolve_layer
from gnr_keras.backbones.surgery import split
from gnr_keras.backbones.surgery import with_batch_renormalization
from gnr_keras.backbones.surgery import with_head

__all__ = [
    "above",
    "application",
    "mobilenet_v1",
    "output_activation",
    "resnet_18",
    "resolve_layer",
    "split",
    "with_batch_renormalization",
    "with_head",
]
