"""The part of a classifier that a training moves."""

import keras
import tensorflow as tf


class Part:
    """What lies between a tensor of a classifier and its logits.

    Args:
        inputs: the tensor.
        head: the layer whose output is the logits.
    """

    def __init__(self, inputs, head):
        self._head = head
        if inputs is head.input:
            # Nothing lies between: the latents are the features.
            self.features = lambda x, training: x
            self.feature_variables = []
        else:
            features = keras.Model(inputs, head.input)
            self.features = features
            self.feature_variables = features.trainable_variables
        self.respond = tf.function(
            self._respond,
            input_signature=[tf.TensorSpec(inputs.shape, tf.float32)],
        )

    def _respond(self, x):
        return self._head(self.features(x, training=False))

    def record(self, stream, responses):
        """Writes the logits of batches into an array, one after the other."""
        done = 0
        for x in stream:
            logits = self.respond(tf.cast(x, tf.float32))
            responses[done : done + len(logits)] = logits
            done += len(logits)


def block(features, is_replay):
    """Stops the gradient of replayed patterns."""
    shape = [-1] + [1] * (len(features.shape) - 1)
    is_replay = tf.reshape(is_replay, shape)
    return tf.where(is_replay, tf.stop_gradient(features), features)
