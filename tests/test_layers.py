"""Tests of batch renormalisation against the formulas of Ioffe, 2017."""

import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import with_batch_renormalization
from gnr_keras.layers import BatchRenormalization

EPSILON = 1e-3
MEAN = np.array([0.5, -1.0, 0.0, 2.0])
VARIANCE = np.array([1.0, 4.0, 0.25, 9.0])
GAMMA = np.array([1.0, 2.0, -0.5, 1.5])
BETA = np.array([0.0, 0.3, -0.2, 1.0])


def sample(seed=0, shape=(16, 4)):
    """Features of quite different means and spreads."""
    rng = np.random.default_rng(seed)
    spread, centre = [0.2, 6.0, 0.5, 3.0], [3.0, -1.1, -2.0, 2.1]
    return (rng.normal(size=shape) * spread + centre).astype("float32")


def set_weights(layer):
    for name, value in (
        ("gamma", GAMMA),
        ("beta", BETA),
        ("moving_mean", MEAN),
        ("moving_variance", VARIANCE),
    ):
        getattr(layer, name).assign(value)
    return layer


def make_layer(shape=(None, 4), **options):
    layer = BatchRenormalization(**options)
    layer.build(shape)
    return set_weights(layer)


def make_batch_normalization(**options):
    layer = keras.layers.BatchNormalization(**options)
    layer.build((None, 4))
    return set_weights(layer)


def renormalize(x, mean, std, r_max, d_max, rate):
    """One training step of Ioffe's Algorithm 1, without gamma and beta."""
    axes = tuple(range(x.ndim - 1))
    batch_mean = x.mean(axes)
    batch_std = np.sqrt(((x - batch_mean) ** 2).mean(axes) + EPSILON)
    r = np.minimum(np.maximum(batch_std / std, 1 / r_max), r_max)
    d = np.minimum(np.maximum((batch_mean - mean) / std, -d_max), d_max)
    normalized = (x - batch_mean) / batch_std * r + d
    mean = mean + rate * (batch_mean - mean)
    std = std + rate * (batch_std - std)
    return normalized, mean, std, r, d


@pytest.mark.parametrize("shape", [(16, 4), (6, 3, 2, 4)])
@pytest.mark.parametrize(
    "r_max, d_max", [(1.0, 0.0), (1.25, 0.5), (3.0, 5.0), (1e4, 1e4)]
)
def test_training_output_follows_the_formulas(shape, r_max, d_max):
    x = sample(shape=shape)
    layer = make_layer(x.shape, r_max=r_max, d_max=d_max)
    std = np.sqrt(VARIANCE + EPSILON)
    expected, *_ = renormalize(x.astype(float), MEAN, std, r_max, d_max, 0.01)
    np.testing.assert_allclose(
        layer(x, training=True), GAMMA * expected + BETA, rtol=1e-4, atol=1e-4
    )


def test_corrections_stop_at_their_limits_on_both_sides():
    x = sample()
    normalized = (x - x.mean(0)) / x.std(0)
    layer = make_layer(r_max=1.25, d_max=0.5)
    output = (layer(x, training=True).numpy() - BETA) / GAMMA
    r, d = np.transpose(
        [np.polyfit(normalized[:, i], output[:, i], 1) for i in range(4)]
    )
    # Spreads 0.2 and 6 against 1 and 2; means 3 and -2 against 0.5 and 0 at
    # deviations of 1 and 0.5. The last two spreads and the last mean are
    # within the limits.
    np.testing.assert_allclose(r[:2], [0.8, 1.25], rtol=0.02)
    assert (r[2:] > 0.81).all() and (r[2:] < 1.24).all()
    np.testing.assert_allclose(d[[0, 2]], [0.5, -0.5], rtol=1e-4)
    assert abs(d[3]) < 0.49


def test_output_without_limits_uses_the_moving_statistics():
    # With r and d unclipped, (x - m_B) / s_B * s_B / s + (m_B - m) / s is
    # (x - m) / s, whatever the batch is.
    x = sample()
    layer = make_layer(r_max=1e6, d_max=1e6)
    expected = GAMMA * (x - MEAN) / np.sqrt(VARIANCE + EPSILON) + BETA
    np.testing.assert_allclose(
        layer(x, training=True), expected, rtol=1e-4, atol=1e-4
    )


