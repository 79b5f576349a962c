"""Tests of the conditional VAE, and of what `CenteredVAE` has from it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from vae_helpers import SMALL
from vae_helpers import any_differs
from vae_helpers import cross_entropies
from vae_helpers import empty_memory
from vae_helpers import fit
from vae_helpers import look
from vae_helpers import make_data
from vae_helpers import make_generator
from vae_helpers import make_z
from vae_helpers import perturb
from vae_helpers import small_classifier
from vae_helpers import used_classifier
from vae_helpers import weights_of

from gnr_keras import CenteredVAE
from gnr_keras import ConditionalVAE
from gnr_keras import generator as generator_module
from gnr_keras import growing
from gnr_keras.replay import Memory

SHAPES = [
    (10,),
    (2, 2, 3),
    (8, 8, 5),
    (9, 4, 2),
    (1, 20, 2),
    (20, 17, 3),
    (33, 16, 1),
]

both_kinds = pytest.mark.parametrize("kind", [ConditionalVAE, CenteredVAE])


@both_kinds
@pytest.mark.parametrize("data_shape", SHAPES)
def test_shapes(data_shape, kind):
    generator = make_generator(data_shape, kind=kind)
    x, labels = make_data(data_shape)
    mean, log_variance = generator.encode(x, labels)
    assert mean.shape == log_variance.shape == (5, 4)
    assert generator.decode(mean, labels).shape == x.shape
    assert generator((x, labels)).shape == x.shape
    patterns = generator.generate([0, 2], seed=0)
    assert patterns.shape == (2, *data_shape)
    assert patterns.dtype == np.float16


@both_kinds
def test_arrays_are_taken_as_tensors_are(kind):
    generator = perturb(make_generator(kind=kind))
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


def test_a_classifier_that_never_looks_is_an_error():
    with pytest.raises(ValueError, match="`classifier_every`.*Received: 0"):
        make_generator(classifier_every=0)


@pytest.mark.parametrize(
    "activation, low, high",
    [("relu6", 0, 6), ("relu", 0, np.inf), ("sigmoid", 0, 1)],
)
def test_output_lies_in_the_range_of_its_activation(activation, low, high):
    generator = make_generator(output_activation=activation)
    labels = np.arange(40) % 3
    output = generator.decode(make_z(40, 1e4), labels).numpy()
    assert low <= output.min() < low + 0.01
    assert output.max() <= high
    # Far from the origin the bounds are met, not only respected.
    assert output.max() > min(0.99 * high, 6.1)


def test_linear_output_is_unbounded():
    generator = make_generator(output_activation="linear")
    output = generator.decode(make_z(40, 1e4), np.arange(40) % 3).numpy()
    assert output.min() < -1
    assert output.max() > 1


@both_kinds
def test_generate_is_a_function_of_labels_and_seed(kind):
    generator = perturb(make_generator(kind=kind))
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
    generator = make_generator()
    labels = np.arange(20) % 3
    whole = generator.generate(labels, seed=1)
    monkeypatch.setattr(generator_module, "SLICE", 7)
    parts = generator.generate(labels, seed=1)
    np.testing.assert_allclose(whole, parts, atol=1e-2)


@pytest.mark.parametrize("labels", [[0, 3], [-1, 2]])
def test_labels_out_of_range_are_an_error(labels):
    with pytest.raises(ValueError, match=rf"\[0, 3\).*{min(labels)} to"):
        make_generator().generate(labels, seed=0)


@pytest.mark.parametrize(
    "activation, low, high",
    [
        ("relu6", 0, 6),
        ("relu", 0, np.inf),
        ("sigmoid", 0, 1),
        ("tanh", -1, 1),
        ("linear", -np.inf, np.inf),
    ],
)
def test_adapt_refuses_what_the_decoder_cannot_reach(activation, low, high):
    generator = make_generator((2,), output_activation=activation)
    before = weights_of(generator)
    # The bounds themselves are within.
    inside = np.clip([[-1e4, 0.5], [1.0, 1e4]], low, high).astype(np.float16)
    generator.adapt(inside, [0, 1])
    generator.adapt(inside[:0], [])
    for outside in (low - 0.25, high + 0.25):
        if np.isfinite(outside):
            x = inside.copy()
            x[1, 0] = outside
            message = rf"{activation}.* lie in \[{low:.1f}, {high:.1f}\], but.*"
            with pytest.raises(ValueError, match=f"{message}{outside}"):
                generator.adapt(x, [0, 1])
    if activation != "linear":
        with pytest.raises(ValueError, match="nan"):
            generator.adapt(np.array([[0.5, np.nan]], np.float16), [0])
    # It only looks.
    assert not any_differs(before, weights_of(generator))


@both_kinds
def test_trainer_refuses_labels_that_the_generator_has_not(kind):
    generator = make_generator((2,), kind=kind)
    x = np.ones((4, 2), "float16")
    before = weights_of(generator)
    with pytest.raises(ValueError, match=r"\[0, 3\). Received: 0 to 3"):
        fit(generator, None, x, [0, 1, 2, 3])
    with pytest.raises(ValueError, match="one integer per pattern"):
        fit(generator, None, x, np.eye(4))
    with pytest.raises(ValueError, match=r"\[0, 3\). Received: -1 to 0"):
        fit(generator, None, x, [0, 1, 2, 0], memory=Memory(x[:2], [-1, 0]))
    assert not any_differs(before, weights_of(generator))


def test_trainer_does_not_train_on_what_adapt_refuses():
    generator = make_generator()
    before = weights_of(generator)
    x, labels = make_data((3, 3, 4), count=32)
    with pytest.raises(ValueError, match=r"lie in \[0.0, 6.0\]"):
        fit(generator, small_classifier(), x + 1, labels)
    assert not any_differs(before, weights_of(generator))


@both_kinds
@pytest.mark.parametrize("data_shape", [(3, 3, 4), (7,)])
@pytest.mark.parametrize(
    "every, shown", [(1, [0, 1, 2, 3, 4]), (2, [0, 2, 4]), (3, [0, 3])]
)
@pytest.mark.parametrize("with_classifier", [False, True])
def test_losses_follow_from_encoder_and_decoder(
    kind, data_shape, every, shown, with_classifier
):
    """Those of `CenteredVAE` alone are looked at in test_centered.py."""
    generator = perturb(
        make_generator(data_shape, kind=kind, classifier_every=every), 0.1
    )
    classifier = used_classifier(data_shape) if with_classifier else None
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
    classification = np.zeros(len(shown))
    if with_classifier:
        _, logits = look(classifier, decoded[shown])
        classification = cross_entropies(logits, labels.numpy()[shown])
    np.testing.assert_allclose(
        values["classification"], classification, rtol=1e-4
    )


def test_loss_weights_are_beta_and_eta():
    generator = make_generator(beta=0.25, eta=3.0)
    assert generator.loss_weights == {
        "reconstruction": 1.0,
        "kl": 0.25,
        "classification": 3.0,
    }


@both_kinds
def test_training_the_generator_leaves_every_classifier_variable(kind):
    generator = make_generator(kind=kind, eta=1.0)
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


def test_classification_by_the_classifier_reaches_the_generator():
    classifier = small_classifier()
    x, labels = make_data((3, 3, 4), count=32)
    trained = []
    for eta in (0.0, 5.0):
        generator = make_generator(eta=eta)
        fit(generator, classifier, x, labels)
        trained.append(weights_of(generator))
    assert any_differs(*trained)


@both_kinds
@pytest.mark.parametrize("data_shape", [(6,), (9, 7, 2)])
def test_saved_generator_loads_without_custom_objects(
    tmp_path, data_shape, kind
):
    generator = perturb(
        make_generator(
            data_shape, kind=kind, beta=0.5, classifier_every=5, seed=4
        )
    )
    path = tmp_path / "generator.keras"
    generator.save(path)
    loaded = keras.saving.load_model(path)
    assert type(loaded) is kind
    assert loaded.loss_weights == generator.loss_weights
    assert loaded.get_config() == generator.get_config()
    for old, new in zip(generator.variables, loaded.variables, strict=True):
        np.testing.assert_array_equal(old.numpy(), new.numpy())
    np.testing.assert_array_equal(
        loaded.generate([0, 2, 1], seed=3), generator.generate([0, 2, 1], 3)
    )


@pytest.mark.parametrize(
    "kind, count",
    [
        # Of the encoder one kernel, of the decoder one and the offset.
        (ConditionalVAE, 3),
        # Of the encoder one kernel, of the decoder one, means and counts.
        (CenteredVAE, 4),
    ],
)
@pytest.mark.parametrize("data_shape", [(6,), (9, 7, 2)])
def test_grown_generator_gives_the_old_patterns(data_shape, kind, count):
    generator = make_generator(data_shape, kind=kind, beta=0.5, seed=4)
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
    fresh = make_generator(data_shape, 5, kind, beta=0.5, seed=4)
    larger = 0
    for old, new, start in zip(
        generator.variables, grown.variables, fresh.variables, strict=True
    ):
        np.testing.assert_array_equal(new[: old.shape[0]], old)
        rest = start.numpy()[old.shape[0] :]
        np.testing.assert_array_equal(new[old.shape[0] :], rest)
        larger += bool(len(rest))
    assert larger == count
    with pytest.raises(ValueError, match="has 3 classes.*Received: 2"):
        generator.grown(2)


def grow_in_training(trainer):
    """Two classes more, which the classifier holds to be impossible.

    Returns:
        How many of the optimizer's variables have grown.
    """
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
    return larger


# Two moments of three kernels, and of two, since means are counted.
@pytest.mark.parametrize("kind, count", [(ConditionalVAE, 6), (CenteredVAE, 4)])
def test_training_goes_on_after_growth_as_without_it(kind, count):
    """Weights of classes that do not occur have no gradient."""
    x, labels = make_data((3, 3, 4), count=32)
    patterns = []
    for grows in (False, True):
        keras.utils.set_random_seed(0)
        trainer = fit(
            make_generator(kind=kind),
            small_classifier(),
            x,
            labels,
            optimizer=keras.optimizers.Adam(0.01),
            schedule=lambda i: 0.5**i,
        )
        before = trainer.generator.generate(np.arange(60) % 3, seed=0)
        if grows:
            assert grow_in_training(trainer) == count
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


@both_kinds
@pytest.mark.parametrize("data_shape", [(6,), (9, 7, 2)])
def test_initial_weights_depend_on_the_seed_alone(data_shape, kind):
    keras.utils.set_random_seed(1)
    first = weights_of(make_generator(data_shape, kind=kind, seed=5))
    keras.utils.set_random_seed(2)
    keras.layers.Dense(3).build((None, 4))
    again = weights_of(make_generator(data_shape, kind=kind, seed=5))
    for a, b in zip(first, again, strict=True):
        assert a.tobytes() == b.tobytes()
    other = weights_of(make_generator(data_shape, kind=kind, seed=6))
    assert any_differs(first, other)


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
