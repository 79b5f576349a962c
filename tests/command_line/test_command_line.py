"""Tests of what all commands share, and of the trainer's --dry_run."""

import io
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import types

import pytest
import test_train_script

from gnr_keras import quiet
from gnr_keras.command_line import colours
from gnr_keras.command_line import starting

ROOT = pathlib.Path(__file__).parents[2]
SCRIPTS = [
    *sorted(f"scripts/{path.name}" for path in (ROOT / "scripts").glob("*.py")),
    *(
        f"benchmarks/{n}.py"
        for n in ("agreement", "front", "precision", "run", "serving")
    ),
]
# Flags that a script cannot do without.
NEEDED = {
    "scripts/continue.py": ("run_dir", "images", "output_dir"),
    "scripts/draw_objects.py": ("objects",),
    "scripts/export.py": ("run_dir",),
    "scripts/pretrain.py": ("output",),
    "scripts/tune.py": ("gin_file",),
    "benchmarks/agreement.py": ("run_dir",),
}
# TensorFlow is loaded once; what a script defines ends with its process.
EACH = """
import os, runpy, shlex, sys
import gnr_keras.gin_bindings
for command in sys.argv[1:]:
    sys.stdout.flush()
    process = os.fork()
    if not process:
        sys.argv = shlex.split(command)
        os.dup2(1, 2)
        runpy.run_path(sys.argv[0], run_name="__main__")
    status = os.waitpid(process, 0)[1]
    print(f"=== {os.waitstatus_to_exitcode(status)}")
"""


# Their output goes where nobody reads; what they complain of, to the report.
EACH_UNREAD = EACH.replace(
    "os.dup2(1, 2)",
    "r, w = os.pipe(); os.close(r); os.dup2(1, 2); os.dup2(w, 1)",
)


def run(*command, cwd=ROOT):
    # As a user's: what is quiet is so by the command itself.
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
        ),
    }
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
    )


def run_each(commands, status, cwd=ROOT, program=EACH):
    """Returns what each command prints, of those that end with `status`."""
    result = run("-c", program, *commands, cwd=cwd)
    assert result.returncode == 0, result.stderr[-3000:]
    *texts, rest = result.stdout.split(f"=== {status}\n")
    assert not rest and len(texts) == len(commands), result.stdout
    return texts


@pytest.fixture(scope="module")
def help_pages():
    pages = run_each([f"{script} --help" for script in SCRIPTS], status=0)
    return dict(zip(SCRIPTS, pages, strict=True))


def test_help_of_every_script_shows_examples_and_its_flags(help_pages):
    for path, page in help_pages.items():
        about, _, flags = page.partition("\nFlags:\n")
        assert f"python {path}" in about
        assert flags.startswith("  --")
        # Nor those of absl or TensorFlow Datasets.
        assert "logtostderr" not in flags


def test_help_shows_defaults_also_of_zero(help_pages):
    page = help_pages["scripts/contact_sheet.py"]
    assert "--seed: The seed of the data set. Default: 0." in page
    assert "--image_size: The side of a frame, in pixels. Default: 64." in page
    # Of a switch that is off, the name says enough.
    for page in help_pages.values():
        assert not re.search("Default: (None|False|false)", page)


def test_help_that_nobody_reads_to_its_end_is_no_error():
    commands = ["scripts/train.py --help", "scripts/report.py -h"]
    assert not any(run_each(commands, status=0, program=EACH_UNREAD))


@pytest.mark.parametrize(
    # Written at once, and when all is done.
    ("unbuffered", "status"),
    [("1", 141), ("", 0)],
)
def test_a_command_ends_quietly_where_nobody_reads(
    monkeypatch, unbuffered, status
):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    commands = ["scripts/reproduce.py --list"]
    (text,) = run_each(commands, status, program=EACH_UNREAD)
    assert not re.search("Errno|Broken|Traceback", text)


def numbers_of(page):
    """Names of the flags that a page of help shows with a number."""
    for flag in page.partition("\nFlags:\n")[2].split("\n  --"):
        text = " ".join(flag.partition("\n\n")[0].split())
        if re.search(r"Default: [\d.]+\.$", text):
            yield text.removeprefix("--").partition(":")[0]


def test_a_number_below_its_bound_is_one_line(help_pages, tmp_path):
    # Those are looked at where they are used, as the library's arguments are.
    others = ("scripts/train.py", "scripts/continue.py")
    flags = [
        (script, flag)
        for script, page in help_pages.items()
        if script not in others
        for flag in numbers_of(page)
    ]
    assert {("benchmarks/serving.py", "calls"), ("scripts/tune.py", "jobs")} < {
        *flags
    }
    commands = [f"{ROOT / script} --{flag}=-1" for script, flag in flags]
    texts = run_each(commands, status=1, cwd=tmp_path)
    for (_, flag), text in zip(flags, texts, strict=True):
        assert text.startswith(f"error: flag --{flag}=-1: ")
        assert text.count("\n") == 1
    assert len(flags) > 15


def test_every_script_that_takes_no_arguments_refuses_them(tmp_path):
    scripts = [script for script in SCRIPTS if script != "scripts/report.py"]
    commands = [
        shlex.join(
            [
                str(ROOT / script),
                *(f"--{flag}=1" for flag in NEEDED.get(script, ())),
                "stray",
            ]
        )
        for script in scripts
    ]
    texts = run_each(commands, status=1, cwd=tmp_path)
    for script, text in zip(scripts, texts, strict=True):
        assert "error: unknown arguments ['stray']" in text, script
    assert not list(tmp_path.iterdir())


