"""Tests of Synaptic Intelligence: paths, penalty and importances by hand."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import optimizers as rules

from gnr_keras.optimizers import SynapticIntelligence


def variable(values, dtype="float32"):
    return keras.Variable(np.array(values, dtype), dtype=dtype)


def built(weights, optimizer=None, strength=0.0, **options):
    optimizer = SynapticIntelligence(
        optimizer or rules.SGD(0.5), strength, **options
    )
    optimizer.build(weights)
    return optimizer


def step(optimizer, weights, *gradients):
    optimizer.apply([tf.constant(g, "float32") for g in gradients], weights)


@pytest.mark.parametrize("curvature", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("rate", [0.01, 0.125, 0.5])
@pytest.mark.parametrize("strength", [0.0, 7.0])
def test_path_on_a_parabola_is_the_closed_form(curvature, rate, strength):
    """Plain SGD: the path is the fall of the loss / (1 - rate * h / 2)."""
    x = variable([2.0], "float64")
    optimizer = built([x], rules.SGD(rate), strength)
    rate = float(optimizer.learning_rate)

    def loss():
        return 0.5 * curvature * (float(x.numpy()[0]) + 1.0) ** 2

    before = loss()
    for _ in range(12):
        optimizer.apply([curvature * (x + 1.0)], [x])
    fall = before - loss()
    assert fall > 0.01
    np.testing.assert_allclose(
        optimizer.paths[0], [fall / (1 - rate * curvature / 2)], rtol=1e-10
    )


def test_step_against_the_gradient_shortens_the_path():
    x = variable([1.0])
    optimizer = built([x], rules.SGD(0.5, momentum=0.75))
    # Velocity -1, then -0.75 + 0.5 = -0.25 though the gradient is negative.
    step(optimizer, [x], [2.0])
    np.testing.assert_allclose(optimizer.paths[0], [2.0])
    step(optimizer, [x], [-1.0])
    np.testing.assert_allclose(x, [-0.25])
    np.testing.assert_allclose(optimizer.paths[0], [2.0 - 0.25])


def test_penalty_is_in_the_step_but_its_gradient_not_in_the_path():
    x = variable([1.0, 1.0, 1.0])
    optimizer = built([x], rules.SGD(0.125), strength=2.0)
    x.assign([3.0, 3.0, -1.0])
    optimizer.importances[0].assign([0.5, 0.0, 4.0])
    step(optimizer, [x], [1.0, 1.0, 1.0])
    # 2 * importance * (weight - anchor) is 2, 0 and -16; the steps are -3/8,
    # -1/8 and 15/8, and a path is minus the step, as the gradient is 1.
    np.testing.assert_allclose(x, [2.625, 2.875, 0.875])
    np.testing.assert_allclose(optimizer.paths[0], [0.375, 0.125, -1.875])
    np.testing.assert_array_equal(optimizer.anchors[0], [1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    "rule",
    [
        lambda: rules.SGD(0.1, momentum=0.9, clipnorm=0.5),
        lambda: rules.Adam(0.05, global_clipnorm=0.5),
        lambda: rules.SGD(0.1, loss_scale_factor=4.0),
    ],
)
def test_penalty_acts_as_if_it_were_part_of_the_loss(rule):
    importances = np.float32([0.3, 2.0]), np.float32([[1.0]])
    starts = np.float32([1.0, -2.0]), np.float32([[0.5]])
    results = []
    for wrapped in (True, False):
        weights = [variable(start) for start in starts]
        optimizer = rule()
        if wrapped:
            optimizer = built(weights, optimizer, strength=3.0)
            for value, own in zip(
                importances, optimizer.importances, strict=True
            ):
                own.assign(value)
        for _ in range(5):
            with tf.GradientTape() as tape:
                loss = sum(tf.reduce_sum(tf.square(w - 4.0)) for w in weights)
                if not wrapped:
                    loss += 1.5 * sum(
                        tf.reduce_sum(i * tf.square(w - s))
                        for i, w, s in zip(
                            importances, weights, starts, strict=True
                        )
                    )
                loss = optimizer.scale_loss(loss)
            optimizer.apply(tape.gradient(loss, weights), weights)
        results.append([w.numpy() for w in weights])
    for one, other, start in zip(*results, starts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
        assert np.abs(one - start).max() > 0.1


def test_importances_over_two_experiences_by_hand():
    """Divide, multiply, add to the total, and only then clip the total."""
    x = variable([0.0, 0.0, 0.0, 0.0])
    optimizer = built([x], clip=0.75, multiplier=0.5, epsilon=0.25)
    x.assign([1.0, 2.0, 1.0, 0.0])
    optimizer.paths[0].assign([1.25, 4.25, -5.0, 0.5])
    optimizer.consolidate()
    # Squares + 0.25 are 1.25, 4.25, 1.25, 0.25; quotients 1, 1, -4, 2;
    # halved 0.5, 0.5, -2, 1.
    np.testing.assert_allclose(optimizer.importances[0], [0.5, 0.5, 0.0, 0.75])
    np.testing.assert_array_equal(optimizer.anchors[0], [1.0, 2.0, 1.0, 0.0])
    np.testing.assert_array_equal(optimizer.paths[0], np.zeros(4))

    x.assign([2.0, 2.0, 1.0, -1.0])
    optimizer.paths[0].assign([2.5, -0.1, 0.1, -0.625])
    optimizer.consolidate()
    # Squares + 0.25 are 1.25, 0.25, 0.25, 1.25; quotients 2, -0.4, 0.4, -0.5;
    # halved 1, -0.2, 0.2, -0.25; totals 1.5, 0.3, 0.2, 0.5.
    np.testing.assert_allclose(
        optimizer.importances[0], [0.75, 0.3, 0.2, 0.5], rtol=1e-6
    )
    np.testing.assert_array_equal(optimizer.anchors[0], [2.0, 2.0, 1.0, -1.0])
    np.testing.assert_array_equal(optimizer.paths[0], np.zeros(4))


def test_multiplier_may_differ_between_experiences():
    x = variable([0.0])
    optimizer = built([x], clip=float("inf"), epsilon=1.0)
    for multiplier in (0.125, 4.0):
        optimizer.multiplier = multiplier
        optimizer.paths[0].assign([1.0])
        optimizer.consolidate()
    np.testing.assert_allclose(optimizer.importances[0], [4.125])


def test_excluded_variables_have_no_importance():
    x, y, stranger = variable([1.0]), variable([1.0]), variable([1.0])
    optimizer = built([x, y], clip=1.0)
    step(optimizer, [x, y], [1.0], [1.0])
    optimizer.consolidate(exclude=[y, stranger])
    assert optimizer.importances[0].numpy() > 0.5
    np.testing.assert_array_equal(optimizer.importances[1], [0.0])
    np.testing.assert_array_equal(optimizer.anchors[1], [0.5])
    np.testing.assert_array_equal(optimizer.paths[1], [0.0])
    # Excluded now, though not before.
    optimizer.consolidate(exclude=[x])
    np.testing.assert_array_equal(optimizer.importances[0], [0.0])


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_parameter_that_mattered_moves_less_later(strength):
    """Experience 2 is solved by x + y = 3, whichever of the two moves."""
    x, y = variable(0.0), variable(0.0)
    optimizer = built([x, y], rules.SGD(0.5), strength, clip=1.0)
    for _ in range(10):
        with tf.GradientTape() as tape:
            loss = 0.5 * (x - 1.0) ** 2
        optimizer.apply([tape.gradient(loss, x), tf.constant(0.0)], [x, y])
    assert abs(float(x) - 1.0) < 0.01 and float(y) == 0
    optimizer.consolidate()
    for _ in range(20):
        with tf.GradientTape() as tape:
            loss = 0.5 * (x + y - 3.0) ** 2
        optimizer.apply(tape.gradient(loss, [x, y]), [x, y])
    assert abs(float(x) + float(y) - 3.0) < 0.05
    # Alone, SGD shares the way of 2 equally.
    moved = float(x) - 1.0
    assert moved < 0.2 if strength else abs(moved - 1.0) < 0.02


RULES = {
    "momentum": lambda: rules.SGD(0.1, momentum=0.9),
    "adam": lambda: rules.Adam(0.01),
    "decay and clipping": lambda: rules.SGD(
        0.1, weight_decay=0.05, clipnorm=0.1
    ),
    "schedule": lambda: rules.SGD(
        rules.schedules.ExponentialDecay(0.2, decay_steps=2, decay_rate=0.5)
    ),
}


def patterns(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(32, 5)).astype("float32")
    return x, (x @ rng.normal(size=(5, 3))).argmax(1).astype("int32")


def classifier(*first):
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [
            *first,
            keras.layers.Dense(6, activation="tanh"),
            keras.layers.Dense(3, name="head"),
        ]
    )


def cross_entropy(y, logits):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    )


def compiled(model, optimizer, **options):
    model.compile(
        optimizer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **options,
    )
    return model


def fit(model, epochs=2, seed=0, **options):
    x, y = patterns(seed)
    model.fit(
        x, y, batch_size=8, epochs=epochs, shuffle=False, verbose=0, **options
    )


def train_by_fit(optimizer):
    model = compiled(classifier(keras.Input((5,))), optimizer)
    fit(model)
    return model.trainable_variables


def train_by_loop(optimizer):
    model = classifier(keras.Input((5,)))
    variables = model.trainable_variables

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = cross_entropy(y, model(x, training=True))
        optimizer.apply(tape.gradient(loss, variables), variables)

    x, y = patterns()
    for start in list(range(0, 32, 8)) * 2:
        step(x[start : start + 8], y[start : start + 8])
    return variables


@pytest.mark.parametrize("train", [train_by_fit, train_by_loop])
@pytest.mark.parametrize("rule", RULES)
def test_without_strength_weights_are_those_of_the_inner_rule(rule, train):
    plain, inner = RULES[rule](), RULES[rule]()
    optimizer = SynapticIntelligence(inner, strength=0.0)
    expected, received = train(plain), train(optimizer)
    start = classifier(keras.Input((5,))).trainable_variables
    for one, other, initial, path in zip(
        expected, received, start, optimizer.paths, strict=True
    ):
        assert one.numpy().tobytes() == other.numpy().tobytes()
        assert np.abs(one.numpy() - initial.numpy()).max() > 1e-3
        assert np.abs(path.numpy()).max() > 0
    for one, other in zip(plain.variables, inner.variables, strict=True):
        np.testing.assert_array_equal(one, other)
    assert int(optimizer.iterations) == 8


@pytest.mark.parametrize(
    "rule",
    [
        lambda: rules.Nadam(0.01),
        lambda: rules.AdamW(0.01),
        lambda: rules.Adafactor(0.01),
        lambda: rules.Lion(0.01),
        lambda: rules.SGD(0.1, use_ema=True, ema_overwrite_frequency=2),
        lambda: rules.SGD(0.1, gradient_accumulation_steps=2),
        lambda: rules.SGD(0.1, loss_scale_factor=8.0),
        lambda: rules.SGD(lambda: 0.25, clipvalue=0.5),
        pytest.param(
            lambda: rules.MultiOptimizer(
                rules.OptimizerMap(rules.SGD(0.1), {"second": rules.Adam(0.01)})
            ),
            marks=pytest.mark.skipif(
                not hasattr(rules, "MultiOptimizer"), reason="needs Keras 3.15"
            ),
        ),
    ],
)
def test_any_rule_is_delegated_whole(rule):
    """Also rules that keep state, or act, outside `update_step`."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(5, 2, 3, 2)).astype("float32")
    results = []
    for wrap in (False, True):
        weights = [
            keras.Variable(np.ones((3, 2), "float32"), name=name)
            for name in ("first", "second")
        ]
        optimizer = rule()
        if wrap:
            optimizer = SynapticIntelligence(optimizer, strength=0.0)
        optimizer.build(weights)
        for gradients in steps:
            step(optimizer, weights, *gradients)
        optimizer.finalize_variable_values(weights)
        results.append(np.stack([w.numpy() for w in weights]))
    assert results[0].tobytes() == results[1].tobytes()
    assert np.abs(results[0] - 1.0).max(axis=(1, 2)).min() > 1e-3


