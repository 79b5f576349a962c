"""Images in files, and the folders that data sets keep them in."""

import os
import pathlib

import numpy as np
import tensorflow as tf

from gnr_keras.datasets.embedded import default_data_dir
from gnr_keras.datasets.source import Source

_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")


class FileSource(Source):
    """Images in files, which are read only when asked for.

    An image of another size is resized until it covers `image_size`, with its
    proportions kept, and its centre is cut out. Grayscale images get three
    equal channels; an alpha channel is dropped.

    Args:
        paths: file of each pattern: JPEG, PNG, BMP or GIF (its first frame).
        labels: integer class of each pattern.
        image_size: `(height, width)` of the images, or one integer for both.
        sessions: optional integer per pattern.
        class_names: optional names of the classes.

    Example:

    ```python
    source = FileSource(["cat.jpg", "dog.png"], [0, 1], image_size=224)
    for images, labels in source.batches([1, 0], batch_size=2):
        print(images.shape, images.dtype)  # (2, 224, 224, 3) uint8
    ```
    """

    def __init__(
        self, paths, labels, image_size, sessions=None, class_names=None
    ):
        if len(paths) != len(labels):
            raise ValueError(
                "There must be one label per file. Received: "
                f"{len(paths)} paths, {len(labels)} labels."
            )
        self._size = _height_and_width(image_size)
        super().__init__(labels, (*self._size, 3), sessions, class_names)
        # As bytes: a million paths in NumPy's own strings take four times
        # the memory.
        self._paths = np.array([os.fsencode(path) for path in paths], "S")
        # Not every one: a million look-ups take minutes on a network drive.
        for path in self._paths[[0, -1]] if len(self) else ():
            if not tf.io.gfile.exists(path):
                raise ValueError(_no_file(path))

    def batches(self, indices, batch_size):
        indices = np.asarray(indices, np.int64)
        # TensorFlow's own operations only: where `from_generator` or
        # `py_function` runs before the first training step, every later step
        # takes 2.5 times as long on a CPU (TensorFlow 2.21).
        dataset = tf.data.Dataset.from_tensor_slices(self._paths[indices])
        dataset = dataset.map(
            self._read, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        images = iter(dataset.batch(batch_size).prefetch(tf.data.AUTOTUNE))
        for start in range(0, len(indices), batch_size):
            chosen = indices[start : start + batch_size]
            try:
                batch = next(images).numpy()
            except tf.errors.OpError:
                # The pipeline's own error does not name the file.
                self._check_files(chosen)
                raise
            yield batch, self.labels[chosen]

    def _read(self, path):
        image = tf.io.decode_image(
            tf.io.read_file(path), channels=3, expand_animations=False
        )
        return _fit(tf.ensure_shape(image, (None, None, 3)), *self._size)

    def _check_files(self, indices):
        for path in self._paths[indices]:
            try:
                self._read(tf.constant(path))
            except tf.errors.NotFoundError as error:
                raise ValueError(_no_file(path)) from error
            except tf.errors.OpError as error:
                raise ValueError(
                    f"{os.fsdecode(path)} cannot be read as an image: "
                    f"{error.message} Expected a whole JPEG, PNG, BMP or GIF "
                    "file. Replace it, or leave it out."
                ) from error


def find_folder(data_dir, name, holds, advice):
    """Finds the folder of a data set.

    Args:
        data_dir: the folder itself or the one above it; `default_data_dir()`
            if `None`.
        name: usual name of the folder.
        holds: name of a folder that must be in it.
        advice: how to get the data, the end of the error's message.
    """
    above = pathlib.Path(data_dir or default_data_dir()).expanduser()
    candidates = (above / name, above)
    for folder in candidates:
        if (folder / holds).is_dir():
            return folder
    raise ValueError(
        f"There is no folder {holds!r} in {candidates[0]} or in "
        f"{candidates[1]}. {advice}"
    )


def list_images(folders, progress=None):
    """Lists the image files of each folder, in the order of their names.

    Args:
        folders: paths; a folder without images is an error.
        progress: optional function of `(done, total)` folders.

    Returns:
        For each folder, the paths of its images.
    """
    groups = []
    for done, folder in enumerate(folders, start=1):
        names = sorted(
            name
            for name in os.listdir(folder)
            # Other systems leave files such as `._image.png` behind.
            if name.lower().endswith(_SUFFIXES) and not name.startswith(".")
        )
        if not names:
            raise ValueError(
                f"{folder} holds no image. Expected files that end in one of "
                f"{', '.join(_SUFFIXES)}. Extract the archive again, or "
                "remove the folder."
            )
        groups.append([os.path.join(folder, name) for name in names])
        if progress:
            progress(done, len(folders))
    return groups


def grouped_source(groups, labels, image_size, sessions=None, class_names=None):
    """Builds a `FileSource` from groups of files.

    Args:
        groups: for each group, the paths of its files.
        labels: class of each group.
        image_size: as for `FileSource`.
        sessions: optional session of each group.
        class_names: as for `FileSource`.
    """
    sizes = [len(group) for group in groups]
    return FileSource(
        [path for group in groups for path in group],
        np.repeat(labels, sizes),
        image_size,
        None if sessions is None else np.repeat(sessions, sizes),
        class_names,
    )


def _height_and_width(image_size):
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


def _fit(image, height, width):
    wanted = tf.constant((height, width))
    size = tf.shape(image)[:2]

    def resize_and_cut():
        scale = tf.reduce_max(wanted / size)
        covering = tf.round(scale * tf.cast(size, scale.dtype))
        covering = tf.maximum(tf.cast(covering, tf.int32), wanted)
        resized = tf.image.resize(image, covering, antialias=True)
        top, left = tf.unstack((covering - wanted) // 2)
        cut = resized[top : top + height, left : left + width]
        return tf.cast(tf.round(cut), tf.uint8)

    # Most images of CORe50 and of prepared data have the right size already.
    fitted = tf.cond(
        tf.reduce_all(size == wanted), lambda: image, resize_and_cut
    )
    return tf.ensure_shape(fitted, (height, width, 3))


def _no_file(path):
    return (
        f"There is no file {os.fsdecode(path)}. Check the path, and that it "
        "was not moved or removed since the files were listed."
    )
