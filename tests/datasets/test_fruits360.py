"""Tests of Fruits-360, cut like CORe50."""

import json

import helpers
import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import streams
from gnr_keras.datasets import fruits360

TRAINING = [1, 2, 4, 5, 6, 8, 9, 11]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """Nine frames a training video and two a test video; each holds its
    video, object and number."""
    folder = tmp_path_factory.mktemp("data")
    root = folder / "fruits360_50x3"
    for video in (1, 2, 3):
        for number in range(1, 51):
            place = root / f"s{video}" / f"o{number}"
            place.mkdir(parents=True)
            for frame in range(2 if video == 3 else 9):
                pixels = np.full((2, 2, 3), (video, number, frame), "uint8")
                data = tf.io.encode_png(pixels).numpy()
                (place / f"r0_{3 * frame:03}.png").write_bytes(data)
    names = [f"fruit {number}" for number in range(1, 51)]
    (root / "meta.json").write_text(json.dumps({"classes": names}))
    return folder


def contents(source):
    (batch,) = source.batches(np.arange(len(source)), len(source))
    return [
        (tuple(image[0, 0].tolist()), int(label), int(session))
        for image, label, session in zip(*batch, source.sessions, strict=True)
    ]


def test_quarter_turns_are_sessions(data_dir):
    """Nine frames in four parts: 3, 2, 2 and 2, in their order."""
    train, test = fruits360(2, data_dir=data_dir)
    turns = [0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert sorted(contents(train)) == sorted(
        (
            (video, number, frame),
            number - 1,
            TRAINING[4 * (video - 1) + turns[frame]],
        )
        for video in (1, 2)
        for number in range(1, 51)
        for frame in range(9)
    )
    assert sorted(contents(test)) == sorted(
        ((3, number, frame), number - 1, 3)
        for number in range(1, 51)
        for frame in range(2)
    )
    assert train.class_names[:2] == ("fruit 1", "fruit 2")
    assert len(streams.new_instances_and_classes(train, test, 10, 1)) == 391


def test_validation_leaves_the_test_set_alone(data_dir):
    train, test = fruits360(2, validation=True, data_dir=data_dir)
    assert np.unique(train.sessions).tolist() == TRAINING[:-1]
    assert {video for (video, _, _), _, _ in contents(test)} == {2}
    assert {frame for (_, _, frame), _, _ in contents(test)} == {7, 8}
    assert not {*contents(train)} & {*contents(test)}


def test_some_frames_of_each_tested_video(data_dir):
    train, test = fruits360(2, test_every=2, data_dir=data_dir)
    assert len(train) == 2 * 50 * 9
    assert sorted(contents(test)) == sorted(
        ((3, number, 0), number - 1, 3) for number in range(1, 51)
    )
    _, test = fruits360(2, validation=True, test_every=2, data_dir=data_dir)
    assert {frame for (_, _, frame), _, _ in contents(test)} == {7}
    with pytest.raises(ValueError, match="`test_every`.*Received: 0"):
        fruits360(2, test_every=0, data_dir=data_dir)


def test_what_is_missing_is_named(data_dir, tmp_path):
    with pytest.raises(ValueError, match=f"{tmp_path}/fruits360_50x3. Expect"):
        fruits360(data_dir=tmp_path)
    root = tmp_path / "fruits360_50x3"
    root.mkdir()
    for name in ("s1", "s2"):
        (root / name).symlink_to(data_dir / "fruits360_50x3" / name)
    with pytest.raises(ValueError, match="no folder .*/s3/o1"):
        fruits360(data_dir=tmp_path)
    (root / "s3").symlink_to(data_dir / "fruits360_50x3" / "s3")
    with pytest.raises(ValueError, match=r"meta.json cannot be read"):
        fruits360(data_dir=tmp_path)


@helpers.needs_shared("fruits360_50x3")
def test_real_videos():
    train, test = fruits360(data_dir=helpers.SHARED)
    assert (len(train), len(test)) == (10020, 5022)
    cells = np.unique(
        [train.labels, train.sessions], axis=1, return_counts=True
    )
    assert cells[0].shape[1] == 400
    assert cells[1].min() >= 16 and cells[1].max() <= 29
    ((images, labels),) = train.batches([0, 5000], 2)
    assert images.shape == (2, 128, 128, 3)
    # White all around: the corner of a frame is background.
    assert images[:, :4, :4].min() > 240
