"""Tests of CORe50's official streams."""

import itertools
import pathlib
import re
import shutil
import tarfile
import zipfile

import core50_tree
import helpers
import numpy as np
import pytest

from gnr_keras import evaluation
from gnr_keras import filelists
from gnr_keras import protocols
from gnr_keras.datasets import ArraySource
from gnr_keras.datasets import FileSource
from gnr_keras.datasets import core50
from gnr_keras.datasets import fruits360

LISTS = "core50/NICv2_all_runs_train_filelists.tar.xz"
TRAINING = [s for s in core50_tree.SESSIONS if s not in (3, 7, 10)]
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*of CORe50's 550 videos"),
    pytest.mark.filterwarnings("ignore:.*of the protocol's"),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Six objects, all sessions, two frames each."""
    folder = tmp_path_factory.mktemp("core50")
    core50_tree.write_tree(folder, size=4, objects=range(1, 7))
    return folder


def frames_of(objects, sessions=TRAINING, frames=range(2)):
    return list(itertools.product(sessions, objects, frames))


def open_tree(tree, **options):
    return core50(image_size=4, data_dir=tree, **options)


def test_lists_decide_what_is_in_an_experience(tree, tmp_path):
    """Two frames of object 5, then all of 2, then one of 5 again and of 6."""
    experiences = [
        [(1, 5, 1), (2, 5, 0)],
        frames_of([2]),
        [(11, 5, 0), (4, 6, 1)],
    ]
    core50_tree.write_lists(tmp_path / "NIC_v2_79/run4", experiences)
    train, test = open_tree(tree)
    stream = protocols.core50_protocol(
        train, test, "NICv2_79", lists=tmp_path, seed=4
    )
    assert stream.scenario == "NIC"
    assert stream.order == "official, NIC_v2_79/run4, 3 of 79 experiences"
    names = np.array(train.names)
    for experience, frames in zip(stream, experiences, strict=True):
        expected = [core50_tree.frame_name(*frame) for frame in frames]
        assert list(names[experience.data._indices]) == expected
        assert experience.data.labels.tolist() == [o - 1 for _, o, _ in frames]
    assert len(stream.test) == 3 * 6 * 2
    assert stream.original_classes.tolist() == list(range(50))


def test_lists_in_order_of_appearance_are_mapped_back(tree, tmp_path):
    """Object 4 comes first and has the number 0, and so on."""
    number_of = {4: 0, 2: 1, 6: 2, 1: 3, 3: 4, 5: 5}
    core50_tree.write_lists(
        tmp_path / "NC_inc/run0",
        [frames_of([4, 2]), frames_of([6, 1]), frames_of([3, 5])],
        number_of,
        frames_of([1, 2, 3, 4, 5, 6], core50_tree.TEST_SESSIONS),
    )
    train, test = open_tree(tree)
    stream = protocols.core50_protocol(
        train, test, "NC", lists=tmp_path, seed=0
    )
    assert [e.classes.tolist() for e in stream] == [[0, 1], [2, 3], [4, 5]]
    assert stream.class_names[:3] == (
        "plug_adapter4",
        "plug_adapter2",
        "mobile_phone1",
    )
    assert stream.original_classes[:6].tolist() == [3, 1, 5, 0, 2, 4]
    # The batches that a learner sees have the numbers of the lists.
    labels = [y for _, y in stream[1].data.batches(np.arange(32), 8)]
    assert sorted(set(np.concatenate(labels).tolist())) == [2, 3]
    names = np.array(train.names)[stream[1].data._indices]
    assert {name.split("/")[1] for name in names} == {"o6", "o1"}
    # A learner that is right on class 0 of the stream alone is right on
    # object 4, the fourth column.
    seen = np.isin(np.arange(50), [0, 1])
    history = evaluation.History(stream, "seen")
    history.add(
        0,
        evaluation.Evaluation.from_predictions(
            stream.test.labels, np.zeros(len(stream.test), int), seen
        ),
    )
    (row,) = history.summary()["accuracy_matrix"]
    assert row[:6] == [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    assert stream.original_class_names == list(train.class_names)


def test_test_list_of_the_run_is_taken(tree, tmp_path):
    chosen = [(3, 1, 0), (3, 2, 1), (10, 2, 0)]
    core50_tree.write_lists(
        tmp_path / "NC_inc/run0",
        [frames_of([1]), frames_of([2])],
        test_frames=chosen,
    )
    stream = protocols.core50_protocol(
        *open_tree(tree), "NC", lists=tmp_path, seed=0
    )
    assert len(stream.test) == 3
    assert stream.test.labels.tolist() == [0, 1, 1]
    assert stream.test.sessions.tolist() == [3, 3, 10]


def test_every_second_frame_of_the_lists(tree, tmp_path):
    core50_tree.write_lists(
        tmp_path / "NI_inc/run0", [frames_of([1, 2], [s]) for s in TRAINING]
    )
    stream = protocols.core50_protocol(
        *open_tree(tree, every=2), "NI", lists=tmp_path, seed=0
    )
    assert [len(e) for e in stream] == [2] * 8


@pytest.mark.parametrize(
    "place", ["", "batches_filelists", "downloads/extracted/ZIP.lists"]
)
def test_lists_beside_the_images_are_found(tree, tmp_path, place):
    (tmp_path / "core50_128x128").symlink_to(tree / "core50_128x128")
    core50_tree.write_lists(
        tmp_path / place / "NC_inc/run1", [frames_of([1]), frames_of([2])]
    )
    stream = protocols.core50_protocol(
        *open_tree(tmp_path), "NC", lists=None, seed=1
    )
    assert stream.order == "official, NC_inc/run1, 2 of 9 experiences"


def test_without_lists_the_rule_gives_the_stream(tree):
    with pytest.warns(UserWarning, match="no lists of NC beside.*seed 3.*http"):
        stream = protocols.core50_protocol(*open_tree(tree), "NC", seed=3)
    assert stream.order == "drawn from seed 3"
    # Objects 1 and 6 are the first of their categories, 2 to 5 are not.
    assert [len(e.classes) for e in stream] == [2, 1, 1, 1, 1]


@pytest.fixture(scope="module")
def cells():
    """CORe50's 400 training cells and 150 test cells, a pattern each."""
    root = pathlib.Path("/")
    train = itertools.product(TRAINING, core50_tree.OBJECTS, [0])
    test = itertools.product((3, 7, 10), core50_tree.OBJECTS, [0])
    sources = [
        NamedSource([core50_tree.frame_name(*frame) for frame in part])
        for part in (train, test)
    ]
    for source in sources:
        source.root = root / "nowhere"
    return sources


