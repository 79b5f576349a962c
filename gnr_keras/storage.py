"""Large arrays: in memory up to a limit, on disk beyond it."""

import contextlib
import errno
import itertools
import math
import numbers
import os
import pathlib
import shutil
import tempfile
import weakref
import zipfile
import zlib

import numpy as np

# What reading a file of arrays raises that was cut off or changed.
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


class ArrayStore:
    """Hands out arrays in memory while they fit, and then in files.

    A file has no name, and is mapped into memory as the array: its space is
    free again when the array is gone, or the process, however that ends.

    Args:
        memory_limit: bytes that the living arrays of this store may take up
            in memory; `float("inf")` for no limit.
        folder: existing folder of the files, by default the system's for
            temporary files. (Where that is itself in memory, as a `tmpfs`
            is, name one on a disk.)

    Example:

    >>> store = ArrayStore(memory_limit=1000)
    >>> isinstance(store.empty((10, 10), "float32"), np.memmap)
    False
    >>> isinstance(store.empty((100, 10), "float32"), np.memmap)
    True
    """

    def __init__(self, memory_limit, folder=None):
        is_real = isinstance(memory_limit, numbers.Real)
        if not is_real or not memory_limit >= 0:
            raise ValueError(
                "The memory limit must be a number of bytes from 0 on. "
                f"Received: {memory_limit!r}."
            )
        folder = pathlib.Path(
            tempfile.gettempdir() if folder is None else folder
        )
        if not folder.is_dir():
            raise ValueError(
                f"There is no folder {str(folder)!r} to keep arrays in. Make "
                "it, or name another."
            )
        self.memory_limit = memory_limit
        self.folder = folder
        self.bytes_in_memory = 0

    def empty(self, shape, dtype):
        """Returns an array of any values, to be written to.

        Args:
            shape: shape of the array.
            dtype: type of its values.

        Raises:
            OSError: if there is no room for it on the disk.
        """
        dtype = np.dtype(dtype)
        num_bytes = math.prod(map(int, shape)) * dtype.itemsize
        if self._has_room(num_bytes):
            return self._register(np.empty(shape, dtype))
        with self._open() as file:
            self._reserve(file, num_bytes)
            return np.memmap(file, dtype, "r+", shape=tuple(shape))

    def collect(self, batches):
        """Returns batches of unknown number as one array.

        Args:
            batches: iterable of arrays that differ at most in their length.
        """
        batches = iter(batches)
        first = next(batches, None)
        if first is None:
            raise ValueError("There is no batch to collect; expected some.")
        with _Collection(self, np.asarray(first)) as collection:
            for batch in itertools.chain([first], batches):
                collection.append(np.asarray(batch))
            return collection.finish()

    def _has_room(self, num_bytes):
        # What is empty cannot be mapped, and needs no room.
        return not num_bytes or (
            self.bytes_in_memory + num_bytes <= self.memory_limit
        )

    def _register(self, array):
        """Counts an array until it, and all views of it, are gone."""
        self.bytes_in_memory += array.nbytes
        weakref.finalize(array, self._release, array.nbytes)
        return array

    def _release(self, num_bytes):
        self.bytes_in_memory -= num_bytes

    def _open(self):
        return tempfile.TemporaryFile(dir=self.folder, buffering=0)

    def _reserve(self, file, num_bytes):
        """Takes the space now: a full disk later would kill the process."""
        try:
            _reserve(file, num_bytes, self.folder)
        except OSError as error:
            raise self._full(num_bytes, error) from error

    def _full(self, num_bytes, error):
        free = shutil.disk_usage(self.folder).free
        return OSError(
            error.errno,
            f"An array of {num_bytes:,} bytes, beyond the limit of "
            f"{self.memory_limit:,} bytes in memory, does not fit into "
            f"{str(self.folder)!r}, where {free:,} bytes are free "
            f"({error.strerror}). Free some, name a folder on another disk, or "
            "raise the limit: for a `Learner`, `cache_dir` and "
            "`latent_memory_limit`.",
        )


class _Collection:
    """Batches one after the other, until they go into a file in memory."""

    def __init__(self, store, first):
        self._store = store
        self._shape = first.shape[1:]
        self._array = np.empty((0, *self._shape), first.dtype)
        self._dtype = first.dtype
        self._file = None
        self._length = 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self._file:
            self._file.close()

    def append(self, batch):
        if batch.shape[1:] != self._shape or batch.dtype != self._dtype:
            raise ValueError(
                "All batches must hold arrays of one shape and type, "
                f"{self._shape} and {self._dtype}, as the first does. "
                f"Received: {batch.shape[1:]} and {batch.dtype}."
            )
        length = self._length + len(batch)
        if self._file is None and length > len(self._array):
            self._make_room(length)
        if self._file is None:
            self._array[self._length : length] = batch
        else:
            self._write(self._file, batch)
        self._length = length

    def finish(self):
        if self._file is None:
            self._array.resize((self._length, *self._shape), refcheck=False)
            return self._store._register(self._array)
        return np.memmap(
            self._file, self._dtype, "r+", shape=(self._length, *self._shape)
        )

    def _make_room(self, length):
        for wanted in (length * 3 // 2, length):
            if self._store._has_room(self._bytes(wanted)):
                # Moves pages of memory, and copies nothing.
                self._array.resize((wanted, *self._shape), refcheck=False)
                return
        self._file = self._store._open()
        self._write(self._file, self._array[: self._length])
        self._array = np.empty(0)

    def _write(self, file, batch):
        if not batch.size:
            return
        rest = np.ascontiguousarray(batch).reshape(-1).view(np.uint8).data
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except OSError as error:
            needed = self._bytes(self._length + len(batch))
            raise self._store._full(needed, error) from error

    def _bytes(self, length):
        return length * math.prod(self._shape) * self._dtype.itemsize


@contextlib.contextmanager
def whole_array(path, dtype, shape, part=None):
    """Yields an array in a file, which gets its name when on the disk.

    Args:
        path: a `pathlib.Path`, whose name ends in .npy.
        dtype: type of its numbers.
        shape: its shape.
        part: its path until then, where several processes may write it; by
            default the same each time.

    Raises:
        OSError: at once, where there is no room for it.
    """
    part = part or path.with_name(f"{path.name}.part")
    try:
        array = np.lib.format.open_memmap(part, "w+", dtype, tuple(shape))
        num_bytes = part.stat().st_size
        try:
            with open(part, "r+b") as file:
                _reserve(file, num_bytes, part.parent)
        except OSError as error:
            raise OSError(
                error.errno,
                f"An array of {num_bytes:,} bytes does not fit into "
                f"{str(path.parent)!r} ({error.strerror}). Free some room, or "
                "name a folder on another disk.",
            ) from error
        yield array
        array.flush()
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _give_name(part, path)


@contextlib.contextmanager
def whole_file(path):
    """Opens a file to write bytes, which gets its name when on the disk.

    A process or machine may end at any moment: a file of that name is whole.

    Args:
        path: a `pathlib.Path`.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _give_name(part, path)


def _give_name(part, path):
    os.replace(part, path)
    # The name itself lies in the folder.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _reserve(file, num_bytes, folder):
    """Takes the room of a file that will be mapped into memory."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, num_bytes)
    elif num_bytes > shutil.disk_usage(folder).free:
        raise OSError(errno.ENOSPC, "No space left on device")
    else:
        file.truncate(num_bytes)