def test_worked_example():
    # Batch (1, 5): mean 3, variance 4, std 2. Moving: mean 2, std 1.
    # r = clip(2, 1/1.5, 1.5) = 1.5, d = clip(1, -0.25, 0.25) = 0.25:
    # outputs -1 * 1.5 + 0.25 and 1 * 1.5 + 0.25. Rate 0.5: mean 2.5, std 1.5.
    layer = BatchRenormalization(1.5, 0.25, update_rate=0.5, epsilon=0.0)
    layer.build((None, 1))
    layer.moving_mean.assign([2.0])
    output = layer(np.array([[1.0], [5.0]], "float32"), training=True)
    np.testing.assert_allclose(output, [[-1.25], [1.75]], rtol=1e-6)
    np.testing.assert_allclose(layer.moving_mean.numpy(), [2.5])
    np.testing.assert_allclose(layer.moving_variance.numpy(), [2.25])


@pytest.mark.parametrize("steps", [1, 3])
def test_moving_statistics_after_some_steps(steps):
    layer = make_layer(r_max=1.25, d_max=0.5, update_rate=0.2)
    mean, std = MEAN, np.sqrt(VARIANCE + EPSILON)
    for step in range(steps):
        x = sample(seed=step)
        layer(x, training=True)
        _, mean, std, *_ = renormalize(x.astype(float), mean, std, 1, 0, 0.2)
    np.testing.assert_allclose(layer.moving_mean.numpy(), mean, rtol=1e-5)
    np.testing.assert_allclose(
        layer.moving_variance.numpy(), std**2 - EPSILON, rtol=1e-5
    )


def gradients_of(layer, x, upstream):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(layer(x, training=True) * upstream)
    return [
        g.numpy() for g in tape.gradient(total, [x, layer.gamma, layer.beta])
    ]


def closed_form_gradients(x, upstream, r_max, d_max):
    """Ioffe's equations for the gradients, with r and d held constant."""
    std = np.sqrt(VARIANCE + EPSILON)
    *_, r, d = renormalize(x, MEAN, std, r_max, d_max, 0.0)
    count = len(x)
    centred = x - x.mean(0)
    batch_std = np.sqrt((centred**2).mean(0) + EPSILON)
    normalized = upstream * GAMMA
    by_std = (normalized * centred).sum(0) * -r / batch_std**2
    by_mean = normalized.sum(0) * -r / batch_std
    by_x = (
        normalized * r / batch_std
        + by_std * centred / (count * batch_std)
        + by_mean / count
    )
    by_gamma = (upstream * (centred / batch_std * r + d)).sum(0)
    return by_x, by_gamma, upstream.sum(0)


@pytest.mark.parametrize("r_max, d_max", [(1.0, 0.0), (1.25, 0.5), (1e4, 1e4)])
def test_gradients_take_r_and_d_as_constants(r_max, d_max):
    x = sample()
    upstream = np.random.default_rng(1).normal(size=x.shape).astype("float32")
    received = gradients_of(make_layer(r_max=r_max, d_max=d_max), x, upstream)
    expected = closed_form_gradients(x.astype(float), upstream, r_max, d_max)
    for value, correct in zip(received, expected, strict=True):
        np.testing.assert_allclose(value, correct, rtol=1e-3, atol=1e-4)


def test_closed_limits_give_batch_normalization_and_its_gradients():
    x = sample()
    upstream = np.random.default_rng(1).normal(size=x.shape).astype("float32")
    layer = make_layer(r_max=1.0, d_max=0.0)
    reference = make_batch_normalization()
    np.testing.assert_allclose(
        layer(x, training=True), reference(x, training=True), atol=1e-5
    )
    for value, correct in zip(
        gradients_of(make_layer(), x, upstream),
        gradients_of(make_batch_normalization(), x, upstream),
        strict=True,
    ):
        np.testing.assert_allclose(value, correct, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.1}])
