"""A conditional VAE of how patterns differ from the mean of their class."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from gnr_keras import checks
from gnr_keras import generator
from gnr_keras import losses
from gnr_keras import types


@keras.saving.register_keras_serializable(package="gnr_keras")
class CenteredVAE(generator.ConditionalVAE):
    """A conditional VAE around counted class means; not in the paper.

    Two things are other than in `ConditionalVAE`, both against a classifier
    that learns "real against generated" instead of classes:

    - The mean pattern of each class is counted, by `adapt`, over all its real
      patterns; generated ones never enter it. What the decoder learns is added
      to it before the output activation. So patterns of a class have the
      right mean from the first step on, however short the training is, and
      keep it. This takes memory for one pattern a class.
    - The mean of patterns that are often zero is nowhere zero: blurred, and a
      classifier sees that at once. So the loss has a further term: the
      features that the classifier computes of a pattern and of its
      reconstruction shall be the same.

    The encoder sees differences from the mean, the decoder the mean too. The
    last layer of the decoder starts at zero, and so the generator at the means.

    Args:
        data_shape: see `ConditionalVAE`; so are all others but
            `feature_weight`.
        num_classes: see there.
        z_dim: see there.
        width: see there.
        hidden: see there.
        beta: see there.
        eta: see there.
        feature_weight: weight of the difference in the classifier's features.
        classifier_every: see there.
        output_activation: see there.
        seed: see there.

    Attributes:
        class_means: mean pattern of each class, zero where there was none.
        class_counts: patterns that it was counted from.

    Example:

    >>> vae = CenteredVAE((2,), num_classes=3)
    >>> vae.adapt(np.array([[1.0, 5.0], [2.0, 5.0]]), [0, 0])
    >>> vae.generate([0], seed=1)
    array([[1.5, 5. ]], dtype=float16)
    """

    def __init__(
        self,
        data_shape: Sequence[int],
        num_classes: int,
        z_dim: int = 100,
        width: int = 64,
        hidden: int = 256,
        beta: float = 0.1,
        eta: float = 0.01,
        feature_weight: float = 10.0,
        classifier_every: int = 2,
        output_activation: str = "relu6",
        seed: int = 0,
        name: str = "generator",
    ) -> None:
        checks.check_number("feature_weight", feature_weight)
        super().__init__(
            data_shape,
            num_classes,
            z_dim,
            width,
            hidden,
            beta,
            eta,
            classifier_every,
            output_activation,
            seed,
            name,
        )
        self._settings["feature_weight"] = feature_weight
        self.loss_weights["features"] = feature_weight
        self.class_means = self.add_weight(
            shape=(num_classes, *self.data_shape),
            initializer="zeros",
            trainable=False,
            name="class_means",
        )
        self.class_counts = self.add_weight(
            shape=(num_classes,),
            initializer="zeros",
            trainable=False,
            name="class_counts",
        )

    def adapt(self, x: np.ndarray, labels: np.ndarray) -> None:
        """Takes real patterns into the means of their classes.

        Args:
            x: array of patterns; it may be a file that is mapped into memory,
                of which a slice at a time is read.
            labels: their classes.

        Raises:
            ValueError: for patterns that the decoder cannot reach.
        """
        super().adapt(x, labels)
        labels = np.asarray(labels)
        # Of these classes alone: there may be a thousand others.
        classes, rows = np.unique(labels, return_inverse=True)
        means, counts = (
            np.array(ops.convert_to_numpy(ops.take(weight, classes, axis=0)))
            for weight in (self.class_means, self.class_counts)
        )
        for start in range(0, len(labels), generator.SLICE):
            part = slice(start, start + generator.SLICE)
            patterns = np.asarray(x[part], np.float32)
            for row in np.unique(rows[part]):
                new = patterns[rows[part] == row]
                counts[row] += len(new)
                difference = (new - means[row]).sum(axis=0)
                means[row] += difference / counts[row]
        for weight, values in (
            (self.class_means, means),
            (self.class_counts, counts),
        ):
            weight.assign(ops.scatter_update(weight, classes[:, None], values))

    def encode(
        self, x: types.Tensor, labels: types.Tensor
    ) -> tuple[types.Tensor, types.Tensor]:
        """Returns mean and log variance of `q(z | x, y)`."""
        x = ops.convert_to_tensor(x, "float32")
        return super().encode(x - self._means_of(labels), labels)

    def decode(self, z: types.Tensor, labels: types.Tensor) -> types.Tensor:
        """Returns the mean of `p(x | z, y)`."""
        z = ops.convert_to_tensor(z, "float32")
        inputs = [z, self._one_hot(labels), self._means_of(labels)]
        return ops.cast(self.decoder(inputs), "float32")

    def _show(self, classifier, x, reconstruction, labels):
        if classifier is None:
            zeros = ops.zeros(ops.shape(labels))
            return {"classification": zeros, "features": zeros}
        wanted, _ = classifier(x, training=False)
        found, logits = classifier(reconstruction, training=False)
        return {
            "classification": losses.cross_entropy(labels, logits),
            "features": losses.squared_error(
                ops.cast(ops.stop_gradient(wanted), "float32"),
                ops.cast(found, "float32"),
            ),
        }

    def _build_decoder(self, width, hidden, output_activation):
        z, classes, x = self._decode_up(width, hidden)
        mean = keras.Input(self.data_shape, name="mean")
        if len(self.data_shape) == 3:
            seen = keras.layers.Conv2D(width, 1, activation="relu")(mean)
            last = keras.layers.Conv2D(
                self.data_shape[-1], 1, kernel_initializer="zeros"
            )
        else:
            seen = keras.layers.Dense(hidden, activation="relu")(mean)
            last = keras.layers.Dense(
                self.data_shape[-1], kernel_initializer="zeros"
            )
        x = last(keras.layers.Concatenate()([x, seen]))
        x = keras.layers.Add()([x, mean])
        x = keras.layers.Activation(output_activation)(x)
        return keras.Model([z, classes, mean], x, name="decoder")

    def _means_of(self, labels):
        return ops.take(self.class_means, labels, axis=0)
