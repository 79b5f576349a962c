"""Runs every code block of README.md and docs/."""

import pathlib
import re
import shlex
import subprocess
import sys

import core50_tree
import gin
import numpy as np
import pytest
import tensorflow as tf
import test_benchmarks
import test_gin_bindings
import test_train_script

from gnr_keras import comparison
from gnr_keras import continuing
from gnr_keras import export
from gnr_keras import gin_bindings
from gnr_keras import runs as runs_lib
from gnr_keras.reproduction import tuning

ROOT = pathlib.Path(__file__).parent.parent
GIN = ROOT / "gin"
# By test_benchmarks.py, on miniatures of their data.
TRAINED_ELSEWHERE = (
    "core50_nc.gin",
    "imagenet1000_nc.gin",
    "own_images.gin",
    "tiny_imagenet_nc.gin",
)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL_PAGES = [
    path
    for folder in (".", "docs", "examples", "saved_models")
    for path in (ROOT / folder).glob("**/*.md" if folder == "docs" else "*.md")
]
SMALL_TINY_IMAGENET = (
    *test_benchmarks.SMALL_TRAINING,
    "Phase.epochs = 1",
    # Few steps from scratch are too few for slow statistics.
    "BatchRenormalizationSchedule.first_update_rate = 0.9",
    "new_classes.first_classes = 2",
    "new_classes.classes_per_experience = 2",
)
# What a command needs to end in seconds, by the script that it calls; of
# training, by how its gin file begins.
SHRUNK_TRAINING = {
    "gin/core50_": test_benchmarks.SMALL_CORE50,
    "gin/fruits360_": (
        *test_benchmarks.SMALL_MOBILENET,
        *test_benchmarks.SMALL_TRAINING,
        "fruits360.image_size = 32",
    ),
    "gin/tiny_imagenet_": SMALL_TINY_IMAGENET,
    "gin/imagenet1000_": test_benchmarks.SMALL_IMAGENET,
    "gin/own_images": test_benchmarks.SMALL_OWN,
    "gin/": test_train_script.TINY,
}
SHRUNK = {
    "scripts/train.py": ["--runs=NR-GD"],
    "scripts/pretrain.py": [
        "--draws=1",
        "--frames=1",
        "--epochs=1",
        "--image_size=32",
    ],
    "scripts/contact_sheet.py": [],
    "scripts/reproduce.py": ["--quick"],
    "scripts/tune.py": ["--report_only"],
    "scripts/report.py": [],
}
# What scripts write that write one file.
WRITTEN = {
    "scripts/pretrain.py": "out.weights.h5",
    "scripts/contact_sheet.py": "out.png",
    "scripts/report.py": "out.html",
}
# Of `scripts/reproduce.py`, by the stream: bindings that fit what is lighter.
SHRUNK_STREAMS = {
    "--stream=embedded": test_train_script.TINY,
    "--stream=photographs": SMALL_TINY_IMAGENET,
}
# An option of it that runs or needs too much, and one that does not.
LIGHTER = {
    "--item=all": "--item=table3",
    "--item=figure8": "--item=table3",
    "--report_only": "--list",
}


def blocks(language):
    found = []
    for page in PAGES:
        # Its blocks need what those before have made; test_tutorial.py.
        if page.name == "tutorial.md":
            continue
        text = page.read_text()
        for i, code in enumerate(
            re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)
        ):
            found.append(pytest.param(code, id=f"{page.name}-{i}"))
    return found


def commands():
    """The shell commands of all pages, one each, without their `$`.

    The first that trains with a gin file does. Of others it is looked at
    whether all that they name is known.
    """
    found = {}
    trained = {f"gin/{name}" for name in TRAINED_ELSEWHERE}
    for block in blocks("bash"):
        for line in block.values[0].replace("\\\n", " ").splitlines():
            for command in line.split("&&"):
                command = command.split("#")[0].strip()
                # What installs the package and runs these tests has run;
                # test_speed.py and test_export.py run the benchmarks.
                known = ("pip", "pytest", "python benchmarks/")
                if not command or command.startswith(known):
                    continue
                if command in found:
                    continue
                gin_file = re.search(r"train\.py --gin_file=(\S+)", command)
                named = bool(gin_file and gin_file[1] in trained)
                trained.add(gin_file and gin_file[1])
                found[command] = pytest.param(command, named, id=command)
    return list(found.values())


