"""What TensorBoard shows of a run: curves, pictures and configurations."""

from __future__ import annotations

import importlib.util
import time
from typing import TYPE_CHECKING
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import matrices
from gnr_keras import progress
from gnr_keras import report
from gnr_keras import types

if TYPE_CHECKING:
    from gnr_keras.evaluation import History
    from gnr_keras.learner import Learner

# TensorBoard keeps no more pictures of a name, and drawing takes time.
_PICTURES = 10
# Of the results of a run, what runs are compared by.
_METRICS = ("final_accuracy", "average_accuracy", "forgetting")


class TensorBoardProgress(progress.Progress):
    """Writes `<output_dir>/<run>/seed_<n>/tensorboard` for TensorBoard.

    Losses and rates of `classifier/` and `generator/` are drawn over steps,
    one point for each compiled call, whose mean losses are on the host
    anyway. What is known of an `experience/` (accuracies, quality of the
    generator as its mean over classes, seconds) is drawn over the number of
    experiences learned. Pictures show the accuracy of each class after each
    experience, and the confusion matrix, at most ten times a run. The end of
    a run brings its operative config, and what HParams compares runs by.

    A run that goes on counts on, by what its learner has learned. What had
    not been saved is learned and drawn again, at the same points.

    It needs TensorFlow's package `tensorboard`.

    Args:
        output_dir: folder of the results of all runs and seeds.

    Example:

    ```python
    board = TensorBoardProgress("runs/mine")
    history = evaluation.History(stream, learner.predict_among)
    board.on_run_begin("NR-GD", 0, len(stream), 0, learner)
    for experience in stream:
        learner.fit(
            experience,
            board.callbacks(),
            generator_callbacks=board.generator_callbacks(),
        )
        history.add(experience.index, learner.evaluate(stream.test))
        board.on_experience_end(experience.index, history)
    ```
    """

    def __init__(self, output_dir: types.Path) -> None:
        if importlib.util.find_spec("tensorboard") is None:
            raise ImportError(
                "What TensorBoard shows is written by its package, which is "
                "not installed. Install it with `pip install tensorboard`."
            )
        self._output_dir = output_dir

    def on_run_begin(
        self,
        run: str,
        seed: int,
        num_experiences: int,
        learned: int,
        learner: Learner,
    ) -> None:
        folder = report.run_folder(self._output_dir, run, seed)
        self._folder = folder / "tensorboard"
        self._writer = tf.summary.create_file_writer(str(self._folder))
        self._learner = learner
        self._every = -(-num_experiences // _PICTURES)
        self._drawn = learned // self._every
        self._num_experiences = num_experiences
        self._begin = time.perf_counter()

    def callbacks(self) -> list[keras.callbacks.Callback]:
        trainer = self._learner.trainer
        return [_Losses(self._writer, "classifier", trainer)]

    def generator_callbacks(self) -> list[keras.callbacks.Callback]:
        trainer = self._learner.replay.trained
        if trainer is None:
            return []
        return [_Losses(self._writer, "generator", trainer)]

    def on_experience_end(self, index: int, history: History) -> None:
        now = time.perf_counter()
        values = {"seconds": now - self._begin}
        self._begin = now
        evaluated = index in history.evaluated_after[-1:]
        if evaluated:
            values |= _measures(history)
        # The number of experiences learned.
        with self._writer.as_default(step=index + 1):
            _write(values, "experience")
            if evaluated and self._is_picture_due(index + 1):
                for name, draw in (
                    ("accuracy_matrix", matrices.draw_accuracies),
                    ("confusion_matrix", matrices.draw_confusion),
                ):
                    tf.summary.image(name, draw(history)[None])
        self._writer.flush()

    def on_run_end(self, results: dict[str, Any], config: str) -> None:
        # As Markdown, a block of code.
        text = "\n".join(f"    {line}" for line in config.splitlines())
        with self._writer.as_default(step=self._num_experiences):
            tf.summary.text("operative_config", text)
        self._writer.close()
        # Apart: HParams takes every scalar beside its own for a metric.
        writer = tf.summary.create_file_writer(str(self._folder / "hparams"))
        with writer.as_default(step=self._num_experiences):
            # Not at the top: the package is an extra.
            from tensorboard.plugins.hparams import api

            api.hparams(_settings(results, self._learner))
            _write({name: results[name] for name in _METRICS})
        writer.close()

    def _is_picture_due(self, learned):
        # The first evaluation in each part of the run, and the last of all.
        drawn, self._drawn = self._drawn, learned // self._every
        return self._drawn > drawn or learned == self._num_experiences


class _Losses(keras.callbacks.Callback):
    """Writes losses and rates of one training.

    Args:
        writer: the writer of the run.
        name: what is trained.
        trainer: the `gnr_keras.trainers.loop.Trainer` that trains it.
    """

    def __init__(self, writer, name, trainer):
        super().__init__()
        self._writer = writer
        self._name = name
        self._trainer = trainer

    def on_train_begin(self, logs=None):
        self._before = self._trainer.steps_done

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        self._rates = self._trainer.learning_rates

    def on_train_batch_end(self, batch, logs=None):
        done = self._epoch * self.params["steps"] + batch + 1
        with self._writer.as_default(step=self._before + done):
            _write({**logs, **self._rates}, self._name)
        self._writer.flush()


def _settings(results, learner):
    """What people change in a run, by name."""
    strategy = learner.strategy
    settings = {
        "run": results["run"],
        "seed": results["seed"],
        "strategy": strategy.name,
        "batch_size": learner.trainer.batch_size,
        "memory_size": strategy.replay.memory_size,
    }
    for name, phase in (
        ("first", learner.first),
        ("following", learner.following),
    ):
        settings |= {
            f"{name}.epochs": phase.epochs,
            f"{name}.learning_rate_features": phase.learning_rate_features,
            f"{name}.learning_rate_head": phase.learning_rate_head,
        }
    # What a run does not have is left out, as an empty cell of the table.
    if strategy.replay.replay_per_batch is not None:
        settings["replay_per_batch"] = strategy.replay.replay_per_batch
    if strategy.consolidation is not None:
        settings["align_norms"] = strategy.consolidation.align_norms
    generator = getattr(strategy.replay, "generator", None)
    if generator is not None:
        settings["generator"] = type(generator).__name__
    return settings


def _measures(history):
    """What the latest evaluation found, by name; `None` where undefined."""
    latest = history.evaluations[-1]
    values = {
        "accuracy_whole": latest.accuracy_whole,
        "accuracy_growing": latest.accuracy_growing,
        "replay_accuracy": history.replay_accuracies[-1],
    }
    quality = history.qualities[-1]
    if quality is not None:
        values |= {
            "generator_accuracy": _mean(quality.accuracy),
            "generator_distance": _mean(quality.distance),
            "generator_spread": _mean(quality.spread),
        }
    return values


def _mean(by_class):
    known = by_class[~np.isnan(by_class)]
    return known.mean() if len(known) else None


def _write(values, group=None):
    for name, value in values.items():
        if value is not None and np.isfinite(value):
            tf.summary.scalar(f"{group}/{name}" if group else name, value)
