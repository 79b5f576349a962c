"""Tests of the conditional VAE."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import ConditionalVAE
from gnr_keras import GeneratorTrainer
from gnr_keras import generator as generator_module
from gnr_keras import growing
from gnr_keras.layers import BatchRenormalization
from gnr_keras.replay import Memory

SMALL = {"z_dim": 4, "width": 6, "hidden": 16}
SHAPES = [
    (10,),
    (2, 2, 3),
    (8, 8, 5),
    (9, 4, 2),
    (1, 20, 2),
    (20, 17, 3),
    (33, 16, 1),
]


def make_generator(data_shape=(3, 3, 4), num_classes=3, **options):
    return ConditionalVAE(data_shape, num_classes, **{**SMALL, **options})


def make_data(data_shape, count=5, num_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, (count, *data_shape)).astype("float32")
    labels = rng.integers(num_classes, size=count).astype("int32")
    return tf.constant(x), tf.constant(labels)


def make_z(count, spread=1.0):
    z = np.random.default_rng(1).normal(0, spread, (count, 4))
    return tf.constant(z, tf.float32)


def empty_memory(data_shape):
    return Memory(
        np.zeros((0, *data_shape), np.float16), np.zeros((0,), np.int32)
    )


def perturb(model, spread=0.3, seed=0):
    """Moves each variable, since an untrained generator has one pattern."""
    rng = np.random.default_rng(seed)
    for variable in model.variables:
        variable.assign_add(rng.uniform(-spread, spread, variable.shape))
    return model


def weights_of(model):
    return [variable.numpy().copy() for variable in model.variables]


def any_differs(first, second):
    return any((a != b).any() for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("data_shape", SHAPES)
def test_shapes(data_shape):
    generator = make_generator(data_shape)
    x, labels = make_data(data_shape)
    mean, log_variance = generator.encode(x, labels)
    assert mean.shape == log_variance.shape == (5, 4)
    assert generator.decode(mean, labels).shape == x.shape
    assert generator((x, labels)).shape == x.shape
    patterns = generator.generate([0, 2], seed=0)
    assert patterns.shape == (2, *data_shape)
    assert patterns.dtype == np.float16


def test_arrays_are_taken_as_tensors_are():
    generator = perturb(make_generator())
    x, labels = make_data((3, 3, 4))
    noise = make_z(5)
    np.testing.assert_array_equal(
        generator.encode(x.numpy(), labels.numpy()), generator.encode(x, labels)
    )
    np.testing.assert_array_equal(
        generator.decode(noise.numpy(), labels.numpy()),
        generator.decode(noise, labels),
    )
    from_arrays = generator.compute_losses(
        x.numpy(), labels.numpy(), noise.numpy()
    )
    for name, value in generator.compute_losses(x, labels, noise).items():
        np.testing.assert_array_equal(from_arrays[name], value)


def test_no_labels_give_no_patterns():
    assert make_generator().generate([], seed=0).shape == (0, 3, 3, 4)


def test_other_shapes_are_an_error():
    with pytest.raises(ValueError, match=r"\(4, 4\)"):
        make_generator((4, 4))


@pytest.mark.parametrize(
    "activation, low, high",
    [("relu6", 0, 6), ("relu", 0, np.inf), ("sigmoid", 0, 1)],
)
def test_output_lies_in_the_range_of_its_activation(activation, low, high):
    generator = perturb(make_generator(output_activation=activation))
    labels = np.arange(40) % 3
    output = generator.decode(make_z(40, 1e4), labels).numpy()
    assert low <= output.min() < low + 0.01
    assert output.max() <= high
    # Far from the origin the bounds are met, not only respected.
    assert output.max() > min(0.99 * high, 6.1)


def test_linear_output_is_unbounded():
    generator = perturb(make_generator(output_activation="linear"))
    output = generator.decode(make_z(40, 1e4), np.arange(40) % 3).numpy()
    assert output.min() < -1
    assert output.max() > 1


def test_generate_is_a_function_of_labels_and_seed():
    generator = perturb(make_generator())
    labels = [0, 1, 2, 2]
    first = generator.generate(labels, seed=7)
    np.random.normal()
    tf.random.normal(())
    assert generator.generate(labels, seed=7).tobytes() == first.tobytes()
    assert (generator.generate(labels, seed=8) != first).any()
    # Two patterns of one class are two draws.
    assert (first[2] != first[3]).any()


def test_generate_decodes_standard_normal_z_with_its_label():
    class Transparent(ConditionalVAE):
        def decode(self, z, labels):
            return z + 10.0 * tf.cast(labels, tf.float32)[:, None]

    generator = Transparent((4,), 2, **SMALL)
    patterns = generator.generate([0] * 2000 + [1] * 2000, seed=0)
    for part, mean in ((patterns[:2000], 0), (patterns[2000:], 10)):
        part = part.astype(float)
        # Standard errors over 2000 draws: 0.022 and 0.016.
        np.testing.assert_allclose(part.mean(0), [mean] * 4, atol=0.1)
        covariance = np.cov(part, rowvar=False)
        np.testing.assert_allclose(covariance, np.eye(4), atol=0.15)


def test_generate_does_not_show_how_many_are_decoded_at_once(monkeypatch):
    generator = perturb(make_generator())
    labels = np.arange(20) % 3
    whole = generator.generate(labels, seed=1)
    monkeypatch.setattr(generator_module, "_SLICE", 7)
    parts = generator.generate(labels, seed=1)
    np.testing.assert_allclose(whole, parts, atol=1e-2)


@pytest.mark.parametrize("labels", [[0, 3], [-1, 2]])
def test_labels_out_of_range_are_an_error(labels):
    with pytest.raises(ValueError, match=rf"\[0, 3\).*{min(labels)} to"):
        make_generator().generate(labels, seed=0)


def random_means(data_shape, num_classes=3, low=0.0, high=6.0, seed=5):
    rng = np.random.default_rng(seed)
    shape = (num_classes, *data_shape)
    return rng.uniform(low, high, shape).astype("float32")


@pytest.mark.parametrize("data_shape", [(6,), (3, 2, 4)])
def test_means_are_those_of_all_patterns_of_a_class(data_shape):
    generator = make_generator(data_shape, 4)
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, (30, *data_shape)).astype("float32")
    # Class 0 comes twice, 1 and 2 come once each, 3 never.
    labels = np.array([0, 1] * 10 + [0, 2, 2, 2, 2] * 2, "int32")
    calls = slice(0, 20), slice(20, 30)
    counts = [10, 10, 0, 0], [12, 10, 8, 0]
    for part, expected in zip(calls, counts, strict=True):
        generator.adapt(x[part], labels[part])
        np.testing.assert_array_equal(generator.class_counts, expected)
        seen = labels[: part.stop]
        for c in np.unique(seen):
            mean = x[: part.stop][seen == c].mean(0, dtype=float)
            np.testing.assert_allclose(
                generator.class_means[int(c)], mean, rtol=1e-6
            )
    assert not generator.class_means.numpy()[3].any()


def test_means_of_classes_that_do_not_come_again_stay():
    """To the last bit, however many experiences follow."""
    generator = make_generator((50,))
    x, _ = make_data((50,), count=7)
    generator.adapt(x, [1] * 7)
    before = generator.class_means.numpy()[1]
    for _ in range(20):
        generator.adapt(x + 1, [0] * 7)
    assert generator.class_means.numpy()[1].tobytes() == before.tobytes()
    assert generator.class_counts.numpy().tolist() == [140, 7, 0]


def test_means_are_counted_from_files_in_half_precision(tmp_path, monkeypatch):
    monkeypatch.setattr(generator_module, "_SLICE", 7)
    x, labels = (part.numpy() for part in make_data((2, 2, 3), count=20))
    path = tmp_path / "latents.npy"
    np.save(path, x.astype(np.float16))
    read = []

    class File:
        """Gives slices of what it holds, and nothing else."""

        def __getitem__(self, part):
            values = np.load(path, mmap_mode="r")[part]
            read.append(len(values))
            return values

    generator = make_generator((2, 2, 3))
    generator.adapt(File(), labels)
    assert read == [7, 7, 6]
    stored = x.astype(np.float16).astype(float)
    for c in range(3):
        np.testing.assert_allclose(
            generator.class_means[c], stored[labels == c].mean(0), rtol=1e-6
        )
    # In half precision a sum would end at 2048, from where adding 1 is lost.
    monkeypatch.setattr(generator_module, "_SLICE", 256)
    generator = make_generator((3,), 1)
    many = np.ones((5000, 3), np.float16)
    generator.adapt(many, np.zeros(5000, np.int32))
    np.testing.assert_array_equal(generator.class_means, [[1, 1, 1]])


@pytest.mark.parametrize("data_shape", [(6,), (2, 2, 3), (9, 7, 2)])
@pytest.mark.parametrize(
    "activation, expected",
    [
        ("relu6", lambda mean: mean.clip(0, 6)),
        ("relu", lambda mean: mean.clip(0)),
        ("linear", lambda mean: mean),
        ("tanh", np.tanh),
    ],
)
def test_untrained_generator_gives_the_mean(data_shape, activation, expected):
    generator = make_generator(data_shape, output_activation=activation)
    # Beyond the range on both sides, which only half precision brings about.
    means = random_means(data_shape, low=-2.0, high=8.0)
    generator.class_means.assign(means)
    wanted = [2, 0, 1, 1]
    patterns = generator.generate(wanted, seed=0)
    if activation == "tanh":
        # One step of half precision below 1.
        np.testing.assert_allclose(
            patterns, expected(means[wanted].astype(float)), atol=1e-3
        )
    else:
        half = expected(means[wanted]).astype(np.float16)
        np.testing.assert_array_equal(patterns, half)


def test_generator_that_has_seen_nothing_gives_zeros():
    assert not make_generator().generate([0, 1, 2], seed=0).any()


@pytest.mark.parametrize("data_shape", [(6,), (3, 3, 4)])
def test_encoder_sees_the_difference_from_the_mean(data_shape):
    generator = perturb(make_generator(data_shape))
    x, labels = make_data(data_shape)
    means = random_means(data_shape)
    generator.class_means.assign(means)
    encoded = np.concatenate(generator.encode(x, labels), axis=1)
    # What is left of the mean is the same pattern about the mean zero.
    generator.class_means.assign(np.zeros_like(means))
    centred = x.numpy() - means[labels.numpy()]
    expected = np.concatenate(generator.encode(centred, labels), axis=1)
    np.testing.assert_allclose(encoded, expected, rtol=1e-5, atol=1e-5)
    assert np.abs(encoded - encoded[0]).max() > 0.1


def test_decoder_adds_to_the_mean_before_its_activation():
    generator = perturb(make_generator((5,)))
    means = random_means((5,))
    generator.class_means.assign(means)
    labels = np.arange(40) % 3
    z = make_z(40, 2.0).numpy()
    parameters = {
        tuple(layer.kernel.shape): (layer.kernel.numpy(), layer.bias.numpy())
        for layer in generator.decoder.layers
        if layer.weights
    }
    assert len(parameters) == 3

    def dense(values, units):
        kernel, bias = parameters[values.shape[1], units]
        return values @ kernel + bias

    one_hot = np.eye(3)[labels]
    inner = dense(np.concatenate([z, one_hot], axis=1), 16).clip(0)
    seen = dense(means[labels], 16).clip(0)
    correction = dense(np.concatenate([inner, seen], axis=1), 5)
    expected = means[labels] + correction
    # All three parts of the activation are met.
    assert expected.min() < 0 and expected.max() > 6
    assert ((expected > 0) & (expected < 6)).any()
    np.testing.assert_allclose(
        generator.decode(z, labels), expected.clip(0, 6), rtol=1e-5, atol=1e-5
    )


def small_classifier(data_shape=(3, 3, 4), num_classes=3):
    """A classifier with batch renormalisation whose limits are open.

    To features and logits.
    """
    inputs = keras.Input(data_shape)
    x = keras.layers.Flatten()(inputs)
    x = keras.layers.Dense(8, name="below")(x)
    x = BatchRenormalization(1.25, 0.5, update_rate=0.5, name="norm")(x)
    x = keras.layers.ReLU()(x)
    x = keras.layers.Dropout(0.5)(x)
    logits = keras.layers.Dense(num_classes, name="head")(x)
    return keras.Model(inputs, [x, logits])


def look(classifier, x):
    """Features and logits of `small_classifier` in inference, in numpy."""
    below, norm, head = (
        classifier.get_layer(name) for name in ("below", "norm", "head")
    )
    values = np.asarray(x, float).reshape(len(x), -1) @ below.kernel.numpy()
    values = values + below.bias.numpy() - norm.moving_mean.numpy()
    values /= np.sqrt(norm.moving_variance.numpy() + norm.epsilon)
    values = values * norm.gamma.numpy() + norm.beta.numpy()
    features = values.clip(0)
    return features, features @ head.kernel.numpy() + head.bias.numpy()


def used_classifier(data_shape):
    """A classifier whose statistics are not those of a batch."""
    classifier = small_classifier(data_shape)
    rng = np.random.default_rng(2)
    norm = classifier.get_layer("norm")
    norm.moving_mean.assign(rng.normal(0, 1, 8))
    norm.moving_variance.assign(rng.uniform(1, 9, 8))
    norm.gamma.assign(rng.uniform(0.5, 2, 8))
    norm.beta.assign(rng.normal(0, 1, 8))
    return classifier


def cross_entropies(logits, labels):
    odds = np.exp(logits)
    return -np.log(odds[np.arange(len(odds)), labels] / odds.sum(1))


@pytest.mark.parametrize("data_shape", [(3, 3, 4), (7,)])
@pytest.mark.parametrize("every", [None, 1, 2, 3])
def test_losses_follow_from_encoder_and_decoder(data_shape, every):
    options = {} if every is None else {"classifier_every": every}
    generator = perturb(make_generator(data_shape, **options), 0.1)
    generator.class_means.assign(random_means(data_shape))
    classifier = None if every is None else used_classifier(data_shape)
    x, labels = make_data(data_shape)
    noise = make_z(5)
    values = generator.compute_losses(x, labels, noise, classifier)
    assert set(values) == set(generator.loss_weights)

    mean, log_variance = (
        np.asarray(part, float) for part in generator.encode(x, labels)
    )
    z = mean + np.sqrt(np.exp(log_variance)) * noise
    decoded = generator.decode(tf.cast(z, tf.float32), labels).numpy()
    squares = ((x.numpy() - decoded) ** 2).reshape(5, -1).mean(1)
    np.testing.assert_allclose(values["reconstruction"], squares, rtol=1e-4)
    kl = (np.exp(log_variance) + mean**2 - 1 - log_variance).mean(1) / 2
    np.testing.assert_allclose(values["kl"], kl, rtol=1e-4, atol=1e-5)
    classification = features = np.zeros(5)
    if every is not None:
        shown = {1: [0, 1, 2, 3, 4], 2: [0, 2, 4], 3: [0, 3]}[every]
        found, logits = look(classifier, decoded[shown])
        wanted, _ = look(classifier, x.numpy()[shown])
        classification = cross_entropies(logits, labels.numpy()[shown])
        features = ((wanted - found) ** 2).mean(1)
        assert features.min() > 1e-3
    np.testing.assert_allclose(
        values["classification"], classification, rtol=1e-4
    )
    np.testing.assert_allclose(values["features"], features, rtol=1e-3)


@pytest.mark.parametrize("every", [1, 2])
def test_losses_of_an_untrained_generator_follow_from_the_means(every):
    """No noise takes part, since each reconstruction is the mean."""
    generator = make_generator(classifier_every=every)
    classifier = used_classifier((3, 3, 4))
    x, labels = make_data((3, 3, 4), count=6)
    generator.adapt(x, labels)
    x, labels = x.numpy(), labels.numpy()
    means = np.stack([x[labels == c].mean(0) for c in labels])
    values = generator.compute_losses(x, labels, make_z(6, 9.0), classifier)
    found, logits = look(classifier, means[::every])
    wanted, _ = look(classifier, x[::every])
    expected = {
        "reconstruction": ((x - means) ** 2).mean((1, 2, 3)),
        "classification": cross_entropies(logits, labels[::every]),
        "features": ((wanted - found) ** 2).mean(1),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(
            values[name], value, rtol=1e-4, atol=1e-6, err_msg=name
        )


def test_loss_weights_are_those_that_are_given():
    generator = make_generator(beta=0.25, eta=3.0, feature_weight=0.125)
    assert generator.loss_weights == {
        "reconstruction": 1.0,
        "kl": 0.25,
        "classification": 3.0,
        "features": 0.125,
    }


def fit(
    generator,
    classifier,
    x,
    labels,
    epochs=2,
    seed=0,
    callbacks=(),
    memory=None,
    **options,
):
    options = {"batch_size": 8, **options}
    trainer = GeneratorTrainer(generator, classifier, epochs=epochs, **options)
    trainer.fit(
        np.asarray(x, np.float16),
        np.asarray(labels),
        memory or empty_memory(generator.data_shape),
        np.random.default_rng(seed),
        callbacks,
    )
    return trainer


class Logs(keras.callbacks.Callback):
    """Keeps what is logged of each step."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(dict(logs))


