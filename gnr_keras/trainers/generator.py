"""Training of the generator, on latents."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import batches
from gnr_keras import checks
from gnr_keras import growing
from gnr_keras.trainers import loop
from gnr_keras.trainers import scaling

if TYPE_CHECKING:
    from gnr_keras.generator import ConditionalVAE
    from gnr_keras.replay.base import Memory


class GeneratorTrainer(loop.Trainer):
    """Trains the generator on latents; the classifier only looks on.

    The classifier is called in inference mode and only the generator's
    weights are updated: this is Algorithm 2's block and unlock.

    Args:
        generator: a `ConditionalVAE`, or a `CenteredVAE`.
        classifier: model from latents to features and logits; `None` for a
            generator that learns without one, from reconstructions alone.
        epochs: passes over each experience.
        batch_size: patterns in a batch, over all replicas.
        replay_per_batch: replayed patterns in a batch; without it the batch
            is shared in proportion.
        optimizer: a Keras optimizer; its configuration is taken.
        schedule: factor of the learning rate in each experience, a function
            of its index such as `schedules.LogisticDecay(0.9, 1.5, 8)`;
            `None` for a constant rate.
        steps_per_call: steps between two returns to Python.
    """

    def __init__(
        self,
        generator: ConditionalVAE,
        classifier: keras.Model | None,
        epochs: int = 4,
        batch_size: int = 128,
        replay_per_batch: int | None = None,
        optimizer: keras.optimizers.Optimizer | None = None,
        schedule: Callable[[int], float] | None = None,
        steps_per_call: int = 16,
    ) -> None:
        super().__init__(batch_size, steps_per_call)
        batches.check_replay_per_batch(replay_per_batch, batch_size)
        checks.check_whole("epochs", epochs)
        checks.check_whole("steps_per_call", steps_per_call)
        self.epochs = epochs
        self.replay_per_batch = replay_per_batch
        self.schedule = schedule
        if optimizer is None:
            optimizer = keras.optimizers.Adam(2e-3)
        if not isinstance(optimizer, keras.optimizers.Optimizer):
            raise ValueError(
                "`optimizer` must be a Keras optimizer, such as "
                f"`keras.optimizers.Adam(2e-3)`. Received: {optimizer!r}."
            )
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            raise ValueError(
                "The trainer scales the loss itself where its generator is in "
                f"float16. Received: {optimizer!r}. Give the optimizer inside."
            )
        if schedule:
            self._learning_rate = float(
                keras.ops.convert_to_numpy(optimizer.learning_rate)
            )
        self._scaling = scaling.of_model(generator, self._strategy)
        self._prepare(generator, classifier, optimizer)

    def grow(self, generator: ConditionalVAE, classifier: keras.Model) -> None:
        """Goes on with a generator that has grown by new classes.

        Args:
            generator: what `grown` of the present generator returned.
            classifier: model from latents to features and to logits of all
                classes.
        """
        optimizer = self._optimizer
        self._prepare(generator, classifier, optimizer)
        growing.inherit(optimizer.variables, self._optimizer.variables)

    @property
    def steps_done(self) -> int:
        return loop.number(self._optimizer.iterations)

    @property
    def learning_rates(self) -> dict[str, float]:
        return {"learning_rate": loop.number(self._optimizer.learning_rate)}

    @property
    def _variables(self):
        return [
            *self.generator.variables,
            *self._optimizer.variables,
            *(self._scaling.variables if self._scaling else ()),
        ]

    def fit(
        self,
        latents: np.ndarray,
        labels: np.ndarray,
        memory: Memory,
        rng: np.random.Generator,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        """Trains on an experience and on the memory replayed in it.

        Args:
            latents: latents of the experience, in half precision.
            labels: their classes.
            memory: `Memory` of replayed patterns, empty at first.
            rng: `numpy.random.Generator`.
            callbacks: Keras callbacks.
        """
        labels = checks.as_labels("labels", labels)
        for some in (labels, memory.labels):
            checks.check_classes(some, self.generator.num_classes)
        self.generator.adapt(latents, labels)
        replay_per_batch = batches.replay_share(
            len(labels), len(memory), self.batch_size, self.replay_per_batch
        )
        current_per_batch = self.batch_size - replay_per_batch
        steps = -(-len(labels) // current_per_batch)
        own = loop.as_stepped(latents, labels)
        old = loop.as_stepped(memory.latents, memory.labels)
        if self.schedule:
            factor = self.schedule(self.trainings)
            self._optimizer.learning_rate = self._learning_rate * factor

        def epoch_runner(epoch):
            current = batches.plan_epoch(
                len(labels), current_per_batch, steps, rng
            )
            replay = batches.plan_epoch(
                len(memory), replay_per_batch, steps, rng
            )
            noise_seed = rng.integers(2**31, size=2)

            def run(start, stop):
                chosen = current[start:stop], replay[start:stop]
                return self._run(
                    *(
                        loop.gather(*pair, *chosen)
                        for pair in zip(own, old, strict=True)
                    ),
                    (noise_seed + [0, start]).astype(np.int32),
                )

            return run

        self._train(
            self.generator,
            self.epochs,
            steps,
            epoch_runner,
            callbacks,
            "It diverged: lower the learning rate of its optimizer.",
        )

    def _prepare(self, generator, classifier, optimizer):
        self.generator = generator
        self.classifier = classifier
        self._check_share(generator)
        with self._strategy.scope():
            self._optimizer = type(optimizer).from_config(
                optimizer.get_config()
            )
            self._optimizer.build(generator.trainable_variables)
        shape = (None, self.batch_size, *generator.data_shape)
        self._run = tf.function(
            self._run_steps,
            input_signature=[
                tf.TensorSpec(shape, tf.float16),
                tf.TensorSpec((None, self.batch_size), tf.int32),
                tf.TensorSpec((2,), tf.int32),
            ],
        )

    def _check_share(self, generator):
        """Refuses a share of the batch whose patterns would be others."""
        every = getattr(generator, "classifier_every", 1)
        share = self.batch_size // self._strategy.num_replicas_in_sync
        if share != self.batch_size and share % every:
            raise ValueError(
                f"The classifier looks at every {every}th pattern of a batch, "
                f"and a device has {share} of {self.batch_size}, which does "
                "not divide by it. Choose another `batch_size` of the "
                "generator's trainer, or another `classifier_every`."
            )

    def _run_steps(self, latents, labels, seed):
        steps = tf.shape(labels)[0]
        totals = {
            name: tf.constant(0.0) for name in self.generator.loss_weights
        }
        for step in tf.range(steps):
            x, y = tf.cast(latents[step], tf.float32), labels[step]
            # Drawn for the global batch, so that a pattern's noise does not
            # depend on the device that it lands on.
            noise = tf.random.stateless_normal(
                (self.batch_size, self.generator.z_dim), seed + [0, step]
            )
            values = self._strategy.run(self._replica_step, args=(x, y, noise))
            totals = {
                name: total
                + self._strategy.reduce("SUM", values[name], axis=None)
                for name, total in totals.items()
            }
        count = tf.cast(steps, tf.float32)
        means = {name: total / count for name, total in totals.items()}
        return {"loss": self._weigh(means), **means}

    def _replica_step(self, x, y, noise):
        x, y, noise = loop.own_slices(
            self._strategy, self.batch_size, x, y, noise
        )
        variables = self.generator.trainable_variables
        with tf.GradientTape() as tape:
            values = self.generator.compute_losses(x, y, noise, self.classifier)
            # Means over the global batch: gradients of replicas are summed.
            replicas = self._strategy.num_replicas_in_sync
            values = {
                name: tf.reduce_sum(value)
                / tf.cast(tf.size(value) * replicas, tf.float32)
                for name, value in values.items()
            }
            loss = self._weigh(values)
            if self._scaling:
                loss = self._scaling.enlarge(loss)
        gradients = tape.gradient(loss, variables)
        if self._scaling:
            gradients = self._scaling.reduce(gradients)
            self._scaling.step(
                gradients, lambda: self._optimizer.apply(gradients, variables)
            )
        else:
            self._optimizer.apply(gradients, variables)
        return values

    def _weigh(self, values):
        weights = self.generator.loss_weights
        return sum(weights[name] * value for name, value in values.items())
