"""Tests of masking and distillation, against gradients worked out by hand."""

import math
from typing import NamedTuple

import helpers
import keras
import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import backbones
from gnr_keras import losses
from gnr_keras import strategies
from gnr_keras import trainers
from gnr_keras.objectives import ClassSets
from gnr_keras.objectives import CrossEntropy
from gnr_keras.objectives import LearningWithoutForgetting
from gnr_keras.replay import Memory

MASKS = (None, "current", "replay")


class Case(NamedTuple):
    """Where the classes occur, and which logits a replayed pattern reaches."""

    num_classes: int
    current: tuple
    replayed: tuple
    open_classes: dict


CASES = {
    "NC": Case(
        4,
        (2, 3),
        (0, 1),
        {None: (0, 1, 2, 3), "current": (2, 3), "replay": (2, 3)},
    ),
    # Class 2 is in both, class 4 in neither.
    "NIC": Case(
        5,
        (2, 3),
        (0, 1, 2),
        {None: (0, 1, 2, 3, 4), "current": (2, 3), "replay": (3, 4)},
    ),
    "NI": Case(
        3,
        (0, 1, 2),
        (0, 1, 2),
        {None: (0, 1, 2), "current": (0, 1, 2), "replay": ()},
    ),
}


def class_sets(num_classes, current=(), replayed=(), past=()):
    return ClassSets(
        *(
            tf.constant([c in chosen for c in range(num_classes)])
            for chosen in (current, replayed, past)
        )
    )


def make_head(num_classes):
    return np.random.default_rng(1).normal(size=(3, num_classes))


def make_patterns(number):
    """Multiples of 1/4, which half precision holds as they are."""
    return np.random.default_rng(2).integers(-4, 5, (number, 3)) / 4


def softmax(values):
    return np.exp(values) / np.exp(values).sum()


def cross_entropy_error(logits, label):
    """The gradient of the cross-entropy at the logits."""
    error = softmax(logits)
    error[label] -= 1
    return error


def distillation_error(logits, responses, past, temperature):
    """The gradient of the distillation at the logits."""
    error = np.zeros(len(logits))
    past = list(past)
    if past:
        p = softmax(logits[past] / temperature)
        q = softmax(responses[past] / temperature)
        error[past] = (p - q) / temperature
    return error


def masked(error, open_classes):
    return np.array(
        [e if c in open_classes else 0 for c, e in enumerate(error)]
    )


def linear_classifier(head):
    """Two layers above the latent: features are `x phi`, with `phi = 1`."""
    features, classes = head.shape
    inputs = keras.Input((features,))
    x = keras.layers.Dense(features, use_bias=False, name="latent")(inputs)
    x = keras.layers.Dense(features, use_bias=False, name="phi")(x)
    outputs = keras.layers.Dense(classes, use_bias=False, name="head")(x)
    model = keras.Model(inputs, outputs)
    model.get_layer("phi").kernel.assign(np.eye(features))
    model.get_layer("head").kernel.assign(head)
    return model


def train(head, case, epochs, rate, past=(), **options):
    """Trains on one pattern of each class, replayed ones in the same batch.

    There is no momentum and no decay: a step is the rate times the gradient.

    Returns:
        The patterns, their labels, whether they are replayed, and the
        changes of `phi` and of the head.
    """
    labels = np.array(case.current + case.replayed, "int32")
    x = make_patterns(len(labels))
    cut = len(case.current)
    model = linear_classifier(head)
    trainer = trainers.ClassifierTrainer(
        model,
        "latent",
        batch_size=len(labels),
        momentum=0.0,
        weight_decay=0.0,
        **options,
    )
    latents = x.astype("float16")
    trainer.fit_latents(
        latents[:cut],
        labels[:cut],
        Memory(latents[cut:], labels[cut:]),
        len(case.replayed),
        trainers.Phase(epochs, rate, rate),
        np.random.default_rng(0),
        past_classes=past,
    )
    changes = [
        model.get_layer("phi").kernel.numpy() - np.eye(3),
        model.get_layer("head").kernel.numpy() - head,
    ]
    return x, labels, np.arange(len(labels)) >= cut, changes


# Masking.


