"""Draws one picture of all embedded objects and of the motion in a session.

python scripts/contact_sheet.py --output=objects.png
"""

import numpy as np
from absl import flags
from matplotlib import figure

from gnr_keras.command_line import starting
from gnr_keras.datasets import drawing

FLAGS = flags.FLAGS
flags.DEFINE_string("output", "embedded_objects.png", "The picture to write.")
flags.DEFINE_integer(
    "image_size", 64, "The side of a frame, in pixels.", lower_bound=8
)
flags.DEFINE_integer("seed", 0, "The seed of the data set.", lower_bound=0)

_SESSIONS = (1, 7)
_STRIP_OBJECT, _STRIP_SESSION, _STRIP_FRAMES = 45, 5, 10


def _draw(object_id, session, frames):
    return drawing.draw_session(
        object_id, session, frames, FLAGS.image_size, FLAGS.seed
    )


def _row(pictures):
    """Lays pictures side by side, with a white gap after each."""
    padding = ((0, 2), (0, 2), (0, 0))
    pictures = [np.pad(p, padding, constant_values=255) for p in pictures]
    return np.concatenate(pictures, axis=1)


def main(argv):
    starting.check_no_arguments(argv)
    members = range(drawing.OBJECTS_PER_CATEGORY)
    rows = []
    for first in range(0, drawing.NUM_OBJECTS, len(members)):
        objects = [first + m for m in members for _ in _SESSIONS]
        sessions = _SESSIONS * len(members)
        # The middle frame of three is the middle of the session.
        rows.append(
            _row(
                [
                    _draw(o, s, 3)[1]
                    for o, s in zip(objects, sessions, strict=True)
                ]
            )
        )
    strip = _draw(_STRIP_OBJECT, _STRIP_SESSION, 2 * _STRIP_FRAMES)
    rows.append(_row(strip[:_STRIP_FRAMES]))
    # Sixteen shades: the sensor noise would make a large file otherwise.
    sheet = np.concatenate(rows) // 16 * 17

    left, top = 0.16, 0.035
    picture = figure.Figure(figsize=(15.6, 15.0), dpi=90)
    axes = picture.add_axes((left, 0.0, 1.0 - left, 1.0 - top))
    axes.imshow(sheet, interpolation="nearest")
    step = FLAGS.image_size + 2
    strip_name = f"{drawing.OBJECT_NAMES[_STRIP_OBJECT]},\nmoving"
    labels = [*drawing.CATEGORY_NAMES, strip_name]
    axes.set_yticks([(i + 0.5) * step for i in range(len(labels))], labels)
    axes.set_xticks(
        [(2 * m + 1) * step for m in members],
        [f"object {m + 1}" for m in members],
    )
    axes.tick_params(length=0, labeltop=True, labelbottom=False, labelsize=20)
    axes.spines[:].set_visible(False)
    picture.savefig(FLAGS.output, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    starting.run(main)
