"""Tests of MobileNetV1 with its ImageNet weights, on real pictures."""

import helpers
import keras
import numpy as np
import pytest

import gnr_keras
from gnr_keras import cloning
from gnr_keras import layers

IMAGENET = "weights/mobilenet_v1_1.0_224_imagenet.weights.h5"
needs_imagenet = helpers.needs_shared(IMAGENET)
needs_core50 = helpers.needs_shared("core50/frames")
needs_fruits = helpers.needs_shared("fruits360_50x3/s1")

# Numbers of ImageNet's classes.
SUNGLASSES = (836, 837)
CUPS = (504, 968)  # A coffee mug, a cup.
PHONE, REMOTE, TENNIS_BALL = 487, 761, 852
BELL_PEPPER, APPLE = 945, 948


def picture(name, size=224):
    image = keras.utils.load_img(
        helpers.SHARED / name, target_size=(size, size)
    )
    return keras.utils.img_to_array(image)


def pictures(*names, size=224):
    return np.stack([picture(name, size) for name in names])


def core50(*names, size=224):
    return pictures(*(f"core50/frames/C_{n}.png" for n in names), size=size)


def fruits(*names):
    return pictures(*(f"fruits360_50x3/s1/{n}.jpg" for n in names))


def keras_logits(network, x):
    scaled = keras.applications.mobilenet.preprocess_input(x.copy())
    return np.asarray(network(scaled, training=False))


@pytest.fixture(scope="module")
def reference():
    """Keras' own network, with its ImageNet weights."""
    network = keras.applications.MobileNet(
        weights=None, classifier_activation=None
    )
    network.load_weights(helpers.SHARED / IMAGENET)
    return network


@pytest.fixture(scope="module")
def classifier():
    """Ours, with batch renormalisation as a learner has it."""
    model = gnr_keras.mobilenet_v1(
        (224, 224, 3), weights=helpers.SHARED / IMAGENET, include_top=True
    )
    return cloning.clone(model, seed=0, batch_renormalization=True)


@needs_imagenet
@needs_core50
def test_logits_of_real_frames_are_those_of_keras(reference, classifier):
    x = core50("02_42_005", "06_34_005", "08_28_005", "09_50_012")
    check_logits(reference, classifier, x)


@needs_imagenet
@needs_fruits
def test_logits_of_fruits_are_those_of_keras(reference, classifier):
    x = fruits("o1/r0_000", "o21/r0_060", "o26/r0_060", "o46/r0_000")
    check_logits(reference, classifier, x)


def check_logits(reference, classifier, x):
    kinds = {type(layer) for layer in classifier.layers}
    assert layers.BatchRenormalization in kinds
    assert keras.layers.BatchNormalization not in kinds
    expected = keras_logits(reference, x)
    assert expected.shape == (4, 1000)
    assert expected.std() > 1
    np.testing.assert_allclose(
        classifier(x, training=False), expected, rtol=0, atol=1e-4
    )


@needs_imagenet
@needs_core50
def test_logits_after_a_split_at_every_layer(reference, classifier):
    x = core50("02_42_005", "08_28_005")
    expected = keras_logits(reference, x)
    names = [layer.name for layer in classifier.layers[:-1]]
    blocks = ["conv2_1", "conv2_2", "conv3_1", "conv3_2", "conv4_1", "conv4_2"]
    blocks += [f"conv5_{i}" for i in range(1, 7)] + ["conv6"]
    aliases = [b + part for b in blocks for part in ("", "/dw", "/sep")]
    # Input and scaling, a first convolution of 3 layers, 13 blocks of 6,
    # padding where 4 of them are strided, pooling.
    assert len(names) == 2 + 3 + 13 * 6 + 4 + 1
    for name in names + aliases:
        front, back = gnr_keras.split(classifier, name)
        logits = back(front(x, training=False), training=False)
        np.testing.assert_allclose(
            logits, expected, rtol=0, atol=1e-4, err_msg=name
        )


@needs_imagenet
@needs_core50
def test_objects_of_core50_are_recognised(classifier):
    known = {
        "02_42_005": CUPS,
        "04_45_003": CUPS,
        "09_45_008": CUPS,
        "01_29_001": SUNGLASSES,
        "08_28_005": SUNGLASSES,
        "08_30_008": SUNGLASSES,
        "06_34_005": (TENNIS_BALL,),
        "05_06_006": (PHONE,),
        "08_49_007": (REMOTE,),
    }
    logits = classifier.predict(core50(*known), verbose=0)
    for name, best in zip(known, logits.argmax(axis=-1), strict=True):
        assert best in known[name], name


@needs_imagenet
@needs_fruits
def test_fruits_are_recognised(classifier):
    x = fruits("o1/r0_000", "o1/r0_060", "o21/r0_060", "o21/r0_120")
    best = classifier.predict(x, verbose=0).argmax(axis=-1)
    assert best.tolist() == [APPLE, APPLE, BELL_PEPPER, BELL_PEPPER]


@needs_imagenet
@needs_core50
@pytest.mark.parametrize("include_top", [False, True])
def test_imagenet_weights_fit_other_sizes(include_top):
    x = core50("02_42_005", "08_28_005", size=128)
    network = keras.applications.MobileNet(
        input_shape=(128, 128, 3), weights=None, classifier_activation=None
    )
    network.load_weights(helpers.SHARED / IMAGENET)
    model = gnr_keras.mobilenet_v1(
        (128, 128, 3),
        weights=helpers.SHARED / IMAGENET,
        include_top=include_top,
    )
    expected = keras_logits(network, x)
    found = np.asarray(model(x, training=False))
    if not include_top:
        # The classifier of Keras, on our features.
        assert found.shape == (2, 1024)
        kernel, bias = network.get_layer("conv_preds").get_weights()
        found = found @ kernel[0, 0] + bias
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
