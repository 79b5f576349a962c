"""Makes the weights that ship with the package, from drawn objects alone.

MobileNetV1 learns to tell apart objects that the embedded data set never
shows: other draws, from other seeds. It plays the part that ImageNet plays
for CORe50.

    python scripts/pretrain.py --output=drawn_objects.weights.h5
"""

import gnr_keras  # noqa: F401, first: it keeps TensorFlow quiet.

# isort: split
import keras
import numpy as np
import tensorflow as tf
from absl import flags

from gnr_keras import backbones
from gnr_keras.command_line import starting
from gnr_keras.datasets import drawing

_OUTPUT = flags.DEFINE_string("output", None, "File to write.", required=True)
_ALPHA = flags.DEFINE_float(
    "alpha", 0.25, "Width of MobileNetV1.", lower_bound=1 / 32
)
_IMAGE_SIZE = flags.DEFINE_integer(
    "image_size", 64, "In pixels.", lower_bound=32
)
_DRAWS = flags.DEFINE_integer(
    "draws", 20, "Draws of 50 objects each.", lower_bound=1
)
_FIRST_SEED = flags.DEFINE_integer(
    "first_seed", 1000, "Seed of draw one.", lower_bound=0
)
_FRAMES = flags.DEFINE_integer(
    "frames", 4, "Frames of each session.", lower_bound=1
)
_EPOCHS = flags.DEFINE_integer(
    "epochs", 12, "Passes over all frames.", lower_bound=1
)
_BATCH_SIZE = 128


def draw_all():
    """Returns frames and labels of all draws; one class per object."""
    images, labels = [], []
    bar = keras.utils.Progbar(_DRAWS.value, unit_name="draw")
    for draw in range(_DRAWS.value):
        for object_id in range(drawing.NUM_OBJECTS):
            for session in range(1, drawing.NUM_SESSIONS + 1):
                video = drawing.draw_session(
                    object_id,
                    session,
                    _FRAMES.value,
                    _IMAGE_SIZE.value,
                    _FIRST_SEED.value + draw,
                )
                images.append(video)
                label = draw * drawing.NUM_OBJECTS + object_id
                labels.append(np.full(len(video), label))
        bar.add(1)
    return np.concatenate(images), np.concatenate(labels)


def main(argv):
    starting.check_no_arguments(argv)
    keras.utils.set_random_seed(0)
    images, labels = draw_all()
    size = _IMAGE_SIZE.value
    backbone = backbones.mobilenet_v1((size, size, 3), _ALPHA.value)
    logits = keras.layers.Dense(int(labels.max()) + 1)(backbone.output)
    model = keras.Model(backbone.input, logits)
    steps = _EPOCHS.value * (len(images) // _BATCH_SIZE)
    model.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(2e-3, steps)
        ),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    data = tf.data.Dataset.from_tensor_slices((images, labels))
    data = data.shuffle(len(images)).batch(_BATCH_SIZE, drop_remainder=True)
    model.fit(data.prefetch(2), epochs=_EPOCHS.value, verbose=2)
    backbone.save_weights(_OUTPUT.value)


if __name__ == "__main__":
    starting.run(main)
