"""Checkpoints: what a run has learned so far, in files that are whole."""

import contextlib
import os
import pathlib
import re
import time
import warnings
import zipfile
import zlib

import numpy as np

# Raised with every change that older versions cannot read.
FORMAT = 1
_KEY = "format"
_KEPT = 2
# What reading a file raises that was cut off or changed.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError)


class Checkpoints:
    """The states of one run after its experiences, in a folder.

    A file gets its name when it is on the disk and whole, so that a process
    or machine may end at any moment; the two latest are kept. They hold
    arrays and text alone: reading one runs no code of it.

    Args:
        folder: a folder; it is made where there is none.
        seconds: time that has to pass before the next is written, for
            streams of many short experiences; 0 for one after each. The last
            of a stream is always written.
        config: text that is left beside them as `config.gin`, for who asks
            what they were made with.

    Example:

    ```python
    checkpoints = Checkpoints("run/checkpoints")
    checkpoints.save(learner.experiences_learned, learner.state())
    learned, state = checkpoints.latest()
    ```
    """

    def __init__(self, folder, seconds=30.0, config=None):
        self.folder = pathlib.Path(folder)
        self.seconds = seconds
        self._config = config
        self._last = time.monotonic()

    @property
    def due(self):
        """Whether enough time has passed since the last one."""
        return time.monotonic() - self._last >= self.seconds

    def save(self, learned, state):
        """Writes a state, and drops those before the last two.

        Args:
            learned: number of experiences that it has learned.
            state: arrays by name.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._config is not None:
            (self.folder / "config.gin").write_text(self._config)
        path = self.folder / f"experience_{learned:05d}.npz"
        part = path.with_suffix(".npz.part")
        try:
            with open(part, "wb") as file:
                np.savez(file, **{_KEY: np.array(FORMAT)}, **state)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            part.unlink(missing_ok=True)
            raise OSError(
                f"Cannot write the checkpoint {path} ({error}). What was "
                "saved before is still there: make room, or mend what is "
                "wrong, and give the same command again."
            ) from error
        os.replace(part, path)
        for _, old in self._found()[:-_KEPT]:
            old.unlink()
        self._last = time.monotonic()

    def clear(self):
        """Deletes them all, where a run is finished and will not go on."""
        for _, path in self._found():
            path.unlink()
        (self.folder / "config.gin").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()  # Fails where there is something else in it.

    def latest(self):
        """Returns `(learned, state)` of the last that is whole, or `None`.

        Raises:
            ValueError: where there are some and none can be read, or the last
                is of a format that this version does not know.
        """
        found = self._found()
        for learned, path in reversed(found):
            try:
                with np.load(path, allow_pickle=False) as file:
                    state = dict(file)
                version = int(state.pop(_KEY))
            except (*_DAMAGED, KeyError) as error:
                warnings.warn(
                    f"{path} is damaged ({str(error) or type(error).__name__}) "
                    "and passed over.",
                    stacklevel=2,
                )
                continue
            if version != FORMAT:
                raise ValueError(
                    f"{path} has format {version}; this version of gnr_keras "
                    f"reads format {FORMAT}. Go on with the version that "
                    "wrote it, or move its folder away to begin anew."
                )
            return learned, state
        if found:
            raise ValueError(
                f"None of the checkpoints in {self.folder} can be read. Move "
                "the folder away to begin anew."
            )
        return None

    def _found(self):
        """Files by the number of experiences that they have learned."""
        matches = (
            (re.fullmatch(r"experience_(\d+)\.npz", path.name), path)
            for path in self.folder.glob("experience_*.npz")
        )
        return sorted((int(m[1]), path) for m, path in matches if m)
