"""Tests of labelled sources."""

import numpy as np
import pytest

from gnr_keras.datasets import ArraySource
from gnr_keras.datasets import Source
from gnr_keras.datasets import conversion


def images_of(count, dtype="uint8"):
    """Images that hold their own position."""
    images = np.arange(count).reshape(-1, 1, 1, 1)
    return np.tile(images, (1, 2, 3, 1)).astype(dtype)


def make_source(**options):
    return ArraySource(images_of(6), [0, 1, 2, 0, 1, 2], **options)


def positions_and_labels(source, indices, batch_size=10):
    parts = list(source.batches(indices, batch_size))
    images = np.concatenate([images for images, _ in parts])
    labels = np.concatenate([labels for _, labels in parts])
    return images[:, 0, 0, 0].tolist(), labels.tolist()


def test_array_source_describes_itself():
    source = make_source()
    assert len(source) == 6
    assert source.image_shape == (2, 3, 1)
    assert source.num_classes == 3
    assert source.class_names == ("0", "1", "2")
    assert source.sessions is None
    assert source.labels.dtype == np.int32


def test_class_names_say_how_many_classes_there_are():
    source = make_source(class_names=["a", "b", "c", "never seen"])
    assert source.num_classes == 4
    assert source.subset([0]).class_names == ("a", "b", "c", "never seen")


def test_batches_follow_the_indices_and_the_last_may_be_shorter():
    source = make_source()
    batches = list(source.batches([5, 0, 0, 3, 1], 2))
    assert [len(images) for images, _ in batches] == [2, 2, 1]
    assert positions_and_labels(source, [5, 0, 0, 3, 1], 2) == (
        [5, 0, 0, 3, 1],
        [2, 0, 0, 0, 1],
    )


def test_no_indices_give_no_batches():
    assert list(make_source().batches([], 2)) == []


def test_subset_is_numbered_anew():
    subset = make_source(sessions=[7, 7, 7, 8, 8, 8]).subset([4, 2, 3])
    assert len(subset) == 3
    assert subset.labels.tolist() == [1, 2, 0]
    assert subset.sessions.tolist() == [8, 7, 8]
    assert subset.num_classes == 3
    assert positions_and_labels(subset, [2, 0]) == ([3, 4], [0, 1])


def test_subset_of_a_subset():
    subset = make_source().subset([5, 4, 3, 2]).subset([3, 0])
    assert positions_and_labels(subset, [0, 1]) == ([2, 5], [2, 2])


def test_subset_takes_a_mask_for_a_mask():
    # As positions, False and True would be the patterns 0 and 1.
    source = make_source()
    subset = source.subset(source.labels == 2)
    assert positions_and_labels(subset, [0, 1]) == ([2, 5], [2, 2])


def test_images_may_be_memory_mapped(tmp_path):
    np.save(tmp_path / "images.npy", images_of(6))
    images = np.load(tmp_path / "images.npy", mmap_mode="r")
    source = ArraySource(images, [0, 1, 2, 0, 1, 2])
    assert positions_and_labels(source, [4, 1]) == ([4, 1], [1, 1])


def test_own_source_needs_only_batches():
    class Squares(Source):
        def batches(self, indices, batch_size):
            del batch_size
            yield images_of(10)[np.asarray(indices) ** 2], self.labels[indices]

    source = Squares([0, 1, 1], (2, 3, 1))
    assert positions_and_labels(source.subset([2, 1]), [0, 1]) == (
        [4, 1],
        [1, 1],
    )


@pytest.mark.parametrize(
    "labels, match",
    [
        ([0.0, 1.0], "vector of integers.*float64"),
        ([[1, 0], [0, 1]], r"vector of integers.*\(2, 2\).*argmax"),
        ([0, 1, 2], "2 images, 3 labels"),
        ([-1, 0], "from -1 to 0"),
    ],
)
def test_wrong_labels_are_an_error(labels, match):
    with pytest.raises(ValueError, match=match):
        ArraySource(images_of(2), labels)


def test_label_without_a_name_is_an_error():
    with pytest.raises(ValueError, match="0 to 2 for 2 classes"):
        make_source(class_names=["a", "b"])


@pytest.mark.parametrize("sessions", [[1, 2], [1, 2, 3, 4, 5, 6, 7]])
def test_sessions_need_one_entry_per_label(sessions):
    with pytest.raises(ValueError, match=f"{len(sessions)} sessions, 6 labels"):
        make_source(sessions=sessions)


def test_sessions_that_are_no_integers_are_an_error():
    with pytest.raises(ValueError, match="`sessions`.*integer"):
        make_source(sessions=["kitchen", "garden"] * 3)


def test_images_without_channels_are_an_error():
    with pytest.raises(ValueError, match=r"\(2, 4, 4\).*expand_dims"):
        ArraySource(np.zeros((2, 4, 4)), [0, 1])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("position", [0, 299])
def test_image_that_is_not_finite_is_named(value, position):
    images = images_of(300, "float32")
    images[position, 1, 2, 0] = value
    with pytest.raises(ValueError, match=f"Image {position} holds NaN"):
        ArraySource(images, [0] * 300)


def test_tuples_become_sources_and_sources_stay():
    source = make_source()
    assert conversion.as_source(source) is source
    pair = conversion.as_source((images_of(2), np.array([0, 1])))
    assert pair.labels.tolist() == [0, 1]
    assert pair.sessions is None
    triple = conversion.as_source(
        (images_of(2), np.array([0, 1]), np.array([4, 5]))
    )
    assert triple.sessions.tolist() == [4, 5]


@pytest.mark.parametrize("data", [images_of(2), (images_of(2),), None])
def test_anything_else_is_an_error(data):
    with pytest.raises(ValueError, match=type(data).__name__):
        conversion.as_source(data)
