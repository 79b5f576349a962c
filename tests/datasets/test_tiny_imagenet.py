"""Tests of Tiny-ImageNet, from one file and from the official folder."""

import io
import shutil
import zipfile

import helpers
import numpy as np
import pytest
import tensorflow as tf

from gnr_keras.datasets import FileSource
from gnr_keras.datasets import downloads
from gnr_keras.datasets import tiny_imagenet

# As in the archive: not in the order of the ids.
WNIDS = ("n03", "n01", "n02")
NAMES = ("bullfrog, Rana catesbeiana", "goldfish", "go-kart")


def encode(*color):
    """A PNG of one colour, which comes back as it was."""
    return tf.io.encode_png(np.full((2, 2, 3), color, "uint8")).numpy()


def write_packed(folder, per_class=10, **changes):
    """Writes the file; each image holds its part, class and number."""
    arrays = {"names": np.array(NAMES), "wnids": np.array(sorted(WNIDS))}
    for part, name, count in ((1, "train", per_class), (2, "val", 2)):
        patterns = [(y, i) for i in range(count) for y in range(3)]
        encoded = [encode(part, y, i) for y, i in patterns]
        arrays[f"{name}_jpeg"] = np.frombuffer(b"".join(encoded), "uint8")
        sizes = [0, *map(len, encoded)]
        arrays[f"{name}_offsets"] = np.cumsum(sizes)
        arrays[f"{name}_y"] = np.array([y for y, _ in patterns], "int16")
    arrays.update(changes)
    path = folder / "tiny_imagenet_100.npz"
    np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
    return path


def write_folder(folder, per_class=10):
    """Writes the official layout, with the same images."""
    root = folder / "tiny-imagenet-200"
    (root / "val" / "images").mkdir(parents=True)
    (root / "wnids.txt").write_text("\n".join(WNIDS) + "\n")
    words = ["n00\tentity\n"]
    for wnid, name in zip(sorted(WNIDS), NAMES, strict=True):
        words.append(f"{wnid}\t{name}\n")
    (root / "words.txt").write_text("".join(words))
    annotations = []
    for y, wnid in enumerate(sorted(WNIDS)):
        place = root / "train" / wnid / "images"
        place.mkdir(parents=True)
        (place.parent / f"{wnid}_boxes.txt").touch()
        for i in range(per_class):
            (place / f"{wnid}_{i}.JPEG").write_bytes(encode(1, y, i))
        for i in range(2):
            name = f"val_{2 * y + i}.JPEG"
            (root / "val" / "images" / name).write_bytes(encode(2, y, i))
            annotations.append(f"{name}\t{wnid}\t0\t32\t44\t62\n")
    (root / "val" / "val_annotations.txt").write_text("".join(annotations))
    return root


@pytest.fixture
def offline(monkeypatch):
    """No test may download the archive where there is a connection."""

    def refuse(*arguments, **options):
        raise OSError("no connection")

    monkeypatch.setattr(downloads.urllib.request, "urlopen", refuse)


def contents(source):
    """The `(part, class, number)` of all images, and their labels."""
    (batch,) = source.batches(np.arange(len(source)), len(source))
    return sorted(
        (*map(int, image[0, 0]), int(label))
        for image, label in zip(*batch, strict=True)
    )


def expected(part, numbers):
    return [(part, y, i, y) for y in range(3) for i in numbers]


@pytest.mark.parametrize("write", [write_packed, write_folder])
def test_images_have_their_classes(write, tmp_path, offline):
    write(tmp_path)
    train, test = tiny_imagenet(2, data_dir=tmp_path)
    assert contents(train) == expected(1, range(10))
    assert contents(test) == expected(2, range(2))
    assert train.class_names == test.class_names == NAMES
    assert train.image_shape == (2, 2, 3)


@pytest.mark.parametrize("write", [write_packed, write_folder])
def test_validation_leaves_the_test_set_alone(write, tmp_path, offline):
    """Of 10 images the last 2."""
    write(tmp_path)
    train, test = tiny_imagenet(2, validation=True, data_dir=tmp_path)
    assert contents(train) == expected(1, range(8))
    assert contents(test) == expected(1, [8, 9])


def test_a_fifth_is_rounded_down(tmp_path):
    write_packed(tmp_path, per_class=14)
    train, test = tiny_imagenet(2, validation=True, data_dir=tmp_path)
    assert contents(train) == expected(1, range(12))
    assert contents(test) == expected(1, [12, 13])


def test_images_are_resized(tmp_path):
    write_packed(tmp_path)
    train, _ = tiny_imagenet(data_dir=tmp_path)
    ((images, labels),) = train.batches([4], 1)
    assert images.shape == (1, 64, 64, 3)
    # The fifth image: the second of the second class, of one colour.
    assert np.unique(images[0].reshape(-1, 3), axis=0).tolist() == [[1, 1, 1]]
    assert labels.tolist() == [1]


def test_the_file_comes_before_the_folder(tmp_path):
    write_packed(tmp_path, per_class=5)
    write_folder(tmp_path, per_class=6)
    assert len(tiny_imagenet(2, data_dir=tmp_path)[0]) == 15


