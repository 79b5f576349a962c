"""Tests that files run no code, and write nowhere but where they may."""

import os
import pathlib
import re
import zipfile

import h5py
import helpers
import numpy as np
import pytest

import gnr_keras
from gnr_keras import datasets
from gnr_keras import sharing
from gnr_keras.datasets import tfds_sets

PACKAGE = pathlib.Path(gnr_keras.__file__).parent


class Evil:
    """Leaves a folder behind when it is unpickled."""

    def __init__(self, trace):
        self._trace = str(trace)

    def __reduce__(self):
        return os.mkdir, (self._trace,)


def evil_array(trace):
    return np.array([Evil(trace)], dtype=object)


def read_drawn(path):
    path = path / "embedded_objects/32px_1frames_seed0_v1.npy"
    path.parent.mkdir()
    np.save(path, evil_array(path.parents[1] / "ran"), allow_pickle=True)
    datasets.embedded_objects(32, 1, data_dir=path.parents[1])


def read_packed(path):
    np.savez(
        path / "tiny_imagenet_100.npz", train_jpeg=evil_array(path / "ran")
    )
    datasets.tiny_imagenet(data_dir=path)


def read_shared_state(path):
    shared = sharing.SharedStart(path, "key")
    np.savez(
        shared.folder / "first_experience.npz", seen=evil_array(path / "ran")
    )
    shared.state(dict)


def read_shared_latents(path):
    shared = sharing.SharedStart(path, "key")
    np.save(
        shared.folder / "folded_latents_a.npy",
        evil_array(path / "ran"),
        allow_pickle=True,
    )
    shared.latents("a", (1, 2), lambda latents: None)


@pytest.mark.parametrize(
    "read", [read_drawn, read_packed, read_shared_state, read_shared_latents]
)
def test_no_file_of_arrays_is_unpickled(read, tmp_path):
    """Checkpoints: test_checkpoint.py."""
    with pytest.raises(ValueError, match="(?i)object arrays|python objects"):
        read(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_labels_that_were_kept_are_not_unpickled(tmp_path):
    """What cannot be read is made again."""
    path = tmp_path / "labels.npz"
    np.savez(path, label=evil_array(tmp_path / "ran"))
    assert tfds_sets._read_cache(path) == {}
    assert not (tmp_path / "ran").exists()


def test_all_code_that_reads_arrays_is_looked_at_here():
    """Whoever adds a reader: no pickle, and a test of it."""
    readers = {
        str(path.relative_to(PACKAGE)): re.findall(
            r"np\.load\((?:[^()]|\([^()]*\))*\)", path.read_text()
        )
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    readers = {name: calls for name, calls in readers.items() if calls}
    assert sorted(readers) == [
        "checkpoint.py",
        "datasets/embedded.py",
        "datasets/tfds_sets.py",
        "datasets/tiny_imagenet.py",
        "sharing.py",
    ]
    for calls in readers.values():
        assert all("allow_pickle=False" in call for call in calls)


def test_no_code_of_the_package_unpickles_or_loads_whole_models():
    """Keras models hold code; weights, which are all that we load, do not."""
    unsafe = (
        r"\bpickle\b|\bdill\b|joblib|load_model|model_from_json|yaml\.|"
        r"\beval\(|\bexec\(|marshal|safe_mode\s*=\s*False|extractall|"
        r"enable_unsafe_deserialization|unpack_archive"
    )
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text().replace("allow_pickle=False", "")
        assert not re.search(unsafe, text), path


def test_files_of_weights_are_numbers_alone(tmp_path):
    """A file of weights that holds text in place of numbers is refused."""
    path = tmp_path / "a.weights.h5"
    model = gnr_keras.mobilenet_v1((32, 32, 3), alpha=0.25, weights=None)
    model.save_weights(path)

    def spoil(name, item):
        if isinstance(item, h5py.Dataset):
            found.append(name)

    found = []
    with h5py.File(path, "r+") as file:
        file.visititems(spoil)
        shape = file[found[0]].shape
        del file[found[0]]
        file[found[0]] = np.full(shape, b"import os")
    with pytest.raises(ValueError, match="does not hold weights of"):
        gnr_keras.mobilenet_v1((32, 32, 3), alpha=0.25, weights=str(path))


def write_zip(path, *names):
    with zipfile.ZipFile(path, "w") as file:
        for name in ("tiny-imagenet-200/wnids.txt", *names):
            file.writestr(name, "escaped")


@pytest.mark.parametrize(
    "name",
    [
        "../escaped.txt",
        "tiny-imagenet-200/../../escaped.txt",
        "/tmp/gnr_keras_escaped.txt",
        "..\\escaped.txt",
        "C:\\escaped.txt",
        "\\\\server\\share\\escaped.txt",
    ],
)
def test_archives_that_would_leave_their_folder_are_refused(name, tmp_path):
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    write_zip(data_dir / "tiny-imagenet-200.zip", name)
    with pytest.raises(ValueError, match="its member .*escaped.txt' would lie"):
        datasets.tiny_imagenet(data_dir=data_dir)
    assert not list(tmp_path.rglob("escaped.txt"))
    assert not os.path.exists("/tmp/gnr_keras_escaped.txt")
    assert not list((data_dir / "downloads").rglob("*.*"))


def test_links_in_archives_lead_nowhere(tmp_path):
    """A link of an archive comes out as a file of its text."""
    (tmp_path / "data").mkdir()
    link = zipfile.ZipInfo("tiny-imagenet-200/words.txt")
    link.create_system = 3
    link.external_attr = 0o120777 << 16
    archive = tmp_path / "data" / "tiny-imagenet-200.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(link, str(tmp_path / "secret"))
        file.writestr("tiny-imagenet-200/wnids.txt", "n01")
    (tmp_path / "secret").write_text("n01\tsecret")
    with pytest.raises(ValueError, match="has no words for n01"):
        datasets.tiny_imagenet(data_dir=tmp_path / "data")
    assert not [p for p in (tmp_path / "data").rglob("*") if p.is_symlink()]


def test_annotations_name_no_files_elsewhere(tmp_path):
    root = tmp_path / "tiny-imagenet-200"
    (root / "train/n01/images").mkdir(parents=True)
    (root / "train/n01/images/a.JPEG").write_bytes(b"")
    (root / "val").mkdir()
    (root / "wnids.txt").write_text("n01")
    (root / "words.txt").write_text("n01\tfish")
    (root / "val/val_annotations.txt").write_text("../../../x.JPEG\tn01\t0")
    with pytest.raises(ValueError, match="x.JPEG.*does not name a file of val"):
        datasets.tiny_imagenet(data_dir=tmp_path)


def test_states_hold_numbers_and_text_alone():
    """So that nobody is tempted to pickle them."""
    stream = helpers.blob_stream()
    learner = gnr_keras.Learner(
        helpers.small_backbone(), "latent", stream.num_classes
    )
    for name, value in learner.state().items():
        assert np.asarray(value).dtype.kind in "biufU", name
