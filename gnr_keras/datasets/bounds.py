"""Bounds on images, looked up in their headers before they are decoded.

A file of a few hundred bytes may announce more pixels than memory can hold.
"""

import struct

import numpy as np
import tensorflow as tf

# Pixels of three bytes each; the largest image of ImageNet has 61 million.
MAX_PIXELS = 2**26
# The longer side over the shorter one: what is resized to cover a square
# grows with it.
MAX_RATIO = 100
# As far as PNG, BMP and GIF tell their size.
_HEADER = 26
_GIF_IMAGE, _GIF_EXTENSION = 0x2C, 0x21


def read_size(data):
    """Reads the size of an encoded image from its header, in TensorFlow.

    Args:
        data: a JPEG, PNG, BMP or GIF, as a string.

    Returns:
        Integers `(height, width, pixels)`; what is none of these has none.
        Pixels of a GIF count all its frames, which are unpacked together at
        one byte each.
    """
    head = tf.io.decode_raw(data, tf.uint8, fixed_length=_HEADER)
    head = tf.cast(head, tf.int64)

    def is_one(magic):
        return tf.reduce_all(head[: len(magic)] == list(magic))

    def number(start, weights):
        return tf.reduce_sum(head[start : start + 4] * weights)

    def png():
        big_endian = [2**24, 2**16, 2**8, 1]
        return _whole(number(20, big_endian), number(16, big_endian))

    def bmp():
        little_endian = [1, 2**8, 2**16, 2**24]
        height, width = number(22, little_endian), number(18, little_endian)
        # A negative height stands for rows from the top.
        return _whole(tf.minimum(height, 2**32 - height), width)

    def jpeg():
        height, width, _ = tf.unstack(tf.image.extract_jpeg_shape(data))
        return _whole(tf.cast(height, tf.int64), tf.cast(width, tf.int64))

    def gif():
        size = tf.numpy_function(_read_gif, [data], tf.int64)
        return tf.ensure_shape(size, (3,))

    return tf.case(
        [
            (is_one(b"\xff\xd8\xff"), jpeg),
            (is_one(b"\x89PNG"), png),
            (is_one(b"GIF8"), gif),
            (is_one(b"BM"), bmp),
        ],
        default=lambda: tf.zeros((3,), tf.int64),
        exclusive=True,
    )


def allow(size):
    """Returns whether an image of that size is decoded, in TensorFlow.

    Args:
        size: what `read_size` returned.
    """
    height, width, pixels = tf.unstack(size)
    sides = tf.minimum(height, width), tf.maximum(height, width)
    return tf.reduce_all(
        [sides[0] > 0, pixels <= MAX_PIXELS, sides[1] <= MAX_RATIO * sides[0]]
    )


def _whole(height, width):
    return tf.stack([height, width, height * width])


def _read_gif(data):
    """Walks over the frames; only their sizes are looked at."""
    # As an array of one string, NumPy drops the zeros at its end.
    data = np.asarray(data).item() + bytes(_HEADER)
    width, height = struct.unpack_from("<HH", data, 6)
    pixels = 0
    try:
        position = 13 + _table_bytes(data[10])
        while data[position] in (_GIF_IMAGE, _GIF_EXTENSION):
            if data[position] == _GIF_EXTENSION:
                position += 2
            else:
                left, top, columns, rows, flags = struct.unpack_from(
                    "<4HB", data, position + 1
                )
                width = max(width, left + columns)
                height = max(height, top + rows)
                pixels += rows * columns
                position += 11 + _table_bytes(flags)
            while data[position]:
                position += data[position] + 1
            position += 1
    except (IndexError, struct.error):
        pass  # It is cut off, which the decoder says better.
    return np.array([height, width, max(height * width, pixels // 3)], np.int64)


def _table_bytes(flags):
    """Of the table of colours that such flags announce."""
    return 3 * 2 ** (flags % 8 + 1) if flags & 0x80 else 0
