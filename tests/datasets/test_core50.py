"""Tests of CORe50, on a tree of its layout and on real frames."""

import pathlib
import warnings

import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import streams
from gnr_keras.datasets import core50
from gnr_keras.datasets import embedded

SHARED = pathlib.Path(__file__).parents[2].parent / "shared" / "data" / "core50"


def frame_path(root, session, number, frame):
    name = f"C_{session:02}_{number:02}_{frame:03}.png"
    return root / f"s{session}" / f"o{number}" / name


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """All 550 videos, of five frames that hold (session, object, frame)."""
    folder = tmp_path_factory.mktemp("data")
    root = folder / "core50_128x128"
    for session in range(1, 12):
        for number in range(1, 51):
            for frame in range(5):
                path = frame_path(root, session, number, frame)
                path.parent.mkdir(parents=True, exist_ok=True)
                # Only these are ever read.
                if number in (1, 10, 50):
                    pixels = np.full((4, 4, 3), (session, number, frame))
                    data = tf.io.encode_png(pixels.astype("uint8")).numpy()
                    path.write_bytes(data)
                else:
                    path.touch()
    return folder


def cells(source, indices):
    """(session, object, frame) that the images at `indices` hold."""
    ((images, _),) = source.batches(indices, len(indices))
    return images[:, 0, 0].tolist()


def test_sessions_3_7_and_10_are_the_test_set(data_dir):
    train, test = core50(data_dir=data_dir)
    assert set(test.sessions) == {3, 7, 10}
    assert set(train.sessions) == {1, 2, 4, 5, 6, 8, 9, 11}
    assert len(train) == 8 * 50 * 5
    assert len(test) == 3 * 50 * 5
    assert train.image_shape == test.image_shape == (128, 128, 3)


def test_each_object_is_a_class(data_dir):
    for source, sessions in zip(core50(data_dir=data_dir), (8, 3), strict=True):
        np.testing.assert_array_equal(
            np.bincount(source.labels), [5 * sessions] * 50
        )
        assert source.num_classes == 50
        assert source.class_names[:2] == ("plug_adapter1", "plug_adapter2")
        assert source.class_names[26] == "glass2"
        assert source.class_names[49] == "remote_control5"


@pytest.mark.parametrize(
    "session, number, which", [(1, 1, 0), (11, 50, 0), (10, 10, 1), (3, 1, 1)]
)
def test_frames_are_those_of_their_object_and_session(
    data_dir, session, number, which
):
    source = core50(image_size=4, data_dir=data_dir)[which]
    where = np.flatnonzero(
        (source.labels == number - 1) & (source.sessions == session)
    )
    assert cells(source, where) == [[session, number, f] for f in range(5)]


def test_every_second_frame_of_each_video(data_dir):
    """Five frames, an odd number: counting on would take others."""
    train, test = core50(image_size=4, every=2, data_dir=data_dir)
    assert len(train) == 8 * 50 * 3
    assert len(test) == 3 * 50 * 3
    for number in (1, 10, 50):
        where = np.flatnonzero(
            (train.labels == number - 1) & (train.sessions == 2)
        )
        assert cells(train, where) == [[2, number, f] for f in (0, 2, 4)]


def test_folder_itself_and_default_folder_are_found(data_dir, monkeypatch):
    expected = len(core50(data_dir=data_dir)[0])
    assert len(core50(data_dir=data_dir / "core50_128x128")[0]) == expected
    monkeypatch.setenv("TFDS_DATA_DIR", str(data_dir))
    assert len(core50()[0]) == expected


def test_progress_counts_videos(data_dir):
    told = []
    core50(data_dir=data_dir, progress=lambda *pair: told.append(pair))
    assert told == [(done, 550) for done in range(1, 551)]


def test_whole_tree_gives_no_warning_and_all_streams(data_dir):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train, test = core50(data_dir=data_dir)
    assert len(streams.new_classes(train, test, 10, 5)) == 9
    assert len(streams.new_instances(train, test)) == 8
    nic = streams.new_instances_and_classes(train, test, 10, 1)
    assert len(nic) == 391


