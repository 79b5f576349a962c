"""Sources of encoded images, which are read and decoded when asked for."""

import abc
import collections
import concurrent.futures
import functools
import re
import warnings
from collections.abc import Callable
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from gnr_keras import types
from gnr_keras.datasets import bounds
from gnr_keras.datasets import images as images_lib
from gnr_keras.datasets.source import Source

# Batches that are read ahead, and images that are checked at a time.
_AHEAD = 2
_CHECK_BATCH = 256
# How many images of a batch are decoded at the same time.
_PARALLEL = 16
_ADVICE = (
    "Replace it, remove it, or leave out all such images with `skip_corrupt` "
    "of the data set."
)


class EncodedSource(Source):
    """Images that are kept as JPEG, PNG, BMP or GIF (its first frame).

    An image of another size is resized until it covers `image_size`, with its
    proportions kept, and its centre is cut out. Grayscale images get three
    equal channels; an alpha channel is dropped.

    Args:
        keys: array over the patterns, of what `_fetch` takes.
        labels: integer class of each pattern.
        image_size: `(height, width)` of the images, or one integer for both.
        sessions: optional integer per pattern.
        class_names: optional names of the classes.
        crop_fraction: part of the resized image, along its shorter side, that
            is cut out.
        skip_corrupt: whether images that cannot be decoded are left out.
            They are looked for at once, which reads all images.
        progress: optional function of `(done, total)` images looked at.

    Attributes:
        skipped: names of the images that were left out.
    """

    def __init__(
        self,
        keys: np.ndarray,
        labels: np.ndarray,
        image_size: int | tuple[int, int],
        sessions: np.ndarray | None = None,
        class_names: Sequence[str] | None = None,
        crop_fraction: float = 1.0,
        skip_corrupt: bool = False,
        progress: types.Progress | None = None,
    ) -> None:
        if not 0 < crop_fraction <= 1:
            raise ValueError(
                "`crop_fraction` must be above 0 and at most 1. Received: "
                f"{crop_fraction!r}."
            )
        size = images_lib.check_size(image_size)
        super().__init__(labels, (*size, 3), sessions, class_names)
        self._keys = keys
        self._crop_fraction = crop_fraction
        self._loaders: dict[Callable, Callable] = {}
        if skip_corrupt:
            self._leave_out(self._find_corrupt(progress))

    @abc.abstractmethod
    def _fetch(self, keys):
        """Returns a tensor of strings, one for each of `keys`."""

    @abc.abstractmethod
    def _name(self, key):
        """Returns what a message calls the image at `key`."""

    def batches(
        self,
        indices: np.ndarray,
        batch_size: int,
        augment: Callable | None = None,
        seeds: np.ndarray | None = None,
    ) -> types.Batches:
        indices = np.asarray(indices, np.int64)
        if augment is None:
            seeds = np.zeros((len(indices), 2), np.int32)
        seeds = np.asarray(seeds)
        load = self._loader(augment)
        ahead: collections.deque[tuple] = collections.deque()
        with concurrent.futures.ThreadPoolExecutor(_AHEAD) as pool:
            for start in range(0, len(indices), batch_size):
                chosen = indices[start : start + batch_size]
                own_seeds = seeds[start : start + batch_size]
                task = pool.submit(self._load, load, chosen, own_seeds)
                ahead.append((task, chosen))
                if len(ahead) > _AHEAD:
                    yield self._finish(*ahead.popleft())
            while ahead:
                yield self._finish(*ahead.popleft())

    def _load(self, load, indices, seeds):
        return load(self._fetch(self._keys[indices]), seeds).numpy()

    def _finish(self, task, indices):
        try:
            return task.result(), self.labels[indices]
        except tf.errors.OpError:
            # The error of a whole batch does not say which image it was.
            for index in indices:
                if fault := self._fault(index):
                    raise ValueError(fault) from None
            raise

    def _reader(self):
        """Returns what makes an encoded image of one fetched string.

        A function of TensorFlow. Sources whose functions are equal share what
        is compiled with them, so it holds no source.
        """
        return _as_it_is

    def _loader(self, augment):
        """Returns the compiled way from strings to images."""
        settings = self._reader(), self.image_shape[:2], self._crop_fraction
        if augment is None:
            # One for all: sources come and go with the experiences.
            return _compile_shared(*settings)
        # What gin binds of an augmentation may differ between sources.
        if augment not in self._loaders:
            self._loaders[augment] = _compile(*settings, augment)
        return self._loaders[augment]

    def _find_corrupt(self, progress):
        corrupt = []
        load, total = self._loader(None), len(self)
        for start in range(0, total, _CHECK_BATCH):
            some = np.arange(start, min(start + _CHECK_BATCH, total))
            try:
                self._load(load, some, np.zeros((len(some), 2), np.int32))
            except tf.errors.OpError:
                corrupt += [index for index in some if self._fault(index)]
            if progress:
                progress(int(some[-1]) + 1, total)
        return corrupt

    def _leave_out(self, indices):
        names = tuple(self._name(self._keys[index]) for index in indices)
        if not names:
            return
        classes = np.unique(self.labels)
        keep = np.ones(len(self), bool)
        keep[indices] = False
        if not keep.any():
            raise ValueError(
                f"None of the {len(keep)} images can be read; the first is "
                f"{names[0]}. Expected JPEG, PNG, BMP or GIF files."
            )
        self._keys, self.labels = self._keys[keep], self.labels[keep]
        if self.sessions is not None:
            self.sessions = self.sessions[keep]
        self.skipped = names
        warnings.warn(
            f"{len(names)} of {len(keep)} images cannot be read, and are left "
            f"out; the first is {names[0]}.",
            stacklevel=4,
        )
        lost = np.setdiff1d(classes, self.labels)
        if len(lost):
            lost_names = ", ".join(self.class_names[c] for c in lost)
            raise ValueError(
                f"No image of {lost_names} can be read. Replace some of them, "
                "or remove the class."
            )

    def _fault(self, index):
        """Says why an image cannot be read, or returns `None`."""
        key = self._keys[index]
        try:
            data = self._reader()(self._fetch(self._keys[[index]])[0])
            size = bounds.read_size(data)
            if size[2] and not bounds.allow(size):
                return _oversize_message(self._name(key), *size.numpy())
            images_lib.decode(data)
        except tf.errors.NotFoundError:
            return missing_message(self._name(key))
        except tf.errors.OpError as error:
            # Without the name of the operation, which says nothing to a user.
            reason = re.sub(r"{{.*?}} |\s*\[Op:.*", "", error.message)
            if reason.startswith("Expected 'tf.Tensor"):
                reason = "it is of another kind."
            return (
                f"{self._name(key)} cannot be read as an image: {reason} "
                "Expected a whole JPEG, PNG, BMP or GIF file. "
                f"{_ADVICE}"
            )
        return None