@pytest.mark.filterwarnings("ignore:There are no lists")
def test_derived_nc_follows_the_authors_rule(cells):
    """Fixed groups of different categories; only their order is drawn."""
    orders = set()
    for seed in range(5):
        stream = protocols.core50_protocol(*cells, "NC", seed=seed)
        groups = [
            sorted(stream.original_classes[e.classes].tolist()) for e in stream
        ]
        assert groups[0] == list(range(0, 50, 5))
        halves = [range(0, 25, 5), range(25, 50, 5)]
        assert sorted(groups[1:]) == sorted(
            [first + member for first in half]
            for member in range(1, 5)
            for half in halves
        )
        orders.add(tuple(map(tuple, groups)))
        # Numbered as they appear: 0 to 9, then 10 to 14, and so on.
        seen = np.concatenate([e.classes for e in stream])
        assert seen.tolist() == list(range(50))
        assert stream.original_class_names == list(cells[0].class_names)
    assert len(orders) == 5


@pytest.mark.filterwarnings("ignore:There are no lists")
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "number, per_experience", [(79, 5), (196, 2), (391, 1)]
)
def test_derived_nicv2_is_like_the_official(
    cells, number, per_experience, seed
):
    stream = protocols.core50_protocol(*cells, f"NICv2_{number}", seed=seed)
    check_nicv2(stream, number, per_experience)
    assert stream.order == f"drawn from seed {seed}"
    other = protocols.core50_protocol(*cells, f"NICv2_{number}", seed=seed + 9)
    pairs = zip(stream, other, strict=True)
    assert any(a.classes.tolist() != b.classes.tolist() for a, b in pairs)