def test_inference_is_batch_normalization_and_moves_nothing(options):
    x = sample()
    layer = make_layer(r_max=3.0, d_max=5.0, **options)
    before = [v.numpy().copy() for v in layer.variables]
    np.testing.assert_allclose(
        layer(x, training=False),
        make_batch_normalization(**options)(x, training=False),
        rtol=1e-6,
    )
    for variable, value in zip(layer.variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_frozen_layer_runs_in_inference_mode_while_the_model_trains():
    x = sample()
    layer = make_layer(r_max=1.25, d_max=0.5)
    layer.trainable = False
    np.testing.assert_array_equal(
        layer(x, training=True), layer(x, training=False)
    )
    np.testing.assert_array_equal(
        layer.moving_mean.numpy(), MEAN.astype("float32")
    )


def test_first_axis_of_features_can_be_normalized():
    x = sample(shape=(6, 3, 4))
    last = make_layer((None, 3, 4), r_max=1.25, d_max=0.5)
    first = make_layer((None, 4, 3), r_max=1.25, d_max=0.5, axis=1)
    np.testing.assert_allclose(
        np.swapaxes(first(np.swapaxes(x, 1, 2), training=True), 1, 2),
        last(x, training=True),
        atol=1e-5,
    )


def test_scale_and_center_can_be_left_out():
    x = sample()
    layer = BatchRenormalization(1.25, 0.5, scale=False, center=False)
    layer.build(x.shape)
    assert layer.trainable_variables == []
    expected, *_ = renormalize(
        x.astype(float), np.zeros(4), np.sqrt(1 + EPSILON), 1.25, 0.5, 0.01
    )
    np.testing.assert_allclose(layer(x, training=True), expected, atol=1e-4)


def test_constant_batch_gives_finite_values():
    layer = BatchRenormalization(3.0, 5.0, update_rate=1.0)
    for _ in range(2):
        output = layer(np.full((4, 2), 7.0, "float32"), training=True)
    assert np.isfinite(output).all()
    assert np.isfinite(layer(np.ones((4, 2)), training=False)).all()


def test_half_precision_activations_do_not_overflow():
    # 300 squared exceeds 65504, the largest number in half precision.
    layer = BatchRenormalization(dtype="mixed_float16")
    x = np.array([[300.0], [-300.0]], "float16")
    output = layer(x, training=True)
    assert output.dtype == "float16"
    np.testing.assert_allclose(output, [[1], [-1]], atol=1e-2)


def test_limits_and_rate_change_without_a_new_trace():
    layer, x = make_layer(), sample()
    traces = 0

    @tf.function
    def step(inputs):
        nonlocal traces
        traces += 1
        return layer(inputs, training=True)

    mean, std = MEAN, np.sqrt(VARIANCE + EPSILON)
    for r_max, d_max, rate in [(1.0, 0.0, 0.0), (1.25, 0.5, 0.3), (3, 5, 0.1)]:
        layer.r_max.assign(r_max)
        layer.d_max.assign(d_max)
        layer.update_rate.assign(rate)
        expected, mean, std, *_ = renormalize(
            x.astype(float), mean, std, r_max, d_max, rate
        )
        np.testing.assert_allclose(
            step(x), GAMMA * expected + BETA, rtol=1e-3, atol=1e-3
        )
        np.testing.assert_allclose(layer.moving_mean.numpy(), mean, rtol=1e-4)
    assert traces == 1


def test_only_scale_and_offset_are_trainable():
    layer = make_layer()
    assert {v.name for v in layer.trainable_variables} == {"gamma", "beta"}


def test_saved_model_loads_without_custom_objects(tmp_path):
    layer = BatchRenormalization(
        2.0, 3.0, update_rate=0.5, epsilon=0.02, name="norm"
    )
    model = keras.Sequential([keras.Input((4,)), layer])
    set_weights(layer)
    layer.r_max.assign(2.5)
    x = sample()
    model(x, training=True)
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert isinstance(loaded.get_layer("norm"), BatchRenormalization)
    for old, new in zip(model.variables, loaded.variables, strict=True):
        assert old.name == new.name
        np.testing.assert_array_equal(old.numpy(), new.numpy())
    for training in (False, True):
        np.testing.assert_array_equal(
            model(x, training=training), loaded(x, training=training)
        )


@pytest.mark.parametrize(
    "options",
    [{"r_max": 0.9}, {"d_max": -0.1}, {"update_rate": 1.5}],
)
def test_limits_that_make_no_sense_are_an_error(options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        BatchRenormalization(**options)


@pytest.mark.parametrize("option", ["momentum", "renorm_clipping"])
def test_options_of_the_parent_that_mean_nothing_are_an_error(option):
    with pytest.raises(ValueError, match=f"{option}.*update_rate"):
        BatchRenormalization(**{option: 0.9})


def test_worked_example_with_a_mask():
    # As above, and 100 between, which is left out: 97 from the mean of 3, it
    # becomes 97 / 2 * 1.5 + 0.25.
    layer = BatchRenormalization(1.5, 0.25, update_rate=0.5, epsilon=0.0)
    layer.build((None, 1))
    layer.moving_mean.assign([2.0])
    x = np.array([[1.0], [100.0], [5.0]], "float32")
    mask = np.array([True, False, True])
    output = layer(x, training=True, mask=mask)
    np.testing.assert_allclose(output, [[-1.25], [73.0], [1.75]], rtol=1e-6)
    np.testing.assert_allclose(layer.moving_mean.numpy(), [2.5])
    np.testing.assert_allclose(layer.moving_variance.numpy(), [2.25])


@pytest.mark.parametrize("shape", [(16, 4), (6, 5, 4), (4, 3, 2, 4)])
def test_mask_is_as_if_the_rest_were_not_there(shape):
    x = sample(shape=shape)
    rng = np.random.default_rng(1)
    mask = rng.uniform(size=shape[:-1]) < 0.6
    upstream = rng.normal(size=shape).astype("float32") * mask[..., None]
    masked, alone = (
        make_layer((*end, 4), r_max=1.25, d_max=0.5, update_rate=0.2)
        for end in (shape[:-1], (None,))
    )
    # Whatever lies there.
    x[~mask] = 1e4

    def gradient(layer, x, upstream, **options):
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, training=True, **options)
            total = tf.reduce_sum(output * upstream)
        return output.numpy(), tape.gradient(total, x).numpy()

    output, by_x = gradient(masked, x, upstream, mask=tf.constant(mask))
    expected, by_chosen = gradient(alone, x[mask], upstream[mask])
    np.testing.assert_allclose(output[mask], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(by_x[mask], by_chosen, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(by_x[~mask], 0)
    for now, then in zip(masked.variables, alone.variables, strict=True):
        np.testing.assert_allclose(now.numpy(), then.numpy(), rtol=1e-5)


def test_mask_of_other_axes_is_an_error():
    with pytest.raises(ValueError, match=r"mask of shape \(16, 4\)"):
        make_layer()(sample(), training=True, mask=np.ones((16, 4), bool))


def test_model_with_masks_is_converted_and_fitted():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((5,), dtype="int32"),
            keras.layers.Embedding(7, 4, mask_zero=True),
            keras.layers.BatchNormalization(name="norm"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(2),
        ]
    )
    renormalized = with_batch_renormalization(model)
    words = np.array([[1, 2, 3, 0, 0], [4, 5, 0, 0, 0]])
    y = np.array([0, 1])
    norm = renormalized.get_layer("norm")
    norm.update_rate.assign(1.0)
    embedded = renormalized.layers[0](words).numpy()[words > 0]
    renormalized.compile("sgd", "mse")
    renormalized.fit(words, np.eye(2)[y], verbose=0)
    # The mean over the five words that are there.
    np.testing.assert_allclose(
        norm.moving_mean.numpy(), embedded.mean(axis=0), atol=1e-6
    )
    np.testing.assert_allclose(
        norm.moving_variance.numpy(), embedded.var(axis=0), atol=1e-5
    )
    # In inference, masks reach the layers behind as before.
    copy = with_batch_renormalization(model)
    np.testing.assert_allclose(
        copy.predict(words, verbose=0), model.predict(words, verbose=0)
    )


TWO_DEVICES = """
    import numpy as np
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )

    from gnr_keras.layers import BatchRenormalization

    x = np.random.default_rng(0).normal(
        [2.0, -1.0, 0.5], [0.3, 2.0, 1.0], (3, 8, 3)
    ).astype("float32")
    # The halves must differ, or statistics of one would do for both.
    x[:, 4:] += [3.0, 1.0, -2.0]


    def make_layer():
        layer = BatchRenormalization(1.25, 0.5, update_rate=0.2)
        layer.build((None, 3))
        return layer


    # One replica keeps all of its half, the other one pattern of four.
    mask = np.array([1, 1, 1, 1, 0, 1, 0, 0], bool) if MASKED else None
    alone = make_layer()
    expected = [alone(batch, training=True, mask=mask).numpy() for batch in x]

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert strategy.num_replicas_in_sync == 2
    with strategy.scope():
        layer = make_layer()


    def replica_step(batch):
        context = tf.distribute.get_replica_context()
        start = 4 * context.replica_id_in_sync_group
        half = None if mask is None else tf.constant(mask)[start : start + 4]
        return layer(batch[start : start + 4], training=True, mask=half)


    @tf.function
    def step(batch):
        return strategy.run(replica_step, args=(batch,))


    for batch, output in zip(x, expected):
        parts = strategy.experimental_local_results(step(tf.constant(batch)))
        np.testing.assert_allclose(np.concatenate(parts), output, atol=1e-4)
    for name in ("moving_mean", "moving_variance"):
        copies = strategy.experimental_local_results(getattr(layer, name).value)
        assert len(copies) == 2
        for copy in copies:
            np.testing.assert_allclose(
                copy.numpy(), getattr(alone, name).numpy(), rtol=1e-4
            )
"""


@pytest.mark.parametrize("masked", [False, True])
def test_two_replicas_use_the_statistics_of_the_global_batch(masked):
    # Logical devices have to be set before TensorFlow starts.
    script = f"MASKED = {masked}\n{textwrap.dedent(TWO_DEVICES)}"
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