@pytest.fixture
def photos(tmp_path):
    """What the pages call `photos` and `new_photos`."""
    rng = np.random.default_rng(0)
    for name in ("photos/cup", "photos/pen", "photos/key", "new_photos/hat"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for number in range(5):
            image = rng.integers(0, 256, (30, 40, 3)).astype("uint8")
            data = tf.io.encode_jpeg(image).numpy()
            (folder / f"{number}.jpg").write_bytes(data)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The runs of what the pages call `runs/quickstart`."""
    folder = tmp_path_factory.mktemp("finished")
    comparison.compare(
        ["quickstart.gin"],
        test_train_script.TINY,
        ROOT / "gin",
        ["NR-GD"],
        [0],
        folder / "out",
        folder,
    )
    return folder / "out"


@pytest.fixture
def runs(tmp_path, request):
    """Where a page speaks of a run, there is one."""
    text = " ".join(
        str(request.node.callspec.params.get(name, ""))
        for name in ("code", "command")
    )
    if "runs/quickstart/" in text:
        (tmp_path / "runs").mkdir()
        finished = request.getfixturevalue("finished")
        (tmp_path / "runs" / "quickstart").symlink_to(finished)


@pytest.fixture(scope="module")
def exported(finished, tmp_path_factory):
    """What the pages export, by its name in `saved_models`."""
    folder = tmp_path_factory.mktemp("exported")
    run = continuing.load_run(finished / "NR-GD" / "seed_0")
    for name, write in (
        ("objects", export.write_saved_model),
        ("objects_litert", export.write_litert),
    ):
        write(run.learner, run.class_names, folder / name)
    return folder


@pytest.fixture
def exports(code, tmp_path, request):
    """Where a block speaks of an export, there is one."""
    if "saved_models/objects" in code:
        exported = request.getfixturevalue("exported")
        (tmp_path / "saved_models").symlink_to(exported)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_block_runs(code, tmp_path, photos, runs, exports):
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]


def write_data(command, folder):
    """Miniatures of what a command reads from its --data_dir."""
    if "core50_" in command:
        core50_tree.write_tree(folder, frames=1)
    if "tiny_imagenet" in command or "--stream=photographs" in command:
        test_benchmarks.write_tiny_imagenet(folder, num_classes=6)
    if "fruits360" in command:
        test_gin_bindings.write_fruits360(folder)
        rng = np.random.default_rng(0)
        for place in (folder / "fruits360_50x3").glob("s*/o*"):
            for path in place.iterdir():
                image = rng.integers(0, 256, (10, 10, 3), "uint8")
                path.write_bytes(tf.io.encode_jpeg(image).numpy())


def shrink(script, arguments):
    """What ends in seconds, in place of the arguments of a command."""
    bindings = ()
    if script == "scripts/train.py":
        gin_file = arguments[0].removeprefix("--gin_file=")
        bindings = next(
            bindings
            for start, bindings in SHRUNK_TRAINING.items()
            if gin_file.startswith(start)
        )
    if script == "scripts/reproduce.py":
        arguments = [LIGHTER.get(argument, argument) for argument in arguments]
        for stream in set(SHRUNK_STREAMS) & set(arguments):
            bindings = SHRUNK_STREAMS[stream]
    bindings = [f"--gin_bindings={binding}" for binding in bindings]
    return [*arguments, *SHRUNK[script], *bindings]


@pytest.mark.parametrize("command, named", commands())
def test_command_runs(command, named, tmp_path, photos, runs):
    program, *arguments = shlex.split(command)
    assert program == "python"
    script, *arguments = arguments
    if named:
        return check_names(arguments)
    if script == "scripts/continue.py":
        return check_that_it_goes_on(arguments, tmp_path)
    if script == "scripts/export.py":
        return check_that_it_exports(arguments, tmp_path)
    folder = script not in WRITTEN
    output = "--output_dir" if folder else "--output"
    places = (output, "--data_dir", "--share_dir", "--seeds")
    shrunk = shrink(script, [a for a in arguments if not a.startswith(places)])
    target = tmp_path / WRITTEN.get(script, "out")
    shrunk.append(f"{output}={target}")
    if folder:
        shrunk.append(f"--data_dir={tmp_path}")
        write_data(command, tmp_path)
    share_dir = tmp_path / "shared"
    if "--share_dir" in command:
        shrunk.append(f"--share_dir={share_dir}")
    call = [script]
    if "imagenet1000" in command or "tfds:" in command:
        call = ["-c", test_benchmarks.MOCKED, script]
    result = subprocess.run(
        [sys.executable, *call, *shrunk],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    if "--list" in shrunk:
        names = {line.split()[0] for line in result.stdout.splitlines()}
        items = re.findall(r"--item=(\S+)", " ".join(shrunk))
        assert names >= {"figure3", *items}
        return
    assert target.exists()
    if "--share_dir" in command:
        assert list(share_dir.rglob("first_experience.npz"))
    if script == "scripts/tune.py":
        given = dict(re.findall(r"--(gin_file|variant)=(\S+)", command))
        page = target / f"{tuning.find_plan(**given).name}.md"
        assert page.read_text().startswith("# Tuning of ")


def check_names(arguments):
    """Of flags, gin files, what they bind, and runs."""
    given = {}
    for argument in arguments:
        name, _, value = argument.removeprefix("--").partition("=")
        given.setdefault(name, []).append(value)
    text = (ROOT / "gnr_keras/command_line/training_flags.py").read_text()
    assert set(given) <= set(re.findall(r'DEFINE_\w+\(\s*"(\w+)"', text))
    files = [ROOT / name for name in given["gin_file"]]
    gin_bindings.configure(
        list(map(str, files)), given.get("gin_bindings", []), gin_dir=GIN
    )
    gin.clear_config()
    for names in given.get("runs", []):
        assert set(names.split(",")) <= set(runs_lib.RUNS)


def check_that_it_goes_on(arguments, folder):
    result = subprocess.run(
        [sys.executable, ROOT / "scripts/continue.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "hat (new): " in result.stdout
    assert (folder / "runs/next_month/checkpoints/config.gin").exists()


def check_that_it_exports(arguments, folder):
    result = subprocess.run(
        [sys.executable, ROOT / "scripts/export.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    name = "objects"
    wanted = {"saved_model.pb", "labels.txt", "model.json"}
    if "--format=litert" in arguments:
        name = "objects_litert"
        wanted = {"model_float32.tflite", "model_int8.tflite", "labels.txt"}
    found = {path.name for path in (folder / "saved_models" / name).iterdir()}
    assert found >= wanted


def test_continuous_integration_calls_the_test_command_of_the_readme():
    lines = "".join(block.values[0] for block in blocks("bash")).splitlines()
    line = next(line for line in lines if line.endswith("pytest"))
    assert line in (ROOT / ".ci" / "run").read_text().splitlines()


def test_nothing_is_left_to_fill_in():
    for page in ALL_PAGES:
        text = page.read_text()
        assert "@@" not in text and "<!--" not in text, page


def prose(page):
    """What a page says outside of its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)


def headings(page):
    """What links to parts of a page call them."""
    lines = re.findall(r"^#+ (.*)$", prose(page), re.M)
    plain = [re.sub(r"[^\w\- ]", "", line).lower() for line in lines]
    return {line.replace(" ", "-") for line in plain}


def test_comments_in_code_are_no_headings(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A *page*\n\n```bash\n# a comment\n```\n\n## End\n")
    assert headings(page) == {"a-page", "end"}


def test_every_link_to_a_file_leads_somewhere():
    count = 0
    for page in ALL_PAGES:
        # In code, such a thing is a call.
        for link in re.findall(r"\]\(([^)]+)\)", prose(page)):
            if link.startswith("http"):
                continue
            file, _, part = link.partition("#")
            target = page.parent / file if file else page
            assert target.exists(), f"{page.name}: {link}"
            if part:
                assert part in headings(target), f"{page.name}: {link}"
            count += 1
    assert count > 100
