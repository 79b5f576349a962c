"""Tests of the conditional VAE around counted class means.

What it shares with `ConditionalVAE` is looked at in test_generator.py.
"""

import functools

import keras
import numpy as np
import pytest
from vae_helpers import cross_entropies
from vae_helpers import fit
from vae_helpers import look
from vae_helpers import make_data
from vae_helpers import make_generator
from vae_helpers import make_z
from vae_helpers import perturb
from vae_helpers import small_classifier
from vae_helpers import used_classifier

from gnr_keras import CenteredVAE
from gnr_keras import generator as generator_module
from gnr_keras.replay import Memory

make_centered = functools.partial(make_generator, kind=CenteredVAE)


def random_means(data_shape, num_classes=3, low=0.0, high=6.0, seed=5):
    rng = np.random.default_rng(seed)
    shape = (num_classes, *data_shape)
    return rng.uniform(low, high, shape).astype("float32")


@pytest.mark.parametrize("data_shape", [(6,), (3, 2, 4)])
def test_means_are_those_of_all_patterns_of_a_class(data_shape):
    generator = make_centered(data_shape, 4)
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
    generator = make_centered((50,))
    x = make_data((50,), count=7)[0].numpy()
    generator.adapt(x, [1] * 7)
    before = generator.class_means.numpy()[1]
    for _ in range(20):
        generator.adapt(6 - x, [0] * 7)
    assert generator.class_means.numpy()[1].tobytes() == before.tobytes()
    assert generator.class_counts.numpy().tolist() == [140, 7, 0]


def test_means_are_counted_from_files_in_half_precision(tmp_path, monkeypatch):
    monkeypatch.setattr(generator_module, "SLICE", 7)
    x, labels = (part.numpy() for part in make_data((2, 2, 3), count=20))
    path = tmp_path / "latents.npy"
    np.save(path, x.astype(np.float16))
    read = []

    class File:
        """Gives its length, its type and slices, and nothing else."""

        def __init__(self):
            self._values = np.load(path, mmap_mode="r")
            self.dtype = self._values.dtype

        def __len__(self):
            return len(self._values)

        def __getitem__(self, part):
            values = self._values[part]
            read.append(len(values))
            return values

    generator = make_centered((2, 2, 3))
    generator.adapt(File(), labels)
    # First its range, then its means.
    assert read == [20, 7, 7, 6]
    stored = x.astype(np.float16).astype(float)
    for c in range(3):
        np.testing.assert_allclose(
            generator.class_means[c], stored[labels == c].mean(0), rtol=1e-6
        )
    # In half precision a sum would end at 2048, from where adding 1 is lost.
    monkeypatch.setattr(generator_module, "SLICE", 256)
    generator = make_centered((3,), 1)
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
    generator = make_centered(data_shape, output_activation=activation)
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
    assert not make_centered().generate([0, 1, 2], seed=0).any()


@pytest.mark.parametrize("data_shape", [(6,), (3, 3, 4)])
def test_encoder_sees_the_difference_from_the_mean(data_shape):
    generator = perturb(make_centered(data_shape))
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
    generator = perturb(make_centered((5,)))
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


@pytest.mark.parametrize("data_shape", [(3, 3, 4), (7,)])
@pytest.mark.parametrize(
    "every, shown", [(1, [0, 1, 2, 3, 4]), (2, [0, 2, 4]), (3, [0, 3])]
)
def test_features_are_those_of_pattern_and_reconstruction(
    data_shape, every, shown
):
    generator = perturb(make_centered(data_shape, classifier_every=every), 0.1)
    generator.class_means.assign(random_means(data_shape))
    classifier = used_classifier(data_shape)
    x, labels = make_data(data_shape)
    noise = make_z(5)
    mean, log_variance = (
        np.asarray(part, float) for part in generator.encode(x, labels)
    )
    z = mean + np.sqrt(np.exp(log_variance)) * noise
    found, _ = look(classifier, generator.decode(z, labels).numpy()[shown])
    wanted, _ = look(classifier, x.numpy()[shown])
    expected = ((wanted - found) ** 2).mean(1)
    assert expected.min() > 1e-3
    np.testing.assert_allclose(
        generator.compute_losses(x, labels, noise, classifier)["features"],
        expected,
        rtol=1e-3,
    )
    without = generator.compute_losses(x, labels, noise)["features"]
    np.testing.assert_array_equal(without, np.zeros(len(shown)))


@pytest.mark.parametrize("every", [1, 2])
def test_losses_of_an_untrained_generator_follow_from_the_means(every):
    """No noise takes part, since each reconstruction is the mean."""
    generator = make_centered(classifier_every=every)
    classifier = used_classifier((3, 3, 4))
    x, labels = make_data((3, 3, 4), count=6)
    x, labels = x.numpy(), labels.numpy()
    generator.adapt(x, labels)
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
    generator = make_centered(beta=0.25, eta=3.0, feature_weight=0.125)
    assert generator.loss_weights == {
        "reconstruction": 1.0,
        "kl": 0.25,
        "classification": 3.0,
        "features": 0.125,
    }


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
    generator = make_centered(
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
    generator = make_centered(
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
    generator = make_centered()
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
    generator = make_centered()
    x, labels = make_data((3, 3, 4))
    with pytest.raises(ValueError, match="lie in"):
        fit(generator, None, x + 6, labels)
    assert not generator.class_means.numpy().any()
    assert not generator.class_counts.numpy().any()


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
        generator = make_centered(
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
    generator = make_centered((4,), 1, z_dim=1, hidden=32, beta=1.0)
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


def test_means_go_on_after_loading_from_where_they_were(tmp_path):
    generator = make_centered((6,), feature_weight=3.0)
    means = random_means((6,))
    generator.class_means.assign(means)
    generator.class_counts.assign([4, 0, 9])
    path = tmp_path / "generator.keras"
    generator.save(path)
    loaded = keras.saving.load_model(path)
    assert loaded.loss_weights["features"] == 3.0
    loaded.adapt(np.ones((1, 6)), [0])
    np.testing.assert_array_equal(loaded.class_counts, [5, 0, 9])
    np.testing.assert_allclose(
        loaded.class_means, [(4 * means[0] + 1) / 5, *means[1:]], rtol=1e-6
    )


def test_grown_generator_has_the_means_and_zeros_for_new_classes():
    generator = make_centered((6,))
    means = random_means((6,))
    generator.class_means.assign(means)
    generator.class_counts.assign([4, 0, 9])
    grown = generator.grown(5)
    np.testing.assert_array_equal(
        grown.class_means, [*means, np.zeros(6), np.zeros(6)]
    )
    np.testing.assert_array_equal(grown.class_counts, [4, 0, 9, 0, 0])
