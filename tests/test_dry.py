"""Tests that a dry run leaves disk and network alone."""

import numpy as np
import pytest

from gnr_keras import backbones
from gnr_keras import datasets
from gnr_keras import dry
from gnr_keras.backbones import weights


def test_the_embedded_data_are_counted_and_not_drawn(tmp_path):
    options = {"image_size": 8, "frames_per_session": 1, "data_dir": tmp_path}
    with dry.run():
        planned = datasets.embedded_objects(**options)
    assert not list(tmp_path.iterdir())
    drawn = datasets.embedded_objects(**options)
    for one, other in zip(planned, drawn, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.sessions, other.sessions)
        assert one.image_shape == other.image_shape
        assert one.class_names == other.class_names


@pytest.mark.parametrize(
    "open_set",
    [datasets.core50, datasets.tiny_imagenet],
    ids=lambda function: function.__name__,
)
def test_what_is_not_at_hand_is_not_fetched(open_set, tmp_path):
    with (
        dry.run(),
        pytest.raises(ValueError, match="a dry run fetches nothing"),
    ):
        open_set(data_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def test_weights_are_not_downloaded(monkeypatch):
    monkeypatch.setattr(weights, "fetch", lambda _: pytest.fail("fetched"))
    with dry.run():
        backbones.mobilenet_v1((32, 32, 3), 0.25, weights="imagenet")
        backbones.application("MobileNetV2", (32, 32, 3))


def test_it_ends_also_with_an_error():
    with pytest.raises(KeyError), dry.run():
        assert dry.is_on()
        raise KeyError
    assert not dry.is_on()
