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
        self._descriptors = {}

    def __len__(self):
        return len(self._files)

    def __getitem__(self, index):
        number = int(self._files[index])
        if number not in self._descriptors:
            path = self._paths[number]
            self._descriptors[number] = os.open(path, os.O_RDONLY)
        # Leaves no position behind, so that threads can share the file.
        return os.pread(
            self._descriptors[number],
            int(self._lengths[index]),
            int(self._offsets[index]),
        )

    def __del__(self):
        for descriptor in self.__dict__.get("_descriptors", {}).values():
            os.close(descriptor)


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
