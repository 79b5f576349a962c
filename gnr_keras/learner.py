"""The learner: the paper's Algorithm 2, one experience at a time."""

import functools
import time
import weakref
from collections import defaultdict
from contextlib import contextmanager

import numpy as np
import tensorflow as tf

from gnr_keras import backbones
from gnr_keras import batches
from gnr_keras import callbacks as callbacks_lib
from gnr_keras import cloning
from gnr_keras import evaluation
from gnr_keras import generator as generator_lib
from gnr_keras import inference
from gnr_keras import strategies
from gnr_keras import streams
from gnr_keras import trainers
from gnr_keras.datasets import source as source_lib
from gnr_keras.replay import GeneratedReplay

HEAD = "head"
# Test images whose latents are in memory at a time where none are kept.
_PART = 4096


class Learner:
    """Learns classes and instances as they come.

    Args:
        backbone: functional `keras.Model` from images to features. It is
            cloned, and itself left as it is; feature maps are pooled.
        latent_layer: name of the layer at which the backbone is split. What
            is below, the front, is frozen after the first experience, unless
            the strategy trains it.
        num_classes: rows of the head.
        strategy: a `Strategy`, such as `gnr_keras.strategies.lwf()`; by
            default AR1free with 500 generated patterns as negatives, 32 in a
            batch.
        first: `Phase` of the first experience, which trains the whole
            network.
        following: `Phase` of all later ones.
        trainer: builds the `ClassifierTrainer` from `(model, latent_layer,
            head)` and the strategy's `objective`, `protection` and
            `block_features`.
        batch_renormalization: the `BatchRenormalizationSchedule` of the
            batch renormalisation that takes the place of the backbone's batch
            normalisation; by default that of the paper. `False` leaves the
            backbone as it is.
        head_bias: whether the head has a bias.
        predict_among: "seen" predicts among the classes seen so far, "all"
            among all rows (a row never trained is zero, and beats negative
            logits).
        initialize: whether the backbone's weights are drawn anew from
            `seed`; otherwise they are kept, as for a pretrained one.
        inference_batch_size: images in a batch when nothing is trained.
        seed: all randomness of the learner comes from it.

    Example:

    ```python
    learner = Learner(backbone, "conv5_4/dw", stream.num_classes)
    for experience in stream:
        learner.fit(experience)
    print(learner.evaluate(stream.test).accuracy_whole)
    ```
    """

    def __init__(
        self,
        backbone,
        latent_layer,
        num_classes,
        strategy=None,
        first=trainers.Phase(4, 1e-3, 1e-3),
        following=trainers.Phase(4, 5e-5, 5e-4),
        trainer=trainers.ClassifierTrainer,
        batch_renormalization=None,
        head_bias=False,
        predict_among="seen",
        initialize=False,
        inference_batch_size=256,
        seed=0,
    ):
        if predict_among not in ("seen", "all"):
            raise ValueError(
                '`predict_among` must be "seen" or "all". Received: '
                f"{predict_among!r}."
            )
        self.num_classes = num_classes
        if batch_renormalization is None:
            batch_renormalization = callbacks_lib.BatchRenormalizationSchedule()
        self.first = first
        self.following = following
        self.predict_among = predict_among
        self.seconds = defaultdict(float)
        self.seen = np.zeros(num_classes, bool)
        self.experiences_learned = 0
        self._batch_renormalization = batch_renormalization
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._distribution = tf.distribute.get_strategy()
        self._kept = []
        # The test set evaluated last, and its latents.
        self._tested = lambda: None
        self._test_latents = None
        if batch_renormalization:
            _check_unused(
                not batch_renormalization.trainings, batch_renormalization
            )
        with self._distribution.scope():
            self.model = cloning.clone(
                backbones.with_head(
                    backbone, num_classes, HEAD, head_bias, seed
                ),
                seed,
                batch_renormalization=bool(batch_renormalization),
                keep_weights=not initialize,
            )
            self.front, self.back = backbones.split(self.model, latent_layer)
            self.strategy = strategy or self._default_strategy()
            if not isinstance(self.strategy, strategies.Strategy):
                raise ValueError(
                    "`strategy` must be a `Strategy`, such as "
                    "`gnr_keras.strategies.er()`. Received: "
                    f"{self.strategy!r}."
                )
            if self.strategy.consolidation:
                _check_unused(
                    self.strategy.consolidation.rows is None,
                    self.strategy.consolidation,
                )
            self.trainer = trainer(
                self.model,
                latent_layer,
                HEAD,
                objective=self.strategy.objective,
                protection=self.strategy.protection,
                block_features=self.strategy.block_features,
            )
            self.replay = self.strategy.replay
            batches.check_replay_per_batch(
                self.replay.replay_per_batch, self.trainer.batch_size
            )
            self.replay.build(
                self.front.output_shape[1:], num_classes, self.back, seed
            )
        self._inference = inference.Inference(
            self.front, self.back, inference_batch_size
        )

    def fit(self, experience, callbacks=()):
        """Learns one experience: one turn of Algorithm 2's loop.

        Args:
            experience: an `Experience`, a `Source` or a tuple
                `(images, labels)`.
            callbacks: Keras callbacks; they see one training of the
                classifier.
        """
        new = data = self._check_data(experience)
        if self.strategy.keep_data:
            data = source_lib.join([*self._kept, new])
        # X_k, Y_k are `data`, and M_k is `memory`.
        share, memory = self._populate_memory(data)  # lines 6 to 12
        latents = self._train_classifier(data, share, memory, callbacks)
        self._train_generator(latents, data.labels, memory)  # lines 19 to 22
        self.seen[np.unique(data.labels)] = True
        self.experiences_learned += 1
        if self.strategy.keep_data:
            self._kept.append(new)

    def evaluate(self, data):
        """Tests the learner on all of `data`.

        The latents of the test set evaluated last are kept, since the front
        does not change any more.

        Args:
            data: a `Source` or a tuple `(images, labels)`.

        Returns:
            An `Evaluation`.
        """
        data = self._check_data(data)
        predictions = self.predict(data)
        return evaluation.Evaluation.from_predictions(
            data.labels, predictions, self.seen
        )

    def replay_accuracy(self):
        """Tests the learner on what it would replay next.

        Returns:
            The fraction of the memory's patterns that the classifier gives
            their label, or `None` where there is no memory. Of generated
            patterns this says how good the generator is.
        """
        if not self.replay.memory_size or not self.experiences_learned:
            return None
        with self._timed("evaluation"):
            # Of its own, so that looking at it changes nothing.
            rng = np.random.default_rng([self._seed, self.experiences_learned])
            memory = self.replay.populate(
                np.flatnonzero(self.seen), (), self.replay.memory_size, rng
            )
            if not len(memory):
                return None
            predictions = self._inference.predict(memory.latents, self.seen)
        return float((predictions == memory.labels).mean())

    def predict(self, data):
        """Returns the class predicted for each image.

        Args:
            data: an array of images, or what `evaluate` takes.
        """
        if isinstance(data, np.ndarray):
            data = (data, np.zeros(len(data), np.int32))
        data = self._check_data(data)
        if self.strategy.train_front or not self.experiences_learned:
            # The front will move: nothing to keep, so a part at a time.
            parts = range(_PART, len(data), _PART)
            return np.concatenate(
                [
                    self._predict(self._latents_of(data.subset(part)))
                    for part in np.split(np.arange(len(data)), parts)
                ]
            )
        if self._tested() is not data:
            self._test_latents = self._latents_of(data)
            self._tested = weakref.ref(data)
        return self._predict(self._test_latents)

    def _predict(self, latents):
        with self._timed("evaluation"):
            allowed = self.seen
            if self.predict_among == "all" or not allowed.any():
                allowed = np.ones_like(self.seen)
            return self._inference.predict(latents, allowed)

    def _populate_memory(self, data):
        """Shares the batch with the memory M, and fills that."""
        if self.experiences_learned == 0:
            return 0, self.replay.empty()
        with self._timed("replay"):
            share = batches.replay_share(
                len(data),
                self.replay.memory_size,
                self.trainer.batch_size,
                self.replay.replay_per_batch,
            )
            steps = self.trainer.steps_per_epoch(len(data), share)
            memory = self.replay.populate(
                np.flatnonzero(self.seen),
                np.unique(data.labels),
                steps * self.following.epochs * share,
                self._rng,
            )
        # Without room in the batch, no class counts as replayed.
        if not share or not len(memory):
            return 0, self.replay.empty()
        return share, memory

    def _train_classifier(self, data, share, memory, callbacks):
        """Lines 13 to 18; the consolidation is one of the callbacks.

        Returns:
            The latents of the experience, for the generator.
        """
        if self.strategy.consolidation:
            self.strategy.consolidation.begin_experience(
                data.labels, memory.labels
            )
        callbacks = self._callbacks(callbacks)
        past_classes = np.flatnonzero(self.seen)
        if self.experiences_learned == 0 or self.strategy.train_front:
            first = self.experiences_learned == 0
            phase = self.first if first else self.following
            with self._timed("classifier"):
                self.trainer.fit_images(
                    data, phase, self._rng, callbacks, past_classes
                )
            # Nothing but a replay looks at these latents; where there is
            # one, the front is frozen from here on.
            return self._latents_of(data) if self.replay.memory_size else None
        latents = self._latents_of(data)
        with self._timed("classifier"):
            self.trainer.fit_latents(
                latents,
                data.labels,
                memory,
                share,
                self.following,
                self._rng,
                callbacks,
                past_classes,
            )
        return latents

    def _train_generator(self, latents, labels, memory):
        """Only generated replay has a generator; others store patterns."""
        with self._timed("generator"):
            self.replay.update(latents, labels, memory, self._rng)

    def _callbacks(self, extra):
        callbacks = [*extra]
        if self._batch_renormalization:
            callbacks.insert(0, self._batch_renormalization)
        # Others may restore weights at the end: what consolidates comes last.
        if self.strategy.protection:
            callbacks.append(
                callbacks_lib.SynapticIntelligenceConsolidation(
                    HEAD, self.trainer.feature_optimizer
                )
            )
        if self.strategy.consolidation:
            callbacks.append(self.strategy.consolidation)
        return callbacks

    def _default_strategy(self):
        return strategies.ar1free(
            GeneratedReplay(
                memory_size=500,
                replay_per_batch=32,
                generator=functools.partial(
                    generator_lib.ConditionalVAE,
                    output_activation=backbones.output_activation(self.front),
                ),
            )
        )

    def _latents_of(self, data):
        """Runs the front once over `data`."""
        with self._timed("front"):
            return self._inference.latents(data)

    def _check_data(self, data):
        if isinstance(data, streams.Experience):
            data = data.data
        data = source_lib.as_source(data)
        if not len(data):
            raise ValueError("There are no patterns to learn or to test.")
        expected = self.model.input_shape[1:]
        if tuple(data.image_shape) != tuple(expected):
            raise ValueError(
                f"The backbone takes images of shape {expected}. Received: "
                f"{data.image_shape}. Resize the images, or build the "
                "backbone for this size."
            )
        if data.labels.max() >= self.num_classes:
            raise ValueError(
                f"The learner has {self.num_classes} classes, numbered from "
                f"0. Received: class {data.labels.max()}."
            )
        return data

    @contextmanager
    def _timed(self, phase):
        start = time.perf_counter()
        yield
        self.seconds[phase] += time.perf_counter() - start


def _check_unused(unused, part):
    if not unused:
        raise ValueError(
            f"This {type(part).__name__} has learned with another learner, and "
            "keeps what it learned. Build a new one."
        )
