"""Runs docs/tutorial.md from its first block to its last, in small."""

import contextlib
import io
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest
import test_benchmarks

ROOT = pathlib.Path(__file__).parent.parent
# What makes a command of the page small, by its script.
SMALL = {
    "scripts/draw_objects.py": ["--frames=1", "--image_size=32"],
    "scripts/train.py": [
        "--runs=NR-GD",
        "--gin_bindings=mobilenet_v1.input_shape = (32, 32, 3)",
        "--gin_bindings=load_images.image_size = 32",
        *(f"--gin_bindings={x}" for x in test_benchmarks.SMALL_TRAINING),
    ],
}


def blocks():
    """Language and text of each block, in the order of the page."""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    found = re.findall(r"^```(bash|python)\n(.*?)^```", text, re.S | re.M)
    assert len(found) == 8
    return found


def run(*command, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The folder of the reader, and what each command showed."""
    folder = tmp_path_factory.mktemp("reader")
    for name in ("scripts", "gin"):
        (folder / name).symlink_to(ROOT / name)
    texts = []
    for language, text in blocks():
        if language == "python":
            # Here, where TensorFlow is there already.
            shown = io.StringIO()
            with contextlib.chdir(folder), contextlib.redirect_stdout(shown):
                exec(text, {})
            texts.append(shown.getvalue())
            continue
        for line in text.splitlines():
            program, script, *arguments = shlex.split(line)
            assert program == "python"
            command = [script, *arguments, *SMALL.get(script, [])]
            texts.append(run(*command, folder=folder))
    return folder, texts


def test_every_step_gives_what_the_next_one_needs(followed):
    folder, texts = followed
    assert texts[0] == "8 classes in photos/train and photos/test\n"
    assert "NR-GD" in texts[2]
    assert "<html" in (folder / "report.html").read_text()
    # Three images of each class, of one frame a session.
    assert re.search(r"^\d+ of 24 are right$", texts[5], re.MULTILINE)
    assert "bottle_4 (new): " in texts[6]
    assert re.search(r"^photos/test: \d+ of 24 are right$", texts[8], re.M)
    assert re.search(r"^new_photos/test: \d+ of 6 are right$", texts[8], re.M)


def test_the_exported_model_is_as_good_as_the_table_says(followed):
    _, texts = followed
    final = float(re.search(r"^NR-GD +([\d.]+)", texts[2], re.MULTILINE)[1])
    right = int(texts[5].split()[0])
    assert final == pytest.approx(100 * right / 24, abs=0.051)


def test_both_exports_know_their_classes(followed):
    folder, _ = followed
    labels = [
        (folder / "saved_models" / name / "labels.txt").read_text().split()
        for name in ("photos", "ten_classes")
    ]
    assert len(labels[0]) == 8
    assert labels[1] == [*labels[0], "bottle_4", "bottle_5"]


def draw(folder, *arguments):
    return subprocess.run(
        [
            sys.executable,
            "scripts/draw_objects.py",
            f"--output={folder}",
            *arguments,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_an_object_that_there_is_not_is_refused(tmp_path):
    result = draw(tmp_path / "out", "--objects=1,51")
    assert result.returncode == 1
    assert "from 1 to 50 as --objects. Received: '51'" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_of_others_stays_as_it_is(tmp_path):
    (tmp_path / "own.png").write_bytes(b"")
    result = draw(tmp_path, "--objects=1")
    assert result.returncode == 1
    assert f"error: {tmp_path} is there already" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["own.png"]


def test_drawing_that_is_interrupted_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        [
            sys.executable,
            "scripts/draw_objects.py",
            f"--output={tmp_path}/out",
            "--objects=1",
            "--frames=10000",
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As in a terminal: what runs in the background may ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    limit = time.monotonic() + 60
    while not list(tmp_path.rglob("session_*")):
        assert process.poll() is None and time.monotonic() < limit
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 130
    assert text.endswith("\ninterrupted.\n")
    assert not list(tmp_path.iterdir())
