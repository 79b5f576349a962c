"""Keras metrics of the package."""

import keras
from keras import ops

from gnr_keras import losses


@keras.saving.register_keras_serializable(package="gnr_keras")
class CurrentAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """Accuracy on patterns of the experience; replayed ones do not count.

    Beside `gnr_keras.losses.NegativeReplayLoss`, where Keras' own accuracy
    would take the flag of what is replayed for a label. Labels without flags
    all count, as in `model.evaluate(x_test, y_test)`.

    Args:
        name: name of the metric.
        dtype: see `keras.metrics.Metric`.

    Example:

    >>> metric = CurrentAccuracy()
    >>> metric.update_state([[1, 0], [0, 1]], [[0.0, 1.0], [0.0, 1.0]])
    >>> float(metric.result())
    1.0
    """

    def __init__(
        self, name: str = "accuracy", dtype: str | None = None
    ) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels, is_replay = losses.split_flags(ops.convert_to_tensor(y_true))
        counts = ops.cast(ops.logical_not(is_replay), "float32")
        if sample_weight is not None:
            counts = counts * ops.reshape(sample_weight, (-1,))
        super().update_state(labels, y_pred, counts)

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype}
