"""What a learner does without training: predictions, and tests of them."""

from __future__ import annotations

import contextlib
import functools
import math
import time
import weakref
from collections import defaultdict
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import backbones
from gnr_keras import checks
from gnr_keras import evaluation
from gnr_keras import folding
from gnr_keras import guards
from gnr_keras import streams
from gnr_keras import types
from gnr_keras.datasets import conversion

if TYPE_CHECKING:
    from gnr_keras.storage import ArrayStore

# Images whose latents are there at a time where none are kept.
_PART = 4096
# Bytes of a batch's largest map on a CPU, which is slower where they do not
# stay near it.
_MAP_BYTES = 16_000_000


class Predictor:
    """A classifier of images that knows which classes it has seen.

    Args:
        model: classifier, from images to logits.
        latent_layer: name of the layer at which it is split.
        predict_among: "seen" or "all" classes.
        batch_size: images in a batch.
        store: `gnr_keras.storage.ArrayStore` that latents go to.
        dtype: see `Inference`.
    """

    def __init__(
        self,
        model: keras.Model,
        latent_layer: str,
        predict_among: str,
        batch_size: int,
        store: ArrayStore,
        dtype: keras.DTypePolicy | str | None = None,
    ) -> None:
        if predict_among not in ("seen", "all"):
            raise ValueError(
                '`predict_among` must be "seen" or "all". Received: '
                f"{predict_among!r}."
            )
        checks.check_whole("inference_batch_size", batch_size)
        self.model = model
        self.front, self.back = backbones.split(model, latent_layer)
        self.num_classes = model.output_shape[-1]
        self.predict_among = predict_among
        self.seen = np.zeros(self.num_classes, bool)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._latent_layer = latent_layer
        self._inference = Inference(
            self.front, self.back, batch_size, store, self._timed, dtype
        )

    def evaluate(self, data: types.Data) -> evaluation.Evaluation:
        """Tests the learner on all of `data`.

        The latents of the `Source` tested last are kept, since the front does
        not change any more; those of arrays are not. Where you change weights
        or images yourself, call `forget_latents`.

        Args:
            data: a `Source` or a tuple `(images, labels)`.

        Returns:
            An `Evaluation`.
        """
        labels, predictions = self._test(data)
        return evaluation.Evaluation.from_predictions(
            labels, predictions, self.seen
        )

    def predict(self, data: types.Data | np.ndarray) -> np.ndarray:
        """Returns the class predicted for each image.

        Args:
            data: an array of images, or what `evaluate` takes.
        """
        if isinstance(data, np.ndarray):
            data = (data, np.zeros(len(data), np.int32))
        return self._test(data)[1]

    def predict_latents(self, latents: np.ndarray) -> np.ndarray:
        """Returns the class predicted for each latent.

        Args:
            latents: outputs of the latent layer, such as a generator makes.
        """
        with np.errstate(over="ignore"):  # Looked for below.
            halved = np.asarray(latents, np.float16)
        expected = self.front.output_shape[1:]
        if halved.shape[1:] != expected:
            raise ValueError(
                f"Latents of {self._latent_layer!r} have shape {expected}. "
                f"Received: {halved.shape[1:]}."
            )
        guards.check_latents(
            halved, lambda: latents, self.front.output_names[0]
        )
        return self._inference.predict(halved, self.predicted_classes())

    def forget_latents(self) -> None:
        """Drops the latents that are kept; they are computed anew."""
        self._inference.forget()

    @property
    def _front_stands(self):
        """Whether the front will not move any more."""
        return False

    def _test(self, given):
        data = self._check_data(given)
        # A source that is made here, such as of arrays, is gone after the call.
        comes_again = data is given or isinstance(given, streams.Experience)
        predictions = self._inference.predict_images(
            data,
            self.predicted_classes(),
            keep=comes_again and self._front_stands,
        )
        return data.labels, predictions

    def predicted_classes(self) -> np.ndarray:
        """Returns a boolean per class: whether it may be predicted."""
        if self.predict_among == "all" or not self.seen.any():
            return np.ones_like(self.seen)
        return self.seen

    def _replace_head(self, model, back):
        """Goes on with a classifier that has more classes."""
        self.model, self.back = model, back
        self._inference.replace_back(back)
        new = model.output_shape[-1] - self.num_classes
        self.seen = np.pad(self.seen, (0, new))
        self.num_classes += new

    def _check_data(self, data):
        if isinstance(data, streams.Experience):
            data = data.data
        data = conversion.as_source(data)
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
                f"0. Received: class {data.labels.max()}. Make room for it "
                "with `add_classes`."
            )
        return data

    @contextlib.contextmanager
    def _timed(self, phase):
        start = time.perf_counter()
        yield
        self.seconds[phase] += time.perf_counter() - start


