"""Tests of images in files."""

import threading

import helpers
import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import streams
from gnr_keras.datasets import FileSource
from gnr_keras.datasets import files

FRAMES = helpers.SHARED / "core50" / "frames"


def write_png(path, image):
    tf.io.write_file(str(path), tf.io.encode_png(np.asarray(image, "uint8")))
    return path


def gray(rows, channels=3):
    """An image whose channels all hold `rows`."""
    return np.repeat(np.asarray(rows)[..., None], channels, axis=-1)


def read(path, image_size):
    ((images, _),) = FileSource([path], [0], image_size).batches([0], 1)
    return images[0]


@pytest.fixture
def paths(tmp_path):
    """Six images of 2 x 3 pixels, each of which holds its own position."""
    return [
        write_png(tmp_path / f"{i}.png", np.full((2, 3, 3), i))
        for i in range(6)
    ]


def positions_and_labels(source, indices, batch_size=10):
    parts = list(source.batches(indices, batch_size))
    images = np.concatenate([images for images, _ in parts])
    labels = np.concatenate([labels for _, labels in parts])
    return images[:, 0, 0, 0].tolist(), labels.tolist()


def test_file_source_describes_itself(paths):
    source = FileSource(
        paths, [0, 1, 2] * 2, (2, 3), [7] * 6, ["a", "b", "c", "d"]
    )
    assert len(source) == 6
    assert source.image_shape == (2, 3, 3)
    assert source.sessions.tolist() == [7] * 6
    assert source.class_names == ("a", "b", "c", "d")
    assert FileSource(paths, [0] * 6, 5).image_shape == (5, 5, 3)


def test_batches_follow_the_indices_and_the_last_may_be_shorter(paths):
    source = FileSource(paths, [0, 1, 2, 0, 1, 2], (2, 3))
    batches = list(source.batches([5, 0, 0, 3, 1], 2))
    assert [images.shape for images, _ in batches] == [
        (2, 2, 3, 3),
        (2, 2, 3, 3),
        (1, 2, 3, 3),
    ]
    assert {images.dtype for images, _ in batches} == {np.dtype("uint8")}
    assert {labels.dtype for _, labels in batches} == {np.dtype("int32")}
    assert positions_and_labels(source, [5, 0, 0, 3, 1], 2) == (
        [5, 0, 0, 3, 1],
        [2, 0, 0, 0, 1],
    )


def test_order_holds_where_images_take_different_time(paths, tmp_path):
    big = write_png(tmp_path / "big.png", np.full((900, 900, 3), 99))
    source = FileSource([*paths, big], [0] * 7, (2, 3))
    order = np.random.default_rng(0).integers(0, 7, 200)
    found, _ = positions_and_labels(source, order, 32)
    assert found == np.where(order == 6, 99, order).tolist()


def test_no_indices_give_no_batches(paths):
    assert list(FileSource(paths, [0] * 6, 4).batches([], 2)) == []


def test_subsets_and_streams_are_cut_from_files(paths):
    source = FileSource(paths, [0, 1, 2, 0, 1, 2], (2, 3))
    assert positions_and_labels(source.subset([4, 2]), [1, 0]) == (
        [2, 4],
        [2, 1],
    )
    stream = streams.new_classes(source, source, 1, 1, class_order=[2, 0, 1])
    assert positions_and_labels(stream[0].data, [0, 1]) == ([2, 5], [2, 2])


def test_wide_image_keeps_its_centre(tmp_path):
    rows = np.tile([1, 2, 0, 0, 200, 200, 3, 4], (4, 1))
    image = read(write_png(tmp_path / "wide.png", gray(rows)), 4)
    np.testing.assert_array_equal(image, gray([[0, 0, 200, 200]] * 4))


def test_tall_image_keeps_its_centre(tmp_path):
    rows = np.tile([[9], [50], [60], [7]], (1, 4))
    image = read(write_png(tmp_path / "tall.png", gray(rows)), (2, 4))
    np.testing.assert_array_equal(image, gray([[50] * 4, [60] * 4]))


def test_half_the_size_is_smoothed(tmp_path):
    rows = np.tile([0] * 4 + [200] * 4, (8, 1))
    image = read(write_png(tmp_path / "large.png", gray(rows)), 4)
    # A triangle of radius 2 pixels around the second column's centre weighs
    # the pixels at distance -1.5, -0.5, 0.5, 1.5 with 1, 3, 3, 1 eighths:
    # one eighth of 200 is in the right half.
    np.testing.assert_array_equal(image, gray([[0, 25, 175, 200]] * 4))


