"""What a person sees while a stream is learned."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Any
from typing import TextIO

import keras
import numpy as np

if TYPE_CHECKING:
    from gnr_keras.evaluation import History
    from gnr_keras.learner import Learner

# Of experiences that are counted, and not trained on.
_NO_TRAINING = "no training"


class Progress:
    """Is told what an experiment does; this one keeps it to itself."""

    def on_data(self, done: int, total: int) -> None:
        """`done` of `total` parts of the data set are drawn."""

    def on_run_begin(
        self,
        run: str,
        seed: int,
        num_experiences: int,
        learned: int,
        learner: Learner,
    ) -> None:
        """A run starts, or goes on after `learned` experiences."""

    def callbacks(self) -> list[keras.callbacks.Callback]:
        """Returns Keras callbacks for one training of the classifier."""
        return []

    def generator_callbacks(self) -> list[keras.callbacks.Callback]:
        """Returns Keras callbacks for one training of the generator."""
        return []

    def on_experience_end(self, index: int, history: History) -> None:
        """Experience `index` is learned and, where due, evaluated."""

    def on_run_end(self, results: dict[str, Any], config: str) -> None:
        """A run is over; `config` is its operative config, as gin text."""


class Several(Progress):
    """Tells each of several what happens.

    Args:
        members: the `Progress`es that are told.
    """

    def __init__(self, members: Iterable[Progress]) -> None:
        self._members = list(members)

    def on_data(self, done: int, total: int) -> None:
        for member in self._members:
            member.on_data(done, total)

    def on_run_begin(
        self,
        run: str,
        seed: int,
        num_experiences: int,
        learned: int,
        learner: Learner,
    ) -> None:
        for member in self._members:
            member.on_run_begin(run, seed, num_experiences, learned, learner)

    def callbacks(self) -> list[keras.callbacks.Callback]:
        return [c for member in self._members for c in member.callbacks()]

    def generator_callbacks(self) -> list[keras.callbacks.Callback]:
        return [
            callback
            for member in self._members
            for callback in member.generator_callbacks()
        ]

    def on_experience_end(self, index: int, history: History) -> None:
        for member in self._members:
            member.on_experience_end(index, history)

    def on_run_end(self, results: dict[str, Any], config: str) -> None:
        for member in self._members:
            member.on_run_end(results, config)


class ConsoleProgress(Progress):
    """Writes one line per experience; on a terminal it moves meanwhile.

    Args:
        stream: text stream to write to, such as `sys.stderr`.
        num_runs: runs that will follow each other, for the time left.
    """

    def __init__(self, stream: TextIO, num_runs: int = 1) -> None:
        self._stream = stream
        self._num_runs = num_runs
        self._runs_begun = 0
        self._live = stream.isatty()
        self._width = 0

    def on_data(self, done: int, total: int) -> None:
        if self._live or done == total:
            self._write(f"preparing the data set: {done}/{total} parts")
        if done == total:
            self._end_line()

    def on_run_begin(
        self,
        run: str,
        seed: int,
        num_experiences: int,
        learned: int,
        learner: Learner,
    ) -> None:
        self._runs_begun += 1
        self._title = f"{run} seed {seed}"
        self._num_experiences = num_experiences
        self._learned_before = learned
        self._experience = 1 + learned
        self._training = _NO_TRAINING
        self._accuracy = "not yet tested"
        self._times = [time.perf_counter()]
        if learned:
            self._write(f"{self._title} | goes on after experience {learned}")
            self._end_line()

    def callbacks(self) -> list[keras.callbacks.Callback]:
        return [_EpochCallback(self)]

    def on_epoch(self, epoch: int, epochs: int, loss: float) -> None:
        """Epoch `epoch` of `epochs`, counted from 1, is over."""
        self._training = f"epoch {epoch}/{epochs} | loss {loss:.4f}"
        if self._live:
            self._write(self._line())

    def on_experience_end(self, index: int, history: History) -> None:
        self._times.append(time.perf_counter())
        if history.evaluations:
            latest = history.evaluations[-1]
            self._accuracy = (
                f"accuracy {latest.accuracy_whole:.1%}, "
                f"of classes seen {latest.accuracy_growing:.1%}"
            )
        self._write(self._line())
        self._end_line()
        self._experience += 1
        self._training = _NO_TRAINING

    def _line(self):
        return (
            f"{self._title} | experience {self._experience}/"
            f"{self._num_experiences} | {self._training} | {self._accuracy} | "
            f"{self._time_left()} left"
        )

    def _time_left(self):
        """Of all runs; the first experience costs more than later ones."""
        durations = np.diff(self._times)
        if len(durations) < 3:
            return "?:??"
        later = np.median(durations[1:])
        done = self._learned_before + len(durations)
        left = (self._num_experiences - done) * later
        whole_run = durations[0] + (self._num_experiences - 1) * later
        left += max(self._num_runs - self._runs_begun, 0) * whole_run
        minutes, seconds = divmod(round(left), 60)
        return f"{minutes}:{seconds:02d}"

    def _write(self, text):
        padding = " " * max(self._width - len(text), 0)
        self._stream.write(("\r" if self._live else "") + text + padding)
        self._stream.flush()
        self._width = len(text)

    def _end_line(self):
        self._stream.write("\n")
        self._stream.flush()
        self._width = 0


class _EpochCallback(keras.callbacks.Callback):
    def __init__(self, progress):
        super().__init__()
        self._progress = progress

    def on_epoch_end(self, epoch, logs=None):
        self._progress.on_epoch(epoch + 1, self.params["epochs"], logs["loss"])