def check_nicv2(stream, number, per_experience):
    """What holds in all of the authors' lists."""
    assert len(stream) == number
    first, sessions, everything = {}, {}, []
    for experience in stream:
        data = experience.data
        found = dict.fromkeys(
            zip(data.labels.tolist(), data.sessions.tolist(), strict=True)
        )
        everything += found
        k = experience.index
        assert len(found) == (per_experience if k else 10)
        new = {label for label, _ in found} - {*first}
        assert len(new) <= (1 if k else 10)
        for label, session in sorted(found):
            assert session > sessions.get(label, 0)  # never back in time
            sessions[label] = session
        first.update(dict.fromkeys(new, k))
    assert sorted(everything) == sorted(itertools.product(range(50), TRAINING))
    begun = sorted(label for label, k in first.items() if k == 0)
    assert begun == list(range(0, 50, 5))
    later = np.array([k for k in first.values() if k]) / number
    assert 0.3 < np.median(later) < 0.6
    assert later.max() < 0.9


def test_lists_that_are_not_all_there_are_told(tree, tmp_path):
    write_run(tmp_path)
    with pytest.warns(UserWarning, match="run0 holds 2 of the protocol's 9 l"):
        protocols.core50_protocol(*open_tree(tree), "NC", lists=tmp_path)


def test_lists_beside_the_archive_are_found(tree, tmp_path):
    root = tree / "core50_128x128"
    with zipfile.ZipFile(tmp_path / "core50_128x128.zip", "w") as file:
        for path in root.rglob("*.png"):
            file.write(path, path.relative_to(tree))
    write_run(tmp_path / "batches_filelists")
    stream = protocols.core50_protocol(*open_tree(tmp_path), "NC")
    assert stream.order.startswith("official, NC_inc/run0")


@pytest.mark.filterwarnings("ignore:1 of 36 images")
def test_corrupt_test_frames_are_counted(tree, tmp_path):
    """Also where a list of the run chooses among them."""
    shutil.copytree(tree / "core50_128x128", tmp_path / "core50_128x128")
    broken = tmp_path / "core50_128x128" / core50_tree.frame_name(3, 1, 0)
    broken.write_bytes(b"")
    write_run(tmp_path, test_frames=frames_of([1, 2], (3, 7, 10)))
    stream = protocols.core50_protocol(
        *open_tree(tmp_path, skip_corrupt=True), "NC"
    )
    assert stream.skipped_images == 1
    assert len(stream.test) == 11


def write_run(folder, **changes):
    core50_tree.write_lists(
        folder / "NC_inc/run0", [frames_of([1]), frames_of([2])], **changes
    )
    return folder / "NC_inc/run0"


def refuse(tree, lists, message, protocol="NC", seed=0):
    with pytest.raises(ValueError, match=message):
        protocols.core50_protocol(
            *open_tree(tree), protocol, lists=lists, seed=seed
        )


def test_files_that_are_not_there_are_counted_and_named(tree, tmp_path):
    core50_tree.write_lists(
        tmp_path / "NC_inc/run0",
        [frames_of([1]), frames_of([2], frames=range(4))],
    )
    refuse(
        tree,
        tmp_path,
        rf"run0 name 16 files that are not in {tree}/core50_128x128; the first "
        "is s1/o2/C_01_02_002.png",
    )


