"""Normalisation folded into convolutions, where nothing is trained."""

import collections
import itertools

import keras
import tensorflow as tf
from keras import ops

from gnr_keras import layers


def fold(model, dtype=None):
    """Makes of a functional model one that computes the same faster.

    A batch normalisation that does not train is an affine map of each
    channel, and so part of the convolution below it: the maps are passed over
    once where it was three times, and TensorFlow joins the activation to it.
    The product of weights is taken anew at each call, so that there is nothing
    to keep up to date: it costs little beside a batch.

    Only `Conv2D` and `DepthwiseConv2D` without an activation are folded, whose
    output nothing else looks at. Nested models stay as they are.

    Args:
        model: a functional `keras.Model`.
        dtype: dtype policy of what is between inputs and outputs and has no
            weights, or is folded; by default as in `model`.

    Returns:
        A model for inference only, equal to `model(x, training=False)` up to
        rounding. It has the variables of `model`, and none of its own.

    Example:

    >>> x = inputs = keras.Input((8, 8, 3))
    >>> x = keras.layers.Conv2D(4, 3, use_bias=False)(x)
    >>> x = keras.layers.BatchNormalization()(x)
    >>> model = keras.Model(inputs, keras.layers.ReLU()(x))
    >>> [type(layer).__name__ for layer in fold(model).layers]
    ['InputLayer', 'FoldedConvolution', '_Gone', 'ReLU']
    """
    folded = find_pairs(model)
    gone = {id(norm) for norm in folded.values()}

    def copy(layer):
        if id(layer) in folded:
            return FoldedConvolution(layer, folded[id(layer)], dtype)
        if id(layer) in gone:
            return _Gone(dtype=dtype or layer.dtype_policy)
        if not isinstance(layer, keras.Layer) or layer.variables:
            return layer
        config = layer.get_config()
        return type(layer).from_config(
            {**config, "dtype": dtype} if dtype else config
        )

    read = [(layer, len(layer._outbound_nodes)) for layer in model.layers]
    copied = keras.models.clone_model(model, clone_function=copy)
    # Keras notes who reads a layer, and so would keep every copy alive.
    for layer, number in read:
        del layer._outbound_nodes[number:]
    return copied


class FoldedConvolution(keras.layers.Layer):
    """A convolution and the normalisation above it, which does not train.

    Args:
        convolution: a `Conv2D` or `DepthwiseConv2D`.
        normalization: the `BatchNormalization` that takes its output.
        dtype: dtype policy; by default that of the convolution.
    """

    def __init__(self, convolution, normalization, dtype=None):
        # Weights are multiplied as they are, and cast then.
        super().__init__(
            name=f"{convolution.name}_folded",
            dtype=dtype or convolution.dtype_policy,
            autocast=False,
            trainable=False,
        )
        self._convolution = convolution
        self._normalization = normalization
        self.built = True

    def call(self, x):
        convolution, norm = self._convolution, self._normalization
        scale = ops.rsqrt(norm.moving_variance + norm.epsilon)
        if norm.scale:
            scale = scale * norm.gamma
        bias = -norm.moving_mean * scale
        if convolution.use_bias:
            bias = bias + convolution.bias * scale
        if norm.center:
            bias = bias + norm.beta
        kernel = convolution.kernel
        if _is_depthwise(convolution):
            run = ops.depthwise_conv
            # Channels of the output go by input channel, then by multiplier.
            kernel = kernel * ops.reshape(scale, kernel.shape[2:])
        else:
            run = ops.conv
            kernel = kernel * scale
        outputs = run(
            ops.cast(x, self.compute_dtype),
            ops.cast(kernel, self.compute_dtype),
            strides=convolution.strides,
            padding=convolution.padding,
            data_format="channels_last",
            dilation_rate=convolution.dilation_rate,
        )
        return tf.nn.bias_add(outputs, ops.cast(bias, self.compute_dtype))

    def compute_output_shape(self, input_shape):
        return self._convolution.compute_output_shape(input_shape)


class _Gone(keras.layers.Layer):
    """What is left of a normalisation: nothing but its arguments."""

    def call(self, x, training=None, mask=None):
        return x


def find_pairs(model):
    """Returns, by the convolution's id, the normalisation above it.

    Args:
        model: a functional `keras.Model`.
    """
    # Layers also have calls that are not of this model.
    nodes = list(itertools.chain(*model._nodes_by_depth.values()))
    calls: collections.Counter[int] = collections.Counter()
    readers: dict[int, list] = collections.defaultdict(list)
    for node in nodes:
        calls[id(node.operation)] += 1
        for tensor in node.input_tensors:
            readers[id(tensor)].append(node.operation)
    seen_outside = {id(tensor) for tensor in model.outputs}
    pairs = {}
    for node in nodes:
        layer, output = node.operation, id(node.outputs[0])
        if not _can_fold(layer) or output in seen_outside:
            continue
        above = readers[output]
        alone = len(above) == 1 and calls[id(layer)] == calls[id(above[0])] == 1
        if alone and _is_norm(above[0]):
            pairs[id(layer)] = above[0]
    return pairs


def _can_fold(layer):
    # Subclasses may compute something else.
    return (
        type(layer) in (keras.layers.Conv2D, keras.layers.DepthwiseConv2D)
        and layer.activation is keras.activations.linear
        and layer.data_format == "channels_last"
        and layer.quantization_mode is None
    )


def _is_norm(layer):
    return (
        type(layer)
        in (keras.layers.BatchNormalization, layers.BatchRenormalization)
        and layer.axis in (-1, 3)
        and not layer.renorm
    )


def _is_depthwise(layer):
    return isinstance(layer, keras.layers.DepthwiseConv2D)