class Inference:
    """Runs the front over images, and the back over their latents.

    Args:
        front: model from images to latents.
        back: model from latents to logits.
        batch_size: patterns in a batch at the most.
        store: `gnr_keras.storage.ArrayStore` that latents go to.
        timed: context manager, given the name of what it takes the time of.
        dtype: dtype policy of what lies between, see `folding.fold`.
    """

    def __init__(self, front, back, batch_size, store, timed, dtype=None):
        self._front = front
        self._dtype = dtype
        self._folded_front = folding.fold(front, dtype)
        self._front_batch = _fitting(batch_size, front)
        self._batch_size = batch_size
        self._store = store
        self._timed = timed
        # The test set that came last, while it lives, and its latents.
        self._kept: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._shared = None
        self._extract = tf.function(
            self._run_front,
            input_signature=[tf.TensorSpec(front.input_shape, tf.float32)],
        )
        self.replace_back(back)

    def replace_back(self, back):
        """Goes on with another back, such as one of more classes."""
        self._folded_back = folding.fold(back, self._dtype)
        self._back_batch = _fitting(self._batch_size, back)
        self._predict = tf.function(
            self._classify,
            input_signature=[
                tf.TensorSpec(back.input_shape, tf.float16),
                tf.TensorSpec(back.output_shape[-1:], tf.bool),
            ],
        )

    def forget(self):
        """Drops the latents that are kept, and shares none any more."""
        self._kept.clear()
        self._shared = None

    def share(self, shared):
        """Takes latents from a `SharedStart`, and leaves them there."""
        self._shared = shared

    def latents(self, data, share=True):
        """Returns the latents of a `Source`, in half precision.

        Args:
            data: a `Source`.
            share: whether others may want them too.
        """
        shape = (len(data), *self._front.output_shape[1:])
        with self._timed("front"):
            shared = self._shared if share else None
            if shared and shared.can_hold(data.fingerprint, shape):
                return shared.latents(
                    data.fingerprint, shape, lambda x: self._fill(x, data)
                )
            latents = self._store.empty(shape, np.float16)
            self._fill(latents, data)
        return latents

    def join(self, parts):
        """Returns latents one after the other, as one array."""
        shape = (sum(map(len, parts)), *parts[0].shape[1:])
        with self._timed("front"):
            joined = self._store.empty(shape, np.float16)
            done = 0
            for part in parts:
                joined[done : done + len(part)] = part
                done += len(part)
        return joined

    def _fill(self, latents, data):
        # Activations that are joined to a convolution make numbers of NaN.
        guards.check_variables(
            self._front.variables,
            "What is below the latent layer",
            "If it was trained, its training diverged: lower its learning "
            "rates.",
        )
        done = 0
        order = np.arange(len(data))
        for images, _ in data.batches(order, self._front_batch):
            images = tf.cast(images, tf.float32)
            batch = self._extract(images).numpy()
            guards.check_latents(
                batch,
                functools.partial(self._front, images, training=False),
                self._front.output_names[0],
            )
            latents[done : done + len(batch)] = batch
            done += len(batch)

    def predict(self, latents, allowed):
        """Returns the class of each latent.

        Args:
            latents: in half precision.
            allowed: boolean per class: whether it may be predicted.
        """
        size = self._back_batch
        parts = (latents[i : i + size] for i in range(0, len(latents), size))
        with self._timed("evaluation"):
            return np.concatenate(
                [self._predict(part, allowed).numpy() for part in parts]
            )

    def predict_images(self, data, allowed, keep):
        """Returns the class of each image.

        Args:
            data: a `Source`.
            allowed: see `predict`.
            keep: whether its latents stay for the next time, in place of
                those kept before; else only a part of them is there at a
                time.
        """
        if keep:
            if data not in self._kept:
                self._kept.clear()
                self._kept[data] = self.latents(data)
            return self.predict(self._kept[data], allowed)
        parts = range(_PART, len(data), _PART)
        return np.concatenate(
            [
                self.predict(
                    self.latents(data.subset(part), share=False), allowed
                )
                for part in np.split(np.arange(len(data)), parts)
            ]
        )

    def _run_front(self, images):
        latents = self._folded_front(images, training=False)
        return tf.cast(latents, tf.float16)

    def _classify(self, latents, allowed):
        latents = tf.cast(latents, tf.float32)
        logits = self._folded_back(latents, training=False)
        logits = tf.where(allowed, logits, logits.dtype.min)
        return tf.argmax(logits, axis=-1, output_type=tf.int32)


def _fitting(batch_size, model):
    """Returns how many patterns go through a model at once."""
    if tf.config.list_logical_devices("GPU"):
        return batch_size
    maps = [math.prod(node.shape[1:]) for node in _outputs(model)]
    return min(batch_size, max(1, _MAP_BYTES // (4 * max(maps))))


def _outputs(model):
    return [
        output
        for layer in model.layers
        for output in keras.tree.flatten(layer.output)
    ]
