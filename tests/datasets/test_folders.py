"""Tests of a user's own folders."""

import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import streams
from gnr_keras.datasets import image_folder
from gnr_keras.datasets import load_images


def write(root, name, value=0):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = tf.io.encode_png(np.full((4, 4, 3), value, "uint8"))
    path.write_bytes(data.numpy())


def values(source):
    """The value that each image holds, with its label."""
    (batch,) = source.batches(np.arange(len(source)), len(source))
    return [(int(x[0, 0, 0]), int(y)) for x, y in zip(*batch, strict=True)]


@pytest.fixture
def plain(tmp_path):
    """Three classes of 10, 5 and 2 images, each of which holds its name."""
    for class_name, count, start in (
        ("b", 10, 0),
        ("a", 5, 100),
        ("c", 2, 200),
    ):
        for number in range(count):
            write(tmp_path, f"{class_name}/{number}.png", start + number)
    write(tmp_path, ".thumbnails/0.png")
    (tmp_path / "notes.txt").write_text("no image")
    return tmp_path


def test_folders_are_classes_in_the_order_of_their_names(plain):
    train, test = image_folder(plain, 4)
    assert train.class_names == test.class_names == ("a", "b", "c")
    assert train.sessions is None
    assert np.bincount(test.labels).tolist() == [1, 2, 1]
    assert np.bincount(train.labels).tolist() == [4, 8, 1]
    learned, tested = values(train), values(test)
    assert not {*learned} & {*tested}
    expected = [(i, 1) for i in range(10)] + [(100 + i, 0) for i in range(5)]
    assert {*learned, *tested} == {*expected, (200, 2), (201, 2)}
    # Spread over the class: neither its first images nor its last.
    assert [value for value, label in tested if label == 1] == [3, 6]


def test_half_is_held_out_where_half_is_asked_for(plain):
    train, test = image_folder(plain, 4, test_fraction=0.5)
    assert np.bincount(test.labels).tolist() == [2, 5, 1]
    assert len(train) + len(test) == 17


def test_sessions_are_folders_of_a_class(tmp_path):
    for c, class_name in enumerate(("cup", "pen")):
        for s, session in enumerate(("fri", "mon", "tue")):
            if (class_name, session) != ("pen", "tue"):
                write(tmp_path, f"{class_name}/{session}/x.png", 10 * c + s)
    train, test = load_images(str(tmp_path), 4, test_sessions=["mon"])
    alike, _ = image_folder(tmp_path, 4, test_sessions="mon")
    assert alike.names == train.names
    assert values(train) == [(0, 0), (2, 0), (10, 1)]
    assert train.sessions.tolist() == [1, 3, 1]
    assert values(test) == [(1, 0), (11, 1)]
    assert test.sessions.tolist() == [2, 2]
    stream = streams.new_instances(train, test)
    assert len(stream) == 2


@pytest.mark.parametrize("name", ["test", "val", "validation"])
def test_train_and_test_folders(tmp_path, name):
    for class_name in ("x", "y"):
        write(tmp_path, f"train/{class_name}/1.png", 1)
        write(tmp_path, f"{name}/{class_name}/2.png", 2)
    train, test = image_folder(tmp_path, 4)
    assert values(train) == [(1, 0), (1, 1)]
    assert values(test) == [(2, 0), (2, 1)]


def test_a_class_may_be_called_test(tmp_path):
    """Without a folder `train` beside it, it is a class like another."""
    for name in ("test", "rest"):
        for number in range(2):
            write(tmp_path, f"{name}/{number}.png")
    assert image_folder(tmp_path, 4)[0].class_names == ("rest", "test")


def test_known_classes_keep_their_numbers(plain, tmp_path):
    """What comes next month: one new class, and more of a known one."""
    later = tmp_path / "later"
    for number in range(3):
        write(later, f"aa/{number}.png", 10 + number)
        write(later, f"c/{number}.png", 20 + number)
    train, test = image_folder(later, 4, class_names=("a", "b", "c"))
    assert train.class_names == test.class_names == ("a", "b", "c", "aa")
    assert values(train) == [(10, 3), (12, 3), (20, 2), (22, 2)]
    assert values(test) == [(11, 3), (21, 2)]
    single = tmp_path / "single"
    for number in range(2):
        write(single, f"new/{number}.png")
    train, _ = image_folder(single, 4, class_names=["old"])
    assert train.labels.tolist() == [1]


