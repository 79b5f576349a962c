"""Tests of CORe50, on a tree of its layout and on real frames."""

import functools
import http.server
import shutil
import threading
import warnings
import zipfile

import core50_tree
import helpers
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from gnr_keras import protocols
from gnr_keras import streams
from gnr_keras.datasets import core50
from gnr_keras.datasets import downloads

SHARED = helpers.SHARED / "core50"


def frame_path(root, *frame):
    return root / core50_tree.frame_name(*frame)


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
    # The test set is one list: 750 frames, of which each second.
    assert len(test) == 375
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


@pytest.fixture
def offline(monkeypatch):
    """No test may download gigabytes where there is a connection."""

    def refuse(*arguments, **options):
        raise OSError("no connection")

    monkeypatch.setattr(downloads.urllib.request, "urlopen", refuse)


def test_absent_images_say_where_and_what_and_how(tmp_path, offline):
    with pytest.raises(ValueError) as error:
        core50(data_dir=tmp_path)
    message = str(error.value)
    assert "Could not get https://vlomonaco.github.io/" in message
    assert "no connection" in message
    assert "s1/o1/C_01_01_000.png" in message
    assert "https://vlomonaco.github.io/core50/" in message


def test_absent_data_dir_is_not_made(tmp_path, offline):
    with pytest.raises(ValueError, match=f"no folder {tmp_path}/absent"):
        core50(data_dir=tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_another_folder_of_that_name_is_refused(tmp_path, offline):
    root = tmp_path / "core50_128x128"
    (root / "train").mkdir(parents=True)
    with pytest.raises(ValueError, match=f"{root} is not CORe50. Expected"):
        core50(data_dir=tmp_path)
    (root / "s1").mkdir()
    with pytest.raises(ValueError, match=f"{root} is not CORe50. Expected"):
        core50(data_dir=tmp_path)


def test_other_files_are_refused(tmp_path):
    path = frame_path(tmp_path, 1, 1, 0)
    path.parent.mkdir(parents=True)
    wrong = path.with_name("C_02_01_000.png")
    wrong.touch()
    with (
        pytest.warns(UserWarning, match="1 of CORe50's 550"),
        pytest.raises(ValueError, match=f"{wrong} is not a frame of CORe50"),
    ):
        core50(data_dir=tmp_path)


def pack(folder, archive):
    """Packs a tree as the authors' archive is packed."""
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.rglob("*.*")):
            file.write(path, path.relative_to(folder.parent))


@pytest.mark.filterwarnings("ignore:.*of CORe50's 550 videos")
def test_archive_in_the_folder_is_extracted_once(tmp_path, offline):
    root = core50_tree.write_tree(tmp_path, objects=[1, 2], size=4)
    pack(root, tmp_path / "core50_128x128.zip")
    shutil.rmtree(root)
    train, test = core50(image_size=4, data_dir=tmp_path)
    assert (len(train), len(test)) == (8 * 2 * 2, 3 * 2 * 2)
    assert not root.exists()
    # What was extracted is enough the next time.
    (tmp_path / "core50_128x128.zip").unlink()
    assert core50(image_size=4, data_dir=tmp_path)[0].names == train.names


def test_other_archives_are_refused(tmp_path, offline):
    archive = tmp_path / "core50_128x128.zip"
    archive.write_bytes(b"PK, but no more")
    with pytest.raises(ValueError, match=f"{archive}: it is no zip archive"):
        core50(data_dir=tmp_path)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("cats/1.png", b"")
    with pytest.raises(ValueError, match="holds no folder 'core50_128x128'"):
        core50(data_dir=tmp_path)


@pytest.mark.filterwarnings("ignore:.*of CORe50's 550 videos")
def test_better_archive_in_place_of_a_bad_one(tmp_path, offline):
    """Neither the wrong archive nor a half extracted one is taken again."""
    archive = tmp_path / "core50_128x128.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("cats/1.png", b"")
    with pytest.raises(ValueError, match="holds no folder 'core50_128x128'"):
        core50(data_dir=tmp_path)
    half = tmp_path / "downloads/extracted/incomplete.12_ZIP.core50"
    core50_tree.write_tree(half, objects=[1], size=4, frames=1)
    root = core50_tree.write_tree(tmp_path, objects=[1, 2], size=4)
    pack(root, archive)
    shutil.rmtree(root)
    train, test = core50(image_size=4, data_dir=tmp_path)
    assert (len(train), len(test)) == (8 * 2 * 2, 3 * 2 * 2)


