"""Goes on with what a run has learned: other data, and classes to come."""

from __future__ import annotations

import json
import pathlib
import re
import warnings
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from gnr_keras import checkpoint
from gnr_keras import datasets
from gnr_keras import gin_bindings
from gnr_keras import midway
from gnr_keras import report
from gnr_keras import states
from gnr_keras import types
from gnr_keras.datasets.source import Source
from gnr_keras.learner import Learner

# Networks that are the same with whatever weights: those of the checkpoint
# take the place of pretrained ones, which need not be at hand any more.
_WEIGHTS_REPLACED = ("mobilenet_v1", "resnet_18")


def load_run(
    folder: types.Path, data_dir: types.Path | None = None
) -> LearnedRun:
    """Loads what a run of `scripts/train.py` has learned, ready for more.

    Gin is configured as it was for the run, in place of all before.

    Args:
        folder: that of the run and seed, `<output_dir>/<run>/seed_<n>`; or
            one that `LearnedRun.save` wrote.
        data_dir: folder of weights that the configuration names, where the
            network cannot be built without them.

    Returns:
        A `LearnedRun`.

    Raises:
        ValueError: where there is none, or one that cannot be gone on with,
            such as of a format that this version does not know.
    """
    folder = pathlib.Path(folder)
    place = folder / report.CHECKPOINTS
    with checkpoint.Checkpoints(place) as checkpoints:
        latest = checkpoints.latest()
    path = place / "config.gin"
    if latest is None or not path.exists():
        raise ValueError(
            f"There is no checkpoint of a run in {place}. Expected the folder "
            "of one run and seed, such as runs/quickstart/NR-GD/seed_0."
        )
    learned, state = latest
    if "about" not in state:
        raise ValueError(
            f"{place} does not say what was learned there. Go on with the "
            "version of gnr_keras that wrote it."
        )
    about = json.loads(str(state["about"]))
    state = states.part_of(state, "learner")
    if states.part_of(state, midway.PART):
        warnings.warn(
            f"{folder} was interrupted in the middle of experience "
            f"{learned + 1}: what it had learned before that is loaded.",
            stacklevel=2,
        )
        state = states.without(state, midway.PART)
    config = path.read_text()
    learner = _build(path, config, about, data_dir)
    if learner.strategy.keep_data:
        raise ValueError(
            f"The run {about['run']!r} of {folder} learns from all data so "
            "far, which its checkpoints do not hold. Go on with another run."
        )
    learner.restore(state)
    return LearnedRun(learner, about, config)


class LearnedRun:
    """A learner that has learned, with the names of its classes.

    Args:
        learner: the `Learner`.
        about: what its checkpoint says of the run, as a dict.
        config: the bindings that it was built with, as gin text.

    Attributes:
        learner: the `Learner`.
        class_names: names of its classes, in the order of their numbers.
        config: the bindings that it was built with, as gin text.
        crop_fraction: part of a resized image that it learned from, see
            `gnr_keras.datasets.image_folder`.

    Example:

    ```python
    run = load_run("runs/quickstart/NR-GD/seed_0")
    more, test = run.open_images("new_photos")
    run.learn(more)
    print(run.learner.evaluate(test).accuracy_growing)
    run.save("runs/next_month")
    ```
    """

    def __init__(
        self, learner: Learner, about: dict[str, Any], config: str
    ) -> None:
        self.learner = learner
        self.class_names = list(about["class_names"])
        self.config = config
        crop = re.search(r"\.crop_fraction = ([\d.]+)$", config, re.M)
        self.crop_fraction = float(crop[1]) if crop else 1.0
        self._about = about

    def open_images(
        self, folder: types.Path, test_fraction: float = 0.2
    ) -> tuple[Source, Source]:
        """Opens images as the run did, one folder a class.

        Args:
            folder: see `gnr_keras.datasets.image_folder`. Folders of unknown
                names are classes that follow the known ones.
            test_fraction: see there.

        Returns:
            Two sources `(train, test)`.
        """
        return datasets.image_folder(
            folder,
            self.learner.model.input_shape[1:3],
            test_fraction,
            class_names=self.class_names,
            crop_fraction=self.crop_fraction,
        )

    def learn(
        self,
        data: Source,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        """Learns one more experience.

        Args:
            data: a `Source`. The names of its classes are those known, in
                their order, and then new ones, as `open_images` gives them.
            callbacks: see `Learner.fit`.
        """
        known = len(self.class_names)
        if list(data.class_names[:known]) != self.class_names:
            raise ValueError(
                f"The run knows {known} classes, {self.class_names[:5]} and "
                "so on. Expected data whose classes are these, and then new "
                f"ones. Received: {list(data.class_names[:5])} and so on. "
                "Give `class_names=run.class_names` where you open them."
            )
        new = data.num_classes - known
        if new:
            self.learner.add_classes(new)
            self.class_names += data.class_names[known:]
        self.learner.fit(data, callbacks)

    def save(self, folder: types.Path) -> None:
        """Writes all that was learned, for `load_run`.

        Args:
            folder: a folder that holds no run.
        """
        check_new(folder)
        place = pathlib.Path(folder) / report.CHECKPOINTS
        about = {**self._about, "class_names": self.class_names}
        state = {
            "about": np.array(json.dumps(about)),
            **states.gather({"learner": self.learner}),
        }
        texts = {"config.gin": lambda: self.config}
        with checkpoint.Checkpoints(place, texts=texts) as checkpoints:
            checkpoints.save(self.learner.experiences_learned, state)


def check_new(folder: types.Path) -> None:
    """Raises `FileExistsError` where a folder holds what was learned."""
    place = pathlib.Path(folder) / report.CHECKPOINTS
    if place.exists():
        raise FileExistsError(
            f"{place} holds what was learned before, which stays as it is. "
            "Choose another folder."
        )


def _build(path, config, about, data_dir):
    """Builds the learner of a run anew."""
    # A config that gin has written has neither; both would read other files.
    foreign = re.search(
        r"^\s*(?:import|from|include)\b(?!\s*[./=]).*", config, re.M
    )
    if foreign:
        raise ValueError(
            f"{path} is not as it was written: it holds {foreign[0].strip()!r}."
            " Expected bindings alone."
        )
    run = about["run"]
    backbone = re.search(r"^Experiment\.backbone = @(\w+)", config, re.M)
    overrides = []
    if backbone and backbone[1] in _WEIGHTS_REPLACED:
        overrides = [f"{backbone[1]}.weights = None"]
    gin_bindings.configure(
        [path], overrides, path.parent, [run], unread_macros=True
    )
    with gin_bindings.run_scope(run):
        experiment = gin_bindings.build_experiment()
        return experiment.build_learner(
            run, about["seed"], len(about["class_names"]), data_dir
        )
