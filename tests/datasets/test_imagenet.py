"""Tests of ImageNet, on a tree of its layout."""

import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import streams
from gnr_keras.datasets import imagenet

# Not in the order in which they are written.
WNIDS = ("n02105855", "n01440764", "n01443537")


def write_image(path, value, size=(24, 16)):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = np.full((*size, 3), value, "uint8")
    path.write_bytes(tf.io.encode_jpeg(image, quality=100).numpy())


@pytest.fixture
def data_dir(tmp_path):
    """Images that hold ten times their class, plus 100 where they test."""
    for number, wnid in enumerate(sorted(WNIDS)):
        for i in range(number + 2):
            name = f"{wnid}_{i}.JPEG"
            write_image(tmp_path / "imagenet/train" / wnid / name, 10 * number)
        name = f"ILSVRC2012_val_0000000{number}.JPEG"
        path = tmp_path / "imagenet" / "val" / wnid / name
        write_image(path, 100 + 10 * number)
    return tmp_path


def test_classes_are_the_folders_in_order(data_dir):
    train, test = imagenet(data_dir=data_dir)
    for source in (train, test):
        assert source.class_names == tuple(sorted(WNIDS))
        assert source.image_shape == (224, 224, 3)
        assert source.sessions is None
    assert train.labels.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert test.labels.tolist() == [0, 1, 2]


def test_images_are_those_of_their_class(data_dir):
    train, test = imagenet(image_size=8, data_dir=data_dir)
    ((images, labels),) = train.batches([8, 0, 3, 3], 4)
    np.testing.assert_allclose(images[:, 4, 4, 0], 10 * labels, atol=1)
    ((images, labels),) = test.batches([2, 1, 0], 3)
    np.testing.assert_allclose(images[:, 4, 4, 0], 100 + 10 * labels, atol=1)


def test_folder_itself_and_default_folder_are_found(data_dir, monkeypatch):
    assert len(imagenet(data_dir=data_dir / "imagenet")[0]) == 9
    monkeypatch.setenv("TFDS_DATA_DIR", str(data_dir))
    assert len(imagenet()[0]) == 9


def test_stream_of_new_classes(data_dir):
    stream = streams.new_classes(*imagenet(data_dir=data_dir), 1, 1)
    assert len(stream) == 3


def test_progress_counts_folders(data_dir):
    told = []
    imagenet(data_dir=data_dir, progress=lambda *pair: told.append(pair))
    assert told == [(done, 6) for done in range(1, 7)]


def test_class_without_validation_images_is_accepted(data_dir):
    write_image(data_dir / "imagenet/train/n00000001/a.JPEG", 0)
    train, test = imagenet(data_dir=data_dir)
    assert train.num_classes == test.num_classes == 4
    assert test.labels.tolist() == [1, 2, 3]


def test_class_of_val_that_is_not_in_train_is_an_error(data_dir):
    write_image(data_dir / "imagenet/val/n99999999/a.JPEG", 0)
    with pytest.raises(ValueError, match=r"n99999999 \(1 of 4\).*Remove"):
        imagenet(data_dir=data_dir)


def test_absent_folder_says_where_and_what_and_how(tmp_path):
    with pytest.raises(ValueError) as error:
        imagenet(data_dir=tmp_path)
    message = str(error.value)
    assert str(tmp_path / "imagenet") in message
    assert "imagenet/train/<class>/*.JPEG" in message
    assert "https://image-net.org" in message


def test_val_without_folders_of_classes_is_an_error(data_dir):
    """As it comes out of the archive."""
    for wnid in WNIDS:
        (path,) = (data_dir / "imagenet" / "val" / wnid).iterdir()
        path.rename(data_dir / "imagenet" / "val" / path.name)
        path.parent.rmdir()
    with pytest.raises(ValueError, match="val holds no folder.*move the val"):
        imagenet(data_dir=data_dir)


def test_missing_val_is_an_error(data_dir):
    (data_dir / "imagenet" / "val").rename(data_dir / "elsewhere")
    with pytest.raises(ValueError, match="val holds no folder of a class"):
        imagenet(data_dir=data_dir)


def test_class_without_images_is_an_error(data_dir):
    (data_dir / "imagenet" / "train" / "n00000001").mkdir()
    with pytest.raises(ValueError, match="n00000001 holds no image"):
        imagenet(data_dir=data_dir)