# Two features of two units, with different weights.
FEATURES = np.array([[1.0, -2.0], [0.5, 1.0]])
HEAD = np.array([[1.0, 0.0, -1.0], [0.5, -0.5, 1.0]])


def linear_classifier():
    inputs = keras.Input((2,))
    features = keras.layers.Dense(2, use_bias=False, name="below")(inputs)
    logits = keras.layers.Dense(3, use_bias=False, name="head")(features)
    classifier = keras.Model(inputs, [features, logits])
    classifier.get_layer("below").kernel.assign(FEATURES)
    classifier.get_layer("head").kernel.assign(HEAD)
    return classifier


@pytest.mark.parametrize("every", [1, 2, 3])
def test_terms_of_a_step_are_means_over_the_patterns_they_are_of(every):
    """However few patterns the classifier looks at, its terms weigh alike."""
    generator = make_generator(
        (2,),
        beta=0.0,
        eta=0.5,
        feature_weight=0.25,
        classifier_every=every,
        output_activation="linear",
    )
    # Each pattern lies as far from the mean (2, 1) as every other.
    signs = np.array([1, -1] * 4)
    x = np.array([2.0, 1.0]) + signs[:, None] * np.array([1.0, 0.5])
    logs = Logs()
    fit(
        generator,
        linear_classifier(),
        x,
        np.full(8, 1, np.int32),
        epochs=1,
        callbacks=[logs],
        optimizer=keras.optimizers.SGD(0.1),
    )
    # Features of (1, 0.5) are (1.25, -1.5); those of (2, 1) twice as much,
    # and the logits of these are (1, 1.5, -5.5).
    expected = {
        "reconstruction": (1 + 0.25) / 2,
        "features": (1.25**2 + 1.5**2) / 2,
        "classification": -1.5 + np.log(np.exp([1.0, 1.5, -5.5]).sum()),
    }
    (seen,) = logs.seen
    for name, value in expected.items():
        assert seen[name] == pytest.approx(value, rel=1e-5), name
    assert seen["loss"] == pytest.approx(
        expected["reconstruction"]
        + 0.25 * expected["features"]
        + 0.5 * expected["classification"],
        rel=1e-5,
    )


