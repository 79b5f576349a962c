"""Training of the classifier, on images or on latents."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import batches
from gnr_keras import checks
from gnr_keras import objectives
from gnr_keras.trainers import compiled
from gnr_keras.trainers import loop

if TYPE_CHECKING:
    from gnr_keras.datasets.source import Source
    from gnr_keras.replay.base import Memory
    from gnr_keras.trainers.phase import Phase


class ClassifierTrainer(compiled.CompiledSteps):
    """Trains the classifier by SGD, on images or on latents.

    L2 regularisation is part of the gradient, as in the paper (Keras'
    `weight_decay` is decoupled from it, hence another rule). The momentum is
    cleared at the start of each experience: what is left of the last one
    would move weights that have no gradient in this one.

    Args:
        model: classifier, from images to logits.
        latent_layer: name of the layer whose output is the latent.
        head: name of the head, a layer of `model`.
        objective: what is minimised, see `gnr_keras.objectives`.
        protection: wraps the optimizer of the features, see
            `gnr_keras.optimizers`; `None` for none.
        block_features: whether the gradient of replayed patterns ends at the
            head.
        batch_size: patterns in a batch, over all replicas.
        momentum: momentum of SGD.
        weight_decay: factor of the weights in their gradient.
        steps_per_call: steps between two returns to Python, where callbacks
            run.
    """

    def __init__(
        self,
        model: keras.Model,
        latent_layer: str,
        head: str = "head",
        objective: objectives.CrossEntropy = objectives.CrossEntropy(),
        protection: Callable | None = None,
        block_features: bool = False,
        batch_size: int = 128,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        steps_per_call: int = 16,
    ) -> None:
        checks.check_number("momentum", momentum, most=1.0)
        checks.check_number("weight_decay", weight_decay)
        checks.check_whole("steps_per_call", steps_per_call)
        super().__init__(
            model,
            latent_layer,
            head,
            objective,
            protection,
            block_features,
            batch_size,
            momentum,
            weight_decay,
            steps_per_call,
        )

    def grow(self, model: keras.Model) -> None:
        """Goes on with a classifier whose head has grown by new classes.

        The optimizer of the features stays, with all that it knows.

        Args:
            model: classifier with the layers of the present one below its
                head, see `gnr_keras.growing.grow_head`.
        """
        steps_done = self.steps_done
        self._prepare(model)
        self._head_optimizer.iterations.assign(steps_done)

    @property
    def steps_done(self) -> int:
        return loop.number(self._head_optimizer.iterations)

    @property
    def learning_rates(self) -> dict[str, float]:
        features, head = self.feature_optimizer, self._head_optimizer
        return {
            "learning_rate_features": loop.number(features.learning_rate),
            "learning_rate_head": loop.number(head.learning_rate),
        }

    @property
    def _variables(self):
        return [
            *self.model.variables,
            *self.feature_optimizer.variables,
            *self._head_optimizer.variables,
            *(self._scaling.variables if self._scaling else ()),
        ]

    def fit_images(
        self,
        data: Source,
        phase: Phase,
        rng: np.random.Generator,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        past_classes: Sequence[int] | np.ndarray = (),
    ) -> None:
        """Trains the whole network, as in the first experience.

        Args:
            data: a `Source`.
            phase: a `Phase`.
            rng: `numpy.random.Generator`, for the order of the images.
            callbacks: Keras callbacks.
            past_classes: classes of earlier experiences.
        """
        if phase.augment and self.objective.needs_responses:
            raise ValueError(
                "Distillation looks at the responses to the images as they "
                "are, so they cannot be augmented. Leave `augment` of the "
                "phase away."
            )
        steps = -(-len(data) // self.batch_size)
        class_sets = self._class_sets(data.labels, (), past_classes)

        def images():
            order = np.arange(len(data))
            for batch, _ in data.batches(order, self.batch_size):
                yield batch

        responses = self._responses(
            self._whole, images(), len(data), past_classes
        )

        def epoch_runner(epoch):
            self._set_rates(phase, epoch)
            plan = batches.plan_epoch(len(data), self.batch_size, steps, rng)
            seeds = _augmentation_seeds(phase, plan.shape, rng)
            stream = None

            def run(start, stop):
                nonlocal stream
                if stream is None:
                    # From where the training goes on, if it does.
                    stream = data.batches(
                        plan[start:].reshape(-1),
                        self.batch_size,
                        **_augmentation(phase, seeds, start),
                    )
                values: list[dict] = []
                for step, (images, labels) in zip(
                    range(start, stop),
                    itertools.islice(stream, stop - start),
                    strict=True,
                ):
                    if values:
                        self.position.reach(epoch * steps + step)
                    values.append(
                        self._run_images(
                            tf.cast(images, tf.float32),
                            labels,
                            responses[plan[step]],
                            class_sets,
                        )
                    )
                return {
                    name: np.mean([value[name] for value in values])
                    for name in values[0]
                }

            return run

        self._loop(phase, steps, epoch_runner, callbacks)

    def fit_latents(
        self,
        latents: np.ndarray,
        labels: np.ndarray,
        memory: Memory,
        replay_per_batch: int,
        phase: Phase,
        rng: np.random.Generator,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        past_classes: Sequence[int] | np.ndarray = (),
    ) -> None:
        """Trains the part above the latent layer.

        Args:
            latents: latents of the experience, in half precision.
            labels: their classes.
            memory: `Memory` of replayed patterns.
            replay_per_batch: how many of them a batch holds.
            phase: a `Phase`.
            rng: `numpy.random.Generator`, for the order of the patterns.
            callbacks: Keras callbacks.
            past_classes: classes of earlier experiences.
        """
        if phase.augment:
            raise ValueError(
                "Images are augmented only where the whole network trains, as "
                "in the first experience; here the latents are trained on. "
                "Leave `augment` of this phase away."
            )
        current_per_batch = self.batch_size - replay_per_batch
        steps = self.steps_per_epoch(len(labels), replay_per_batch)
        class_sets = self._class_sets(labels, memory.labels, past_classes)
        replayed = batches.plan_epoch(
            len(memory), replay_per_batch, steps * phase.epochs, rng
        )
        replayed = np.split(replayed, phase.epochs)
        stepped = (
            loop.as_stepped(latents, labels),
            loop.as_stepped(memory.latents, memory.labels),
        )
        own, old = (
            (
                x,
                y,
                self._responses(
                    self._above, self._slices(x), len(x), past_classes
                ),
            )
            for x, y in stepped
        )

        def epoch_runner(epoch):
            self._set_rates(phase, epoch)
            current = batches.plan_epoch(
                len(labels), current_per_batch, steps, rng
            )

            def run(start, stop):
                chosen = current[start:stop], replayed[epoch][start:stop]
                return self._run_latents(
                    *(
                        loop.gather(*pair, *chosen)
                        for pair in zip(own, old, strict=True)
                    ),
                    current_per_batch,
                    class_sets,
                )

            return run

        self._loop(phase, steps, epoch_runner, callbacks)

    def steps_per_epoch(self, num_patterns: int, replay_per_batch: int) -> int:
        """Returns the number of batches that all patterns fill."""
        return -(-num_patterns // (self.batch_size - replay_per_batch))

    def _class_sets(self, labels, replay_labels, past_classes):
        sets = np.zeros((3, self._num_classes), bool)
        for row, chosen in zip(
            sets, (labels, replay_labels, past_classes), strict=True
        ):
            row[np.unique(np.asarray(chosen, int))] = True
        return sets

    def _responses(self, part, stream, num_patterns, past_classes):
        """Records the logits of the model as it is before an experience.

        Nothing is augmented, so once per pattern is enough, and no copy of
        the model has to be kept.
        """
        if not self.objective.needs_responses:
            return np.zeros((num_patterns, 0), np.float32)
        responses = np.zeros((num_patterns, self._num_classes), np.float32)
        if len(past_classes):
            part.record(stream, responses)
        return responses

    def _slices(self, latents):
        for start in range(0, len(latents), self.batch_size):
            yield latents[start : start + self.batch_size]

    def _set_rates(self, phase, epoch):
        rates = phase.rates(self.trainings, epoch)
        self.feature_optimizer.learning_rate = rates[0]
        self._head_optimizer.learning_rate = rates[1]

    def _loop(self, phase, steps, epoch_runner, callbacks):
        self._clear_momentum()
        self._train(
            self.model,
            phase.epochs,
            steps,
            epoch_runner,
            callbacks,
            "It diverged: lower its learning rates.",
        )


def _augmentation_seeds(phase, shape, rng):
    """Draws seeds for all images of an epoch, where they are augmented."""
    if not phase.augment:
        return None
    seeds = np.empty((*shape, 2), np.int32)
    seeds[..., 0] = rng.integers(2**31)
    seeds[..., 1] = np.arange(seeds[..., 1].size).reshape(shape)
    return seeds


def _augmentation(phase, seeds, start):
    """Arguments of `Source.batches` from a step on."""
    if not phase.augment:
        return {}
    return {"augment": phase.augment, "seeds": seeds[start:].reshape(-1, 2)}
