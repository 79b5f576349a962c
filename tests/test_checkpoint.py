"""Tests of checkpoints: whole, pruned, and nothing but arrays."""

import errno
import os
import warnings

import numpy as np
import pytest

from gnr_keras import checkpoint


@pytest.fixture
def checkpoints(tmp_path):
    return checkpoint.Checkpoints(tmp_path / "checkpoints", seconds=0)


def names(checkpoints):
    return sorted(
        path.name for path in checkpoints.folder.iterdir() if path.suffix
    )


def save(checkpoints, *numbers):
    for number in numbers:
        checkpoints.save(number, {"part/value": np.full(1000, number)})


def test_the_latest_comes_back(checkpoints):
    assert checkpoints.latest() is None
    save(checkpoints, 1, 2, 10)
    learned, state = checkpoints.latest()
    assert learned == 10
    assert set(state) == {"part/value"}
    np.testing.assert_array_equal(state["part/value"], np.full(1000, 10))


def test_two_are_kept(checkpoints):
    save(checkpoints, 8, 9, 10, 11)
    assert names(checkpoints) == [
        "experience_00010.npz",
        "experience_00011.npz",
    ]
    checkpoints.finish()
    assert names(checkpoints) == ["experience_00011.npz"]


def save_within(checkpoints, learned, value):
    state = {"part/value": np.array(value)}
    checkpoints.save(learned, state, within=True)


def test_those_in_an_experience_follow_the_one_before_it(checkpoints):
    save(checkpoints, 2)
    save_within(checkpoints, 2, 20)
    learned, state = checkpoints.latest()
    assert (learned, state["part/value"]) == (2, 20)
    # Another process goes on counting.
    checkpoints.__exit__()
    other = checkpoint.Checkpoints(checkpoints.folder)
    for value in (21, 22):
        save_within(other, 2, value)
    assert names(other) == [
        "experience_00002_part_00002.npz",
        "experience_00002_part_00003.npz",
    ]
    assert other.latest()[1]["part/value"] == 22
    save(other, 3)
    assert other.latest()[0] == 3
    assert names(other) == [
        "experience_00002_part_00003.npz",
        "experience_00003.npz",
    ]


def test_those_in_an_experience_are_written_on_request(tmp_path):
    never = checkpoint.Checkpoints(tmp_path, seconds=0)
    often = checkpoint.Checkpoints(tmp_path, within_seconds=0)
    seldom = checkpoint.Checkpoints(tmp_path, within_seconds=1000)
    due = [one.due_within for one in (never, often, seldom)]
    assert due == [False, True, False]


def test_texts_lie_beside_them(tmp_path):
    counted = iter("abc")
    texts = {"config.gin": lambda: "bound", "last": lambda: next(counted)}
    checkpoints = checkpoint.Checkpoints(tmp_path, texts=texts)
    save(checkpoints, 1, 2)
    assert (tmp_path / "config.gin").read_text() == "bound"
    assert (tmp_path / "last").read_text() == "b"


def test_two_processes_do_not_share_a_folder(checkpoints):
    """A lock is that of an open file, so one process can stand for two."""
    with checkpoints:
        save(checkpoints, 1)
        other = checkpoint.Checkpoints(checkpoints.folder)
        for call in (other.latest, lambda: save(other, 2)):
            with pytest.raises(ValueError, match="Another process is at work"):
                call()
        assert checkpoints.latest()[0] == 1
    assert other.latest()[0] == 1


def test_only_numbers_and_text_are_saved(checkpoints):
    with pytest.raises(TypeError, match="'bad' .* array of object"):
        checkpoints.save(1, {"bad": None})
    assert not checkpoints.folder.exists()


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_one_is_passed_over(damage, checkpoints):
    save(checkpoints, 1, 2)
    path = checkpoints.folder / "experience_00002.npz"
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes(
        {"cut": content[:-300], "flipped": content, "empty": b""}[damage]
    )
    with pytest.warns(UserWarning, match="experience_00002.npz is damaged"):
        learned, _ = checkpoints.latest()
    assert learned == 1


def test_no_flipped_bit_goes_unseen(checkpoints):
    """Wherever it is: an error, or all arrays as they were."""
    save(checkpoints, 1)
    path = checkpoints.folder / "experience_00001.npz"
    whole = path.read_bytes()
    passed_over = 0
    for position in [*range(0, 60), *range(len(whole) - 400, len(whole))]:
        content = bytearray(whole)
        content[position] ^= 4
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _, state = checkpoints.latest()
            except ValueError:
                passed_over += 1
                continue
        np.testing.assert_array_equal(state["part/value"], np.full(1000, 1))
    assert passed_over > 100


def test_where_all_are_damaged_that_is_said(checkpoints):
    save(checkpoints, 1)
    (checkpoints.folder / "experience_00001.npz").write_bytes(b"no archive")
    with (
        pytest.warns(UserWarning, match="damaged"),
        pytest.raises(ValueError, match="None of the checkpoints in"),
    ):
        checkpoints.latest()


def test_another_format_is_refused(checkpoints, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", 99)
    save(checkpoints, 1)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="has format 99; .* reads format 1"):
        checkpoints.latest()


def test_nothing_is_unpickled(checkpoints):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(checkpoints.folder / "ran"),)

    checkpoints.folder.mkdir()
    np.savez(
        checkpoints.folder / "experience_00001.npz",
        format_and_size=np.array([checkpoint.FORMAT, 1]),
        evil=np.array([Evil()], dtype=object),
    )
    with (
        pytest.warns(UserWarning, match="damaged"),
        pytest.raises(ValueError, match="None of the checkpoints"),
    ):
        checkpoints.latest()
    assert not (checkpoints.folder / "ran").exists()


def test_a_full_disk_leaves_the_last_good_one(checkpoints, monkeypatch):
    save(checkpoints, 1)

    def full(file, **arrays):
        file.write(b"some")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left .* still there"):
        save(checkpoints, 2)
    assert names(checkpoints) == ["experience_00001.npz"]
    assert checkpoints.latest()[0] == 1


def test_what_a_crash_left_half_written_is_not_taken(checkpoints):
    save(checkpoints, 1)
    (checkpoints.folder / "experience_00002.npz.part").write_bytes(b"half")
    assert checkpoints.latest()[0] == 1
    save(checkpoints, 3)
    assert names(checkpoints) == [
        "experience_00001.npz",
        "experience_00003.npz",
    ]


def test_the_next_is_due_after_some_time(tmp_path):
    often = checkpoint.Checkpoints(tmp_path, seconds=0)
    seldom = checkpoint.Checkpoints(tmp_path, seconds=1000)
    for checkpoints in (often, seldom):
        with checkpoints:
            save(checkpoints, 1)
    assert often.due
    assert not seldom.due


def test_what_cannot_be_written_to_can_be_read(checkpoints, monkeypatch):
    checkpoints.save(1, {"a": np.arange(3)})

    def refuse(*args):
        raise OSError(errno.EROFS, "Read-only file system")

    with checkpoint.Checkpoints(checkpoints.folder) as others:
        monkeypatch.setattr(checkpoint, "open", refuse, raising=False)
        learned, state = others.latest()
        assert learned == 1
        np.testing.assert_array_equal(state["a"], np.arange(3))
        with pytest.raises(OSError, match="Cannot write the checkpoint"):
            others.save(2, {"a": np.arange(3)})
