"""Keras callbacks, for the package's own loop and for `model.fit`."""

from gnr_keras.callbacks.batch_renormalization import (
    BatchRenormalizationSchedule,
)
from gnr_keras.callbacks.cwr import CWRConsolidation
from gnr_keras.callbacks.synaptic_intelligence import (
    SynapticIntelligenceConsolidation,
)

__all__ = [
    "BatchRenormalizationSchedule",
    "CWRConsolidation",
    "SynapticIntelligenceConsolidation",
]