def test_absent_folder_says_where_and_what_and_how(tmp_path):
    with pytest.raises(ValueError) as error:
        core50(data_dir=tmp_path)
    message = str(error.value)
    assert str(tmp_path / "core50_128x128") in message
    assert "s1/o1/C_01_01_000.png" in message
    assert "https://vlomonaco.github.io/core50/" in message


def test_default_folder_is_named_where_it_is_absent(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "absent"))
    with pytest.raises(ValueError, match=embedded.default_data_dir()):
        core50()


def test_missing_videos_are_told(data_dir, tmp_path):
    whole = data_dir / "core50_128x128"
    for session in (1, 2, 3):
        (tmp_path / f"s{session}").symlink_to(whole / f"s{session}")
    with pytest.warns(UserWarning, match="150 of CORe50's 550 .*s4/o1 is"):
        train, test = core50(data_dir=tmp_path)
    assert len(train) == 2 * 50 * 5
    assert len(test) == 50 * 5


@pytest.mark.filterwarnings("ignore:.*550 videos")
def test_nothing_to_test_on_is_an_error(data_dir, tmp_path):
    (tmp_path / "s1").symlink_to(data_dir / "core50_128x128" / "s1")
    with pytest.raises(ValueError, match=r"no video of the test .*3, 7, 10"):
        core50(data_dir=tmp_path)
    (tmp_path / "s2" / "o1").mkdir(parents=True)
    with pytest.raises(ValueError, match="s2/o1 holds no image"):
        core50(data_dir=tmp_path)


@pytest.mark.parametrize("every", [0, -1, 2.0])
def test_wrong_every_is_an_error(data_dir, every):
    with pytest.raises(ValueError, match=f"`every`.*{every}"):
        core50(every=every, data_dir=data_dir)


@pytest.mark.skipif(
    not (SHARED / "core50_labels.txt").exists(),
    reason=f"no file of the authors' names in {SHARED}",
)
def test_names_are_the_authors(data_dir):
    names = (SHARED / "core50_labels.txt").read_text().split()
    assert core50(data_dir=data_dir)[0].class_names == tuple(names)


@pytest.mark.skipif(
    not (SHARED / "test_filelist.txt").exists(),
    reason=f"no file list of the authors in {SHARED}",
)
def test_labels_are_those_of_the_authors_list(data_dir):
    _, test = core50(data_dir=data_dir)
    lines = (SHARED / "test_filelist.txt").read_text().splitlines()
    listed = {(*line.split("/")[:2], line.split()[1]) for line in lines}
    ours = {
        (f"s{session}", f"o{label + 1}", str(label))
        for session, label in zip(test.sessions, test.labels, strict=True)
    }
    assert ours == listed


@pytest.mark.skipif(
    not (SHARED / "frames").is_dir(),
    reason=f"no real CORe50 frames in {SHARED / 'frames'}",
)
@pytest.mark.filterwarnings("ignore:.*550 videos")
def test_real_frames_in_their_folders(tmp_path):
    frames = sorted((SHARED / "frames").glob("*.png"))
    expected = []
    for frame in frames:
        session, number = map(int, frame.stem.split("_")[1:3])
        folder = tmp_path / f"s{session}" / f"o{number}"
        folder.mkdir(parents=True)
        (folder / frame.name).symlink_to(frame)
        expected.append((session, number - 1))
    train, test = core50(image_size=64, data_dir=tmp_path)
    found = [
        (int(session), int(label))
        for source in (train, test)
        for session, label in zip(source.sessions, source.labels, strict=True)
    ]
    assert sorted(found) == sorted(expected)
    assert len(test) == sum(session in (3, 7) for session, _ in expected)
    ((images, labels),) = test.batches(np.arange(len(test)), 100)
    assert images.shape == (len(test), 64, 64, 3)
    np.testing.assert_array_equal(labels, test.labels)
    # Real photographs, in light: neither black nor of one colour.
    assert 40 < images.mean() < 215
    assert images.std(axis=(1, 2, 3)).min() > 10