def test_twice_the_size_is_interpolated(tmp_path):
    path = write_png(tmp_path / "small.png", gray([[0, 200]] * 2))
    # Centres of the new columns lie at -1/4, 1/4, 3/4, 5/4 of the old ones.
    np.testing.assert_array_equal(read(path, 4), gray([[0, 50, 150, 200]] * 4))


def test_wide_image_is_resized_by_its_shorter_side(tmp_path):
    rows = np.tile([0] * 8 + [200] * 8, (8, 1))
    image = read(write_png(tmp_path / "wide.png", gray(rows)), 4)
    # Half the size as above, and two of eight columns cut off on each side.
    np.testing.assert_array_equal(image, gray([[0, 25, 175, 200]] * 4))


@pytest.mark.parametrize("size", [(5, 7), (7, 5), (1, 1), (64, 3)])
def test_any_size_comes_out(tmp_path, size):
    path = write_png(tmp_path / "odd.png", np.full((13, 11, 3), 40))
    np.testing.assert_array_equal(read(path, size), np.full((*size, 3), 40))


def test_grayscale_gets_three_channels(tmp_path):
    path = write_png(tmp_path / "gray.png", gray([[1, 2], [3, 4]], 1))
    np.testing.assert_array_equal(read(path, 2), gray([[1, 2], [3, 4]]))


def test_alpha_is_dropped(tmp_path):
    image = np.array([[[10, 20, 30, 255], [40, 50, 60, 0]]] * 2)
    path = write_png(tmp_path / "alpha.png", image)
    np.testing.assert_array_equal(read(path, 2), image[..., :3])


def test_jpeg_is_read(tmp_path):
    data = tf.io.encode_jpeg(np.full((16, 16, 3), 77, "uint8"), quality=100)
    tf.io.write_file(str(tmp_path / "image.JPEG"), data)
    image = read(tmp_path / "image.JPEG", 16)
    np.testing.assert_allclose(image, 77, atol=1)


def test_jpeg_in_print_colours_is_read(tmp_path):
    """ImageNet holds some."""
    pillow = pytest.importorskip("PIL.Image")
    pillow.new("RGB", (16, 16), (200, 100, 50)).convert("CMYK").save(
        tmp_path / "print.jpg", quality=100
    )
    image = read(tmp_path / "print.jpg", 16)
    np.testing.assert_allclose(image[8, 8], (200, 100, 50), atol=4)


@helpers.needs_shared("core50/frames")
def test_real_frames_are_what_another_library_reads():
    pillow = pytest.importorskip("PIL.Image")
    paths = sorted(FRAMES.glob("*.png"))
    source = FileSource(paths, [0] * len(paths), 128)
    ((images, _),) = source.batches(np.arange(len(paths))[::-1], 100)
    expected = [np.asarray(pillow.open(path)) for path in paths[::-1]]
    np.testing.assert_array_equal(images, expected)


@pytest.mark.parametrize("position", [0, 5])
def test_missing_first_or_last_file_is_an_error(paths, position):
    paths[position].unlink()
    with pytest.raises(ValueError, match=f"no file .*{position}.png"):
        FileSource(paths, [0] * 6, 4)


def test_file_that_vanishes_is_named_when_it_is_its_turn(paths):
    source = FileSource(paths, [0] * 6, (2, 3))
    paths[4].unlink()
    batches = source.batches(np.arange(6), 2)
    assert next(batches)[0][:, 0, 0, 0].tolist() == [0, 1]
    assert next(batches)[0][:, 0, 0, 0].tolist() == [2, 3]
    with pytest.raises(ValueError, match="no file .*4.png"):
        next(batches)


@pytest.mark.parametrize("kind", ["text", "truncated", "empty"])
def test_broken_file_is_named(paths, kind):
    whole = tf.io.encode_jpeg(np.full((32, 32, 3), 9, "uint8")).numpy()
    contents = {"text": b"hello", "truncated": whole[:-200], "empty": b""}
    paths[3].write_bytes(contents[kind])
    source = FileSource(paths, [0] * 6, (2, 3))
    with pytest.raises(
        ValueError, match=r"3\.png cannot be read as an image.*Replace it"
    ):
        list(source.batches(np.arange(6), 4))


