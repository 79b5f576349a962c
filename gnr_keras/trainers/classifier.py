"""Training of the classifier, on images or on latents."""

import itertools

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import backbones
from gnr_keras import batches
from gnr_keras import objectives
from gnr_keras.trainers import loop


class ClassifierTrainer:
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
        model,
        latent_layer,
        head="head",
        objective=objectives.CrossEntropy(),
        protection=None,
        block_features=False,
        batch_size=128,
        momentum=0.9,
        weight_decay=1e-4,
        steps_per_call=16,
    ):
        self.model = model
        self.objective = objective
        self.block_features = block_features
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.steps_per_call = steps_per_call
        self.trainings = 0
        self._strategy = loop.strategy_for(batch_size)
        self._head = model.get_layer(head)
        self._num_classes = model.output_shape[-1]
        latent = model.get_layer(
            backbones.resolve_layer(model, latent_layer)
        ).output
        self._whole = _Part(model.inputs[0], self._head)
        self._above = _Part(latent, self._head)
        with self._strategy.scope():
            self.feature_optimizer = keras.optimizers.SGD(momentum=momentum)
            self._momentum_of = [self.feature_optimizer]
            if protection:
                self.feature_optimizer = protection(self.feature_optimizer)
            self._head_optimizer = keras.optimizers.SGD(momentum=momentum)
            self._momentum_of.append(self._head_optimizer)
            self.feature_optimizer.build(self._whole.feature_variables)
            self._head_optimizer.build(self._head.trainable_variables)
        responses = self._num_classes if objective.needs_responses else 0
        class_sets = tf.TensorSpec((3, self._num_classes), tf.bool)
        shape = (None, batch_size, *latent.shape[1:])
        self._run_latents = tf.function(
            self._run_latents,
            input_signature=[
                tf.TensorSpec(shape, tf.float16),
                tf.TensorSpec((None, batch_size), tf.int32),
                tf.TensorSpec((None, batch_size, responses), tf.float32),
                tf.TensorSpec((), tf.int32),
                class_sets,
            ],
        )
        shape = (batch_size, *model.input_shape[1:])
        self._run_images = tf.function(
            self._run_images,
            input_signature=[
                tf.TensorSpec(shape, tf.float32),
                tf.TensorSpec((batch_size,), tf.int32),
                tf.TensorSpec((batch_size, responses), tf.float32),
                class_sets,
            ],
        )

    def fit_images(self, data, phase, rng, callbacks=(), past_classes=()):
        """Trains the whole network, as in the first experience.

        Args:
            data: a `Source`.
            phase: a `Phase`.
            rng: `numpy.random.Generator`, for the order of the images.
            callbacks: Keras callbacks.
            past_classes: classes of earlier experiences.
        """
        steps = -(-len(data) // self.batch_size)
        class_sets = self._class_sets(data.labels, (), past_classes)
        responses = self._responses(
            self._whole,
            (x for x, _ in data.batches(np.arange(len(data)), self.batch_size)),
            len(data),
            past_classes,
        )

        def epoch_runner(epoch):
            self._set_rates(phase, epoch)
            plan = batches.plan_epoch(len(data), self.batch_size, steps, rng)
            stream = data.batches(plan.reshape(-1), self.batch_size)

            def run(start, stop):
                values = [
                    self._run_images(
                        tf.cast(images, tf.float32),
                        labels,
                        responses[chosen],
                        class_sets,
                    )
                    for chosen, (images, labels) in zip(
                        plan[start:stop],
                        itertools.islice(stream, stop - start),
                        strict=True,
                    )
                ]
                return {
                    name: np.mean([value[name] for value in values])
                    for name in values[0]
                }

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
        past_classes=(),
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
            past_classes: classes of earlier experiences.
        """
        current_per_batch = self.batch_size - replay_per_batch
        steps = self.steps_per_epoch(len(labels), replay_per_batch)
        class_sets = self._class_sets(labels, memory.labels, past_classes)
        replayed = batches.plan_epoch(
            len(memory), replay_per_batch, steps * phase.epochs, rng
        )
        replayed = np.split(replayed, phase.epochs)
        pairs = [(latents, memory.latents), (labels, memory.labels)]
        pairs.append(
            [
                self._responses(
                    self._above, self._slices(x), len(x), past_classes
                )
                for x in (latents, memory.latents)
            ]
        )

        def epoch_runner(epoch):
            self._set_rates(phase, epoch)
            current = batches.plan_epoch(
                len(labels), current_per_batch, steps, rng
            )

            def run(start, stop):
                chosen = current[start:stop], replayed[epoch][start:stop]
                return self._run_latents(
                    *(loop.gather(*pair, *chosen) for pair in pairs),
                    current_per_batch,
                    class_sets,
                )

            return run

        self._loop(phase, steps, epoch_runner, callbacks)

    def steps_per_epoch(self, num_patterns, replay_per_batch):
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
        if not len(past_classes) or not num_patterns:
            return np.zeros((num_patterns, self._num_classes), np.float32)
        return np.concatenate(
            [part.respond(tf.cast(x, tf.float32)).numpy() for x in stream]
        )

    def _slices(self, latents):
        for start in range(0, len(latents), self.batch_size):
            yield latents[start : start + self.batch_size]

    def _set_rates(self, phase, epoch):
        rates = phase.rates(self.trainings, epoch)
        self.feature_optimizer.learning_rate = rates[0]
        self._head_optimizer.learning_rate = rates[1]

    def _loop(self, phase, steps, epoch_runner, callbacks):
        self._clear_momentum()
        loop.run_loop(
            self.model,
            phase.epochs,
            steps,
            self.steps_per_call,
            epoch_runner,
            callbacks,
        )
        self.trainings += 1

    @tf.function(autograph=False)
    def _clear_momentum(self):
        for optimizer in self._momentum_of:
            for variable in optimizer.momentums:
                variable.assign(tf.zeros_like(variable))

    def _run_images(self, images, labels, responses, class_sets):
        classes = objectives.ClassSets(*tf.unstack(class_sets))
        is_replay = tf.zeros((self.batch_size,), tf.bool)
        values = self._distributed_step(
            self._whole, images, labels, is_replay, responses, classes
        )
        return {"loss": self._weigh(values, classes), **values}

    def _run_latents(self, latents, labels, responses, num_current, class_sets):
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
                features = _block(features, is_replay)
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
        variables = part.feature_variables + self._head.trainable_variables
        gradients = tape.gradient(loss, variables)
        decay = self.weight_decay / self._strategy.num_replicas_in_sync
        gradients = [
            gradient + decay * variable
            for gradient, variable in zip(gradients, variables, strict=True)
        ]
        cut = len(part.feature_variables)
        if cut:
            self.feature_optimizer.apply(
                gradients[:cut], part.feature_variables
            )
        self._head_optimizer.apply(
            gradients[cut:], self._head.trainable_variables
        )
        return values

    def _weigh(self, values, classes):
        weights = self.objective.weights(classes)
        return sum(weights[name] * value for name, value in values.items())


class _Part:
    """What lies between a tensor of the model and its logits."""

    def __init__(self, inputs, head):
        self._head = head
        self.features = keras.Model(inputs, head.input)
        self.feature_variables = self.features.trainable_variables
        self.respond = tf.function(
            self.respond,
            input_signature=[tf.TensorSpec(inputs.shape, tf.float32)],
        )

    def respond(self, x):
        return self._head(self.features(x, training=False))


def _block(features, is_replay):
    shape = [-1] + [1] * (len(features.shape) - 1)
    is_replay = tf.reshape(is_replay, shape)
    return tf.where(is_replay, tf.stop_gradient(features), features)