@pytest.mark.parametrize(
    "label, is_replay, expected",
    [
        (2, False, {mask: (0.1, 0.2, -0.7, 0.4) for mask in MASKS}),
        (
            0,
            True,
            {
                None: (-0.9, 0.2, 0.3, 0.4),
                "current": (0, 0.2, 0.3, 0),
                "replay": (0, 0, 0.3, 0.4),
            },
        ),
        (
            1,
            True,
            {
                None: (0.1, -0.8, 0.3, 0.4),
                "current": (0, -0.8, 0.3, 0),
                "replay": (0, 0, 0.3, 0.4),
            },
        ),
    ],
    ids=["real", "replayed", "replayed-current"],
)
@pytest.mark.parametrize("mask", MASKS)
def test_gradient_at_each_logit_in_tenths(mask, label, is_replay, expected):
    """NIC: 0 is replayed, 1 both, 2 in the experience, 3 in neither."""
    logits = tf.Variable(np.log([[1.0, 2.0, 3.0, 4.0]]), dtype=tf.float32)
    with tf.GradientTape() as tape:
        loss = CrossEntropy(mask).compute_losses(
            logits,
            [label],
            tf.constant([is_replay]),
            None,
            class_sets(4, (1, 2), (0, 1)),
        )["cross_entropy"]
    # Softmax over all logits: 1/10, 2/10, 3/10, 4/10.
    np.testing.assert_allclose(loss, [math.log(10 / (label + 1))], rtol=1e-6)
    np.testing.assert_allclose(
        tape.gradient(loss, logits)[0], expected[mask], atol=1e-6
    )


def tape_gradients(case, mask, x, labels, is_replay):
    """Returns gradients of the features, and of a head on top of them."""
    features = tf.Variable(x, dtype=tf.float32)
    head = tf.Variable(make_head(case.num_classes), dtype=tf.float32)
    with tf.GradientTape() as tape:
        loss = CrossEntropy(mask).compute_losses(
            features @ head,
            tf.constant(labels),
            tf.constant(is_replay),
            None,
            class_sets(case.num_classes, case.current, case.replayed),
        )["cross_entropy"]
    return [g.numpy() for g in tape.gradient(loss, [features, head])]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradient_of_head_and_features_under_a_tape(case, mask):
    head = make_head(case.num_classes)
    real, replayed = x = make_patterns(2)
    for label in case.replayed:
        labels = [case.current[-1], label]
        gradients = tape_gradients(case, mask, x, labels, [False, True])
        real_error = cross_entropy_error(real @ head, labels[0])
        error = cross_entropy_error(replayed @ head, labels[1])
        error = masked(error, case.open_classes[mask])
        np.testing.assert_allclose(
            gradients[0], [head @ real_error, head @ error], atol=1e-6
        )
        for c in range(case.num_classes):
            np.testing.assert_allclose(
                gradients[1][:, c],
                real * real_error[c] + replayed * error[c],
                atol=1e-6,
            )


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_step_of_the_trainer_follows_the_masked_gradient(case, mask):
    head = make_head(case.num_classes)
    patterns, labels, is_replay, changes = train(
        head, case, epochs=1, rate=0.5, objective=CrossEntropy(mask)
    )
    phi_gradient, head_gradient = np.zeros((3, 3)), np.zeros_like(head)
    for x, label, replayed in zip(patterns, labels, is_replay, strict=True):
        error = cross_entropy_error(x @ head, label)
        if replayed:
            error = masked(error, case.open_classes[mask])
        phi_gradient += np.outer(x, head @ error) / len(labels)
        head_gradient += np.outer(x, error) / len(labels)
    np.testing.assert_allclose(changes[0], -0.5 * phi_gradient, atol=1e-6)
    np.testing.assert_allclose(changes[1], -0.5 * head_gradient, atol=1e-6)