def test_folder_in_place_of_a_file_is_named(paths, tmp_path):
    source = FileSource([*paths, tmp_path], [0] * 7, (2, 3))
    with pytest.raises(ValueError, match=f"{tmp_path} cannot be read"):
        list(source.batches([6], 1))


def test_paths_and_labels_must_be_as_many(paths):
    with pytest.raises(ValueError, match="6 paths, 2 labels"):
        FileSource(paths, [0, 1], 4)


@pytest.mark.parametrize("size", [0, 1.5, (4, 4, 3), (4, -1), "128"])
def test_wrong_size_is_an_error(paths, size):
    with pytest.raises(ValueError, match="`image_size`.*Received"):
        FileSource(paths, [0] * 6, size)


def test_images_are_listed_by_name_and_other_files_are_not(tmp_path):
    for name in ("b.JPEG", "a.png", "._a.png", "notes.txt"):
        (tmp_path / name).touch()
    told = []
    found = files.list_images([tmp_path], lambda *pair: told.append(pair))
    assert found == [[str(tmp_path / "a.png"), str(tmp_path / "b.JPEG")]]
    assert told == [(1, 1)]


def test_folder_without_images_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=f"{tmp_path} holds no image.*jpeg"):
        files.list_images([tmp_path])


def test_names_are_relative_to_the_root(paths, tmp_path):
    source = FileSource(paths, [0] * 6, 4, root=tmp_path.parent)
    assert source.names == [f"{tmp_path.name}/{path.name}" for path in paths]


def test_crop_fraction_leaves_the_border_out(tmp_path):
    """16 pixels stay 16, of which the 8 in the middle are kept."""
    image = gray(np.arange(256).reshape(16, 16))
    path = write_png(tmp_path / "a.png", image)
    source = FileSource([path], [0], 8, crop_fraction=0.5)
    ((images, _),) = source.batches([0], 1)
    np.testing.assert_array_equal(images[0], image[4:12, 4:12])
    with pytest.raises(ValueError, match="`crop_fraction`.*1.5"):
        FileSource([path], [0], 8, crop_fraction=1.5)


def test_augmentation_sees_the_whole_image(tmp_path):
    """It is what replaces the central cut, and does not come after it."""
    image = gray(np.arange(24).reshape(4, 6))
    path = write_png(tmp_path / "a.png", image)
    source = FileSource([path] * 3, [0, 0, 0], 2)

    def corner(image, size, seed):
        return image[seed[0] : seed[0] + 2, seed[1] : seed[1] + 2]

    seeds = np.array([[0, 0], [2, 4], [1, 3]], np.int32)
    ((images, _),) = source.batches([0, 1, 2], 3, augment=corner, seeds=seeds)
    for cut, (top, left) in zip(images, seeds, strict=True):
        expected = image[top : top + 2, left : left + 2]
        np.testing.assert_array_equal(cut, expected)


def test_corrupt_files_are_left_out(paths):
    paths[1].write_bytes(b"no image")
    paths[5].unlink()
    told = []
    with pytest.warns(UserWarning, match=f"2 of 6 images.*{paths[1]}"):
        source = FileSource(
            paths,
            [0, 0, 1, 1, 2, 2],
            (2, 3),
            sessions=[1, 2, 3, 4, 5, 6],
            skip_corrupt=True,
            progress=lambda *pair: told.append(pair),
        )
    assert source.skipped == (str(paths[1]), str(paths[5]))
    assert source.labels.tolist() == [0, 1, 1, 2]
    assert source.sessions.tolist() == [1, 3, 4, 5]
    assert source.num_classes == 3
    assert told == [(6, 6)]
    found, labels = positions_and_labels(source, [3, 0, 1, 2])
    assert (list(found), list(labels)) == ([4, 0, 2, 3], [2, 0, 1, 1])


def test_nothing_is_left_where_all_are_corrupt(paths):
    for path in paths:
        path.write_bytes(b"")
    with pytest.raises(ValueError, match=f"None of the 6.*{paths[0]}"):
        FileSource(paths, [0] * 6, 4, skip_corrupt=True)


def test_a_reader_that_stops_early_leaves_nothing_behind(paths):
    before = threading.active_count()
    reader = FileSource(paths, [0] * 6, 4).batches(np.arange(6), 1)
    next(reader)
    reader.close()
    assert threading.active_count() == before
