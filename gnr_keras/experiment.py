"""An experiment: a stream, a learner and what came of it."""

import inspect
import platform
import time

import keras
import numpy as np
import tensorflow as tf

import gnr_keras
from gnr_keras import checks
from gnr_keras import evaluation
from gnr_keras import progress as progress_lib
from gnr_keras import quality as quality_lib
from gnr_keras import replay as replay_lib
from gnr_keras import runs
from gnr_keras import saving as saving_lib
from gnr_keras import states
from gnr_keras import strategies
from gnr_keras.learner import Learner


class Experiment:
    """Runs one learner over one stream, and measures it.

    Args:
        data: builds `(train, test)` from `(data_dir=, progress=)`.
        stream: builds the `Stream` from `(train, test, seed=)`.
        backbone: builds the backbone from `(data_dir=)`.
        learner: builds the `Learner`.
        strategy: builds the `Strategy`, in runs with replay from
            `(replay=, replay_sign=)`.
        cumulative: builds that of runs on all data so far.
        original_replay: builds the memory of runs on original data.
        generated_replay: builds that of runs on generated data.
        random_replay: builds that of runs on random data.
        evaluate_every: experiences between two evaluations; there is always
            one after the last.
    """

    def __init__(
        self,
        data,
        stream,
        backbone,
        learner=Learner,
        strategy=strategies.ar1free,
        cumulative=strategies.cumulative,
        original_replay=replay_lib.OriginalReplay,
        generated_replay=replay_lib.GeneratedReplay,
        random_replay=replay_lib.RandomReplay,
        evaluate_every=1,
    ):
        if evaluate_every < 1:
            raise ValueError(
                "`evaluate_every` must be at least 1. Received: "
                f"{evaluate_every}."
            )
        for name, function in (
            ("data", data),
            ("stream", stream),
            ("backbone", backbone),
            ("learner", learner),
            ("strategy", strategy),
        ):
            checks.check_function(name, function)
        self._data = data
        self._stream = stream
        self._backbone = backbone
        self._learner = learner
        self._strategy = strategy
        self._cumulative = cumulative
        self._replays = {
            "original": original_replay,
            "generated": generated_replay,
            "random": random_replay,
        }
        self.evaluate_every = evaluate_every

    def run(
        self,
        name,
        seed,
        data_dir=None,
        progress=None,
        share_dir=None,
        checkpoints=None,
        interruption=None,
    ):
        """Learns the whole stream.

        Args:
            name: the paper's name of the run, such as "NR-GD".
            seed: all randomness of the run comes from it.
            data_dir: folder of the data sets.
            progress: a `gnr_keras.progress.Progress` that is told what
                happens.
            share_dir: folder in which runs share their first experience and
                latents, see `Learner`.
            checkpoints: a `gnr_keras.checkpoint.Checkpoints`. A run goes on
                from the latest, and leaves others.
            interruption: a `gnr_keras.interruption.Interruption`, with
                checkpoints: a signal ends the run, as `KeyboardInterrupt`,
                after its next step and a checkpoint there.

        Returns:
            The contents of `results.json`, as a dict.
        """
        start = time.perf_counter()
        run = runs.get_run(name)
        progress = progress or progress_lib.Progress()
        stream = self.build_stream(seed, data_dir, progress)
        data_seconds = time.perf_counter() - start
        learner = self.build_learner(
            name, seed, stream.num_classes, data_dir, share_dir
        )
        learner.seconds["data"] = data_seconds
        meter = _watch_generator(learner, seed)
        history = evaluation.History(stream, learner.predict_among)
        parts = {"history": history}
        if meter is not None:
            parts["meter"] = meter
        about = {"run": name, "seed": seed, "class_names": stream.class_names}
        saving = saving_lib.Saving(
            checkpoints, interruption, learner, parts, stream, about, start
        )
        learned = saving.take_up()
        progress.on_run_begin(run.name, seed, len(stream), learned, learner)
        with saving.put_off():
            for experience in stream[learned:]:
                with saving.experience() as on_steps:
                    learner.fit(
                        experience,
                        progress.callbacks(),
                        on_steps,
                        progress.generator_callbacks(),
                    )
                    if self._is_due(experience.index, len(stream)):
                        history.add(
                            experience.index,
                            learner.evaluate(stream.test),
                            learner.replay_accuracy(),
                            _measure_generator(meter, learner),
                        )
                    # Before it is saved, and not learned again.
                    progress.on_experience_end(experience.index, history)
        seconds = saving.seconds()
        return {
            "run": run.name,
            "seed": seed,
            "scenario": stream.scenario,
            "order": stream.order,
            "skipped_images": stream.skipped_images,
            "class_names": stream.original_class_names,
            **history.summary(),
            "weights_sha256": states.digest(learner.state()),
            "versions": _versions(),
            "seconds": {k: round(v, 3) for k, v in seconds.items()},
        }

    def build_stream(self, seed, data_dir=None, progress=None):
        """Returns the `Stream` that a run with this seed learns.

        Args:
            seed: the order of the stream comes from it.
            data_dir: folder of the data sets.
            progress: a `gnr_keras.progress.Progress`.
        """
        progress = progress or progress_lib.Progress()
        train, test = self._data(data_dir=data_dir, progress=progress.on_data)
        return self._stream(train, test, seed=seed)

    def build_learner(
        self, name, seed, num_classes, data_dir=None, share_dir=None
    ):
        """Returns the `Learner` of a run, before it has learned anything.

        Args:
            name: the paper's name of the run.
            seed: all randomness of the learner comes from it.
            num_classes: rows of its head.
            data_dir: folder of the data sets, and of weights.
            share_dir: see `run`.
        """
        return self._learner(
            self._backbone(data_dir=data_dir),
            num_classes=num_classes,
            strategy=self._build_strategy(runs.get_run(name)),
            share_dir=share_dir,
            seed=seed,
        )

    def _build_strategy(self, run):
        if run.keep_data:
            return self._cumulative()
        if run.source is None:
            return self._strategy()
        _check_takes_replay(self._strategy, run)
        return self._strategy(
            replay=self._replays[run.source](), replay_sign=run.sign
        )

    def _is_due(self, index, num_experiences):
        done = index + 1
        return done % self.evaluate_every == 0 or done == num_experiences


def _check_takes_replay(strategy, run):
    try:
        inspect.signature(strategy).bind_partial(replay=None, replay_sign=None)
    except TypeError as error:
        name = getattr(strategy, "__name__", repr(strategy))
        raise ValueError(
            f"The run {run.name!r} replays, and the strategy {name!r} takes "
            "no replay. Choose the run 'none', or a strategy such as "
            "'ar1free'."
        ) from error


def _watch_generator(learner, seed):
    """Returns what measures the learner's generator, `None` without one."""
    if not isinstance(learner.replay, replay_lib.GeneratedReplay):
        return None
    meter = quality_lib.GeneratorQuality(seed=seed)
    learner.replay.watch(meter.add)
    return meter


def _measure_generator(meter, learner):
    if meter is None:
        return None
    return meter.measure(
        learner.replay.generator.generate, learner.predict_latents, learner.seen
    )


def _versions():
    return {
        "gnr_keras": gnr_keras.__version__,
        "python": platform.python_version(),
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
        "numpy": np.__version__,
    }