def test_readings_agree_in_nc_and_differ_in_nic():
    """Compared are the features' gradient, then that of each row."""
    columns = {}
    for scenario, case in CASES.items():
        x = make_patterns(1 + len(case.replayed))
        labels = [case.current[-1], *case.replayed]
        is_replay = [False] + [True] * len(case.replayed)
        for mask in MASKS:
            features, head = tape_gradients(case, mask, x, labels, is_replay)
            columns[scenario, mask] = [features, *head.T]

    def differ(scenario, *masks):
        pairs = zip(*(columns[scenario, mask] for mask in masks), strict=True)
        return [bool((np.abs(a - b) > 1e-3).any()) for a, b in pairs]

    assert not any(differ("NC", "current", "replay"))
    # Classes 0 and 1 are closed in both, 3 is open in both; one reading
    # closes 2, which is replayed too, the other 4, which is in neither.
    assert differ("NIC", "current", "replay") == [1, 0, 0, 1, 0, 1]
    assert all(differ("NI", "current", "replay"))
    # Positive replay is another thing, but where all classes are current.
    assert differ("NC", "current", None) == [1, 1, 1, 0, 0]
    assert differ("NIC", "current", None) == [1, 1, 1, 0, 0, 1]
    assert not any(differ("NI", "current", None))


def test_readings_differ_in_nc_at_classes_yet_to_come():
    """Such a class is in neither: only the text lets replay reach its row."""
    logits = tf.Variable(np.log([[1.0, 2.0, 3.0, 4.0]]), dtype=tf.float32)
    gradients = {}
    for mask in ("current", "replay"):
        with tf.GradientTape() as tape:
            loss = CrossEntropy(mask).compute_losses(
                logits, [0], tf.constant([True]), None, class_sets(4, [1], [0])
            )["cross_entropy"]
        gradients[mask] = tape.gradient(loss, logits)[0]
    np.testing.assert_allclose(gradients["current"], [0, 0.2, 0, 0], atol=1e-6)
    np.testing.assert_allclose(
        gradients["replay"], [0, 0.2, 0.3, 0.4], atol=1e-6
    )