def test_folder_lists_files_below_its_root(tmp_path):
    root = write_folder(tmp_path)
    told = []
    train, test = tiny_imagenet(
        2, data_dir=tmp_path, progress=lambda *pair: told.append(pair)
    )
    assert isinstance(train, FileSource)
    assert train.root == test.root == root
    assert train.names[0] == "train/n01/images/n01_0.JPEG"
    assert test.names[-1] == "val/images/val_5.JPEG"
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_corrupt_image_of_the_file_is_named_or_left_out(tmp_path):
    path = write_packed(tmp_path)
    with np.load(path) as file:
        data, start = file["train_jpeg"].copy(), file["train_offsets"][4]
    data[start : start + 4] = 0
    write_packed(tmp_path, train_jpeg=data)
    train, _ = tiny_imagenet(2, data_dir=tmp_path)
    with pytest.raises(ValueError, match=f"Image 4 of train_jpeg in {path} ca"):
        contents(train)
    with pytest.warns(UserWarning, match="1 of 30 images cannot be read"):
        train, _ = tiny_imagenet(2, skip_corrupt=True, data_dir=tmp_path)
    kept = expected(1, range(10))
    kept.remove((1, 1, 1, 1))
    assert contents(train) == kept
    assert train.skipped == (f"Image 4 of train_jpeg in {path}",)


def test_corrupt_file_of_the_folder_is_left_out(tmp_path):
    root = write_folder(tmp_path)
    broken = root / "val" / "images" / "val_3.JPEG"
    broken.write_bytes(b"no image")
    with pytest.warns(UserWarning, match="1 of 6 images cannot be read"):
        _, test = tiny_imagenet(2, skip_corrupt=True, data_dir=tmp_path)
    assert test.skipped == (str(broken),)


def test_archive_in_the_folder_is_extracted(tmp_path, offline):
    root = write_folder(tmp_path)
    with zipfile.ZipFile(tmp_path / "tiny-imagenet-200.zip", "w") as file:
        for path in sorted(root.rglob("*.*")):
            file.write(path, path.relative_to(tmp_path))
    shutil.rmtree(root)
    train, test = tiny_imagenet(2, data_dir=tmp_path)
    assert contents(train) == expected(1, range(10))
    assert contents(test) == expected(2, range(2))


def test_absent_images_say_what_and_where_and_how(tmp_path, offline):
    with pytest.raises(ValueError, match="no connection") as error:
        tiny_imagenet(data_dir=tmp_path)
    message = str(error.value)
    assert "get http://cs231n.stanford.edu/tiny-imagenet-200.zip" in message
    assert (
        "Looked for tiny_imagenet_100.npz, tiny-imagenet-200 and "
        f"tiny-imagenet-200.zip in {tmp_path}."
    ) in message
    assert "as `data_dir`" in message


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"val_y": None}, "cannot be read: .*val_y.*the arrays train_jpeg"),
        ({"train_y": np.zeros(29, int)}, "29 entries in train_y, 31 in"),
        ({"val_jpeg": np.zeros(9, "uint8")}, "and 9 in val_jpeg"),
    ],
)
def test_other_files_are_refused(changes, message, tmp_path):
    path = write_packed(tmp_path, **changes)
    with pytest.raises(ValueError, match=f"{path} .*{message}"):
        tiny_imagenet(data_dir=tmp_path)


def test_half_a_file_is_refused(tmp_path):
    path = write_packed(tmp_path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=f"{path} cannot be read"):
        tiny_imagenet(data_dir=tmp_path)


@pytest.mark.parametrize(
    "name", ["wnids.txt", "words.txt", "val/val_annotations.txt"]
)
def test_lists_that_are_missing_are_named(name, tmp_path):
    root = write_folder(tmp_path)
    (root / name).unlink()
    with pytest.raises(ValueError, match=f"{root / name} cannot be read. Ex"):
        tiny_imagenet(data_dir=tmp_path)


def test_what_does_not_belong_together_is_named(tmp_path):
    root = write_folder(tmp_path)
    annotations = root / "val" / "val_annotations.txt"
    whole = annotations.read_text()
    annotations.write_text(whole.replace("val_3.JPEG\tn02", "val_3.JPEG\tn07"))
    with pytest.raises(ValueError, match="line 'val_3.JPEG.tn07.*of wnids.txt"):
        tiny_imagenet(data_dir=tmp_path)
    annotations.write_text(whole)
    shutil.rmtree(root / "train" / "n02")
    with pytest.raises(ValueError, match="no folder .*train/n02/images. Expec"):
        tiny_imagenet(data_dir=tmp_path)
    (root / "words.txt").write_text("n01\tbullfrog\nn03\tgo-kart\n")
    with pytest.raises(ValueError, match="words.txt has no words for n02"):
        tiny_imagenet(data_dir=tmp_path)


@helpers.needs_shared("tiny_imagenet_100.npz")
def test_real_images():
    pillow = pytest.importorskip("PIL.Image")
    train, test = tiny_imagenet(data_dir=helpers.SHARED)
    assert np.bincount(train.labels).tolist() == [250] * 100
    assert np.bincount(test.labels).tolist() == [50] * 100
    assert train.class_names[0] == "bullfrog, Rana catesbeiana"
    ((images, labels),) = test.batches([0], 1)
    assert images.shape == (1, 64, 64, 3)
    assert test.class_names[labels[0]] == "go-kart"
    with np.load(helpers.SHARED / "tiny_imagenet_100.npz") as file:
        data = file["val_jpeg"][: file["val_offsets"][1]].tobytes()
    other = np.asarray(pillow.open(io.BytesIO(data)).convert("RGB"))
    # Decoders round otherwise.
    assert np.abs(images[0].astype(int) - other).mean() < 2
    learned, held_out = tiny_imagenet(validation=True, data_dir=helpers.SHARED)
    assert np.bincount(learned.labels).tolist() == [200] * 100
    assert np.bincount(held_out.labels).tolist() == [50] * 100
