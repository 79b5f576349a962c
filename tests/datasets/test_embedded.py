"""Tests of the embedded data set: structure and cache."""

import os
import pathlib
import time

import numpy as np
import pytest

from gnr_keras.datasets import downloads
from gnr_keras.datasets import drawing
from gnr_keras.datasets import embedded_objects

SMALL = {"image_size": 16, "frames_per_session": 2}


class Interrupted(BaseException):
    """Like KeyboardInterrupt, which pytest keeps for itself."""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder where the data set was drawn, and what the drawing told."""
    folder = tmp_path_factory.mktemp("data")
    told = []
    embedded_objects(
        **SMALL, data_dir=folder, progress=lambda *pair: told.append(pair)
    )
    return folder, told


def refuse(*args, **options):
    raise AssertionError("a session was drawn")


def image(source, position):
    ((images, _),) = source.batches([position], 1)
    return images[0]


def test_sessions_3_7_and_10_are_the_test_set(drawn):
    train, test = embedded_objects(**SMALL, data_dir=drawn[0])
    assert set(test.sessions) == {3, 7, 10}
    assert set(train.sessions) == {1, 2, 4, 5, 6, 8, 9, 11}


def test_each_object_is_a_class_with_as_many_frames(drawn):
    train, test = embedded_objects(**SMALL, data_dir=drawn[0])
    for source, sessions in ((train, 8), (test, 3)):
        assert source.image_shape == (16, 16, 3)
        assert source.class_names == drawing.OBJECT_NAMES
        counts = np.bincount(source.labels)
        np.testing.assert_array_equal(counts, [2 * sessions] * 50)


@pytest.mark.parametrize("object_id, session", [(0, 1), (23, 7), (49, 11)])
def test_frames_are_those_of_their_object_and_session(
    drawn, object_id, session
):
    video = drawing.draw_session(object_id, session, 2, 16, seed=0)
    source = embedded_objects(**SMALL, data_dir=drawn[0])[session == 7]
    where = np.flatnonzero(
        (source.labels == object_id) & (source.sessions == session)
    )
    assert len(where) == 2
    for frame, position in zip(video, where, strict=True):
        np.testing.assert_array_equal(image(source, position), frame)


def test_second_call_does_not_draw_again(drawn, monkeypatch):
    first = embedded_objects(**SMALL, data_dir=drawn[0])[0]
    monkeypatch.setattr(drawing, "draw_session", refuse)
    again = embedded_objects(**SMALL, data_dir=drawn[0])[0]
    np.testing.assert_array_equal(image(first, 99), image(again, 99))


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"image_size": 17}, {"frames_per_session": 3}]
)
def test_other_settings_are_drawn_anew(drawn, monkeypatch, change):
    monkeypatch.setattr(drawing, "draw_session", refuse)
    with pytest.raises(AssertionError, match="a session was drawn"):
        embedded_objects(**{**SMALL, **change}, data_dir=drawn[0])


def test_progress_counts_the_sessions(drawn):
    assert drawn[1] == [(done, 550) for done in range(1, 551)]


def test_interrupted_drawing_is_not_taken_for_whole(tmp_path):
    def interrupt(done, total):
        if done == 300:
            raise Interrupted

    with pytest.raises(Interrupted):
        embedded_objects(**SMALL, data_dir=tmp_path, progress=interrupt)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    train, _ = embedded_objects(**SMALL, data_dir=tmp_path)
    last = drawing.draw_session(49, 11, 2, 16)[1]
    np.testing.assert_array_equal(image(train, len(train) - 1), last)


def blank(object_id, session, frames, image_size, seed):
    return np.zeros((frames, image_size, image_size, 3), np.uint8)


def test_killed_drawing_is_not_taken_for_whole(tmp_path, monkeypatch):
    # Killed, a process leaves its unfinished file.
    with monkeypatch.context() as killed:
        killed.setattr(drawing, "draw_session", blank)
        killed.setattr(os, "replace", refuse)
        killed.setattr(pathlib.Path, "unlink", lambda *args, **options: None)
        with pytest.raises(AssertionError):
            embedded_objects(**SMALL, data_dir=tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] != []
    monkeypatch.setattr(drawing, "draw_session", refuse)
    with pytest.raises(AssertionError, match="a session was drawn"):
        embedded_objects(**SMALL, data_dir=tmp_path)


def test_interruption_stops_the_drawing(tmp_path, monkeypatch):
    drawn = []

    def slow(*args):
        time.sleep(0.005)
        drawn.append(args)
        return blank(*args)

    def interrupt(done, total):
        raise Interrupted

    monkeypatch.setattr(drawing, "draw_session", slow)
    with pytest.raises(Interrupted):
        embedded_objects(**SMALL, data_dir=tmp_path, progress=interrupt)
    assert len(drawn) < 550


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_drawn_file_can_be_read_by_those_who_can_read_the_folder(drawn):
    (path,) = drawn[0].rglob("*.npy")
    ordinary = path.parent / "ordinary"
    ordinary.touch()
    assert path.stat().st_mode == ordinary.stat().st_mode


def test_default_folder_is_that_of_tensorflow_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    assert downloads.default_data_dir() == str(tmp_path)
    monkeypatch.delenv("TFDS_DATA_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    expected = os.path.join(tmp_path, "tensorflow_datasets")
    assert downloads.default_data_dir() == expected
