"""A miniature CORe50 in the layout of the real one, and lists of its files."""

import itertools

import numpy as np
import tensorflow as tf

SESSIONS = range(1, 12)
OBJECTS = range(1, 51)
TEST_SESSIONS = (3, 7, 10)


def frame_name(session, number, frame):
    return f"s{session}/o{number}/C_{session:02}_{number:02}_{frame:03}.png"


def write_tree(folder, frames=2, size=32, objects=OBJECTS, sessions=SESSIONS):
    """Writes `folder/core50_128x128`: objects by colour, sessions by light.

    Returns:
        The path of `core50_128x128`.
    """
    rng = np.random.default_rng(0)
    colors = rng.uniform(40, 215, (51, 3))
    root = folder / "core50_128x128"
    for session, number in itertools.product(sessions, objects):
        for frame in range(frames):
            image = colors[number] + 3.0 * session
            image = image + rng.normal(0, 4, (size, size, 3))
            path = root / frame_name(session, number, frame)
            path.parent.mkdir(parents=True, exist_ok=True)
            data = tf.io.encode_png(image.clip(0, 255).astype("uint8"))
            path.write_bytes(data.numpy())
    return root


def write_lists(folder, experiences, number_of=None, test_frames=()):
    """Writes the lists of a run, as the authors' archives hold them.

    Args:
        folder: of the run, such as `NC_inc/run0`.
        experiences: for each, its frames as `(session, object, frame)`.
        number_of: class that the lists give to an object; by default its
            number less one.
        test_frames: frames of `test_filelist.txt`; none writes no such list.
    """
    number_of = number_of or {number: number - 1 for number in OBJECTS}
    folder.mkdir(parents=True)

    def write(name, frames):
        lines = [f"{frame_name(*f)} {number_of[f[1]]}\n" for f in frames]
        (folder / name).write_text("".join(lines))

    for k, frames in enumerate(experiences):
        write(f"train_batch_{k:02}_filelist.txt", frames)
    if test_frames:
        write("test_filelist.txt", test_frames)
