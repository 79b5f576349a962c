"""Labelled images with random access: what every stream is cut from."""

import abc
import functools
import hashlib
from collections.abc import Callable
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from gnr_keras import types

# Images are checked for NaN in slices, so that a memory-mapped file never
# has to fit into memory at once.
_CHECK_SLICE = 256
# Images of a source that its fingerprint is taken of.
_SAMPLE = 16
# A label beyond is no number of a class, and would make a list as long.
_MOST_CLASSES = 10_000_000


class Source(abc.ABC):
    """A labelled data set that loads its images only when asked.

    Args:
        labels: integer class of each pattern, in `[0, num_classes)`.
        image_shape: shape `(height, width, channels)` of an image.
        sessions: optional integer per pattern, the video (recording) that it
            comes from. NI and NIC streams need it.
        class_names: optional names of the classes. Their number is the
            number of classes; without them it is `max(labels) + 1`.
    """

    # Names of images that could not be read, where such are left out.
    skipped: tuple[str, ...] = ()

    def __init__(
        self,
        labels: np.ndarray,
        image_shape: tuple[int, ...],
        sessions: np.ndarray | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        labels = np.asarray(labels)
        if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
            raise ValueError(
                "`labels` must be a vector of integers, one per image. "
                f"Received: shape {labels.shape}, dtype {labels.dtype}. "
                "Turn one-hot rows into integers with `labels.argmax(-1)`."
            )
        if class_names is None:
            if labels.max(initial=0) >= _MOST_CLASSES:
                raise ValueError(
                    "Labels are the numbers of classes, from 0 on. Received: "
                    f"class {labels.max()}. Number the classes without gaps, "
                    "such as by `np.unique(labels, return_inverse=True)`."
                )
            class_names = [
                str(c) for c in range(int(labels.max(initial=0)) + 1)
            ]
        if labels.size and not (
            labels.min() >= 0 and labels.max() < len(class_names)
        ):
            raise ValueError(
                "Labels must lie in [0, num_classes). Received: labels from "
                f"{labels.min()} to {labels.max()} for {len(class_names)} "
                "classes. Number the classes from 0, or give one class name "
                "for each."
            )
        if sessions is not None:
            sessions = np.asarray(sessions)
            if not np.issubdtype(sessions.dtype, np.integer):
                raise ValueError(
                    "`sessions` must be integers. Received: dtype "
                    f"{sessions.dtype}."
                )
            if sessions.shape != labels.shape:
                raise ValueError(
                    "`sessions` needs one entry per label. Received: "
                    f"{sessions.shape[0]} sessions, {labels.shape[0]} labels."
                )
        self.labels = labels.astype(np.int32)
        self.image_shape = tuple(image_shape)
        self.sessions = sessions
        self.class_names = tuple(class_names)

    def __len__(self):
        return len(self.labels)

    @property
    def num_classes(self) -> int:
        """Number of classes, those that have no pattern included."""
        return len(self.class_names)

    @abc.abstractmethod
    def batches(
        self,
        indices: np.ndarray,
        batch_size: int,
        augment: Callable | None = None,
        seeds: np.ndarray | None = None,
    ) -> types.Batches:
        """Yields batches of `(images, labels)` in the order of `indices`.

        Args:
            indices: positions in this source, in the order wanted; a
                position may occur more than once.
            batch_size: images in a batch; the last one may be shorter.
            augment: changes an image at random; a function of TensorFlow
                from `(image, size, seed)` to an image of that size and of
                the type of the one given, such as
                `gnr_keras.datasets.random_resized_crop`.
            seeds: for it, integers of shape `(len(indices), 2)`.
        """

    @functools.cached_property
    def fingerprint(self):
        """Text that differs between sources of other images or labels.

        Of large sets only some images are looked at.
        """
        chosen = np.linspace(0, len(self) - 1, _SAMPLE).astype(int)
        images = [batch for batch, _ in self.batches(chosen, _SAMPLE)]
        return _digest(
            self.labels,
            np.asarray(self.image_shape),
            np.array(len(self)),
            *map(np.asarray, images),
        )

    def subset(self, indices: np.ndarray) -> "Source":
        """Returns a view of the patterns at `indices`; nothing is loaded."""
        indices = np.asarray(indices)
        if indices.dtype == bool:
            indices = np.flatnonzero(indices)
        return _Subset(self, indices.astype(np.int64))

    def renumber(self, numbering: Sequence[int] | np.ndarray) -> "Source":
        """Returns a view with other numbers for the classes.

        Args:
            numbering: new number of each class, a permutation.
        """
        numbering = np.asarray(numbering)
        if sorted(numbering.tolist()) != list(range(self.num_classes)):
            raise ValueError(
                f"`numbering` must give the {self.num_classes} classes the "
                f"numbers 0 to {self.num_classes - 1}. Received: "
                f"{numbering.tolist()}."
            )
        return _Renumbered(self, numbering)


class ArraySource(Source):
    """Images in an array, in memory or memory-mapped.

    Args:
        images: array of shape `(patterns, height, width, channels)`.
        labels: integer class of each pattern.
        sessions: optional integer per pattern.
        class_names: optional names of the classes.

    Example:

    >>> images = np.zeros((6, 32, 32, 3), "uint8")
    >>> source = ArraySource(images, labels=[0, 0, 1, 1, 2, 2])
    >>> source.num_classes
    3
    """

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        sessions: np.ndarray | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        if not hasattr(images, "ndim"):
            images = _as_array(images)
        if images.ndim != 4 or 0 in images.shape[1:]:
            raise ValueError(
                "`images` must have shape (patterns, height, width, channels)."
                f" Received: {images.shape}. Add the missing axis with "
                "`np.expand_dims`."
            )
        if images.dtype.kind not in "biuf":
            raise ValueError(
                f"`images` must be numbers. Received: dtype {images.dtype}. "
                "Convert them with `images.astype`."
            )
        if labels is None:
            raise ValueError(
                "There must be one label per image. Received: None."
            )
        if len(images) != len(labels):
            raise ValueError(
                "There must be one label per image. Received: "
                f"{len(images)} images, {len(labels)} labels."
            )
        super().__init__(labels, images.shape[1:], sessions, class_names)
        if np.issubdtype(images.dtype, np.floating):
            _check_finite(images)
        self._images = images
        self._augmenters: dict[Callable, Callable] = {}

    def batches(
        self,
        indices: np.ndarray,
        batch_size: int,
        augment: Callable | None = None,
        seeds: np.ndarray | None = None,
    ) -> types.Batches:
        # Not through `tf.data.Dataset.from_generator`: where that runs before
        # the first training step, every later step takes 2.5 times as long
        # on a CPU (TensorFlow 2.21).
        indices = np.asarray(indices)
        for start in range(0, len(indices), batch_size):
            chosen = indices[start : start + batch_size]
            images = self._images[chosen]
            if augment is not None:
                own_seeds = np.asarray(seeds)[start : start + batch_size]
                images = self._augmenter(augment)(images, own_seeds).numpy()
            yield images, self.labels[chosen]

    def _augmenter(self, augment):
        """Compiles `augment` for a batch, once."""
        if augment not in self._augmenters:
            size, dtype = self.image_shape[:2], self._images.dtype

            def run(images, seeds):
                return tf.map_fn(
                    lambda pattern: augment(pattern[0], size, pattern[1]),
                    (images, seeds),
                    fn_output_signature=tf.TensorSpec(self.image_shape, dtype),
                )

            self._augmenters[augment] = tf.function(
                run,
                input_signature=[
                    tf.TensorSpec((None, *self.image_shape), dtype),
                    tf.TensorSpec((None, 2), tf.int32),
                ],
            )
        return self._augmenters[augment]


class _Subset(Source):
    """A view of some patterns of another source."""

    def __init__(self, source, indices):
        super().__init__(
            source.labels[indices],
            source.image_shape,
            None if source.sessions is None else source.sessions[indices],
            source.class_names,
        )
        self.skipped = source.skipped
        self._source = source
        self._indices = indices

    @functools.cached_property
    def fingerprint(self):
        whole = np.frombuffer(self._source.fingerprint.encode(), np.uint8)
        return _digest(whole, self._indices, self.labels)

    def batches(self, indices, batch_size, augment=None, seeds=None):
        indices = np.asarray(indices)
        batches = self._source.batches(
            self._indices[indices], batch_size, **_augmentation(augment, seeds)
        )
        starts = range(0, len(indices), batch_size)
        for start, (images, _) in zip(starts, batches, strict=True):
            yield images, self.labels[indices[start : start + batch_size]]


class _Renumbered(_Subset):
    """A view of another source, with other numbers for its classes."""

    def __init__(self, source, numbering):
        super().__init__(source, np.arange(len(source)))
        self.labels = numbering[self.labels].astype(np.int32)
        self.class_names = tuple(
            self.class_names[c] for c in np.argsort(numbering)
        )


class _Joined(Source):
    """The patterns of several sources, one source after the other."""

    def __init__(self, sources):
        first = sources[0]
        for source in sources[1:]:
            if source.image_shape != first.image_shape:
                raise ValueError(
                    "Images of one size can be joined. Received: "
                    f"{first.image_shape} and {source.image_shape}."
                )
        sessions = [source.sessions for source in sources]
        known = all(part is not None for part in sessions)
        super().__init__(
            np.concatenate([source.labels for source in sources]),
            first.image_shape,
            np.concatenate(sessions) if known else None,
            max((source.class_names for source in sources), key=len),
        )
        self._sources = sources
        ends = np.cumsum([len(source) for source in sources])
        self._starts = ends - [len(source) for source in sources]

    def batches(self, indices, batch_size, augment=None, seeds=None):
        indices = np.asarray(indices)
        for start in range(0, len(indices), batch_size):
            chosen = indices[start : start + batch_size]
            owners = np.searchsorted(self._starts, chosen, side="right") - 1
            images: list = [None] * len(chosen)
            for owner in np.unique(owners):
                where = np.flatnonzero(owners == owner)
                inside = chosen[where] - self._starts[owner]
                own_seeds = None if augment is None else seeds[start + where]
                parts = self._sources[owner].batches(
                    inside, len(inside), **_augmentation(augment, own_seeds)
                )
                for position, image in zip(where, next(parts)[0], strict=True):
                    images[position] = image
            yield np.stack(images), self.labels[chosen]


def join(sources):
    """Returns one source of all patterns, in the order of `sources`."""
    first = sources[0]
    if all(
        type(source) is _Subset and source._source is first._source
        for source in sources
    ):
        # As quick as the source that they were all cut from.
        return first._source.subset(
            np.concatenate([source._indices for source in sources])
        )
    return _Joined(list(sources))


def _augmentation(augment, seeds):
    # Sources that know of none can be cut and joined, too.
    return {} if augment is None else {"augment": augment, "seeds": seeds}


def _digest(*arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _as_array(images):
    shapes = {np.shape(image) for image in images}
    if len(shapes) > 1:
        raise ValueError(
            "Images of one size make an array. Received: shapes "
            f"{' and '.join(map(str, sorted(shapes)[:2]))}. Resize the images."
        )
    return np.asarray(images)


def _check_finite(images):
    for start in range(0, len(images), _CHECK_SLICE):
        finite = np.isfinite(images[start : start + _CHECK_SLICE])
        if not finite.all():
            where = start + int(np.argmin(finite.all(axis=(1, 2, 3))))
            raise ValueError(
                f"Image {where} holds NaN or infinity; every pixel must be a "
                "finite number. Drop or repair that image."
            )