def _as_it_is(fetched):
    return fetched


def _compile(reader, size, crop_fraction, augment=None):
    """Compiles the way from strings to images.

    This is no `tf.data` pipeline, since that takes 0.1 s to start.
    """

    def load_one(pattern):
        fetched, seed = pattern
        image = images_lib.decode(reader(fetched))
        if augment is None:
            return images_lib.fit(image, size, crop_fraction)
        return augment(image, size, seed)

    def load(fetched, seeds):
        return tf.map_fn(
            load_one,
            (fetched, seeds),
            fn_output_signature=tf.TensorSpec((*size, 3), tf.uint8),
            parallel_iterations=_PARALLEL,
        )

    loader = tf.function(
        load,
        input_signature=[
            tf.TensorSpec((None,), tf.string),
            tf.TensorSpec((None, 2), tf.int32),
        ],
    )
    # Here, since it is called by other threads, where gin would not know the
    # scope of the run.
    loader.get_concrete_function()
    return loader


_compile_shared = functools.lru_cache(maxsize=16)(_compile)


def _oversize_message(name, height, width, pixels):
    return (
        f"{name} announces {height} x {width} pixels, {pixels:,} in all. "
        f"Expected at most {bounds.MAX_PIXELS:,}, and no side over "
        f"{bounds.MAX_RATIO} times the other, so that it was not decoded. "
        f"Make it smaller, or: {_ADVICE}"
    )


def missing_message(name):
    return (
        f"There is no file {name}. Check the path, and that it was not moved "
        "or removed since the files were listed."
    )