@pytest.mark.parametrize("every", [1, 2, 3])
def test_one_step_of_the_offset_is_the_closed_form(every):
    """The rest of the gradient cancels over patterns about their mean."""
    generator = make_generator(
        (2,),
        eta=0.5,
        feature_weight=0.0,
        classifier_every=every,
        output_activation="linear",
    )
    signs = np.array([1, -1] * 4)
    x = np.array([2.0, 1.0]) + signs[:, None] * np.array([1.0, 0.5])
    fit(
        generator,
        linear_classifier(),
        x,
        np.full(8, 1, np.int32),
        epochs=1,
        optimizer=keras.optimizers.SGD(0.1),
    )
    odds = np.exp([1.0, 1.5, -5.5])
    error = odds / odds.sum() - [0, 1, 0]
    offset = -0.1 * 0.5 * FEATURES @ HEAD @ error
    (bias,) = (
        layer.bias
        for layer in generator.decoder.layers
        if layer.weights and layer.bias.shape == (2,)
    )
    np.testing.assert_allclose(bias, offset, rtol=1e-4, atol=1e-7)


def test_real_patterns_alone_enter_the_means():
    generator = make_generator()
    x, labels = make_data((3, 3, 4), count=20)
    labels = labels.numpy() % 2
    # Of a class that comes and of one that does not.
    memory = Memory(
        np.full((12, 3, 3, 4), 5.5, np.float16),
        np.repeat([1, 2], 6).astype(np.int32),
    )
    fit(generator, small_classifier(), x, labels, memory=memory)
    half = x.numpy().astype(np.float16).astype(float)
    for c in range(2):
        np.testing.assert_allclose(
            generator.class_means[c], half[labels == c].mean(0), rtol=1e-6
        )
    assert not generator.class_means.numpy()[2].any()
    np.testing.assert_array_equal(
        generator.class_counts, np.bincount(labels, minlength=3)
    )


