"""Tests of the drawn video data set."""

import numpy as np
import pytest

from gnr_keras.datasets import drawing


def _difference(first, second):
    return np.abs(first.astype(float) - second.astype(float)).mean()


def _corners(video):
    """The four corners of the frames, where the background shows."""
    side = video.shape[1] // 8
    return np.concatenate(
        [
            video[:, rows, columns].reshape(len(video), -1, 3)
            for rows in (slice(0, side), slice(-side, None))
            for columns in (slice(0, side), slice(-side, None))
        ],
        axis=1,
    )


def test_names_follow_the_object_numbers():
    assert len(drawing.CATEGORY_NAMES) == drawing.NUM_CATEGORIES == 10
    assert len(set(drawing.OBJECT_NAMES)) == drawing.NUM_OBJECTS == 50
    for object_id, name in enumerate(drawing.OBJECT_NAMES):
        category = drawing.CATEGORY_NAMES[object_id // 5]
        assert name == f"{category} {object_id % 5 + 1}"


@pytest.mark.parametrize("image_size", [32, 64, 128])
def test_shape_type_and_range(image_size):
    video = drawing.draw_session(7, 3, 4, image_size)
    assert video.shape == (4, image_size, image_size, 3)
    assert video.dtype == np.uint8
    assert video.max() > 120
    assert video.min() < 80
    assert video.std() > 15


def test_image_sizes_show_the_same_scene():
    small = drawing.draw_session(12, 5, 2, 32).astype(float)
    large = drawing.draw_session(12, 5, 2, 128).astype(float)
    other = drawing.draw_session(12, 6, 2, 128).astype(float)
    shrink = (2, 32, 4, 32, 4, 3)
    same_scene = _difference(small, large.reshape(shrink).mean((2, 4)))
    other_scene = _difference(small, other.reshape(shrink).mean((2, 4)))
    assert same_scene < 0.4 * other_scene


def test_same_seed_same_bytes_other_seed_other_bytes():
    first = drawing.draw_session(21, 4, 3, 32, seed=5)
    again = drawing.draw_session(21, 4, 3, 32, seed=5)
    other = drawing.draw_session(21, 4, 3, 32, seed=6)
    assert first.tobytes() == again.tobytes()
    assert _difference(first, other) > 5


def test_frame_count_only_samples_the_path():
    coarse = drawing.draw_session(30, 2, 3, 32).astype(int)
    fine = drawing.draw_session(30, 2, 5, 32).astype(int)
    # Rounding may differ by one step between array lengths.
    assert np.abs(coarse - fine[::2]).max() <= 1
    assert np.abs(coarse - fine[:3]).max() > 20


def test_long_sessions_do_not_show_their_chunks(monkeypatch):
    whole = drawing.draw_session(9, 8, 6, 32).astype(int)
    monkeypatch.setattr(drawing, "_CHUNK_PIXELS", 2 * 32 * 32)
    parts = drawing.draw_session(9, 8, 6, 32).astype(int)
    assert np.abs(whole - parts).max() <= 1


def test_consecutive_frames_resemble_each_other_more_than_sessions():
    for object_id in range(2, 50, 5):
        first, second = (
            drawing.draw_session(object_id, session, 20, 32)
            for session in (1, 2)
        )
        within = _difference(first[1:], first[:-1])
        assert 0 < within < 0.5 * _difference(first, second)


def test_object_moves_during_a_session():
    for object_id in range(4, 50, 5):
        video = drawing.draw_session(object_id, 6, 20, 32)
        steps = _difference(video[1:], video[:-1])
        assert _difference(video[10:], video[:10]) > 1.2 * steps


def test_sessions_differ_in_background_and_light():
    backgrounds, lights = [], []
    for session in range(1, drawing.NUM_SESSIONS + 1):
        video = drawing.draw_session(17, session, 2, 32)
        backgrounds.append(_corners(video).mean((0, 1)))
        lights.append(np.percentile(video[:, 12:20, 12:20], 75))
    backgrounds = np.array(backgrounds)
    distances = np.abs(backgrounds[:, None] - backgrounds[None]).mean(-1)
    assert np.all(distances[np.triu_indices(len(distances), 1)] > 1)
    assert np.median(distances[np.triu_indices(len(distances), 1)]) > 20
    assert np.ptp(lights) > 25


def test_objects_of_a_session_have_their_own_backgrounds():
    first, second = (
        _corners(drawing.draw_session(object_id, 3, 2, 32)).mean((0, 1))
        for object_id in (0, 1)
    )
    assert np.abs(first - second).mean() > 3


def test_objects_have_their_own_designs():
    designs = [drawing._design(object_id, 0) for object_id in range(50)]
    for start in range(0, 50, 5):
        category = designs[start : start + 5]
        assert {design.kind for design in category} == set(range(5))
        assert {design.pattern for design in category} == set(range(5))
        assert len({(d.main, d.second) for d in category}) == 5
        # A colour alone must not name the object.
        assert len({design.main for design in category}) < 5
    # Nor the category.
    colors = {d.main for d in designs}
    shared = [sum(d.main == color for d in designs) for color in colors]
    assert len(colors) <= 10
    assert max(shared) > 5


def test_objects_look_different_in_the_same_scene():
    pictures = []
    for object_id in range(drawing.NUM_OBJECTS):
        scene = drawing._Scene(object_id, 1, 32, 0)
        # One scene for all, for the difference to be that of the objects.
        scene.key = (0, 0, 1)
        scene.light, scene.light_color = (0.0, -0.6, 0.8), np.ones(3, "float32")
        scene.background = np.full_like(scene.background, 0.5)
        pictures.append(scene.draw(np.array([0.5]))[0].astype(float))
    pictures = np.array(pictures).reshape(drawing.NUM_OBJECTS, -1)
    for index, picture in enumerate(pictures[:-1]):
        assert np.abs(pictures[index + 1 :] - picture).mean(-1).min() > 2


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("object_id", 50, "from 0 to 49"),
        ("object_id", -1, "from 0 to 49"),
        ("session", 0, "from 1 to 11"),
        ("session", 12, "from 1 to 11"),
        ("session", 2.5, "from 1 to 11"),
        ("frames", 0, "of at least 1"),
        ("frames", True, "of at least 1"),
        ("image_size", 7, "of at least 8"),
        ("image_size", "64", "of at least 8"),
        ("seed", -3, "of at least 0"),
        ("seed", None, "of at least 0"),
    ],
)
def test_errors_say_what_was_received_and_expected(name, value, expected):
    arguments = dict(object_id=0, session=1, frames=2, image_size=32, seed=0)
    arguments[name] = value
    with pytest.raises(ValueError) as error:
        drawing.draw_session(**arguments)
    assert f"`{name}`" in str(error.value)
    assert f"Received: {value!r}" in str(error.value)
    assert expected in str(error.value)


def test_numpy_integers_are_accepted():
    plain = drawing.draw_session(3, 2, 2, 32, seed=1)
    numpy = drawing.draw_session(*np.array([3, 2, 2, 32]), seed=np.int64(1))
    assert plain.tobytes() == numpy.tobytes()
