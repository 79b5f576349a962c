"""Draws objects as PNG files, one folder a class, to try own images with.

python scripts/draw_objects.py --output=photos --objects=1,2,3,4
"""

import pathlib

from absl import flags
from matplotlib.image import imsave

from gnr_keras.command_line import starting
from gnr_keras.datasets import drawing
from gnr_keras.datasets import embedded
from gnr_keras.export import folders

_OUTPUT = flags.DEFINE_string("output", "photos", "New folder of the images.")
_OBJECTS = flags.DEFINE_list(
    "objects",
    None,
    f"Their numbers, 1 to {drawing.NUM_OBJECTS}.",
    required=True,
)
_FRAMES = flags.DEFINE_integer(
    "frames", 10, "Images of each of 11 sessions.", lower_bound=1
)
_IMAGE_SIZE = flags.DEFINE_integer(
    "image_size", 64, "Their side, in pixels.", lower_bound=8
)
_SEED = flags.DEFINE_integer(
    "seed", 0, "What the objects are drawn from.", lower_bound=0
)


def main(argv):
    starting.check_no_arguments(argv, "; lists take commas")
    root = pathlib.Path(_OUTPUT.value)
    objects = [_number(text) for text in _OBJECTS.value]
    with folders.whole_folder(root) as part:
        _draw(objects, part)
    print(f"{len(objects)} classes in {root}/train and {root}/test")


def _draw(objects, root):
    for number in objects:
        class_name = drawing.OBJECT_NAMES[number - 1].replace(" ", "_")
        for session in range(1, drawing.NUM_SESSIONS + 1):
            tested = session in embedded.TEST_SESSIONS
            folder = root / ("test" if tested else "train") / class_name
            folder.mkdir(parents=True, exist_ok=True)
            video = drawing.draw_session(
                number - 1,
                session,
                _FRAMES.value,
                _IMAGE_SIZE.value,
                _SEED.value,
            )
            for index, frame in enumerate(video):
                name = f"session_{session:02d}_{index:02d}.png"
                imsave(folder / name, frame)


def _number(text):
    if not text.isdecimal() or not 1 <= int(text) <= drawing.NUM_OBJECTS:
        raise ValueError(
            f"Expected numbers from 1 to {drawing.NUM_OBJECTS} as --objects. "
            f"Received: {text!r}."
        )
    return int(text)


if __name__ == "__main__":
    starting.run(main)
