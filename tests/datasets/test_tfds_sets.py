"""Tests of sets of TensorFlow Datasets, on a small one made here."""

import os
import resource

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from gnr_keras.datasets import load_images
from gnr_keras.datasets import random_resized_crop
from gnr_keras.datasets import tfds_images
from gnr_keras.datasets.tfrecords import TFRecords


class TinyShapes(tfds.core.GeneratorBasedBuilder):
    """Forty images that hold their number; the class is its rest by four."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Image(shape=(6, 6, 3)),
                    "label": tfds.features.ClassLabel(names=list("abcd")),
                    "session": np.int64,
                }
            ),
            supervised_keys=("image", "label"),
        )

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples(range(40))}

    def _generate_examples(self, numbers):
        for number in numbers:
            yield (
                number,
                {
                    "image": np.full((6, 6, 3), number, "uint8"),
                    "label": number % 4,
                    "session": number // 10,
                },
            )


class TinyWithTest(TinyShapes):
    def _split_generators(self, dl_manager):
        return {
            "train": self._generate_examples(range(30)),
            "test": self._generate_examples(range(30, 40)),
        }


def read(source):
    """Number, label and session of each image."""
    numbers = np.concatenate(
        [x[:, 0, 0, 0] for x, _ in source.batches(np.arange(len(source)), 7)]
    )
    return sorted(
        zip(
            numbers.tolist(),
            source.labels.tolist(),
            source.sessions.tolist(),
            strict=True,
        )
    )


def rows(numbers):
    return [(n, n % 4, n // 10) for n in numbers]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("tfds")


@pytest.mark.parametrize("file_format", ["tfrecord", "array_record"])
def test_both_formats_are_read(tmp_path, file_format):
    """Prepared beforehand, in the default of TFDS and in the other."""
    tfds.builder(
        "tiny_with_test", data_dir=tmp_path, file_format=file_format
    ).download_and_prepare()
    train, test = tfds_images("tiny_with_test", 6, data_dir=tmp_path)
    assert read(train) == rows(range(30))
    assert read(test) == rows(range(30, 40))
    assert train.class_names == ("a", "b", "c", "d")


def test_without_a_test_split_a_fifth_is_held_out(data_dir):
    train, test = load_images("tfds:tiny_shapes", 6, data_dir=data_dir)
    assert (len(train), len(test)) == (32, 8)
    assert sorted([*read(train), *read(test)]) == rows(range(40))


def test_splits_of_tfds(data_dir):
    train, test = tfds_images(
        "tiny_shapes",
        6,
        train_split="train[10:20]",
        test_split="train[:25%]",
        data_dir=data_dir,
    )
    assert (len(train), len(test)) == (10, 10)
    assert not {*read(train)} & {*read(test)}


def test_labels_are_read_once(data_dir):
    told = []
    options = {
        "train_split": "train[:50%]",
        "test_split": "train[50%:]",
        "data_dir": data_dir,
        "progress": lambda *pair: told.append(pair),
    }
    first, _ = tfds_images("tiny_shapes", 6, **options)
    assert told == [(20, 20), (20, 20)]
    second, _ = tfds_images("tiny_shapes", 6, **options)
    assert len(told) == 2
    assert read(first) == read(second)


def test_images_are_resized_and_augmented(data_dir):
    source, _ = tfds_images("tiny_shapes", 3, data_dir=data_dir)
    assert source.image_shape == (3, 3, 3)
    seeds = np.zeros((2, 2), np.int32)
    ((plain, _),) = source.batches([4, 5], 2)
    ((augmented, _),) = source.batches(
        [4, 5], 2, augment=random_resized_crop, seeds=seeds
    )
    # One colour all over, so that a part of it is like the whole.
    np.testing.assert_array_equal(plain, augmented)


def test_unknown_names_and_splits(data_dir):
    with pytest.raises(ValueError, match="'mnst'. Did you mean mnist"):
        tfds_images("mnst", 6, data_dir=data_dir)
    with pytest.raises(ValueError, match="no set 'tfds'"):
        load_images("tfds:tfds", 6, data_dir=data_dir)
    with pytest.raises(ValueError, match="no split 'dev'; it has train"):
        tfds_images("tiny_shapes", 6, test_split="dev", data_dir=data_dir)
    with pytest.raises(ValueError, match="ag_news_subset.*no set for image"):
        tfds_images("ag_news_subset", 6, data_dir=data_dir)
    with pytest.raises(ValueError, match="has the splits train. Say which"):
        tfds_images("tiny_shapes", 6, "train[:5]", data_dir=data_dir)


def test_manual_downloads_are_explained(tmp_path):
    with pytest.raises(ValueError) as error:
        tfds_images("imagenet2012", 224, data_dir=tmp_path)
    message = str(error.value)
    assert str(tmp_path / "downloads" / "manual") in message
    assert "ILSVRC2012_img_train.tar" in message


def test_splits_do_not_mix_their_labels(data_dir):
    """As long, and named alike but for their signs."""
    for split in ("train[:4]", "train[-4:]", "train[:10%]"):
        source, _ = tfds_images(
            "tiny_shapes", 6, split, split, data_dir=data_dir
        )
        assert read(source) == rows([number for number, *_ in read(source)])


def test_damaged_cache_of_labels_is_read_anew(tmp_path):
    first, _ = tfds_images("tiny_with_test", 6, data_dir=tmp_path)
    caches = list(tmp_path.rglob("gnr_keras_*.npz"))
    assert len(caches) == 2
    for cache in caches:
        cache.write_bytes(cache.read_bytes()[:50])
    second, _ = tfds_images("tiny_with_test", 6, data_dir=tmp_path)
    assert read(first) == read(second) == rows(range(30))


def test_damaged_records_are_named(tmp_path):
    tfds_images("tiny_with_test", 6, data_dir=tmp_path)
    for cache in tmp_path.rglob("gnr_keras_*.npz"):
        cache.unlink()
    (shard,) = tmp_path.rglob("*train.tfrecord*")
    data = bytearray(shard.read_bytes())
    data[12:40] = b"\xff" * 28
    shard.write_bytes(data)
    with pytest.raises(ValueError, match=f"{shard.parent} is damaged. Delete"):
        tfds_images("tiny_with_test", 6, data_dir=tmp_path)


def test_unknown_version_is_named(data_dir):
    with pytest.raises(ValueError, match="'mnist:0.0.1' cannot be opened"):
        tfds_images("mnist:0.0.1", 6, data_dir=data_dir)


def test_more_files_than_a_process_may_open(tmp_path):
    files = [
        (write_records(tmp_path / f"{i}", [b"%d" % i]), 0, -1)
        for i in range(60)
    ]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, hard))
    try:
        records = TFRecords(files)
        assert [int(records[i]) for i in range(60)] == list(range(60))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def write_records(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def test_records_are_found_by_position(tmp_path):
    """The writer is TensorFlow's own."""
    first = write_records(tmp_path / "a", [b"zero", b"", b"two" * 1000])
    second = write_records(tmp_path / "b", [b"three", b"four", b"five"])
    records = TFRecords([(first, 0, -1), (second, 1, 1)])
    assert len(records) == 4
    assert [records[i] for i in (3, 0, 2, 1)] == [
        b"four",
        b"zero",
        b"two" * 1000,
        b"",
    ]


@pytest.mark.parametrize("cut", [1, 20, 30])
def test_truncated_records_are_named(tmp_path, cut):
    path = write_records(tmp_path / "a", [b"zero", b"one"])
    data = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(data[:-cut])
    if len(data) - cut == 20:  # Between two records.
        assert len(TFRecords([(path, 0, -1)])) == 1
        return
    with pytest.raises(ValueError, match=f"{path} ends within a record"):
        TFRecords([(path, 0, -1)])