def test_learning_rate_set_on_the_wrapper_takes_effect():
    x = variable([0.0])
    optimizer = built([x], rules.SGD(0.5))

    @tf.function
    def descend():
        optimizer.apply([tf.constant([1.0])], [x])

    descend()
    np.testing.assert_array_equal(x, [-0.5])
    optimizer.learning_rate = 0.25
    descend()
    np.testing.assert_array_equal(x, [-0.75])
    assert float(optimizer.learning_rate) == 0.25


def test_variables_excluded_from_weight_decay_do_not_decay():
    x, y = variable([1.0]), variable([1.0])
    optimizer = SynapticIntelligence(rules.SGD(0.5, weight_decay=0.5), 0.0)
    optimizer.exclude_from_weight_decay(var_list=[y])
    step(optimizer, [x, y], [0.0], [0.0])
    np.testing.assert_array_equal(x, [0.75])
    np.testing.assert_array_equal(y, [1.0])


def test_subset_of_the_variables_may_be_trained():
    x, y = variable([1.0]), variable([1.0])
    optimizer = built([x, y], rules.SGD(0.5))
    step(optimizer, [y], [1.0])
    np.testing.assert_array_equal(optimizer.paths[0], [0.0])
    np.testing.assert_array_equal(optimizer.paths[1], [0.5])