@pytest.mark.parametrize("mask", MASKS)
def test_mask_leaves_the_values_as_they_are(mask):
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (6, 5)).astype("float32")
    labels = rng.integers(0, 5, 6)
    is_replay = tf.constant([False, True] * 3)
    sets = class_sets(5, (2, 3), (0, 1, 2))
    values = CrossEntropy(mask).compute_losses(
        logits, labels, is_replay, None, sets
    )["cross_entropy"]
    expected = [
        -math.log(softmax(row.astype("float64"))[label])
        for row, label in zip(logits, labels, strict=True)
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    np.testing.assert_array_equal(
        losses.mask_gradient(logits, is_replay, sets.current), logits
    )


@pytest.mark.parametrize("block", [True, False])
def test_blocked_patterns_change_rows_of_the_head_but_no_feature(block):
    case = CASES["NC"]
    head = make_head(case.num_classes)
    strategy = strategies.ar1free(block_features=block)
    patterns, labels, is_replay, changes = train(
        head,
        case,
        epochs=1,
        rate=0.5,
        objective=strategy.objective,
        block_features=strategy.block_features,
    )
    phi_gradient, head_gradient = np.zeros((3, 3)), np.zeros_like(head)
    for x, label, replayed in zip(patterns, labels, is_replay, strict=True):
        error = cross_entropy_error(x @ head, label)
        head_gradient += np.outer(x, error) / len(labels)
        if not (block and replayed):
            phi_gradient += np.outer(x, head @ error) / len(labels)
    np.testing.assert_allclose(changes[0], -0.5 * phi_gradient, atol=1e-6)
    np.testing.assert_allclose(changes[1], -0.5 * head_gradient, atol=1e-6)


# Learning without Forgetting.

# Among the first three classes and at temperature 2, odds 1 : 2 : 3 of the
# model, 2 : 1 : 1 of the teacher; over all and at temperature 1, 1/16, 4/16,
# 9/16 and 2/16.
LOGITS = np.log([[1.0, 4.0, 9.0, 2.0]]).astype("float32")
RESPONSES = np.log([[4.0, 1.0, 1.0, 1e6]]).astype("float32")
PAST = (0, 1, 2)
# -(1/2 ln 1/6 + 1/4 ln 1/3 + 1/4 ln 1/2) = 3/4 ln 6.
DISTILLATION = 1.343820
# ((1/6, 1/3, 1/2) - (1/2, 1/4, 1/4)) / 2.
DISTILLATION_GRADIENT = np.array([-1 / 6, 1 / 24, 1 / 8, 0])


def weighted_loss(objective, sets, label, is_replay=False):
    """Returns the weighted loss of the numbers above, and its gradient."""
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        values = objective.compute_losses(
            logits, [label], tf.constant([is_replay]), RESPONSES, sets
        )
        weights = objective.weights(sets)
        loss = sum(weights[name] * value[0] for name, value in values.items())
    assert set(values) == set(weights) == set(objective.names)
    return float(loss), tape.gradient(loss, logits)[0]


def test_distillation_of_fractions():
    past = tf.constant([True, True, True, False])
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        value = losses.distillation(logits, RESPONSES, past, 2.0)
    np.testing.assert_allclose(value, [DISTILLATION], rtol=1e-6)
    np.testing.assert_allclose(
        tape.gradient(value, logits)[0], DISTILLATION_GRADIENT, atol=1e-6
    )


def test_distillation_takes_no_notice_of_other_classes():
    past = tf.constant([True, True, True, False])
    for logit, response in [(50.0, -50.0), (-50.0, 50.0)]:
        logits, responses = LOGITS.copy(), RESPONSES.copy()
        logits[0, 3], responses[0, 3] = logit, response
        np.testing.assert_allclose(
            losses.distillation(logits, responses, past, 2.0),
            [DISTILLATION],
            rtol=1e-6,
        )


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 7.0])
def test_distillation_is_that_of_another_implementation(temperature):
    rng = np.random.default_rng(0)
    past = np.array([1, 2, 5, 6])
    is_past = tf.constant(np.isin(np.arange(8), past))
    start = rng.normal(0, 3, (10, 8)).astype("float32")
    responses = rng.normal(0, 3, (10, 8)).astype("float32")
    logits = tf.Variable(start)
    with tf.GradientTape() as tape:
        values = losses.distillation(logits, responses, is_past, temperature)
    gradients = tape.gradient(values, logits)
    for i in range(10):
        row, response = start[i].astype(float), responses[i].astype(float)
        p = softmax(row[past] / temperature)
        q = softmax(response[past] / temperature)
        expected = -sum(b * math.log(a) for a, b in zip(p, q, strict=True))
        np.testing.assert_allclose(values[i], expected, rtol=1e-4)
        np.testing.assert_allclose(
            gradients[i],
            distillation_error(row, response, past, temperature),
            atol=1e-5,
        )


def test_distillation_at_equal_logits_has_no_gradient():
    logits = tf.Variable(LOGITS)
    past = tf.constant([True, True, True, False])
    with tf.GradientTape() as tape:
        value = losses.distillation(logits, LOGITS + 3.0, past, 2.0)
    np.testing.assert_allclose(
        tape.gradient(value, logits), [[0] * 4], atol=1e-7
    )
    # What is left is the entropy of (1/6, 1/3, 1/2).
    np.testing.assert_allclose(
        value, [math.log(6) / 6 + math.log(3) / 3 + math.log(2) / 2], rtol=1e-6
    )


def test_distillation_without_past_classes_is_zero():
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        value = losses.distillation(
            logits, RESPONSES, tf.constant([False] * 4), 2.0
        )
    np.testing.assert_array_equal(value, [0])
    np.testing.assert_array_equal(tape.gradient(value, logits), [[0] * 4])


@pytest.mark.parametrize(
    "weighting, loss, gradient",
    [
        # 0.9 ln 8 + 0.1 * 4 * 1.343820, and 0.9 (1, 4, 9, -14) / 16 +
        # 0.4 (-1/6, 1/24, 1/8, 0).
        ("convex", 2.409025, [-0.0104167, 0.2416667, 0.55625, -0.7875]),
        # ln 8 + 0.1 * 1.343820, and so on.
        ("additive", 2.213824, [0.0458333, 0.2541667, 0.575, -0.875]),
    ],
)
def test_weighting_of_cross_entropy_and_distillation(weighting, loss, gradient):
    objective = LearningWithoutForgetting(0.1, 2.0, weighting=weighting)
    sets = class_sets(4, [3], (), PAST)
    value, gradients = weighted_loss(objective, sets, label=3)
    np.testing.assert_allclose(value, loss, rtol=1e-6)
    np.testing.assert_allclose(gradients, gradient, atol=1e-6)