def test_patterns_that_are_refused_do_not_enter_the_means():
    generator = make_generator()
    x, labels = make_data((3, 3, 4))
    with pytest.raises(ValueError, match="lie in"):
        fit(generator, None, x + 6, labels)
    assert not generator.class_means.numpy().any()
    assert not generator.class_counts.numpy().any()


def test_training_the_generator_leaves_every_classifier_variable():
    generator = make_generator(eta=1.0, feature_weight=2.0)
    classifier = small_classifier()
    x, labels = make_data((3, 3, 4), count=32)
    before, generator_before = weights_of(classifier), weights_of(generator)
    names = {variable.name for variable in classifier.variables}
    assert {"moving_mean", "moving_variance", "r_max", "update_rate"} <= names
    fit(generator, classifier, x, labels)
    for variable, value in zip(classifier.variables, before, strict=True):
        assert variable.numpy().tobytes() == value.tobytes(), variable.path
    for variable, value in zip(
        generator.variables, generator_before, strict=True
    ):
        assert (variable.numpy() != value).any(), variable.path


@pytest.mark.parametrize("weight", ["eta", "feature_weight"])
def test_what_the_classifier_says_reaches_the_generator(weight):
    classifier = small_classifier()
    x, labels = make_data((3, 3, 4), count=32)
    trained = []
    for value in (0.0, 5.0):
        generator = make_generator(
            **{"eta": 0.0, "feature_weight": 0.0, weight: value}
        )
        fit(generator, classifier, x, labels)
        trained.append(weights_of(generator))
    assert any_differs(*trained)