def test_variable_without_a_gradient_stays_and_has_no_path():
    x, y = variable([1.0]), variable([1.0])
    optimizer = built([x, y], rules.SGD(0.5), strength=1.0)
    y.assign([3.0])
    optimizer.importances[1].assign([1.0])
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        optimizer.apply([tf.constant([1.0]), None], [x, y])
    np.testing.assert_array_equal(x, [0.5])
    np.testing.assert_array_equal(y, [3.0])
    np.testing.assert_array_equal(optimizer.paths[1], [0.0])


def test_sparse_gradient_gets_the_penalty_in_all_rows():
    x = variable([[1.0], [1.0], [1.0]])
    optimizer = built([x], rules.SGD(0.5), strength=2.0)
    x.assign([[2.0], [2.0], [1.0]])
    optimizer.importances[0].assign([[0.25], [0.25], [0.25]])
    # Row 1 occurs twice in the batch.
    gradient = tf.IndexedSlices(
        tf.ones((3, 1)), tf.constant([1, 2, 1]), dense_shape=(3, 1)
    )
    optimizer.apply([gradient], [x])
    np.testing.assert_allclose(x, [[1.75], [0.75], [0.5]])
    np.testing.assert_allclose(optimizer.paths[0], [[0.0], [2.5], [0.5]])


