"""Training of the classifier, on images or on latents."""

import dataclasses
import itertools

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import batches
from gnr_keras import losses
from gnr_keras.trainers import loop


@dataclasses.dataclass(frozen=True)
class Phase:
    """How the classifier trains in the first, or in a later, experience.

    Attributes:
        epochs: passes over the experience.
        learning_rate_features: rate of the feature extractor, phi.
        learning_rate_head: rate of the classification head, psi.
    """

    epochs: int
    learning_rate_features: float
    learning_rate_head: float

    def __post_init__(self):
        if self.epochs < 1:
            raise ValueError(
                f"`epochs` must be at least 1. Received: {self.epochs}."
            )
        for name in ("learning_rate_features", "learning_rate_head"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(
                    f"`{name}` must be a finite number from 0 on. Received: "
                    f"{getattr(self, name)}."
                )


class ClassifierTrainer:
    """Trains the classifier by SGD, on images or on latents.

    L2 regularisation is part of the gradient, as in the paper (Keras'
    `weight_decay` is decoupled from it, hence another rule). The momentum is
    cleared at the start of each experience: what is left of the last one
    would move weights that have no gradient in this one.

    Args:
        model: classifier, from images to logits.
        back: its part above the latent layer, from latents to logits.
        head: name of the head, a layer of `model`.
        batch_size: patterns in a batch, over all replicas.
        momentum: momentum of SGD.
        weight_decay: factor of the weights in their gradient.
        steps_per_call: steps between two returns to Python, where callbacks
            run.
    """

    def __init__(
        self,
        model,
        back,
        head="head",
        batch_size=128,
        momentum=0.9,
        weight_decay=1e-4,
        steps_per_call=16,
    ):
        self.model = model
        self.back = back
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.steps_per_call = steps_per_call
        self._strategy = loop.strategy_for(batch_size)
        self._head_variables = model.get_layer(head).trainable_variables
        self._feature_variables = _without(
            model.trainable_variables, self._head_variables
        )
        self._back_features = _without(
            back.trainable_variables, self._head_variables
        )
        with self._strategy.scope():
            self._feature_optimizer = keras.optimizers.SGD(momentum=momentum)
            self._head_optimizer = keras.optimizers.SGD(momentum=momentum)
            self._feature_optimizer.build(self._feature_variables)
            self._head_optimizer.build(self._head_variables)
        shape = (None, batch_size, *back.input_shape[1:])
        self._run_latents = tf.function(
            self._run_latents,
            input_signature=[
                tf.TensorSpec(shape, tf.float16),
                tf.TensorSpec((None, batch_size), tf.int32),
            ],
        )
        shape = (batch_size, *model.input_shape[1:])
        self._run_images = tf.function(
            self._run_images,
            input_signature=[
                tf.TensorSpec(shape, tf.float32),
                tf.TensorSpec((batch_size,), tf.int32),
            ],
        )

    def fit_images(self, data, phase, rng, callbacks=()):
        """Trains the whole network: the first experience.

        Args:
            data: a `Source`.
            phase: a `Phase`.
            rng: `numpy.random.Generator`, for the order of the images.
            callbacks: Keras callbacks.
        """
        steps = -(-len(data) // self.batch_size)
        self._start(phase)

        def epoch_runner():
            plan = batches.plan_epoch(len(data), self.batch_size, steps, rng)
            stream = data.batches(plan.reshape(-1), self.batch_size)

            def run(start, stop):
                values = [
                    self._run_images(tf.cast(images, tf.float32), labels)
                    for images, labels in itertools.islice(stream, stop - start)
                ]
                return {"loss": np.mean(values)}

            return run

        self._loop(phase, steps, epoch_runner, callbacks)

    def fit_latents(
        self,
        latents,
        labels,
        memory,
        replay_per_batch,
        phase,
        rng,
        callbacks=(),
    ):
        """Trains the part above the latent layer.

        Args:
            latents: latents of the experience, in half precision.
            labels: their classes.
            memory: `Memory` of replayed patterns.
            replay_per_batch: how many of them a batch holds.
            phase: a `Phase`.
            rng: `numpy.random.Generator`, for the order of the patterns.
            callbacks: Keras callbacks.
        """
        current_per_batch = self.batch_size - replay_per_batch
        steps = self.steps_per_epoch(len(labels), replay_per_batch)
        self._start(phase)
        replayed = batches.plan_epoch(
            len(memory), replay_per_batch, steps * phase.epochs, rng
        )
        replayed = iter(np.split(replayed, phase.epochs))

        def epoch_runner():
            current = batches.plan_epoch(
                len(labels), current_per_batch, steps, rng
            )
            replay = next(replayed)
            return lambda start, stop: self._run_latents(
                *loop.gather(
                    latents,
                    labels,
                    memory,
                    current[start:stop],
                    replay[start:stop],
                )
            )

        self._loop(phase, steps, epoch_runner, callbacks)

    def steps_per_epoch(self, num_patterns, replay_per_batch):
        """Returns the number of batches that all patterns fill."""
        return -(-num_patterns // (self.batch_size - replay_per_batch))

    def _start(self, phase):
        self._feature_optimizer.learning_rate = phase.learning_rate_features
        self._head_optimizer.learning_rate = phase.learning_rate_head
        for optimizer in (self._feature_optimizer, self._head_optimizer):
            for variable in optimizer.momentums:
                variable.assign(tf.zeros_like(variable))

    def _loop(self, phase, steps, epoch_runner, callbacks):
        loop.run_loop(
            self.model,
            phase.epochs,
            steps,
            self.steps_per_call,
            epoch_runner,
            callbacks,
        )

    def _run_images(self, images, labels):
        return self._distributed_step(
            self.model, self._feature_variables, images, labels
        )

    def _run_latents(self, latents, labels):
        steps = tf.shape(labels)[0]
        total = tf.constant(0.0)
        for step in tf.range(steps):
            x = tf.cast(latents[step], tf.float32)
            total += self._distributed_step(
                self.back, self._back_features, x, labels[step]
            )
        return {"loss": total / tf.cast(steps, tf.float32)}

    def _distributed_step(self, model, feature_variables, x, y):
        loss = self._strategy.run(
            self._replica_step, args=(model, feature_variables, x, y)
        )
        return self._strategy.reduce("SUM", loss, axis=None)

    def _replica_step(self, model, feature_variables, x, y):
        x, y = loop.own_slices(self._strategy, self.batch_size, x, y)
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            # Divided by the global batch: gradients of replicas are summed.
            loss = tf.reduce_sum(losses.cross_entropy(y, logits))
            loss /= self.batch_size
        variables = feature_variables + self._head_variables
        gradients = tape.gradient(loss, variables)
        decay = self.weight_decay / self._strategy.num_replicas_in_sync
        gradients = [
            gradient + decay * variable
            for gradient, variable in zip(gradients, variables, strict=True)
        ]
        cut = len(feature_variables)
        if feature_variables:
            self._feature_optimizer.apply(gradients[:cut], feature_variables)
        self._head_optimizer.apply(gradients[cut:], self._head_variables)
        return loss


def _without(variables, excluded):
    keys = {id(variable) for variable in excluded}
    return [variable for variable in variables if id(variable) not in keys]