def test_archive_with_a_damaged_member_is_named(tmp_path, offline):
    root = core50_tree.write_tree(tmp_path, objects=[1], size=4, frames=1)
    archive = tmp_path / "core50_128x128.zip"
    pack(root, archive)
    shutil.rmtree(root)
    data = bytearray(archive.read_bytes())
    data[data.index(b"IDAT") + 6] ^= 255
    archive.write_bytes(data)
    for _ in range(2):
        with pytest.raises(ValueError, match=f"Could not get {archive}"):
            core50(data_dir=tmp_path)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The authors' two servers, with a small archive and empty lists."""
    folder = tmp_path / "server"
    root = core50_tree.write_tree(folder, objects=[1, 2, 3], size=4)
    pack(root, folder / "core50_128x128.zip")
    cells = [[(s, o, 0)] for s in (1, 2) for o in (1, 2, 3)]
    for name, lists in (
        ("batches_filelists.zip", "batches_filelists/NC_inc/run0"),
        ("batches_filelists_NICv2.zip", "NIC_v2_391/run0"),
    ):
        core50_tree.write_lists(folder / lists, cells)
        pack(folder / lists.split("/")[0], folder / name)
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=folder
    )
    asked = []
    monkeypatch.setattr(
        handler.func, "log_message", lambda self, *line: asked.append(line)
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        module = core50.__globals__
        monkeypatch.setitem(
            module, "_IMAGES_URL", f"{address}/core50_128x128.zip"
        )
        for holds, url in module["LISTS_URLS"].items():
            name = url.rsplit("/", 1)[1]
            monkeypatch.setitem(
                module["LISTS_URLS"], holds, f"{address}/{name}"
            )
        yield asked
        server.shutdown()


@pytest.mark.filterwarnings("ignore:.*of CORe50's 550 videos")
def test_images_and_lists_are_downloaded_once(server, tmp_path):
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    train, test = core50(image_size=4, data_dir=data_dir)
    assert (len(train), len(test)) == (8 * 3 * 2, 3 * 3 * 2)
    assert cells_are_readable(train)
    with pytest.warns(UserWarning, match="6 of the protocol's 391"):
        stream = protocols.core50_protocol(train, test, "NICv2_391")
    assert stream.order.startswith("official, NIC_v2_391/run0")
    assert len(stream) == 6
    count = len(server)
    assert count >= 3
    core50(image_size=4, data_dir=data_dir)
    assert len(server) == count


def test_what_the_server_does_not_have_is_told_at_once(server, tmp_path):
    (tmp_path / "server" / "batches_filelists.zip").unlink()
    (tmp_path / "data").mkdir()
    with pytest.raises(ValueError, match="batches_filelists.zip: .*404"):
        core50(data_dir=tmp_path / "data")
    requests = [line[1] for line in server if line[0].startswith('"')]
    assert requests == ["HEAD /batches_filelists.zip HTTP/1.1"]


def cells_are_readable(source):
    ((images, _),) = source.batches(np.arange(3), 3)
    return images.shape == (3, 4, 4, 3)


@pytest.mark.filterwarnings("ignore:.*of CORe50's 550 videos")
def test_builder_downloads_too(server, tmp_path):
    data = tfds.load("core50", data_dir=tmp_path / "data", split="test")
    assert len(data) == 3 * 3 * 2


@pytest.mark.filterwarnings("ignore:.*of CORe50's 550 videos")
def test_builder_has_session_object_and_category(tmp_path):
    core50_tree.write_tree(tmp_path, objects=[1, 27], size=128, frames=1)
    data, info = tfds.load("core50", data_dir=tmp_path, with_info=True)
    assert info.splits["train"].num_examples == 8 * 2
    assert info.splits["test"].num_examples == 3 * 2
    assert info.features["object"].names[26] == "glass2"
    assert info.features["category"].names[5] == "glass"
    found = {
        int(example["session"]): example
        for example in data["test"]
        if example["object"] == 26
    }
    assert sorted(found) == [3, 7, 10]
    example = found[7]
    assert example["category"] == 5
    assert example["file_name"] == b"s7/o27/C_07_27_000.png"
    file = tmp_path / "core50_128x128" / "s7/o27/C_07_27_000.png"
    pixels = tf.io.decode_png(tf.io.read_file(str(file)))
    np.testing.assert_array_equal(example["image"], pixels)
    pairs = tfds.load(
        "core50", data_dir=tmp_path, split="train", as_supervised=True
    )
    assert {int(label) for _, label in pairs} == {0, 26}


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


@helpers.needs_shared("core50/core50_labels.txt")
def test_names_are_the_authors(data_dir):
    names = (SHARED / "core50_labels.txt").read_text().split()
    assert core50(data_dir=data_dir)[0].class_names == tuple(names)


@helpers.needs_shared("core50/test_filelist.txt")
def test_labels_are_those_of_the_authors_list(data_dir):
    _, test = core50(data_dir=data_dir)
    lines = (SHARED / "test_filelist.txt").read_text().splitlines()
    listed = {(*line.split("/")[:2], line.split()[1]) for line in lines}
    ours = {
        (f"s{session}", f"o{label + 1}", str(label))
        for session, label in zip(test.sessions, test.labels, strict=True)
    }
    assert ours == listed


@helpers.needs_shared("core50/frames")
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