@pytest.mark.parametrize(
    "layers, jit_compile",
    [([keras.Input((5,))], True), ([], False)],
    ids=["built, XLA", "built by fit"],
)
def test_fit_starts_at_anchors_that_are_the_initial_weights(
    layers, jit_compile
):
    """`fit` builds the optimizer while it traces the training step."""
    optimizer = SynapticIntelligence(rules.SGD(0.1), strength=1.0)
    model = classifier(*layers)
    fit(compiled(model, optimizer, jit_compile=jit_compile))
    start = classifier(keras.Input((5,))).trainable_variables
    for anchor, initial, weight in zip(
        optimizer.anchors, start, model.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(anchor, initial)
        assert np.abs(anchor.numpy() - weight.numpy()).max() > 1e-3


_CONTINUE = """
import sys
import numpy as np
import gnr_keras
import keras

model = keras.saving.load_model(sys.argv[1])
state = [v.numpy() for v in model.optimizer.variables]
x, y = np.load(sys.argv[2]).values()
model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
np.savez(sys.argv[3], *state, *model.get_weights())
"""


def test_saved_model_goes_on_in_another_process(tmp_path):
    optimizer = SynapticIntelligence(
        rules.SGD(0.1, momentum=0.9), strength=50.0, clip=0.5, epsilon=1e-3
    )
    model = compiled(classifier(keras.Input((5,))), optimizer)
    fit(model, seed=1)
    optimizer.consolidate()
    fit(model, seed=2)
    for kept in (optimizer.importances, optimizer.paths):
        assert all(np.abs(value.numpy()).max() > 1e-6 for value in kept)
    state = [v.numpy() for v in optimizer.variables]
    path, data, result = (
        str(tmp_path / name) for name in ("m.keras", "d.npz", "r.npz")
    )
    model.save(path)
    np.savez(data, *patterns())
    process = subprocess.run(
        [sys.executable, "-c", _CONTINUE, path, data, result],
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    fit(model)
    received = list(np.load(result).values())
    # Rate and iterations, momentums, and three values per variable.
    assert len(state) == 3 + 4 * len(model.trainable_variables)
    for one, other in zip(state, received[: len(state)], strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(
        model.get_weights(), received[len(state) :], strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_configuration_makes_the_same_optimizer():
    optimizer = SynapticIntelligence(
        rules.SGD(
            rules.schedules.ExponentialDecay(0.5, 1, 0.5),
            momentum=0.5,
            loss_scale_factor=4.0,
        ),
        strength=2,
        clip=float("inf"),
        multiplier=0.5,
        epsilon=0.25,
        name="si",
    )
    config = optimizer.get_config()
    twin = SynapticIntelligence.from_config(config)
    assert twin.get_config() == config == optimizer.get_config()
    assert twin.inner_optimizer is not optimizer.inner_optimizer
    # Two steps of both: rate 0.5 then 0.25, velocity -0.5 then -0.5.
    for each in (optimizer, twin):
        x = variable([0.0])
        for _ in range(2):
            each.apply([each.scale_loss(tf.constant([1.0]))], [x])
        np.testing.assert_array_equal(x, [-1.0])
        np.testing.assert_array_equal(each.paths[0], [1.0])
        assert (each.strength, each.clip, each.epsilon, each.name) == (
            2.0,
            float("inf"),
            0.25,
            "si",
        )


def test_weights_of_the_optimizer_can_be_set():
    x = variable([1.0])
    one = built([x], rules.SGD(0.5, momentum=0.5))
    step(one, [x], [1.0])
    other = built([x], rules.SGD(0.5, momentum=0.5))
    other.set_weights([v.numpy() for v in one.variables])
    np.testing.assert_array_equal(other.paths[0], [0.5])
    np.testing.assert_array_equal(other.inner_optimizer.momentums[0], [-0.5])


_DEVICES = """
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
import keras
from gnr_keras.optimizers import SynapticIntelligence

rng = np.random.default_rng(0)
x = rng.normal(size=(2, 32, 5)).astype("float32")
y = rng.integers(0, 3, (2, 32))

def learn(strategy):
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.Input((5,)),
                keras.layers.Dense(6, activation="tanh"),
                keras.layers.Dense(3),
            ]
        )
        optimizer = SynapticIntelligence(
            keras.optimizers.SGD(0.05, momentum=0.9),
            strength=5.0,
            clip=2.0,
            epsilon=1e-2,
        )
        variables = model.trainable_variables
        optimizer.build(variables)

    def replica_step(x, y):
        context = tf.distribute.get_replica_context()
        share = x.shape[0] // context.num_replicas_in_sync
        own = context.replica_id_in_sync_group * share
        x, y = x[own : own + share], y[own : own + share]
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(
                tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
            ) / 8.0
        optimizer.apply(tape.gradient(loss, variables), variables)

    @tf.function
    def step(x, y):
        strategy.run(replica_step, args=(x, y))

    state = []
    for experience in range(2):
        for start in list(range(0, 32, 8)) * 3:
            batch = slice(start, start + 8)
            step(x[experience, batch], y[experience, batch])
        state += [v.numpy() for v in variables + optimizer.paths]
        optimizer.consolidate(exclude=variables[-1:])
        state += [v.numpy() for v in optimizer.importances + optimizer.anchors]
    copies = [
        strategy.experimental_local_results(v.value)
        for v in variables + optimizer.paths + optimizer.importances
    ]
    for first, *others in copies:
        for other in others:
            np.testing.assert_array_equal(first.numpy(), other.numpy())
    importance = optimizer.importances[0].numpy()
    assert 0 < np.mean((importance > 0.01) & (importance < 2))
    return state

one = learn(tf.distribute.get_strategy())
two = learn(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))
print(max(np.abs(a - b).max() for a, b in zip(one, two, strict=True)))
"""


def test_one_device_and_two_give_the_same_weights_and_importances():
    result = subprocess.run(
        [sys.executable, "-c", _DEVICES], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-2000:]
    # Sums in another order, and quotients of small numbers.
    assert float(result.stdout.split()[-1]) < 1e-4


@pytest.mark.parametrize(
    "option, value",
    [
        ("strength", -1.0),
        ("strength", float("nan")),
        ("strength", float("inf")),
        ("strength", "much"),
        ("clip", -1e-3),
        ("clip", None),
        ("multiplier", -1.0),
        ("epsilon", -1e-7),
        ("epsilon", 0.0),
    ],
)
def test_value_that_makes_no_sense_is_refused(option, value):
    options = {"strength": 1.0, option: value}
    with pytest.raises(ValueError, match=f"`{option}` must.*{value}"):
        SynapticIntelligence(rules.SGD(0.1), **options)


@pytest.mark.parametrize("optimizer", ["sgd", rules.SGD, None])
def test_what_is_no_keras_optimizer_is_refused(optimizer):
    with pytest.raises(ValueError, match="must be a Keras optimizer.*Received"):
        SynapticIntelligence(optimizer, 1.0)


def test_loss_scaling_inside_is_refused_with_the_way_out():
    scaled = rules.LossScaleOptimizer(rules.SGD(0.1))
    with pytest.raises(ValueError, match="Put it outside"):
        SynapticIntelligence(scaled, 1.0)


def test_use_before_variables_are_known_is_a_clear_error():
    optimizer = SynapticIntelligence(rules.SGD(0.1), 1.0)
    assert optimizer.importances == []
    with pytest.raises(ValueError, match="nothing to consolidate"):
        optimizer.consolidate()
    with pytest.raises(ValueError, match="build"):
        optimizer.apply([tf.constant([1.0])])


def test_gradients_must_match_the_variables():
    x = variable([1.0])
    optimizer = built([x])
    with pytest.raises(ValueError, match="2 gradients for 1 variables"):
        optimizer.apply([tf.constant([1.0])] * 2)
    with pytest.raises(ValueError, match="Unknown variable"):
        optimizer.apply([tf.constant([1.0])], [variable([1.0])])
    np.testing.assert_array_equal(x, [1.0])
