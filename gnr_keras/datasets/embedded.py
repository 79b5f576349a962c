"""The embedded data set: 50 drawn objects, with the structure of CORe50."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import uuid
from typing import TYPE_CHECKING

import numpy as np

from gnr_keras import checks
from gnr_keras import dry
from gnr_keras import storage
from gnr_keras import types
from gnr_keras.datasets import downloads
from gnr_keras.datasets import drawing
from gnr_keras.datasets.source import ArraySource

if TYPE_CHECKING:
    from gnr_keras.datasets.source import Source

TEST_SESSIONS = (3, 7, 10)
# Part of the file's name: a change of the drawing must not find old files.
_VERSION = 1


def embedded_objects(
    image_size: int = 64,
    frames_per_session: int = 20,
    seed: int = 0,
    data_dir: types.Path | None = None,
    progress: types.Progress | None = None,
) -> tuple[Source, Source]:
    """Draws the embedded data set, or opens it where it was drawn before.

    50 objects (10 categories x 5) are filmed in 11 sessions each, every
    session with its own background, light and motion. Sessions 3, 7 and 10
    are the test set, as in CORe50.

    Args:
        image_size: height and width of a frame, in pixels.
        frames_per_session: frames of a session's video.
        seed: the objects and sessions are drawn from it.
        data_dir: folder for the drawn files; `default_data_dir()` if `None`.
        progress: optional function of `(done, total)` sessions drawn.

    Returns:
        Two sources `(train, test)` with one class per object, memory-mapped.
    """
    checks.check_whole("image_size", image_size)
    checks.check_whole("frames_per_session", frames_per_session)
    checks.check_whole("seed", seed, least=0)
    folder = (
        pathlib.Path(data_dir or downloads.default_data_dir())
        / "embedded_objects"
    )
    name = f"{image_size}px_{frames_per_session}frames_seed{seed}_v{_VERSION}"
    path = folder / f"{name}.npy"
    shape = (
        drawing.NUM_OBJECTS,
        drawing.NUM_SESSIONS,
        frames_per_session,
        image_size,
        image_size,
        3,
    )
    if dry.is_on() and not path.exists():
        # A plan asks how many there are, and not what they show.
        return _split(np.zeros(shape, np.uint8))
    try:
        if not path.exists():
            _draw(path, shape, seed, progress)
    except OSError as error:
        raise OSError(
            f"Cannot keep the drawn images in {folder} ({error}). Make room, "
            "or name another folder as `data_dir`."
        ) from error
    try:
        frames = np.load(path, mmap_mode="r", allow_pickle=False)
        if frames.shape != shape or frames.dtype != np.uint8:
            raise ValueError(
                f"{frames.dtype} of shape {frames.shape}, not uint8 of {shape}"
            )
    except (EOFError, OSError, ValueError) as error:
        raise ValueError(
            f"{path} is not a whole file of drawn frames ({error}). Delete it; "
            "it will be drawn again."
        ) from error
    return _split(frames)


def _split(frames):
    objects, sessions, _ = np.indices(frames.shape[:3]).reshape(3, -1)
    frames = frames.reshape(-1, *frames.shape[-3:])
    sessions = sessions + 1
    everything = ArraySource(frames, objects, sessions, drawing.OBJECT_NAMES)
    is_test = np.isin(sessions, TEST_SESSIONS)
    return (
        everything.subset(np.flatnonzero(~is_test)),
        everything.subset(np.flatnonzero(is_test)),
    )


def _draw(path, shape, seed, progress):
    frames_per_session, image_size = shape[2:4]
    cells = [
        (object_id, session)
        for object_id in range(drawing.NUM_OBJECTS)
        for session in range(1, drawing.NUM_SESSIONS + 1)
    ]

    def draw(cell: tuple[int, int]):
        return drawing.draw_session(*cell, frames_per_session, image_size, seed)

    path.parent.mkdir(parents=True, exist_ok=True)
    # Under another name until it is whole: a run that is stopped while
    # drawing must not leave a file that the next one takes for good.
    # Not by `tempfile`, whose files nobody else may read.
    temporary = path.with_name(f"{path.stem}.{uuid.uuid4().hex}.part")
    with (
        storage.whole_array(path, np.uint8, shape, temporary) as frames,
        concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        try:
            drawn = pool.map(draw, cells)
            for done, (cell, video) in enumerate(
                zip(cells, drawn, strict=True)
            ):
                frames[cell[0], cell[1] - 1] = video
                if progress:
                    progress(done + 1, len(cells))
        finally:
            # An interruption must not wait for what is not begun.
            pool.shutdown(cancel_futures=True)
