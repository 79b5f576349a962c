"""Folders of exports: whole, new, and described."""

import contextlib
import json
import os
import pathlib
import tempfile

import tensorflow as tf

import gnr_keras
from gnr_keras import types


def check_new(folder: types.Path) -> None:
    """Raises `FileExistsError` where there is something already."""
    if pathlib.Path(folder).exists():
        raise FileExistsError(
            f"{folder} is there already, and stays as it is. Choose another "
            "folder."
        )


def check_names(learner, class_names):
    """Raises `ValueError` unless each class has a name of its own.

    Args:
        learner: a `Learner` that has learned.
        class_names: names of its classes, in the order of their numbers.
    """
    if not learner.seen.any():
        raise ValueError(
            "The learner has not learned any class. Received: one of "
            f"{learner.num_classes} classes, none of them seen. `fit` an "
            "experience first."
        )
    if len(class_names) != learner.num_classes:
        raise ValueError(
            f"The learner has {learner.num_classes} classes. Expected a name "
            f"of each. Received: {len(class_names)}."
        )
    for name in class_names:
        if not isinstance(name, str):
            raise ValueError(
                f"Expected names of classes as text. Received: {name!r}, a "
                f"{type(name).__name__}. Where the classes have numbers only: "
                "`[str(number) for number in range(num_classes)]`."
            )
    if len(set(class_names)) != len(class_names):
        twice = next(n for n in class_names if list(class_names).count(n) > 1)
        raise ValueError(
            "Expected another name for each class. Received several times: "
            f"{twice!r}."
        )
    # Each has a line of its own.
    broken = [name for name in class_names if len(name.splitlines()) != 1]
    if broken:
        raise ValueError(
            "Expected names of classes on one line each. Received: "
            f"{broken[0]!r}."
        )


@contextlib.contextmanager
def whole_folder(folder):
    """A folder to write into, which gets its name when all is on the disk.

    Args:
        folder: one that is not there yet.
    """
    check_new(folder)
    folder = pathlib.Path(folder).absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f".{folder.name}.", dir=folder.parent
    ) as place:
        # One within it: others may not look into temporary folders.
        part = pathlib.Path(place) / folder.name
        part.mkdir()
        yield part
        for path in part.rglob("*"):
            if path.is_file():
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
        os.rename(part, folder)


def describe(learner, class_names, crop_fraction, folder):
    """Writes `model.json`, and `labels.txt` with the name of a class a line.

    Args:
        learner: a `Learner` that has learned.
        class_names: names of its classes, in the order of their numbers.
        crop_fraction: part of a resized picture that was learned.
        folder: where to.
    """
    about = {
        "gnr_keras": gnr_keras.__version__,
        "tensorflow": tf.__version__,
        "class_names": list(class_names),
        "seen": learner.seen.tolist(),
        "image_shape": learner.model.input_shape[1:],
        "crop_fraction": crop_fraction,
        "latent_layer": learner.front.output_names[0],
        "latent_shape": learner.front.output_shape[1:],
        "experiences_learned": learner.experiences_learned,
    }
    (folder / "model.json").write_text(json.dumps(about, indent=1) + "\n")
    lines = "".join(f"{name}\n" for name in class_names)
    (folder / "labels.txt").write_text(lines, encoding="utf-8")
