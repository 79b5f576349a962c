"""Checkpoints: what a run has learned so far, in files that are whole."""

import errno
import fcntl
import pathlib
import re
import time
import warnings

import numpy as np

from gnr_keras import checks
from gnr_keras import storage

# Raised with every change that older versions cannot read.
FORMAT = 1
_HEADER = "format_and_size"
_KEPT = 2


class Checkpoints:
    """The states of one run after its experiences, and in them, in a folder.

    A file gets its name when it is on the disk and whole, so that a process
    or machine may end at any moment; the two latest are kept. They hold
    arrays and text alone: reading one runs no code of it. While one process
    uses the folder, others are refused.

    Args:
        folder: a folder; it is made by the first `save`.
        seconds: time that has to pass before the next is written, for
            streams of many short experiences; 0 for one after each. The last
            of a stream is always written.
        within_seconds: likewise for those in the middle of an experience, for
            long ones; `None` for none there.
        texts: for each name a function that returns the text of a file of
            that name, left beside the checkpoints.

    Example:

    ```python
    with Checkpoints("run/checkpoints") as checkpoints:
        checkpoints.save(learner.experiences_learned, learner.state())
        learned, state = checkpoints.latest()
    ```
    """

    def __init__(self, folder, seconds=30.0, within_seconds=None, texts=None):
        checks.check_number("seconds", seconds)
        if within_seconds is not None:
            checks.check_number("within_seconds", within_seconds)
        self.folder = pathlib.Path(folder)
        self.seconds = seconds
        self.within_seconds = within_seconds
        self._texts = texts or {}
        self._last = time.monotonic()
        self._lock = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._lock:
            self._lock.close()
            self._lock = None

    @property
    def due(self):
        """Whether one should follow at the end of an experience."""
        return time.monotonic() - self._last >= self.seconds

    @property
    def due_within(self):
        """Whether one should follow in the middle of an experience."""
        return self.within_seconds is not None and (
            time.monotonic() - self._last >= self.within_seconds
        )

    def save(self, learned, state, within=False):
        """Writes a state, and drops those before the last two.

        Args:
            learned: number of experiences that it has learned.
            state: arrays by name.
            within: whether it is in the middle of the next one.
        """
        state = {name: np.asarray(value) for name, value in state.items()}
        for name, value in state.items():
            if value.dtype.hasobject:
                raise TypeError(
                    f"Expected numbers or text in {name!r} of a checkpoint. "
                    f"Received: an array of {value.dtype}."
                )
        path = self.folder / f"experience_{learned:05d}.npz"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            if within:
                path = path.with_stem(f"{path.stem}_part_{self._next(learned)}")
            for part in self.folder.glob("*.part"):
                part.unlink()
            for name, text in self._texts.items():
                with storage.whole_file(self.folder / name) as file:
                    file.write(text().encode())
            with storage.whole_file(path) as file:
                header = np.array([FORMAT, len(state)])
                arrays: dict = {_HEADER: header, **state}
                np.savez(file, **arrays)
            self._prune(_KEPT)
        except OSError as error:
            raise OSError(
                f"Cannot write the checkpoint {path} ({error}). What was "
                "saved before is still there: make room, or mend what is "
                "wrong, and give the same command again."
            ) from error
        self._last = time.monotonic()

    def latest(self):
        """Returns `(learned, state)` of the last that is whole, or `None`.

        Raises:
            ValueError: where there are some and none can be read, or the last
                is of a format that this version does not know.
        """
        found = self._found()
        if found:
            self._take_lock_if_writable()
        for (learned, _), path in reversed(found):
            try:
                with np.load(path, allow_pickle=False) as file:
                    version, size = file[_HEADER].tolist()
                    state = dict(file) if version == FORMAT else {}
            except storage.UNREADABLE as error:
                _warn_damaged(path, str(error) or type(error).__name__)
                continue
            if version != FORMAT:
                raise ValueError(
                    f"{path} has format {version}; this version of gnr_keras "
                    f"reads format {FORMAT}. Go on with the version that "
                    "wrote it, or move its folder away to begin anew."
                )
            del state[_HEADER]
            if len(state) == size:
                return learned, state
            _warn_damaged(path, f"{len(state)} of {size} arrays")
        if found:
            raise ValueError(
                f"None of the checkpoints in {self.folder} can be read. Move "
                "the folder away to begin anew."
            )
        return None

    def finish(self):
        """Drops all but the last, where a run is finished."""
        self._prune(1)

    def _prune(self, number):
        for _, old in self._found()[:-number]:
            old.unlink()

    def _take_lock(self):
        if self._lock:
            return
        # The system unlocks the file of a process that ends.
        lock = open(self.folder / "lock", "w")  # noqa: SIM115
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise ValueError(
                f"Another process is at work on {self.folder}. Wait until it "
                "has ended, or choose another --output_dir."
            ) from error
        self._lock = lock

    def _take_lock_if_writable(self):
        """To read, no lock is needed where nobody can write."""
        try:
            self._take_lock()
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise

    def _next(self, learned):
        """Number of the next part of an experience, counted from 1."""
        parts = [
            part for (number, part), _ in self._found() if number == learned
        ]
        return f"{max(parts, default=0) + 1:05d}"

    def _found(self):
        """Files by the experiences that they have learned, and the part."""
        pattern = re.compile(r"experience_(\d+)(?:_part_(\d+))?\.npz")
        matches = (
            (pattern.fullmatch(path.name), path)
            for path in self.folder.glob("experience_*.npz")
        )
        return sorted(
            ((int(m[1]), int(m[2] or 0)), path) for m, path in matches if m
        )


def _warn_damaged(path, reason):
    warnings.warn(
        f"{path} is damaged ({reason}) and passed over.", stacklevel=3
    )
