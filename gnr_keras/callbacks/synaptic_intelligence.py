"""Tells Synaptic Intelligence when an experience ends."""

import keras

from gnr_keras import layers
from gnr_keras import optimizers

_NORMALIZATIONS = (
    keras.layers.BatchNormalization,
    keras.layers.GroupNormalization,
    keras.layers.LayerNormalization,
    keras.layers.RMSNormalization,
    keras.layers.UnitNormalization,
)


class SynapticIntelligenceConsolidation(keras.callbacks.Callback):
    """Consolidates a `SynapticIntelligence` at the end of each training.

    One training (one `model.fit`) is one experience. The head gets no
    importance, since its rows for classes to come must move freely and
    `CWRConsolidation` keeps the others; nor do normalisation layers, whose
    few weights follow the statistics of the present data. Callbacks that
    restore weights at the end go before this one.

    Args:
        head: name of the head, a layer of the model, or the layer itself;
            None if there is none to exclude.
        optimizer: the `SynapticIntelligence`, for custom loops. By default
            that of the model, also if a `LossScaleOptimizer` is around it.

    Example:

    ```python
    optimizer = SynapticIntelligence(keras.optimizers.SGD(0.01), strength=1e3)
    model.compile(optimizer, "sparse_categorical_crossentropy")
    consolidation = SynapticIntelligenceConsolidation(head="predictions")
    for x, y in experiences:
        model.fit(x, y, callbacks=[consolidation])
    ```

    Reference:
        Maltoni and Lomonaco, "Continuous learning in single-incremental-task
        scenarios", 2019.
    """

    def __init__(
        self,
        head: str | keras.layers.Layer | None = "head",
        optimizer: keras.optimizers.Optimizer | None = None,
    ) -> None:
        super().__init__()
        self.head = head
        self.optimizer = optimizer
        if optimizer is not None:
            _unwrap(optimizer, "`optimizer`")

    def on_train_begin(self, logs=None):
        # What is wrong shows now, not when the training is over.
        self._find()
        self._excluded()

    def on_train_end(self, logs=None):
        self._find().consolidate(exclude=self._excluded())

    def _find(self):
        if self.optimizer is not None:
            return _unwrap(self.optimizer, "`optimizer`")
        optimizer = getattr(self.model, "optimizer", None)
        return _unwrap(optimizer, "The optimizer of the model")

    def _excluded(self):
        excluded = [
            layer
            for layer in layers.all_layers(self.model)
            if isinstance(layer, _NORMALIZATIONS)
        ]
        if self.head is not None:
            excluded.append(self._head_layer())
        return [variable for layer in excluded for variable in layer.variables]

    def _head_layer(self):
        try:
            return layers.find_layer(self.model, self.head)
        except ValueError as error:
            raise ValueError(
                f"{error} With `head=None` no head is left out."
            ) from error


def _unwrap(optimizer, what):
    """Returns the `SynapticIntelligence`, with what is around it removed."""
    found = optimizer
    while not isinstance(found, optimizers.SynapticIntelligence):
        found = getattr(found, "inner_optimizer", None)
        if found is None:
            raise ValueError(
                f"{what} must be a gnr_keras.optimizers.SynapticIntelligence, "
                "or have one inside. Wrap it: `SynapticIntelligence("
                f"optimizer, strength=...)`. Received: {optimizer!r}."
            )
    return found
