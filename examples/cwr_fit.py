"""CWR consolidation: classes that come later leave the old ones as they were.

Ten classes come two at a time, and no old pattern is kept. `model.fit` alone
ends up with the last two. The callback keeps a row of the head per class. A
model that knows eight classes already, from `model.fit` alone, learns the last
two likewise, once the callback has adopted its rows.

    python examples/cwr_fit.py
"""

import keras
import numpy as np

from gnr_keras.callbacks import CWRConsolidation

NUM_CLASSES = 10


def draw_patterns(classes, per_class, seed):
    """Noise around the centre of each class."""
    centres = np.random.default_rng(0).uniform(size=(NUM_CLASSES, 20))
    labels = np.repeat(classes, per_class)
    noise = np.random.default_rng(seed).normal(0, 0.2, (len(labels), 20))
    return (centres[labels] + noise).astype("float32"), labels


def build_model():
    """Features that stand still, and a head with a row per class."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((20,)),
            keras.layers.Dense(200, activation="relu", trainable=False),
            keras.layers.Dense(NUM_CLASSES, use_bias=False, name="predictions"),
        ]
    )
    model.compile(
        keras.optimizers.SGD(0.1),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def learn(model, cwr=None):
    """Returns the accuracy on all classes, after two at a time."""
    for first in range(0, NUM_CLASSES, 2):
        x, y = draw_patterns([first, first + 1], per_class=100, seed=1 + first)
        callbacks = []
        if cwr:
            cwr.begin_experience(y)
            callbacks = [cwr]
        model.fit(x, y, epochs=5, callbacks=callbacks, verbose=0)
    return accuracy(model)


def go_on(model, adopts):
    """Returns the accuracy after two more classes of a trained model."""
    x, y = draw_patterns(range(NUM_CLASSES - 2), per_class=100, seed=1)
    model.fit(x, y, epochs=20, verbose=0)
    cwr = CWRConsolidation(head="predictions")
    if adopts:
        cwr.adopt(model, y)
    x, y = draw_patterns([8, 9], per_class=100, seed=2)
    cwr.begin_experience(y)
    model.fit(x, y, epochs=5, callbacks=[cwr], verbose=0)
    return accuracy(model)


def accuracy(model):
    x, y = draw_patterns(range(NUM_CLASSES), per_class=50, seed=99)
    return np.mean(model.predict(x, verbose=0).argmax(axis=1) == y)


print(f"Accuracy on all {NUM_CLASSES} classes, after two at a time")
print(f"model.fit alone: {learn(build_model()):.1%}")
# The layer itself, `model.get_layer("predictions")`, would do as well.
cwr = CWRConsolidation(head="predictions")
print(f"with CWRConsolidation: {learn(build_model(), cwr):.1%}")

print("Likewise, after eight classes at once and then two")
print(f"with CWRConsolidation only: {go_on(build_model(), adopts=False):.1%}")
print(f"with adopted rows: {go_on(build_model(), adopts=True):.1%}")