@pytest.mark.parametrize("weighting", ["convex", "additive"])
def test_first_experience_is_cross_entropy_alone(weighting):
    objective = LearningWithoutForgetting(0.1, 2.0, weighting=weighting)
    sets = class_sets(4, (2, 3))
    weights = objective.weights(sets)
    assert float(weights["cross_entropy"]) == 1
    assert float(weights["distillation"]) == 0
    value, gradients = weighted_loss(objective, sets, label=3)
    np.testing.assert_allclose(value, math.log(8), rtol=1e-6)
    np.testing.assert_allclose(
        gradients, [1 / 16, 4 / 16, 9 / 16, -14 / 16], atol=1e-6
    )


@pytest.mark.parametrize(
    "current, mask_distillation, expected",
    [
        # NC: of the cross-entropy 0.9 (1, -12, 9, 2) / 16 the last alone is
        # left, and the distillation is all behind the mask.
        ((3,), True, [0, 0, 0, 0.1125]),
        ((3,), False, [-0.0666667, 0.0166667, 0.05, 0.1125]),
        # NIC: class 2 is open, and its part of both gets through.
        ((2, 3), True, [0, 0, 0.55625, 0.1125]),
        ((2, 3), False, [-0.0666667, 0.0166667, 0.55625, 0.1125]),
    ],
    ids=["NC", "NC-open", "NIC", "NIC-open"],
)
def test_mask_of_the_distillation_of_a_replayed_pattern(
    current, mask_distillation, expected
):
    objective = LearningWithoutForgetting(
        0.1, 2.0, "current", mask_distillation=mask_distillation
    )
    sets = class_sets(4, current, (0, 1, 2), PAST)
    value, gradients = weighted_loss(objective, sets, label=1, is_replay=True)
    # 0.9 ln 4 + 0.4 * 1.343820, masked or not.
    np.testing.assert_allclose(value, 1.785193, rtol=1e-6)
    np.testing.assert_allclose(gradients, expected, atol=1e-6)


def test_real_patterns_are_distilled_in_spite_of_the_mask():
    objective = LearningWithoutForgetting(0.1, 2.0, "current")
    sets = class_sets(4, [3], (0, 1, 2), PAST)
    _, gradients = weighted_loss(objective, sets, label=3)
    np.testing.assert_allclose(
        gradients, [-0.0104167, 0.2416667, 0.55625, -0.7875], atol=1e-6
    )


@pytest.mark.parametrize("mask_distillation", [True, False])
@pytest.mark.parametrize("weighting", ["convex", "additive"])
@pytest.mark.parametrize("scenario", ["NC", "NIC"])
def test_trainer_distils_from_the_model_before_the_experience(
    scenario, weighting, mask_distillation
):
    """Six steps of LwF with negative replay, worked out in NumPy."""
    case = CASES[scenario]
    head = make_head(case.num_classes)
    alpha, temperature, rate, steps = 0.6, 2.0, 0.5, 6
    x, labels, is_replay, changes = train(
        head,
        case,
        epochs=steps,
        rate=rate,
        past=case.replayed,
        objective=LearningWithoutForgetting(
            alpha, temperature, "current", weighting, mask_distillation
        ),
    )
    weights = (1 - alpha, alpha * temperature**2)
    if weighting == "additive":
        weights = (1, alpha)
    phi, psi = np.eye(3), head.copy()
    responses = x @ phi @ psi
    for _ in range(steps):
        logits = x @ phi @ psi
        errors = []
        for i, label in enumerate(labels):
            hard = cross_entropy_error(logits[i], label)
            soft = distillation_error(
                logits[i], responses[i], case.replayed, temperature
            )
            if is_replay[i]:
                hard = masked(hard, case.current)
                if mask_distillation:
                    soft = masked(soft, case.current)
            errors.append(weights[0] * hard + weights[1] * soft)
        errors = np.array(errors) / len(labels)
        phi_gradient = x.T @ errors @ psi.T
        psi = psi - rate * (x @ phi).T @ errors
        phi = phi - rate * phi_gradient
    np.testing.assert_allclose(changes[0], phi - np.eye(3), atol=1e-5)
    np.testing.assert_allclose(changes[1], psi - head, atol=1e-5)