@pytest.mark.parametrize(
    "names, message",
    [
        ([], "holds no folder of a class: at least two.*cats/1.jpg"),
        (["one/1.png", "one/2.png"], "holds one class, 'one': at least two"),
        (["1.png", "2.png"], "holds no folder of a class"),
        (["a/1.png", "a/2.png", "b/1.png"], "'b' of .* has one image only"),
        (["a/m/1.png", "b/1.png", "b/2.png"], "'b' has none.*or to none"),
        (
            ["a/m/1.png", "b/m/1.png", "b/n/1.png"],
            r"are m, n; `test_sessions` must name some of them.*: \[\]",
        ),
        (
            ["train/a/1.png", "train/b/1.png", "test/c/1.png"],
            r"not among the training images: c \(1 in all\)",
        ),
    ],
)
def test_wrong_layouts_say_what_is_expected(tmp_path, names, message):
    for name in names:
        write(tmp_path, name)
    with pytest.raises(ValueError, match=message) as error:
        image_folder(tmp_path, 4)
    assert str(tmp_path) in str(error.value)


def test_wrong_arguments(plain):
    with pytest.raises(ValueError, match=f"no folder {plain}/absent"):
        image_folder(plain / "absent", 4)
    with pytest.raises(ValueError, match="between 0 and 1. Received: 1.0"):
        image_folder(plain, 4, test_fraction=1.0)
    with pytest.raises(ValueError, match="are none.*'mon'"):
        image_folder(plain, 4, test_sessions=["mon"])
    (plain / "a" / "inner").mkdir()
    with pytest.raises(ValueError, match=f"{plain}/a holds images beside"):
        image_folder(plain, 4)


def test_train_alone_says_what_is_missing(tmp_path):
    for name in ("a", "b"):
        for number in range(2):
            write(tmp_path, f"train/{name}/{number}.png")
    with pytest.raises(ValueError, match="`train`, and none of .*'valid'"):
        image_folder(tmp_path, 4)
    assert image_folder(tmp_path / "train", 4)[0].num_classes == 2


def test_a_class_that_is_wholly_corrupt_is_named(plain):
    for path in (plain / "c").iterdir():
        path.write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="images cannot be read"),
        pytest.raises(ValueError, match="No image of c can be read"),
    ):
        image_folder(plain, 4, skip_corrupt=True)


def test_known_classes_alone_are_no_images(tmp_path):
    with pytest.raises(ValueError, match="holds no folder of a class"):
        image_folder(tmp_path, 4, class_names=("a", "b"))


def test_test_images_are_chosen_as_the_data_wants(plain):
    with pytest.raises(ValueError, match="folder: expected `test_sessions`"):
        load_images(str(plain), 4, test_split="test")
    with pytest.raises(ValueError, match="set of TFDS: expected `test_split`"):
        load_images("tfds:mnist", 4, test_sessions=["a"])


def test_names_are_seen_from_the_data_folder(plain, monkeypatch):
    for options in ({"data_dir": plain.parent}, {}):
        train, _ = load_images(
            plain.name if options else str(plain), 4, **options
        )
        assert len(train) == 13
    monkeypatch.chdir(plain.parent)
    assert len(load_images(plain.name, 4)[0]) == 13


def test_corrupt_images_are_left_out_and_counted(plain):
    (plain / "b" / "3.png").write_bytes(b"")
    broken = plain / "b" / "7.png"
    broken.write_bytes(broken.read_bytes()[:50])
    told = []
    with pytest.warns(
        UserWarning, match="of .* images cannot be read"
    ) as found:
        train, test = image_folder(
            plain, 4, skip_corrupt=True, progress=lambda *x: told.append(x)
        )
    assert len(found) == 2  # One in each of both sources.
    assert train.skipped == (str(broken),)
    assert test.skipped == (str(plain / "b" / "3.png"),)
    assert np.bincount(train.labels).tolist() == [4, 7, 1]
    assert 7 not in [value for value, _ in values(train)]
    assert told[-1] == (4, 4)
    stream = streams.new_classes(train, test, 2, 1)
    assert stream.skipped_images == 2
