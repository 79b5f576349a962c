"""Encoded images to arrays of one size, by TensorFlow's own operations."""

import numpy as np
import tensorflow as tf

from gnr_keras.datasets import bounds

# Random crops that are tried before the image is taken whole.
_ATTEMPTS = 10


def check_size(image_size):
    """Returns `image_size`, an integer or a pair, as `(height, width)`."""
    sides = np.asarray(image_size)
    if (
        not np.issubdtype(sides.dtype, np.integer)
        or sides.shape not in ((), (2,))
        or sides.min() < 1
    ):
        raise ValueError(
            "`image_size` must be a positive integer or a pair (height, "
            f"width) of such. Received: {image_size!r}."
        )
    height, width = np.broadcast_to(sides, 2).tolist()
    return height, width


def decode(data):
    """Decodes a JPEG, PNG, BMP or GIF (its first frame) to three channels.

    Raises:
        tf.errors.InvalidArgumentError: for what is none of these, and for
            more pixels than `gnr_keras.datasets.bounds` allows; these are not
            decoded.
    """
    size = bounds.read_size(data)
    allowed = tf.debugging.Assert(bounds.allow(size), [size])
    # In a graph, what decodes would not wait for it by itself.
    with tf.control_dependencies([] if allowed is None else [allowed]):
        data = tf.identity(data)
    image = tf.io.decode_image(data, channels=3, expand_animations=False)
    return tf.ensure_shape(image, (None, None, 3))


def fit(image, size, crop_fraction=1.0):
    """Resizes an image and cuts out its centre, with its proportions kept.

    Args:
        image: image of any size, or images of one size.
        size: `(height, width)` wanted.
        crop_fraction: part of the resized image, along its shorter side, that
            is cut out: 0.875 resizes to 256 where 224 are wanted.
    """
    wanted = tf.constant(size)
    whole = tf.shape(image)[-3:-1]

    def resize_and_cut():
        scale = tf.reduce_max(wanted / whole) / crop_fraction
        covering = tf.round(scale * tf.cast(whole, scale.dtype))
        covering = tf.maximum(tf.cast(covering, tf.int32), wanted)
        resized = tf.image.resize(image, covering, antialias=True)
        top, left = tf.unstack((covering - wanted) // 2)
        cut = resized[..., top : top + size[0], left : left + size[1], :]
        return _as_type(cut, image.dtype)

    if crop_fraction == 1:
        # Most images of CORe50 and of prepared data have the right size.
        fitted = tf.cond(
            tf.reduce_all(whole == wanted), lambda: image, resize_and_cut
        )
    else:
        fitted = resize_and_cut()
    shape = (*image.shape[:-3], *size, image.shape[-1])
    return tf.ensure_shape(fitted, shape)


def random_resized_crop(
    image: tf.Tensor,
    size: tuple[int, int],
    seed: tf.Tensor,
    area: tuple[float, float] = (0.08, 1.0),
    aspect_ratio: tuple[float, float] = (3 / 4, 4 / 3),
) -> tf.Tensor:
    """The usual augmentation of ImageNet: a random part, maybe mirrored.

    Args:
        image: image of any size.
        size: `(height, width)` wanted.
        seed: two integers; the same seed gives the same crop.
        area: smallest and largest part of the image's area.
        aspect_ratio: narrowest and widest shape of the part.

    Returns:
        An image of the size wanted.
    """
    box_seed, flip_seed = tf.unstack(tf.random.split(seed, 2))
    begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
        tf.shape(image),
        tf.zeros((1, 0, 4)),
        seed=box_seed,
        min_object_covered=0.0,
        aspect_ratio_range=aspect_ratio,
        area_range=area,
        max_attempts=_ATTEMPTS,
        use_image_if_no_bounding_boxes=True,
    )
    part = tf.slice(image, begin, extent)
    part = tf.image.resize(part, size, antialias=True)
    part = _as_type(part, image.dtype)
    flipped = tf.image.stateless_random_flip_left_right(part, flip_seed)
    return tf.ensure_shape(flipped, (*size, image.shape[-1]))


def random_flip(
    image: tf.Tensor, size: tuple[int, int], seed: tf.Tensor
) -> tf.Tensor:
    """Mirrors every other image; the rest is left as it is.

    Args:
        image: image of any size.
        size: `(height, width)` wanted.
        seed: two integers; the same seed gives the same image.

    Returns:
        An image of the size wanted.
    """
    return tf.image.stateless_random_flip_left_right(fit(image, size), seed)


def _as_type(image, dtype):
    return tf.cast(tf.round(image) if dtype.is_integer else image, dtype)
