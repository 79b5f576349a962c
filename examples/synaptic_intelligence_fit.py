"""Synaptic Intelligence: weights that mattered earlier are held back.

The same classes come under three conditions, as of different light, one after
the other. `model.fit` alone loses the first. An optimizer around yours weighs
what each weight did, and a callback tells it when an experience ends.

    python examples/synaptic_intelligence_fit.py
"""

import keras
import numpy as np

from gnr_keras.callbacks import SynapticIntelligenceConsolidation
from gnr_keras.optimizers import SynapticIntelligence

NUM_CLASSES = 10
CONDITIONS = ("first", "second", "third")


def draw_patterns(condition, per_class, seed):
    """Noise around the centre that each class has under a condition."""
    number = CONDITIONS.index(condition)
    centres = np.random.default_rng(100 + number).uniform(
        size=(NUM_CLASSES, 20)
    )
    labels = np.repeat(np.arange(NUM_CLASSES), per_class)
    rng = np.random.default_rng([seed, number])
    noise = rng.normal(0, 0.2, (len(labels), 20))
    return (centres[labels] + noise).astype("float32"), labels


def learn(optimizer, callbacks):
    """Returns the accuracy under each condition, after all of them."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((20,)),
            keras.layers.Dense(200, activation="relu"),
            keras.layers.Dense(NUM_CLASSES),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    for condition in CONDITIONS:
        x, y = draw_patterns(condition, per_class=100, seed=1)
        model.fit(
            x, y, batch_size=100, epochs=20, callbacks=callbacks, verbose=0
        )
    return [
        model.evaluate(*draw_patterns(condition, 50, seed=2), verbose=0)[1]
        for condition in CONDITIONS
    ]


alone = learn(keras.optimizers.SGD(0.3), callbacks=[])
protected = learn(
    SynapticIntelligence(
        keras.optimizers.SGD(0.3), strength=0.3, clip=10.0, epsilon=0.01
    ),
    # The head serves all conditions, so it is held back like the rest. Where
    # classes are new, give its name, or the layer: it then stays free.
    callbacks=[SynapticIntelligenceConsolidation(head=None)],
)
print(f"Accuracy under the {', '.join(CONDITIONS)} condition, after all")
print("model.fit alone:", ", ".join(f"{a:.1%}" for a in alone))
print("with SynapticIntelligence:", ", ".join(f"{a:.1%}" for a in protected))