def test_weight_of_features_brings_them_closer():
    """With one number to tell, the generator tells what features show."""
    rng = np.random.default_rng(0)
    # The first unit varies most, and the features are the second one.
    x = rng.normal(0, 1, (128, 2)) * [1.0, 0.5]
    labels = np.zeros(128, np.int32)
    inputs = keras.Input((2,))
    features = keras.layers.Dense(1, use_bias=False, name="below")(inputs)
    classifier = keras.Model(inputs, [features, keras.layers.Dense(1)(inputs)])
    classifier.get_layer("below").kernel.assign([[0.0], [1.0]])
    errors = []
    for weight in (0.0, 30.0):
        generator = make_generator(
            (2,),
            1,
            z_dim=1,
            eta=0.0,
            feature_weight=weight,
            output_activation="linear",
        )
        fit(
            generator,
            classifier,
            x,
            labels,
            epochs=40,
            optimizer=keras.optimizers.Adam(0.01),
        )
        difference = generator((x, labels)).numpy() - x
        errors.append((difference[:, 1] ** 2).mean())
    without, with_weight = errors
    # The mean alone is off by the variance, which is 0.25.
    assert with_weight < 0.05
    assert without > 0.15


def test_generator_learns_how_patterns_of_a_class_differ():
    """Two kinds of patterns in a class, of which none is like the mean."""
    kinds = np.array([[1.0, 5.0, 1.0, 5.0], [5.0, 1.0, 5.0, 1.0]])
    x = kinds[np.arange(64) % 2]
    generator = make_generator((4,), 1, z_dim=1, hidden=32, beta=1.0)
    fit(
        generator,
        None,
        x,
        np.zeros(64, np.int32),
        epochs=60,
        optimizer=keras.optimizers.Adam(0.01),
    )
    patterns = generator.generate([0] * 200, seed=0).astype(float)
    distances = np.linalg.norm(patterns[:, None] - kinds, axis=2)
    # The kinds are 8 apart, the mean is 4 from each.
    assert np.median(distances.min(1)) < 1.0
    shares = np.bincount(distances.argmin(1)) / 200
    # Half each; the generator need not be that exact.
    assert shares.min() > 0.25
    np.testing.assert_array_equal(generator.class_means, [[3, 3, 3, 3]])