def test_trainer_without_past_classes_is_that_of_cross_entropy():
    head = make_head(4)
    changes = [
        train(head, CASES["NC"], epochs=3, rate=0.5, objective=objective)[-1]
        for objective in (LearningWithoutForgetting(0.6, 2.0), CrossEntropy())
    ]
    for with_distillation, without in zip(*changes, strict=True):
        np.testing.assert_array_equal(with_distillation, without)


def normalized_classifier():
    """With normalisation, so that it matters in which mode it responds."""
    return backbones.with_head(helpers.small_backbone(), 4, "head")


def copy_of(model):
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    return copy


def assert_teacher_stands_still(calls, teacher, model):
    """Compares what each step was given with the teacher's responses.

    Args:
        calls: pairs of batches of patterns and of responses, in order.
        teacher: copy of the model as it was before the training.
        model: the model after it.
    """
    for x, responses in calls:
        np.testing.assert_allclose(
            responses, teacher(x, training=False), rtol=1e-4, atol=1e-4
        )
    x, responses = calls[-1]
    moved = np.abs(model(x, training=False) - responses)
    assert moved.max() > 0.1


def test_responses_to_latents_stay_those_of_the_start():
    model = normalized_classifier()
    _, back = backbones.split(model, "latent")
    teacher = copy_of(back)
    trainer = trainers.ClassifierTrainer(
        model, "latent", objective=LearningWithoutForgetting(), batch_size=16
    )
    rng = np.random.default_rng(0)
    latents = rng.uniform(0, 6, (34, *back.input_shape[1:])).astype("float16")
    labels = rng.integers(0, 4, 34).astype("int32")
    calls = []
    run = trainer._run_latents

    def spy(x, y, responses, *others):
        # Steps of a call, each of a batch.
        batches = x.numpy().astype("float32")
        calls.extend(zip(batches, responses.numpy(), strict=True))
        return run(x, y, responses, *others)

    trainer._run_latents = spy
    trainer.fit_latents(
        latents[:24],
        labels[:24],
        Memory(latents[24:], labels[24:]),
        4,
        trainers.Phase(5, 0.05, 0.05),
        rng,
        past_classes=(0, 1, 2),
    )
    # 24 patterns fill two batches of 12, the rest is replayed.
    assert len(calls) == 5 * 2
    assert_teacher_stands_still(calls, teacher, back)


def test_responses_to_images_stay_those_of_the_start():
    model = normalized_classifier()
    teacher = copy_of(model)
    trainer = trainers.ClassifierTrainer(
        model, "latent", objective=LearningWithoutForgetting(), batch_size=16
    )
    data = helpers.blob_stream()[0].data
    calls = []
    run = trainer._run_images

    def spy(x, y, responses, *others):
        calls.append((x, responses))
        return run(x, y, responses, *others)

    trainer._run_images = spy
    trainer.fit_images(
        data,
        trainers.Phase(5, 0.05, 0.05),
        np.random.default_rng(0),
        past_classes=(0, 1, 2),
    )
    assert len(calls) == 5 * 3
    assert_teacher_stands_still(calls, teacher, model)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"mask": "past"}, '`mask` must be `None`, "current" or "replay"'),
        ({"weighting": "sum"}, '`weighting` must be "convex" or "additive"'),
        ({"alpha": 1.5}, "`alpha` from 0 to 1.0"),
        ({"alpha": -0.1, "weighting": "additive"}, "`alpha` from 0 to inf"),
        ({"temperature": 0.0}, "`temperature` above 0"),
    ],
)
def test_objectives_that_mean_nothing_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LearningWithoutForgetting(**arguments)


def test_additive_weight_may_exceed_one():
    sets = class_sets(4, [3], (), PAST)
    weights = LearningWithoutForgetting(2.5, weighting="additive").weights(sets)
    assert float(weights["distillation"]) == 2.5