def test_every_flag_that_is_needed_is_asked_for(tmp_path):
    commands = [shlex.quote(str(ROOT / script)) for script in NEEDED]
    texts = run_each(commands, status=1, cwd=tmp_path)
    for (script, names), text in zip(NEEDED.items(), texts, strict=True):
        asked = re.findall(r"--(\w+)=<value> \(\w", text)
        assert sorted(asked) == sorted(names), script
        assert "(--help shows the flags)" in text
        assert "None" not in text
    assert texts[list(NEEDED).index("scripts/pretrain.py")].endswith(
        "error: missing --output=<value> (File to write). "
        "(--help shows the flags)\n"
    )


def test_an_interrupted_script_says_so_in_one_line(tmp_path):
    process = subprocess.Popen(
        [sys.executable, ROOT / "scripts/pretrain.py", "--output=out"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As in a terminal: what runs in the background may ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # Of the progress bar: it has begun to draw.
    assert process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 130
    assert text.endswith("\ninterrupted.\n")
    assert "Traceback" not in text
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """The trainer as a module, far from the checkout."""
    folder = tmp_path_factory.mktemp("plan")
    bindings = [f"--gin_bindings={b}" for b in test_train_script.TINY]
    result = run(
        *("-m", "gnr_keras", "--gin_file=quickstart.gin", "--dry_run"),
        *("--runs=none,NR-GD", "--seeds=0,1", "--data_dir=data"),
        *bindings,
        cwd=folder,
    )
    return folder, result


def test_a_dry_run_prints_the_plan(plan):
    """50 classes, 8 sessions of one frame each; 10 classes, then 20 twice."""
    _, result = plan
    assert result.returncode == 0, result.stderr[-3000:]
    none, replay, total = result.stdout.strip().split("\n\n")
    assert none.startswith("none\n") and replay.startswith("NR-GD\n")
    lines = {}
    for line in replay.splitlines()[1:]:
        label = line[:27].strip()
        lines[label if label not in lines else f"{label} 2"] = line[27:]
    assert lines["experiences"] == "3"
    assert lines["images"] == "80 at first, then 160; to test: 150"
    # By 32 and by 24.
    assert lines["steps of the classifier"] == ("3 at first, then 7; 17 in all")
    assert lines["its batch"] == (
        "32 current + 0 replayed, then 24 current + 8 replayed"
    )
    # By 32 and by 16.
    assert lines["steps of the generator"] == "3 at first, then 10; 23 in all"
    assert lines["its batch 2"] == (
        "32 current + 0 replayed, then 16 current + 16 replayed"
    )
    # 2 x 2 x 128 numbers of two bytes each, 160, 60 and 150 times.
    assert lines["memory of latents"] == "0.2 MB"
    assert lines["memory of replay"] == "0.1 MB"
    assert lines["memory of test latents"] == "0.2 MB"
    assert re.fullmatch(r"(\d+ min )?\d+ s", lines["estimated time"])
    assert "of 2 seed(s) each: about" in total and "estimate" in total
    assert "generator" not in none


def test_a_dry_run_writes_nothing_and_is_quiet(plan):
    folder, result = plan
    assert not list(folder.iterdir())
    assert result.stderr == ""


def test_a_set_that_is_not_at_hand_is_one_line(tmp_path):
    result = run(
        *("scripts/train.py", "--gin_file=imagenet1000_nc.gin", "--dry_run"),
        f"--data_dir={tmp_path}",
    )
    assert result.returncode == 1
    assert result.stderr.startswith("error: imagenet2012 in ")
    assert result.stderr.count("\n") == 1


def test_verbosity_shows_where_an_error_came_from():
    result = run("scripts/train.py", "--gin_file=no.gin", "--verbosity=1")
    assert result.returncode == 1
    assert "\nerror: There is no gin file 'no.gin'" in result.stderr
    assert "The error came from here:" in result.stderr
    assert "Traceback" in result.stderr


def test_only_noise_is_dropped(capfd):
    with quiet._noise_dropped():
        os.write(2, b"I0000 port.cc:153] oneDNN custom operations are on. Y\n")
        os.write(2, b"W0000 gpu_device.cc:2] Cannot dlopen some libraries\n")
        os.write(2, b"E0000 cuda.cc:1] failed call to cuInit: UNKNOWN (303)\n")
    os.write(2, b"after\n")
    lines = capfd.readouterr().err.splitlines()
    assert lines == [
        "W0000 gpu_device.cc:2] Cannot dlopen some libraries",
        "after",
    ]


def test_what_is_said_before_an_error_is_shown(capfd):
    with pytest.raises(ImportError), quiet._noise_dropped():
        os.write(2, b"a library is missing\n")
        raise ImportError
    assert capfd.readouterr().err == "a library is missing\n"


def test_programs_that_import_the_package_are_left_alone():
    code = "import gnr_keras, os; print(os.environ.get('TF_CPP_MIN_LOG_LEVEL'))"
    assert run("-c", code).stdout == "None\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_colours_are_for_terminals_alone(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert colours.red("error:", Terminal()) == "\x1b[31merror:\x1b[0m"
    assert colours.bold("best", Terminal()) == "\x1b[1mbest\x1b[0m"
    assert colours.red("error:", io.StringIO()) == "error:"
    monkeypatch.setenv("NO_COLOR", "1")
    assert colours.red("error:", Terminal()) == "error:"


@pytest.mark.parametrize(
    "name, expected",
    [
        ("gnr_keras.__main__", "python -m gnr_keras '--runs=a b'"),
        (None, "python scripts/train.py '--runs=a b'"),
    ],
)
def test_the_command_is_named_as_it_was_given(monkeypatch, name, expected):
    main = types.ModuleType("__main__")
    main.__spec__ = name and types.SimpleNamespace(name=name)
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", ["scripts/train.py", "--runs=a b"])
    assert starting.command_line() == expected