@pytest.mark.parametrize("data_shape", [(6,), (9, 7, 2)])
def test_saved_generator_loads_without_custom_objects(tmp_path, data_shape):
    generator = perturb(
        make_generator(
            data_shape, beta=0.5, feature_weight=3.0, classifier_every=5, seed=4
        ),
        0.05,
    )
    generator.class_means.assign(random_means(data_shape))
    generator.class_counts.assign([4, 0, 9])
    path = tmp_path / "generator.keras"
    generator.save(path)
    loaded = keras.saving.load_model(path)
    assert isinstance(loaded, ConditionalVAE)
    assert loaded.loss_weights == generator.loss_weights
    assert loaded.get_config() == generator.get_config()
    for old, new in zip(generator.variables, loaded.variables, strict=True):
        np.testing.assert_array_equal(old.numpy(), new.numpy())
    np.testing.assert_array_equal(loaded.class_means, random_means(data_shape))
    np.testing.assert_array_equal(loaded.class_counts, [4, 0, 9])
    np.testing.assert_array_equal(
        loaded.generate([0, 2, 1], seed=3), generator.generate([0, 2, 1], 3)
    )
    # The means go on from where they were: (4 m + 1) / 5.
    loaded.adapt(np.ones((1, *data_shape)), [0])
    np.testing.assert_allclose(
        loaded.class_means[0],
        (4 * random_means(data_shape)[0] + 1) / 5,
        rtol=1e-6,
    )


