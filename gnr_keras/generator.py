"""The generator: a conditional variational autoencoder on latents."""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from gnr_keras import checks
from gnr_keras import cloning
from gnr_keras import growing
from gnr_keras import losses
from gnr_keras import precision

# Spatial size below which a map is flattened instead of halved once more.
_SMALLEST_MAP = 8
# What the decoder can reach, by its output activation.
_RANGES = {
    "relu6": (0.0, 6.0),
    "relu": (0.0, np.inf),
    "sigmoid": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
}
# Patterns worked on at once where nothing is trained.
SLICE = 256


@keras.saving.register_keras_serializable(package="gnr_keras")
class ConditionalVAE(keras.Model):
    """A conditional VAE for latents, or for raw images.

    The encoder is `q(z | x, y)`: a pointwise convolution, as many halvings as
    a map larger than 8x8 needs, and a dense layer. The decoder `p(x | z, y)`
    mirrors it, and adds an offset per class and channel before the output
    activation. There is no wide spatial convolution: on 8x8x512 latents a
    step costs less than one of MobileNetV1's classifier.

    There is no normalisation layer either, so nothing but the trainable
    weights can move.

    `gnr_keras.GeneratorTrainer` trains it, on any arrays of patterns and
    labels, with a classifier that looks on or with `None`.

    Args:
        data_shape: shape of a pattern, `(height, width, channels)` or
            `(units,)`.
        num_classes: number of classes that can be asked for.
        z_dim: dimensions of the latent space.
        width: channels of the inner maps.
        hidden: units of the dense layers.
        beta: weight of the KL divergence.
        eta: weight of the auxiliary classification.
        classifier_every: the classifier looks at every so-many-th pattern of
            a batch; it takes most of the time of a step.
        output_activation: range of the data: "relu6" for MobileNet's
            latents, "relu", "sigmoid" for images in [0, 1], "linear".
        seed: seed of the initial weights.

    Example:

    >>> vae = ConditionalVAE((4, 4, 32), num_classes=5)
    >>> vae.generate([0, 3, 3], seed=1).shape
    (3, 4, 4, 32)
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
        classifier_every: int = 1,
        output_activation: str = "relu6",
        seed: int = 0,
        name: str = "generator",
    ) -> None:
        super().__init__(name=name)
        data_shape = tuple(data_shape)
        if len(data_shape) not in (1, 3):
            raise ValueError(
                "`data_shape` must be (height, width, channels) or (units,). "
                f"Received: {data_shape}."
            )
        checks.check_whole("z_dim", z_dim)
        checks.check_whole("width", width)
        checks.check_whole("hidden", hidden)
        checks.check_whole("classifier_every", classifier_every)
        checks.check_number("beta", beta)
        checks.check_number("eta", eta)
        self._settings: dict = {
            "data_shape": data_shape,
            "num_classes": num_classes,
            "z_dim": z_dim,
            "width": width,
            "hidden": hidden,
            "beta": beta,
            "eta": eta,
            "classifier_every": classifier_every,
            "output_activation": output_activation,
            "seed": seed,
        }
        self.data_shape = data_shape
        self.num_classes = num_classes
        self.classifier_every = classifier_every
        self.z_dim = z_dim
        self.loss_weights = {
            "reconstruction": 1.0,
            "kl": beta,
            "classification": eta,
        }
        encoder = _build_encoder(data_shape, num_classes, z_dim, width, hidden)
        decoder = self._build_decoder(width, hidden, output_activation)
        policy = precision.policy_in_scope()
        self.encoder = cloning.clone(
            encoder, 2 * seed, keep_weights=False, policy=policy
        )
        self.decoder = cloning.clone(
            decoder, 2 * seed + 1, keep_weights=False, policy=policy
        )
        self._decode_batch = tf.function(
            self._decode_half,
            input_signature=[
                tf.TensorSpec((None, z_dim), tf.float32),
                tf.TensorSpec((None,), tf.int32),
            ],
        )
        self.built = True

    def adapt(self, x: np.ndarray, labels: np.ndarray) -> None:
        """Looks at the real patterns of an experience before training.

        Args:
            x: array of patterns; it may be a file that is mapped into memory.
            labels: their classes.

        Raises:
            ValueError: for patterns that the decoder cannot reach.
        """
        activation = self._settings["output_activation"]
        low, high = _RANGES.get(activation, (-np.inf, np.inf))
        checks.check_range(x, activation, low, high)

    def encode(
        self, x: tf.Tensor, labels: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mean and log variance of `q(z | x, y)`."""
        x = ops.convert_to_tensor(x, "float32")
        encoded = self.encoder([x, self._one_hot(labels)])
        return ops.split(ops.cast(encoded, "float32"), 2, axis=-1)

    def decode(self, z: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Returns the mean of `p(x | z, y)`."""
        z = ops.convert_to_tensor(z, "float32")
        return ops.cast(self.decoder([z, self._one_hot(labels)]), "float32")

    def call(self, inputs, training=None):
        """Reconstructs patterns, given as `(x, labels)`, without noise."""
        x, labels = inputs
        mean, _ = self.encode(x, labels)
        return self.decode(mean, labels)

    def compute_losses(
        self,
        x: tf.Tensor,
        labels: tf.Tensor,
        noise: tf.Tensor,
        classifier: keras.Model | None = None,
    ) -> dict[str, tf.Tensor]:
        """The three terms of the generator's loss, one value per pattern.

        Args:
            x: patterns.
            labels: their classes.
            noise: standard normal, of shape `(patterns, z_dim)`.
            classifier: model from patterns to features and logits, for the
                auxiliary classification of the reconstructions. It is called
                in inference mode, so that its statistics stay as they are.

        Returns:
            A dict: "reconstruction" (squared error, mean over units), "kl"
            (mean over z) and "classification" (nats, of every
            `classifier_every`-th pattern; zero without a classifier).
        """
        x = ops.convert_to_tensor(x, "float32")
        labels = ops.convert_to_tensor(labels, "int32")
        mean, log_variance = self.encode(x, labels)
        z = mean + ops.exp(0.5 * log_variance) * noise
        reconstruction = self.decode(z, labels)
        every = slice(None, None, self.classifier_every)
        return {
            "reconstruction": losses.squared_error(x, reconstruction),
            "kl": losses.kl_to_standard_normal(mean, log_variance),
            **self._show(
                classifier, x[every], reconstruction[every], labels[every]
            ),
        }

    def generate(self, labels: np.ndarray, seed: int) -> np.ndarray:
        """Draws one pattern of each given class.

        Args:
            labels: the classes wanted.
            seed: integer; the same seed and labels give the same patterns.

        Returns:
            An array of patterns in half precision.
        """
        labels = np.asarray(labels, np.int32)
        checks.check_classes(labels, self.num_classes)
        z = np.random.default_rng(seed).standard_normal(
            (len(labels), self.z_dim), dtype=np.float32
        )
        patterns = np.empty((len(labels), *self.data_shape), np.float16)
        for start in range(0, len(labels), SLICE):
            part = slice(start, start + SLICE)
            patterns[part] = self._decode_batch(z[part], labels[part]).numpy()
        return patterns

    def grown(self, num_classes: int) -> "ConditionalVAE":
        """Returns a generator of more classes that knows what this one does.

        Args:
            num_classes: number of classes, old and new ones together. The
                weights of the new ones are those that a generator of this
                size starts with.
        """
        if num_classes < self.num_classes:
            raise ValueError(
                f"The generator has {self.num_classes} classes, and cannot "
                f"forget any. Received: {num_classes}."
            )
        generator = type(self)(
            **{**self.get_config(), "num_classes": num_classes}
        )
        # Classes are the last of a layer's inputs.
        growing.inherit(self.variables, generator.variables)
        return generator

    def get_config(self):
        return {"name": self.name, **self._settings}

    def _decode_half(self, z, labels):
        return tf.cast(self.decode(z, labels), tf.float16)

    def _show(self, classifier, x, reconstruction, labels):
        """The terms of the loss that a classifier gives."""
        if classifier is None:
            return {"classification": ops.zeros(ops.shape(labels))}
        _, logits = classifier(reconstruction, training=False)
        return {"classification": losses.cross_entropy(labels, logits)}

    def _build_decoder(self, width, hidden, output_activation):
        z, classes, x = self._decode_up(width, hidden)
        channels = self.data_shape[-1]
        if len(self.data_shape) == 3:
            x = keras.layers.Conv2D(channels, 1)(x)
            offset = keras.layers.Dense(channels, use_bias=False)(classes)
            offset = keras.layers.Reshape((1, 1, channels))(offset)
            x = keras.layers.Add()([x, offset])
        else:
            # One layer has the offset of the class among its weights; a sum
            # of two is what TensorFlow's optimizer of graphs stumbles over.
            x = keras.layers.Concatenate()([x, classes])
            x = keras.layers.Dense(channels)(x)
        x = keras.layers.Activation(output_activation)(x)
        return keras.Model([z, classes], x, name="decoder")

    def _decode_up(self, width, hidden):
        """The decoder's inputs, and its last inner map or units."""
        z = keras.Input((self.z_dim,), name="z")
        classes = keras.Input((self.num_classes,), name="classes")
        x = keras.layers.Concatenate()([z, classes])
        x = keras.layers.Dense(hidden, activation="relu")(x)
        if len(self.data_shape) == 3:
            x = _build_maps(x, self.data_shape, width)
        return z, classes, x

    def _one_hot(self, labels):
        return ops.one_hot(labels, self.num_classes, dtype="float32")


def _build_encoder(data_shape, num_classes, z_dim, width, hidden):
    x = inputs = keras.Input(data_shape, name="x")
    classes = keras.Input((num_classes,), name="classes")
    if len(data_shape) == 3:
        x = keras.layers.Conv2D(width, 1, activation="relu")(x)
        for _ in _halvings(data_shape):
            x = keras.layers.Conv2D(
                width, 3, strides=2, padding="same", activation="relu"
            )(x)
        x = keras.layers.Flatten()(x)
    x = keras.layers.Concatenate()([x, classes])
    x = keras.layers.Dense(hidden, activation="relu")(x)
    x = keras.layers.Dense(2 * z_dim)(x)
    return keras.Model([inputs, classes], x, name="encoder")


def _build_maps(x, data_shape, width):
    """Maps from the smallest one up to the size of a pattern."""
    sizes = _halvings(data_shape)
    rows, columns = sizes[-1] if sizes else data_shape[:2]
    x = keras.layers.Dense(rows * columns * width, activation="relu")(x)
    x = keras.layers.Reshape((rows, columns, width))(x)
    for target in [*sizes[-2::-1], data_shape[:2]] if sizes else []:
        x = keras.layers.UpSampling2D(2)(x)
        x = keras.layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        # Doubling an odd size that was halved upwards gives one too many.
        x = keras.layers.Cropping2D(
            ((0, x.shape[1] - target[0]), (0, x.shape[2] - target[1]))
        )(x)
    return x


def _halvings(data_shape):
    """Sizes of the maps after each halving, down to the smallest."""
    rows, columns = data_shape[:2]
    sizes = []
    while max(rows, columns) > _SMALLEST_MAP:
        rows, columns = -(-rows // 2), -(-columns // 2)
        sizes.append((rows, columns))
    return sizes
