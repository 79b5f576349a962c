"""Random access to the records of TFRecord files."""

import os
import struct

import numpy as np

# Length and its checksum before each record, the record's checksum behind.
_HEADER = 12
_FOOTER = 4


class TFRecords:
    """The records of some files, as a sequence of bytes.

    Only the length of each record is read beforehand.

    Args:
        files: `(path, skip, take)` of each file: records to leave out at its
            start, and how many to take then; -1 takes all.
    """

    def __init__(self, files):
        places = [
            (number, offset, length)
            for number, (path, skip, take) in enumerate(files)
            for offset, length in _scan(path, skip, take)
        ]
        self._files, self._offsets, self._lengths = (
            np.array(places, np.int64).reshape(-1, 3).T
        )
        self._paths = [path for path, _, _ in files]

    def __len__(self):
        return len(self._files)

    def __getitem__(self, index):
        # Opened anew each time: a large set has as many files as a process
        # may have open, and threads read from them at the same time.
        path = self._paths[int(self._files[index])]
        with open(path, "rb", buffering=0) as file:
            return os.pread(
                file.fileno(),
                int(self._lengths[index]),
                int(self._offsets[index]),
            )


def _scan(path, skip, take):
    """Yields offset and length of each record that is wanted."""
    size = os.path.getsize(path)
    position, number = 0, 0
    with open(path, "rb") as file:
        while position < size and (take < 0 or number < skip + take):
            file.seek(position)
            header = file.read(_HEADER)
            if len(header) == _HEADER:
                (length,) = struct.unpack("<Q", header[:8])
            begin = position + _HEADER
            if len(header) < _HEADER or begin + length + _FOOTER > size:
                raise ValueError(
                    f"{path} ends within a record. Delete its folder, and the "
                    "data set will be prepared again."
                )
            if number >= skip:
                yield begin, length
            position, number = begin + length + _FOOTER, number + 1