@pytest.mark.parametrize("data_shape", [(6,), (9, 7, 2)])
def test_grown_generator_gives_the_old_patterns(data_shape):
    generator = make_generator(data_shape, beta=0.5, seed=4)
    x, labels = make_data(data_shape, count=16)
    fit(generator, None, x, labels)
    wanted = np.arange(300) % 3
    before = generator.generate(wanted, seed=3)
    reconstructed = generator((x, labels)).numpy()
    grown = generator.grown(5)
    assert grown.get_config() == {**generator.get_config(), "num_classes": 5}
    np.testing.assert_array_equal(grown.generate(wanted, seed=3), before)
    np.testing.assert_allclose(
        grown((x, labels)), reconstructed, rtol=1e-5, atol=1e-6
    )
    assert grown.generate([3, 4], seed=3).shape == (2, *data_shape)
    # What is new is what a generator of five classes starts with.
    fresh = make_generator(data_shape, 5, beta=0.5, seed=4)
    larger = 0
    for old, new, start in zip(
        generator.variables, grown.variables, fresh.variables, strict=True
    ):
        np.testing.assert_array_equal(new[: old.shape[0]], old)
        rest = start.numpy()[old.shape[0] :]
        np.testing.assert_array_equal(new[old.shape[0] :], rest)
        larger += bool(len(rest))
    # Of the encoder one kernel, of the decoder one, the means, the counts.
    assert larger == 4
    half = x.numpy().astype(np.float16).astype(float)
    for c in range(3):
        np.testing.assert_allclose(
            grown.class_means[c], half[labels == c].mean(0), rtol=1e-6
        )
    assert not grown.class_means.numpy()[3:].any()
    np.testing.assert_array_equal(
        grown.class_counts, np.bincount(labels, minlength=5)
    )
    with pytest.raises(ValueError, match="has 3 classes.*Received: 2"):
        generator.grown(2)