def test_wrong_lists_are_refused(tree, tmp_path):
    run = write_run(tmp_path)
    first = run / "train_batch_00_filelist.txt"
    whole = first.read_text()
    first.write_text(whole + "s3/o1/C_03_01_000.png 0\n")
    refuse(tree, tmp_path, "names s3/o1/C_03_01_000.png, a frame of the test")
    first.write_text(whole + "s1/o1/C_01_01_000.png\n")
    refuse(tree, tmp_path, "Line 17 of .*train_batch_00.* is not that of a li")
    first.write_text(whole + "s1/o3/C_01_03_000.png 0\n")
    refuse(tree, tmp_path, "two objects the same number.*_cat")
    first.write_text(whole.replace("C_01_01_000.png 0", "C_01_01_000.png 7"))
    refuse(tree, tmp_path, "'plug_adapter1' the numbers 7 and 0")
    first.write_text(whole + "s1/o1/C_01_01_000.png 0\n")
    refuse(tree, tmp_path, "run0 name s1/o1/C_01_01_000.png twice")
    first.write_text(whole.replace(" 0\n", " 50\n"))
    refuse(tree, tmp_path, "run0 number classes up to 50. Expected 0 to 49")
    first.write_bytes(bytes(range(128, 256)))
    refuse(tree, tmp_path, "Line 1 of .*train_batch_00")
    first.unlink()
    refuse(tree, tmp_path, r"without gaps. It holds: \[1\]")


def test_wrong_folders_runs_and_protocols_are_refused(tree, tmp_path):
    write_run(tmp_path)
    refuse(tree, tmp_path, "holds no run7.*0 to 9.*seed 7", seed=7)
    refuse(tree, tmp_path, "no folder NIC_v2_79 or sIII_v2_79 in", "NICv2_79")
    refuse(tree, None, "one of NC, NI, NICv2_79.*'NIC'", "NIC")
    images = helpers.blobs()
    with pytest.raises(ValueError, match="name files of CORe50.*core50()"):
        protocols.core50_protocol(images, images, "NC")


class NamedSource(FileSource):
    """A `FileSource` of names alone: CORe50's files are not at hand."""

    def __init__(self, names):
        parts = [re.match(r"s(\d+)/o(\d+)/", name) for name in names]
        super().__init__(
            [__file__] * len(names),
            [int(part[2]) - 1 for part in parts],
            128,
            [int(part[1]) for part in parts],
            class_names=[str(c) for c in range(50)],
            root="/",
        )
        self._names = names

    @property
    def names(self):
        return self._names


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lists")
    with tarfile.open(helpers.SHARED / LISTS) as archive:
        archive.extractall(folder, filter="data")
    run = filelists.read_lists(folder / "sIII_v2_79/run0")
    train = NamedSource(sorted({name for lines in run for name, _ in lines}))
    lines = (helpers.SHARED / "core50/test_filelist.txt").read_text()
    test = NamedSource([line.split()[0] for line in lines.splitlines()])
    return folder, train, test


@helpers.needs_shared(LISTS)
@pytest.mark.parametrize("run", range(10))
@pytest.mark.parametrize(
    "number, per_experience", [(79, 5), (196, 2), (391, 1)]
)
def test_official_nicv2(official, number, per_experience, run):
    folder, train, test = official
    stream = protocols.core50_protocol(
        train, test, f"NICv2_{number}", lists=folder, seed=run
    )
    assert stream.scenario == "NIC"  # which Stream has checked
    assert len(stream) == number
    assert sum(len(experience) for experience in stream) == 119894
    everything = np.concatenate([e.data._indices for e in stream])
    assert len(np.unique(everything)) == 119894
    assert len(stream.test) == 44972
    assert not {*train.names} & {*test.names}
    assert not {*train.sessions.tolist()} & {3, 7, 10}
    for experience in stream:
        # A sequence is never torn: about 300 frames each.
        sequences = per_experience if experience.index else 10
        assert 293 * sequences <= len(experience) <= 300 * sequences
    check_nicv2(stream, number, per_experience)
    assert stream.original_classes.tolist() == list(range(50))


