"""Batch renormalisation: statistics that few classes in a batch do not spoil.

A model with batch normalisation learns ten classes together, then ten more two
at a time, with CWR consolidation. Its statistics follow the two classes at
hand, and are wrong for all others. A model of one's own has the layer for batch
renormalisation from the start; in one that is trained already, one call puts
it in the place of batch normalisation, and it inherits what was learned.

    python examples/batch_renormalization.py
"""

import keras
import numpy as np

import gnr_keras
from gnr_keras.callbacks import BatchRenormalizationSchedule
from gnr_keras.callbacks import CWRConsolidation
from gnr_keras.layers import BatchRenormalization

NUM_CLASSES = 20
FIRST_CLASSES = 10


def draw_patterns(classes, per_class, seed):
    """Noise around the centre of each class."""
    centres = np.random.default_rng(0).uniform(size=(NUM_CLASSES, 20))
    labels = np.repeat(classes, per_class)
    noise = np.random.default_rng(seed).normal(0, 0.2, (len(labels), 20))
    return (centres[labels] + noise).astype("float32"), labels


def fit(model, classes, callbacks):
    x, y = draw_patterns(classes, per_class=100, seed=1 + classes[0])
    callbacks[0].begin_experience(y)
    model.fit(x, y, epochs=5, callbacks=callbacks, verbose=0)


def learn(normalization, convert=False):
    """Returns the largest change by conversion, and the final accuracy."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((20,)),
            keras.layers.Dense(100, use_bias=False),
            normalization(),
            keras.layers.ReLU(),
            keras.layers.Dense(NUM_CLASSES, use_bias=False, name="predictions"),
        ]
    )
    model.compile(
        keras.optimizers.SGD(0.1),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    test = draw_patterns(range(NUM_CLASSES), per_class=50, seed=99)
    callbacks = [CWRConsolidation(head="predictions")]
    if normalization is BatchRenormalization:
        callbacks.append(BatchRenormalizationSchedule())
    fit(model, range(FIRST_CLASSES), callbacks)
    change = 0.0
    if convert:
        before = model.predict(test[0], verbose=0)
        model = gnr_keras.with_batch_renormalization(model)
        change = np.abs(model.predict(test[0], verbose=0) - before).max()
        callbacks.append(BatchRenormalizationSchedule())
    for first in range(FIRST_CLASSES, NUM_CLASSES, 2):
        fit(model, [first, first + 1], callbacks)
    return change, model.evaluate(*test, verbose=0)[1]


_, normalized = learn(keras.layers.BatchNormalization)
_, renormalized = learn(BatchRenormalization)
change, converted = learn(keras.layers.BatchNormalization, convert=True)
print(f"Accuracy on all {NUM_CLASSES} classes, the last 10 two at a time")
print(f"with batch normalisation: {normalized:.1%}")
print(f"with batch renormalisation: {renormalized:.1%}")
print(f"with batch renormalisation after the first 10: {converted:.1%}")
print(f"largest change of a logit by the conversion: {change:.0e}")