def grow_in_training(trainer):
    """Two classes more, which the classifier holds to be impossible."""
    classifier = growing.grow_head(trainer.classifier, "head", 2, seed=0)
    head = classifier.get_layer("head")
    head.bias.assign([*head.bias.numpy()[:3], -1e9, -1e9])
    classifier = keras.Model(classifier.inputs[0], [head.input, head.output])
    before = weights_of(trainer._optimizer)
    trainer.grow(trainer.generator.grown(5), classifier)
    larger = 0
    for old, new in zip(before, trainer._optimizer.variables, strict=True):
        kept = tuple(slice(size) for size in old.shape)
        np.testing.assert_array_equal(new.numpy()[kept], old)
        # Adam's moments of what is new are zero.
        assert np.abs(new).sum() == pytest.approx(np.abs(old).sum())
        larger += new.shape != old.shape
    # Two moments of two kernels.
    assert larger == 4


def test_training_goes_on_after_growth_as_without_it():
    """Weights of classes that do not occur have no gradient."""
    x, labels = make_data((3, 3, 4), count=32)
    patterns = []
    for grows in (False, True):
        keras.utils.set_random_seed(0)
        trainer = fit(
            make_generator(),
            small_classifier(),
            x,
            labels,
            optimizer=keras.optimizers.Adam(0.01),
            schedule=lambda i: 0.5**i,
        )
        before = trainer.generator.generate(np.arange(60) % 3, seed=0)
        if grows:
            grow_in_training(trainer)
        trainer.fit(
            np.asarray(x, np.float16),
            labels.numpy(),
            empty_memory((3, 3, 4)),
            np.random.default_rng(1),
        )
        assert trainer.trainings == 2
        after = trainer.generator.generate(np.arange(60) % 3, seed=0)
        patterns.append(after.astype(float))
        assert np.abs(after - before).max() > 0.05
    # Rounding, of sums and to half precision.
    np.testing.assert_allclose(*patterns, atol=4e-3)


@pytest.mark.parametrize("data_shape", [(6,), (9, 7, 2)])
def test_initial_weights_depend_on_the_seed_alone(data_shape):
    keras.utils.set_random_seed(1)
    first = weights_of(make_generator(data_shape, seed=5))
    keras.utils.set_random_seed(2)
    keras.layers.Dense(3).build((None, 4))
    again = weights_of(make_generator(data_shape, seed=5))
    for a, b in zip(first, again, strict=True):
        assert a.tobytes() == b.tobytes()
    assert any_differs(first, weights_of(make_generator(data_shape, seed=6)))


def test_layers_of_one_shape_start_from_different_weights():
    generator = make_generator((33, 33, 1))
    kernels = [
        layer.kernel.numpy()
        for model in (generator.encoder, generator.decoder)
        for layer in model.layers
        if isinstance(layer, keras.layers.Conv2D)
        and layer.kernel.shape == (3, 3, 6, 6)
    ]
    assert len(kernels) > 3
    for i, kernel in enumerate(kernels):
        for other in kernels[:i]:
            assert (kernel != other).all()


def test_generated_patterns_are_nearest_to_the_cluster_of_their_label():
    centres = np.array([[4, 0.5, 4, 0.5, 4, 0.5], [0.5, 4, 0.5, 4, 0.5, 4]])
    rng = np.random.default_rng(0)
    labels = (np.arange(128) % 2).astype(np.int32)
    x = (centres[labels] + rng.normal(0, 0.3, (128, 6))).clip(0, 6)
    generator = make_generator((6,), 2, hidden=32, beta=1.0)
    fit(generator, None, x, labels, 20, optimizer=keras.optimizers.Adam(0.01))
    wanted = np.repeat([0, 1], 50)
    patterns = generator.generate(wanted, seed=0).astype(float)
    distances = np.linalg.norm(patterns[:, None] - centres, axis=2)
    np.testing.assert_array_equal(distances.argmin(1), wanted)
    # The clusters are 8.6 apart, and 0.7 wide.
    assert distances.min(1).mean() < 1.0