@helpers.needs_shared("core50/test_filelist_20.txt")
def test_every_twentieth_is_the_official_short_test_list(tmp_path, monkeypatch):
    """A tree of the test list's names, and what `every=20` leaves of it."""
    lists = helpers.SHARED / "core50"
    names = (lists / "test_filelist.txt").read_text().split()[::2]
    for name in {*names, "s1/o1/C_01_01_000.png"}:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    _, whole = core50(data_dir=tmp_path)
    assert whole.names == names
    train, short = core50(test_every=20, data_dir=tmp_path)
    assert len(train) == 1
    assert core50(every=20, data_dir=tmp_path)[1].names == short.names
    lines = (lists / "test_filelist_20.txt").read_text().splitlines()
    assert short.names == [line.split()[0] for line in lines]
    assert short.labels.tolist() == [int(line.split()[1]) for line in lines]


def write_archive(folder, experiences, suffix):
    """An archive of one run, of the kind that the suffix names."""
    inside = folder / "inside"
    core50_tree.write_lists(inside / "sIII_v2_79/run2", experiences)
    path = folder / f"lists{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as file:
            for list_path in inside.rglob("*.txt"):
                file.write(list_path, list_path.relative_to(inside))
    else:
        with tarfile.open(path, "w:xz") as file:
            file.add(inside / "sIII_v2_79", "sIII_v2_79")
    shutil.rmtree(inside)
    return path


@pytest.mark.parametrize("suffix", [".zip", ".tar.xz"])
def test_cells_of_another_set_in_an_official_order(tmp_path, suffix):
    """Objects 1 to 3 in sessions 1 and 2; the lists know more of both."""
    labels = np.repeat([0, 1, 2], 4)
    sessions = np.tile([1, 1, 2, 2], 3)
    data = ArraySource(np.zeros((12, 1, 1, 3), "uint8"), labels, sessions)
    lists = write_archive(
        tmp_path,
        [
            [(1, 3, 0), (1, 3, 1), (1, 1, 7)],
            [(2, 9, 0)],  # which the data lack
            [(2, 3, 5), (4, 1, 0)],
            [(1, 2, 0), (2, 1, 0)],
        ],
        suffix,
    )
    stream = protocols.nicv2_cells(data, data, "NICv2_79", lists, seed=2)
    assert [e.data._indices.tolist() for e in stream] == [
        [8, 9, 0, 1],
        [10, 11],
        [4, 5, 2, 3],
    ]
    assert stream.order == "official, NICv2_79 run 2"
    for protocol, seed, message in (
        ("NICv2_79", 3, f"no NIC_v2_79/run3 or sIII_v2_79/run3 in {lists}"),
        ("NC", 2, "must be .*Received: 'NC'"),
    ):
        with pytest.raises(ValueError, match=message):
            protocols.nicv2_cells(data, data, protocol, lists, seed=seed)
    arrays = np.zeros((12, 1, 1, 3), "uint8"), labels
    with pytest.raises(ValueError, match="has no sessions. Give `sessions`"):
        protocols.nicv2_cells(arrays, data, "NICv2_79", lists, seed=2)
    lists.write_bytes(lists.read_bytes()[:40])
    with pytest.raises(ValueError, match=f"{lists} cannot be read as an arch"):
        protocols.nicv2_cells(data, data, "NICv2_79", lists, seed=2)


@helpers.needs_shared("fruits360_50x3")
@helpers.needs_shared(LISTS)
def test_fruits_in_the_official_order():
    train, test = fruits360(data_dir=helpers.SHARED)
    stream = protocols.nicv2_cells(train, test, "NICv2_391", LISTS, seed=0)
    check_nicv2(stream, 391, 1)
    assert sum(len(experience) for experience in stream) == len(train)
