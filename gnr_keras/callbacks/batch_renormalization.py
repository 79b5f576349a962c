"""Moves the limits of batch renormalisation while a model trains."""

import keras
import numpy as np

from gnr_keras import checks
from gnr_keras import layers
from gnr_keras import types


class BatchRenormalizationSchedule(keras.callbacks.Callback):
    """Opens batch renormalisation over the first experience.

    During the first training (one `model.fit`) `r_max` and `d_max` grow
    linearly from batch normalisation (1 and 0) to their final values, and the
    moving statistics follow at `first_update_rate`. In later trainings the
    limits stay, and the statistics move at `later_update_rate`: slowly, since
    an experience of one or few classes is a biased sample of all.

    Args:
        r_max: final limit of the scale correction.
        d_max: final limit of the shift correction.
        first_update_rate: update rate of the statistics in the first
            training.
        later_update_rate: update rate in all later ones.

    Example:

    ```python
    schedule = BatchRenormalizationSchedule()
    for x, y in experiences:
        model.fit(x, y, callbacks=[schedule])
    ```
    """

    def __init__(
        self,
        r_max: float = 1.25,
        d_max: float = 0.5,
        first_update_rate: float = 0.01,
        later_update_rate: float = 5e-5,
    ) -> None:
        super().__init__()
        checks.check_number("r_max", r_max, least=1.0)
        checks.check_number("d_max", d_max)
        checks.check_number("first_update_rate", first_update_rate, most=1.0)
        checks.check_number("later_update_rate", later_update_rate, most=1.0)
        self.r_max = r_max
        self.d_max = d_max
        self.first_update_rate = first_update_rate
        self.later_update_rate = later_update_rate
        self.trainings = 0
        self._epoch = 0

    def state(self) -> types.State:
        """Returns the number of trainings, as an array by name."""
        return {"trainings": np.array(self.trainings)}

    def restore(self, state: types.State) -> None:
        """Goes on from what `state` returned."""
        self.trainings = int(state["trainings"])

    def on_train_begin(self, logs=None):
        first = self.trainings == 0
        self._assign(
            0.0 if first else 1.0,
            self.first_update_rate if first else self.later_update_rate,
        )

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if self.trainings:
            return
        steps = self.params.get("steps")
        if not steps:
            # A dataset of unknown length: whole epochs are all that is known.
            steps, batch = 1, 0
        done = (self._epoch * steps + batch) / (self.params["epochs"] * steps)
        self._assign(done, self.first_update_rate)

    def on_train_end(self, logs=None):
        if not self.trainings:
            self._assign(1.0, self.first_update_rate)
        self.trainings += 1

    def _assign(self, progress, update_rate):
        for layer in layers.all_layers(self.model):
            if isinstance(layer, layers.BatchRenormalization):
                if not layer.built:
                    raise ValueError(
                        f"{layer.name!r} has no weights yet. Build the model "
                        "before training."
                    )
                layer.r_max.assign(1.0 + progress * (self.r_max - 1.0))
                layer.d_max.assign(progress * self.d_max)
                layer.update_rate.assign(update_rate)
