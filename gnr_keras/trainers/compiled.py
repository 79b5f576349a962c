"""The steps of a classifier's training, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from gnr_keras import backbones
from gnr_keras import objectives
from gnr_keras.trainers import loop
from gnr_keras.trainers import parts
from gnr_keras.trainers import scaling

if TYPE_CHECKING:
    from gnr_keras.objectives import CrossEntropy


class CompiledSteps(loop.Trainer):
    """A classifier, its optimizers, and the compiled steps that train it.

    The arguments are those of `ClassifierTrainer`.
    """

    def __init__(
        self,
        model: keras.Model,
        latent_layer: str,
        head: str,
        objective: CrossEntropy,
        protection: Callable | None,
        block_features: bool,
        batch_size: int,
        momentum: float,
        weight_decay: float,
        steps_per_call: int,
    ) -> None:
        super().__init__(batch_size, steps_per_call)
        self.objective = objective
        self.block_features = block_features
        self.momentum = momentum
        self.weight_decay = weight_decay
        self._latent_layer = latent_layer
        self._head_name = head
        self._scaling = scaling.of_model(model, self._strategy)
        self._prepare(model)
        with self._strategy.scope():
            self._feature_sgd = keras.optimizers.SGD(momentum=momentum)
            self.feature_optimizer = self._feature_sgd
            if protection:
                self.feature_optimizer = protection(self._feature_sgd)
            self.feature_optimizer.build(self._whole.feature_variables)

    def _prepare(self, model):
        """Compiles all that depends on the head."""
        self.model = model
        self._head = model.get_layer(self._head_name)
        self._num_classes = model.output_shape[-1]
        latent = model.get_layer(
            backbones.resolve_layer(model, self._latent_layer)
        ).output
        self._whole = parts.Part(model.inputs[0], self._head)
        self._above = parts.Part(latent, self._head)
        with self._strategy.scope():
            self._head_optimizer = keras.optimizers.SGD(momentum=self.momentum)
            self._head_optimizer.build(self._head.trainable_variables)
        self._clear_momentum = tf.function(
            self._assign_zero_momentum, autograph=False
        )
        size = self.batch_size
        responses = self._num_classes if self.objective.needs_responses else 0
        class_sets = tf.TensorSpec((3, self._num_classes), tf.bool)
        self._run_latents = tf.function(
            self._steps_on_latents,
            input_signature=[
                tf.TensorSpec((None, size, *latent.shape[1:]), tf.float16),
                tf.TensorSpec((None, size), tf.int32),
                tf.TensorSpec((None, size, responses), tf.float32),
                tf.TensorSpec((), tf.int32),
                class_sets,
            ],
        )
        self._run_images = tf.function(
            self._step_on_images,
            input_signature=[
                tf.TensorSpec((size, *model.input_shape[1:]), tf.float32),
                tf.TensorSpec((size,), tf.int32),
                tf.TensorSpec((size, responses), tf.float32),
                class_sets,
            ],
        )

    def _assign_zero_momentum(self):
        for optimizer in (self._feature_sgd, self._head_optimizer):
            for variable in optimizer.momentums:
                variable.assign(tf.zeros_like(variable))

    def _step_on_images(self, images, labels, responses, class_sets):
        classes = objectives.ClassSets(*tf.unstack(class_sets))
        is_replay = tf.zeros((self.batch_size,), tf.bool)
        values = self._distributed_step(
            self._whole, images, labels, is_replay, responses, classes
        )
        return {"loss": self._weigh(values, classes), **values}

    def _steps_on_latents(
        self, latents, labels, responses, num_current, class_sets
    ):
        classes = objectives.ClassSets(*tf.unstack(class_sets))
        is_replay = tf.range(self.batch_size) >= num_current
        steps = tf.shape(labels)[0]
        totals = {name: tf.constant(0.0) for name in self.objective.names}
        for step in tf.range(steps):
            values = self._distributed_step(
                self._above,
                tf.cast(latents[step], tf.float32),
                labels[step],
                is_replay,
                responses[step],
                classes,
            )
            totals = {name: totals[name] + values[name] for name in totals}
        count = tf.cast(steps, tf.float32)
        means = {name: total / count for name, total in totals.items()}
        return {"loss": self._weigh(means, classes), **means}

    def _distributed_step(self, part, x, y, is_replay, responses, classes):
        values = self._strategy.run(
            self._replica_step, args=(part, x, y, is_replay, responses, classes)
        )
        return {
            name: self._strategy.reduce("SUM", value, axis=None)
            for name, value in values.items()
        }

    def _replica_step(self, part, x, y, is_replay, responses, classes):
        x, y, is_replay, responses = loop.own_slices(
            self._strategy, self.batch_size, x, y, is_replay, responses
        )
        with tf.GradientTape() as tape:
            features = part.features(x, training=True)
            if self.block_features:
                features = parts.block(features, is_replay)
            logits = self._head(features)
            values = self.objective.compute_losses(
                logits, y, is_replay, responses, classes
            )
            # Divided by the global batch: gradients of replicas are summed.
            values = {
                name: tf.reduce_sum(value) / self.batch_size
                for name, value in values.items()
            }
            loss = self._weigh(values, classes)
            if self._scaling:
                loss = self._scaling.enlarge(loss)
        variables = part.feature_variables + self._head.trainable_variables
        gradients = tape.gradient(loss, variables)
        if self._scaling:
            gradients = self._scaling.reduce(gradients)
        decay = self.weight_decay / self._strategy.num_replicas_in_sync
        gradients = [
            gradient + decay * variable
            for gradient, variable in zip(gradients, variables, strict=True)
        ]

        def apply():
            cut = len(part.feature_variables)
            if cut:
                self.feature_optimizer.apply(
                    gradients[:cut], part.feature_variables
                )
            self._head_optimizer.apply(
                gradients[cut:], self._head.trainable_variables
            )

        if self._scaling:
            self._scaling.step(gradients, apply)
        else:
            apply()
        return values

    def _weigh(self, values, classes):
        weights = self.objective.weights(classes)
        return sum(weights[name] * value for name, value in values.items())
