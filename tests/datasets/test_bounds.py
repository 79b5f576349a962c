"""Tests that images are bounded before they are decoded."""

import struct
import warnings
import zlib

import numpy as np
import pytest
import tensorflow as tf

from gnr_keras.datasets import FileSource
from gnr_keras.datasets import bounds
from gnr_keras.datasets import image_folder

SIDE = 60_000


def png(height, width):
    def chunk(kind, data):
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(100)))
        + chunk(b"IEND", b"")
    )


def bmp(height, width):
    return (
        b"BM"
        + struct.pack("<IHHI", 154, 0, 0, 54)
        + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, *[0] * 6)
        + bytes(100)
    )


def gif(*frames, screen=(1, 1)):
    """Frames of one colour; a comment comes before each."""
    content = b"GIF89a" + struct.pack("<HHBBB", *screen[::-1], 0x80, 0, 0)
    content += bytes(6)
    for height, width in frames:
        content += b"\x21\xfe\x02hi\x00"
        content += b"," + struct.pack("<4HB", 0, 0, width, height, 0)
        content += b"\x02\x02\x44\x01\x00"
    return content + b";"


def jpeg(height, width):
    """A whole file of 8 x 8 pixels that announces others."""
    content = bytearray(tf.io.encode_jpeg(np.zeros((8, 8, 3), "uint8")).numpy())
    place = content.index(b"\xff\xc0") + 5
    content[place : place + 4] = struct.pack(">HH", height, width)
    return bytes(content)


def test_sizes_are_those_that_the_decoder_comes_to():
    """Of files by TensorFlow's own encoders, and by hand where it has none."""
    image = np.zeros((5, 7, 3), np.uint8)
    for data in (
        tf.io.encode_png(image),
        tf.io.encode_png(image[..., :1]),
        tf.io.encode_jpeg(image),
        tf.io.encode_jpeg(image, format="rgb", progressive=True),
        gif((5, 7), screen=(5, 7)),
    ):
        size = bounds.read_size(data).numpy().tolist()
        assert size == [5, 7, 35]
    for height in (5, -5):
        rows = bmp(height, 7)[:54] + bytes(5 * 24)
        assert tf.io.decode_image(rows).shape == (5, 7, 3)
        assert bounds.read_size(rows).numpy().tolist() == [5, 7, 35]


def test_all_frames_of_a_gif_count():
    """They are unpacked together, at one byte a pixel."""
    frames = [(2000, 2000)] * 60
    size = bounds.read_size(gif(*frames)).numpy()
    assert size.tolist() == [2000, 2000, 60 * 2000 * 2000 // 3]
    assert not bounds.allow(bounds.read_size(gif(*frames)))
    assert bounds.allow(bounds.read_size(gif(*frames[:40])))
    # Frames that are larger than the screen, and those of a file cut off.
    cut = gif((1, 1), (SIDE, SIDE))[:-6]
    assert bounds.read_size(cut).numpy().tolist()[:2] == [SIDE, SIDE]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Three images, of which tests replace the one in the middle."""
    folder = tmp_path_factory.mktemp("images")
    good = tf.io.encode_png(np.full((8, 8, 3), 9, "uint8")).numpy()
    paths = [folder / "0.png", folder / "1.png", folder / "2.png"]
    for path in paths:
        path.write_bytes(good)
    return FileSource(paths, [0, 1, 0], image_size=8, root=folder)


@pytest.mark.parametrize(
    "data",
    [
        png(SIDE, SIDE),
        bmp(SIDE, SIDE),
        bmp(-SIDE, SIDE),
        gif((1, 1), screen=(SIDE, SIDE)),
        gif((SIDE, SIDE)),
        jpeg(SIDE, SIDE),
        # TensorFlow itself makes 400 MB of this one, without complaint.
        jpeg(11_600, 11_600),
        # In all, no more than others; to cover a square, it would be.
        jpeg(60_000, 8),
    ],
    ids=[
        "PNG",
        "BMP",
        "upside down",
        "screen",
        "frame",
        "JPEG",
        "valid",
        "bar",
    ],
)
def test_files_that_announce_too_much_are_not_decoded(data, source):
    assert len(data) < 1000
    (source.root / "1.png").write_bytes(data)
    with pytest.raises(
        ValueError,
        match=r"1\.png announces \d+ x \d+ pixels, .* Expected at most "
        r"67,108,864, and no side over 100 times .* not decoded. Make it",
    ):
        list(source.batches([0, 1, 2], 3))
    # What is wrong in one image says nothing of others.
    ((images, _),) = source.batches([0, 2], 2)
    assert (images == 9).all()


def test_they_are_left_out_like_others_that_cannot_be_read(tmp_path):
    good = tf.io.encode_png(np.zeros((8, 8, 3), "uint8")).numpy()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for i in range(4):
            (tmp_path / name / f"{i}.png").write_bytes(good)
    bomb = tmp_path / "a" / "0.png"
    bomb.write_bytes(jpeg(11_600, 11_600))
    with pytest.warns(UserWarning, match="1 of .* images cannot be read"):
        train, _ = image_folder(tmp_path, 8, skip_corrupt=True)
    assert train.skipped == (str(bomb),)
    # Large photographs are no bombs.
    bomb.write_bytes(jpeg(8000, 8000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train, _ = image_folder(tmp_path, 8, skip_corrupt=True)
    assert not train.skipped


def test_other_kinds_of_files_are_refused(source):
    """TensorFlow would decode WebP too, whose size is not looked up."""
    webp = b"RIFF\x24\0\0\0WEBPVP8 " + bytes(40)
    (source.root / "1.png").write_bytes(webp)
    with pytest.raises(
        ValueError,
        match="1.png cannot be read as an image: it is of another kind. Expec",
    ):
        list(source.batches([1], 1))
