"""Runs every code block of README.md and docs/."""

import pathlib
import re
import shlex
import subprocess
import sys

import core50_tree
import numpy as np
import pytest
import tensorflow as tf
import test_benchmarks
import test_train_script

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# What a command needs to end in seconds, by the script that it calls; of
# training, by how its gin file begins.
SHRUNK_TRAINING = {
    "gin/core50_": test_benchmarks.SMALL_CORE50,
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
    "scripts/reproduce.py": [
        "--quick",
        *(f"--gin_bindings={b}" for b in test_train_script.TINY),
    ],
}
# An option that runs too much, and one of its kind that does not.
LIGHTER = {
    "--item=all": "--item=table3",
    "--item=figure8": "--item=table3",
}


def blocks(language):
    found = []
    for page in PAGES:
        text = page.read_text()
        for i, code in enumerate(
            re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)
        ):
            found.append(pytest.param(code, id=f"{page.name}-{i}"))
    return found


def commands():
    """The shell commands of all pages, one each, without their `$`."""
    found = {}
    for block in blocks("bash"):
        for line in block.values[0].replace("\\\n", " ").splitlines():
            for command in line.split("&&"):
                command = command.split("#")[0].strip()
                # What installs the package and runs these tests has run.
                if command and command.split()[0] not in ("pip", "pytest"):
                    found[command] = pytest.param(command, id=command)
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


@pytest.mark.parametrize("code", blocks("python"))
def test_python_block_runs(code, tmp_path, photos):
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.parametrize("command", commands())
def test_command_runs(command, tmp_path, photos):
    program, *arguments = shlex.split(command)
    assert program == "python"
    script, *arguments = arguments
    folder = script in ("scripts/train.py", "scripts/reproduce.py")
    output = "--output_dir" if folder else "--output"
    arguments = [
        LIGHTER.get(argument, argument)
        for argument in arguments
        if not argument.startswith((output, "--seeds"))
    ]
    target = tmp_path / ("out" if folder else "out.weights.h5")
    if script == "scripts/contact_sheet.py":
        target = tmp_path / "out.png"
    arguments += [*SHRUNK[script], f"{output}={target}"]
    call = [script]
    if script == "scripts/train.py":
        gin_file = arguments[0].removeprefix("--gin_file=")
        bindings = next(
            bindings
            for start, bindings in SHRUNK_TRAINING.items()
            if gin_file.startswith(start)
        )
        arguments += [f"--gin_bindings={binding}" for binding in bindings]
        if "core50" in command:
            core50_tree.write_tree(tmp_path, frames=1)
        if "imagenet1000" in command or "tfds:" in command:
            call = ["-c", test_benchmarks.MOCKED, script]
    if folder:
        arguments.append(f"--data_dir={tmp_path}")
    result = subprocess.run(
        [sys.executable, *call, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    if "--list" in arguments:
        assert "figure3" in result.stdout
    else:
        assert target.exists()


def test_continuous_integration_calls_the_test_command_of_the_readme():
    lines = "".join(block.values[0] for block in blocks("bash")).splitlines()
    line = next(line for line in lines if line.endswith("pytest"))
    assert line in (ROOT / ".ci" / "run").read_text().splitlines()


def test_nothing_is_left_to_fill_in():
    for page in PAGES:
        assert "@@" not in page.read_text()


def test_every_link_to_a_file_leads_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"
