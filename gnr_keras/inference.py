"""Compiled passes through a learner's front and back, without training."""

import numpy as np
import tensorflow as tf


class Inference:
    """Runs the front over images, and the back over their latents.

    Args:
        front: model from images to latents.
        back: model from latents to logits.
        batch_size: patterns in a batch.
    """

    def __init__(self, front, back, batch_size):
        self._front = front
        self._back = back
        self._batch_size = batch_size
        self._extract = tf.function(
            self._extract,
            input_signature=[tf.TensorSpec(front.input_shape, tf.float32)],
        )
        self._predict = tf.function(
            self._predict,
            input_signature=[
                tf.TensorSpec(back.input_shape, tf.float16),
                tf.TensorSpec(back.output_shape[-1:], tf.bool),
            ],
        )

    def latents(self, data):
        """Returns the latents of a `Source`, in half precision."""
        latents = np.empty((len(data), *self._back.input_shape[1:]), np.float16)
        done = 0
        for images, _ in data.batches(np.arange(len(data)), self._batch_size):
            batch = self._extract(tf.cast(images, tf.float32)).numpy()
            if not np.isfinite(batch).all():
                raise ValueError(
                    "The latents are not finite in half precision. Either the "
                    "training diverged (lower its learning rates) or "
                    f"{self._front.output_names} exceeds 65504: split after a "
                    "normalisation or a bounded activation."
                )
            latents[done : done + len(batch)] = batch
            done += len(batch)
        return latents

    def predict(self, latents, allowed):
        """Returns the class of each latent.

        Args:
            latents: in half precision.
            allowed: boolean per class: whether it may be predicted.
        """
        size = self._batch_size
        return np.concatenate(
            [
                self._predict(latents[start : start + size], allowed).numpy()
                for start in range(0, len(latents), size)
            ]
        )

    def _extract(self, images):
        return tf.cast(self._front(images, training=False), tf.float16)

    def _predict(self, latents, allowed):
        logits = self._back(tf.cast(latents, tf.float32), training=False)
        logits = tf.where(allowed, logits, logits.dtype.min)
        return tf.argmax(logits, axis=-1, output_type=tf.int32)
