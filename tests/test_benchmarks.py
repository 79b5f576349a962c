"""The benchmarks and own images, from files to a report: `scripts/train.py`.

The images are miniatures, in the layouts of the real ones.
"""

import itertools
import json
import os
import pathlib
import subprocess
import sys

import core50_tree
import numpy as np
import pytest
import tensorflow as tf

ROOT = pathlib.Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "train.py"
OBJECTS = range(1, 7)
TRAINING = [s for s in core50_tree.SESSIONS if s not in (3, 7, 10)]

SMALL_TRAINING = (
    "first/Phase.epochs = 1",
    "following/Phase.epochs = 1",
    "ClassifierTrainer.batch_size = 16",
    "GeneratorTrainer.epochs = 1",
    "GeneratorTrainer.batch_size = 16",
    "GeneratorTrainer.replay_per_batch = 4",
    "memory_size = 12",
    "replay_per_batch = 4",
)
SMALL_MOBILENET = (
    "mobilenet_v1.weights = None",
    "mobilenet_v1.alpha = 0.25",
    "mobilenet_v1.input_shape = (32, 32, 3)",
)
SMALL_CORE50 = (*SMALL_MOBILENET, *SMALL_TRAINING, "core50.image_size = 32")


def run_script(output_dir, gin_file, bindings, *flags, command=(SCRIPT,)):
    process = subprocess.run(
        [
            sys.executable,
            *command,
            f"--gin_file={gin_file}",
            f"--output_dir={output_dir}",
            *(f"--gin_bindings={binding}" for binding in bindings),
            *flags,
        ],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return process.returncode, process.stdout, process.stderr


def read_results(output_dir, run="NR-GD", seed=0):
    path = output_dir / run / f"seed_{seed}" / "results.json"
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def core50_dir(tmp_path_factory):
    """Six objects, with lists of each protocol beside the images."""
    folder = tmp_path_factory.mktemp("core50")
    core50_tree.write_tree(folder, objects=OBJECTS)

    def frames(objects, sessions):
        return list(itertools.product(sessions, objects, range(2)))

    # Numbered as they appear: objects 5, 2, 6, 1, 3, 4.
    appearing = {5: 0, 2: 1, 6: 2, 1: 3, 3: 4, 4: 5}
    core50_tree.write_lists(
        folder / "batches_filelists/NC_inc/run0",
        [frames(pair, TRAINING) for pair in ((5, 2), (6, 1), (3, 4))],
        appearing,
        frames(OBJECTS, core50_tree.TEST_SESSIONS),
    )
    core50_tree.write_lists(
        folder / "batches_filelists/NI_inc/run0",
        [frames(OBJECTS, [session]) for session in TRAINING],
    )
    for number in (79, 196, 391):
        core50_tree.write_lists(
            folder / f"NIC_v2_{number}/run0",
            [frames([1, 6], [1]), frames([6], [2]), frames([3], [4])],
        )
    return folder


NAMES = [
    "plug_adapter1",
    "plug_adapter2",
    "plug_adapter3",
    "plug_adapter4",
    "plug_adapter5",
    "mobile_phone1",
]


@pytest.mark.parametrize(
    "gin_file, lists, experiences, seen",
    [
        ("core50_nc", "NC_inc", 3, [1, 2, 3, 4, 5, 6]),
        ("core50_ni", "NI_inc", 8, [1, 2, 3, 4, 5, 6]),
        *(
            pytest.param(
                f"core50_nic{number}",
                f"NIC_v2_{number}",
                3,
                [1, 3, 6],
                marks=pytest.mark.long,
            )
            for number in (79, 196)
        ),
        ("core50_nic391", "NIC_v2_391", 3, [1, 3, 6]),
    ],
)
def test_core50_from_tree_and_lists_to_report(
    core50_dir, tmp_path, gin_file, lists, experiences, seen
):
    output = tmp_path / "out"
    code, stdout, stderr = run_script(
        output,
        f"gin/{gin_file}.gin",
        (*SMALL_CORE50, "Experiment.evaluate_every = 1"),
        f"--data_dir={core50_dir}",
        "--runs=NR-GD",
    )
    assert code == 0, stderr
    assert "66 of CORe50's 550 videos" in stderr
    assert "NR-GD" in stdout
    results = read_results(output)
    assert results["order"].startswith(f"official, {lists}/run0")
    assert results["evaluated_after"] == list(range(experiences))
    assert results["class_names"][:6] == NAMES
    assert results["skipped_images"] == 0
    # Classes never seen are never predicted, hence never right; whether one
    # of those seen is right, a network of one epoch may not say.
    final = results["accuracy_matrix"][-1]
    for number in OBJECTS:
        if number not in seen:
            assert final[number - 1] == 0.0
    assert final[6:] == [None] * 44
    whole = np.mean(final[:6])
    assert results["final_accuracy"] == pytest.approx(whole)
    growing = np.mean([final[number - 1] for number in seen])
    assert results["accuracy_growing"][-1] == pytest.approx(growing)
    assert (output / "accuracy.png").stat().st_size > 1000
    assert "NR-GD" in (output / "summary.csv").read_text()


def test_core50_without_lists_says_that_the_order_is_ours(tmp_path):
    data_dir = tmp_path / "data"
    core50_tree.write_tree(data_dir, objects=OBJECTS, frames=3)
    code, _, stderr = run_script(
        tmp_path / "out",
        "gin/core50_nc.gin",
        (
            *SMALL_CORE50,
            "core50.every = 2",
        ),
        f"--data_dir={data_dir}",
        "--runs=NR-OD",
        "--seeds=11",
    )
    assert code == 0, stderr
    assert "warning: There are no lists of NC beside" in stderr
    results = read_results(tmp_path / "out", "NR-OD", 11)
    assert results["order"] == "drawn from seed 11"
    # Objects 1 and 6, the first of their categories, and four of one each.
    assert len(results["evaluated_after"]) == 5
    assert results["class_names"][:6] == NAMES


@pytest.mark.parametrize("flags", [(), ("--dry_run",)], ids=["run", "plan"])
def test_a_seed_that_is_no_run_is_told_before_training(
    core50_dir, tmp_path, flags
):
    code, _, stderr = run_script(
        tmp_path / "out",
        "gin/core50_nc.gin",
        SMALL_CORE50,
        f"--data_dir={core50_dir}",
        "--seeds=0,10",
        *flags,
    )
    assert code != 0
    assert "holds no run10" in stderr.splitlines()[-1]
    assert "experience 1/" not in stderr


# Runs the script as TFDS's users test theirs: 24 made-up examples a split.
MOCKED = """
import runpy, sys
import tensorflow_datasets as tfds
sys.argv = sys.argv[1:]
with tfds.testing.mock_data(num_examples=24):
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


SMALL_IMAGENET = (
    *SMALL_TRAINING,
    "resnet_18.input_shape = (64, 64, 3)",
    "tfds_images.image_size = 64",
    # Two steps from scratch are too few for slow statistics.
    "BatchRenormalizationSchedule.first_update_rate = 0.9",
    "new_classes.first_classes = 16",
    "new_classes.classes_per_experience = 1",
)


def test_mocked_imagenet(tmp_path):
    """24 examples of 1000 classes, mostly of classes of their own."""
    output = tmp_path / "out"
    code, _, stderr = run_script(
        output,
        "gin/imagenet1000_nc.gin",
        (*SMALL_IMAGENET, "Experiment.evaluate_every = 3"),
        f"--data_dir={tmp_path}",
        "--runs=NR-GD",
        command=("-c", MOCKED, SCRIPT),
    )
    assert code == 0, stderr
    results = read_results(output)
    assert len(results["class_names"]) == 1000
    assert results["class_names"][0] == "n01440764"
    tested = sum(value is not None for value in results["accuracy_matrix"][-1])
    assert 18 <= tested <= 24
    assert len(results["evaluated_after"]) == -(-(tested - 15) // 3)
    config = output / "NR-GD" / "seed_0" / "operative_config.gin"
    assert "random_resized_crop.area = (0.08, 1.0)" in config.read_text()


def write_tiny_imagenet(folder, num_classes):
    """One colour a class; ten images of each to learn, four to test on."""
    rng = np.random.default_rng(0)
    colors = rng.uniform(40, 215, (num_classes, 3))
    arrays = {"names": [f"class, number {y}" for y in range(num_classes)]}
    for part, count in (("train", 10), ("val", 4)):
        labels = np.repeat(np.arange(num_classes), count)
        noise = rng.normal(0, 9, (len(labels), 64, 64, 3))
        images = (colors[labels, None, None] + noise).clip(0, 255)
        encoded = [
            tf.io.encode_jpeg(image).numpy() for image in images.astype("uint8")
        ]
        arrays[f"{part}_jpeg"] = np.frombuffer(b"".join(encoded), "uint8")
        arrays[f"{part}_offsets"] = np.cumsum([0, *map(len, encoded)])
        arrays[f"{part}_y"] = labels
    np.savez(folder / "tiny_imagenet_100.npz", **arrays)


def test_tiny_imagenet(tmp_path):
    write_tiny_imagenet(tmp_path, num_classes=6)
    output = tmp_path / "out"
    code, _, stderr = run_script(
        output,
        "gin/tiny_imagenet_nc.gin",
        (
            *SMALL_TRAINING,
            "Phase.epochs = 1",
            # Few steps from scratch are too few for slow statistics.
            "BatchRenormalizationSchedule.first_update_rate = 0.9",
            "new_classes.first_classes = 2",
            "new_classes.classes_per_experience = 2",
        ),
        f"--data_dir={tmp_path}",
        "--runs=NR-GD",
    )
    assert code == 0, stderr
    results = read_results(output)
    assert results["class_names"] == [f"class, number {y}" for y in range(6)]
    assert results["evaluated_after"] == [0, 1, 2]
    # Four test images a class; two classes are known at first.
    matrix = results["accuracy_matrix"]
    assert {4 * value % 1 for row in matrix for value in row} == {0.0}
    assert np.count_nonzero(matrix[0]) <= 2
    config = output / "NR-GD" / "seed_0" / "operative_config.gin"
    assert "augment = @random_flip" in config.read_text()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Four classes of ten JPEGs each, of different sizes; one is corrupt."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for name in ("cat", "dog", "hen", "owl"):
        (folder / name).mkdir()
        color = rng.uniform(0, 255, 3)
        for number in range(10):
            image = color + rng.normal(0, 9, (40 + number, 50, 3))
            data = tf.io.encode_jpeg(image.clip(0, 255).astype("uint8"))
            (folder / name / f"{number}.jpg").write_bytes(data.numpy())
    broken = folder / "hen" / "3.jpg"
    broken.write_bytes(broken.read_bytes()[:200])
    return folder


SMALL_OWN = (*SMALL_MOBILENET, *SMALL_TRAINING, "load_images.image_size = 32")


def test_own_folder(photos, tmp_path):
    output = tmp_path / "out"
    bindings = (*SMALL_OWN, f"images = '{photos}'")
    code, _, stderr = run_script(
        output, "gin/own_images.gin", bindings, "--runs=none"
    )
    assert code != 0
    assert f"{photos}/hen/3.jpg cannot be read as an image" in stderr
    assert "skip_corrupt" in stderr
    assert "Traceback" not in stderr
    code, _, stderr = run_script(
        output,
        "gin/own_images.gin",
        (*bindings, "load_images.skip_corrupt = True"),
        "--runs=none",
    )
    assert code == 0, stderr
    assert "warning: 1 of " in stderr
    results = read_results(output, "none")
    assert results["skipped_images"] == 1
    assert results["class_names"] == ["cat", "dog", "hen", "owl"]
    assert results["evaluated_after"] == [0, 1, 2]


def test_tfds_name(core50_dir, tmp_path):
    """The builder of this package stands for any other."""
    output = tmp_path / "out"
    code, _, stderr = run_script(
        output,
        "gin/own_images.gin",
        (
            *SMALL_OWN,
            "images = 'tfds:core50'",
            "new_classes.first_classes = 3",
            "new_classes.classes_per_experience = 3",
        ),
        f"--data_dir={core50_dir}",
        "--runs=NR-GD",
    )
    assert code == 0, stderr
    results = read_results(output)
    assert results["class_names"][:6] == NAMES
    assert results["evaluated_after"] == [0, 1]


@pytest.mark.parametrize(
    "images, message",
    [
        ("tfds:cifr100", "no set 'cifr100'. Did you mean cifar100"),
        ("nowhere", "There is no folder"),
    ],
)
def test_wrong_names_end_with_one_line(tmp_path, images, message):
    output = tmp_path / "out"
    code, _, stderr = run_script(
        output,
        "gin/own_images.gin",
        (*SMALL_OWN, f"images = '{images}'"),
        f"--data_dir={tmp_path}",
    )
    assert code != 0
    assert message in stderr.splitlines()[-1]
    assert "Traceback" not in stderr
    assert not output.exists()
