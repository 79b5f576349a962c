"""Tests that the public signatures have types, and that those are of use."""

import dataclasses
import inspect
import os
import pathlib
import subprocess
import sys

import gnr_keras
from gnr_keras import continuing
from gnr_keras import profiling
from gnr_keras import progress
from gnr_keras import tensorboard

ROOT = pathlib.Path(__file__).parent.parent
# Both calls of the second half are wrong.
PROGRAM = """
import keras
import numpy as np

import gnr_keras

learner = gnr_keras.Learner(keras.Model(), "latent", num_classes=4)
learner.fit((np.zeros((2, 8, 8, 3)), np.zeros(2, int)))
stream = gnr_keras.streams.new_classes(
    (np.zeros((2, 8, 8, 3)), np.arange(2)),
    (np.zeros((2, 8, 8, 3)), np.arange(2)),
    first_classes=1,
    classes_per_experience=1,
)
accuracy: float = learner.evaluate(stream.test).accuracy_whole
learner.fit("images")
gnr_keras.OriginalReplay(memory_size="many")
"""


def is_ours(thing):
    return getattr(thing, "__module__", "").startswith("gnr_keras")


def functions_of(cls):
    """Methods of a class and its bases, but those that others call."""
    for base in filter(is_ours, cls.__mro__):
        others = [b for b in base.__mro__[:-1] if not is_ours(b)]
        for name, value in vars(base).items():
            function = getattr(value, "fget", None) or value
            function = inspect.unwrap(getattr(function, "__func__", function))
            if not inspect.isfunction(function):
                continue
            if name == "__init__" and not dataclasses.is_dataclass(base):
                yield function
            # Keras calls these, and says what they take.
            hook = any(name in vars(other) for other in others)
            if not name.startswith("_") and not hook:
                yield function


def public_functions():
    things = [getattr(gnr_keras, name) for name in gnr_keras.__all__]
    things += [continuing, profiling, progress, tensorboard]
    for module in filter(inspect.ismodule, list(things)):
        names = getattr(module, "__all__", None) or vars(module)
        things += [getattr(module, name) for name in names if name[0] != "_"]
    for thing in filter(is_ours, things):
        if inspect.isclass(thing):
            yield from functions_of(thing)
        elif inspect.isfunction(thing):
            yield thing


def test_every_public_signature_has_types():
    found = {f"{f.__module__}.{f.__qualname__}": f for f in public_functions()}
    assert {
        "gnr_keras.learner.Learner.fit",
        "gnr_keras.streams.new_classes",
        "gnr_keras.datasets.folders.image_folder",
    } <= set(found)
    lacking = {}
    for name, function in found.items():
        signature = inspect.signature(function)
        untyped = [
            parameter.name
            for parameter in signature.parameters.values()
            if parameter.annotation is parameter.empty
            and parameter.name not in ("self", "cls")
        ]
        if signature.return_annotation is signature.empty:
            untyped.append("what it returns")
        if untyped:
            lacking[name] = untyped
    assert not lacking


def test_wrong_calls_are_found_where_the_package_is_used(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    config = f"--config-file={ROOT / 'pyproject.toml'}"
    result = subprocess.run(
        [sys.executable, "-m", "mypy", config, path],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    lines = [x for x in result.stdout.splitlines() if "error:" in x]
    assert len(lines) == 2, result.stdout + result.stderr
    assert 'Argument 1 to "fit" of "Learner"' in lines[0]
    assert 'Argument "memory_size" to "OriginalReplay"' in lines[1]
