"""Tests of negative replay in `model.compile` and `model.fit`."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import strategies
from gnr_keras.losses import NegativeReplayLoss
from gnr_keras.metrics import CurrentAccuracy
from gnr_keras.replay import Memory
from gnr_keras.replay import OriginalReplay
from gnr_keras.replay import mix_batches
from gnr_keras.trainers import ClassifierTrainer
from gnr_keras.trainers import Phase

# Their softmax is 1/10, 2/10, 3/10, 4/10.
LOGITS = np.log([[1.0, 2.0, 3.0, 4.0]]).astype("float32")


def gradient(loss, y_true):
    logits = tf.Variable(np.repeat(LOGITS, len(y_true), axis=0))
    with tf.GradientTape() as tape:
        value = loss(tf.constant(y_true), logits)
    return float(value), tape.gradient(value, logits).numpy()


@pytest.mark.parametrize(
    "y_true, expected",
    [
        ([[2, 0]], (0.1, 0.2, -0.7, 0.4)),
        ([[0, 0]], (-0.9, 0.2, 0.3, 0.4)),
        ([[0, 1]], (0, 0.2, 0.3, 0)),
        ([[3, 1]], (0, 0.2, 0.3, 0)),
        # A replayed class that is in the experience too.
        ([[1, 1]], (0, -0.8, 0.3, 0)),
        ([[2]], (0.1, 0.2, -0.7, 0.4)),
        ([2], (0.1, 0.2, -0.7, 0.4)),
    ],
    ids=str,
)
def test_gradient_at_each_logit_in_tenths(y_true, expected):
    loss = NegativeReplayLoss(4, current_classes=[1, 2])
    value, found = gradient(loss, y_true)
    label = np.ravel(y_true)[0]
    assert value == pytest.approx(math.log(10 / (label + 1)), rel=1e-6)
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    # Not only small: nothing at all may reach the rows of old classes.
    closed = np.array(expected) == 0
    np.testing.assert_array_equal(found[0][closed], 0)


def test_loss_is_the_mean_over_the_batch():
    loss = NegativeReplayLoss(4, current_classes=[1, 2])
    value, found = gradient(loss, [[2, 0], [0, 1]])
    assert value == pytest.approx((math.log(10 / 3) + math.log(10)) / 2)
    np.testing.assert_allclose(found[0], [0.05, 0.1, -0.35, 0.2], atol=1e-6)
    np.testing.assert_allclose(found[1], [0, 0.1, 0.15, 0], atol=1e-6)


def test_weights_of_patterns_count():
    loss = NegativeReplayLoss(4)
    value = loss(np.array([0, 1]), np.repeat(LOGITS, 2, axis=0), [1.0, 3.0])
    assert float(value) == pytest.approx((math.log(10) + 3 * math.log(5)) / 2)


def test_patterns_of_the_experience_learn_by_plain_cross_entropy():
    """The same weights, to the last bit, as with nothing replayed."""
    weights = []
    for loss, columns in (
        (NegativeReplayLoss(3, current_classes=[1, 2]), 2),
        (NegativeReplayLoss(3), 1),
    ):
        model = classifier(seed=1)
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss)
        x, labels = clusters([1, 2], count=32)
        y = np.stack([labels, np.zeros_like(labels)], 1)[:, :columns]
        model.fit(x, y, epochs=2, shuffle=False, verbose=0)
        weights.append(np.concatenate([w.ravel() for w in model.get_weights()]))
    np.testing.assert_array_equal(*weights)


def classifier(seed=0, inputs=6, classes=3):
    keras.utils.set_random_seed(seed)
    x = patterns = keras.Input((inputs,))
    x = keras.layers.Identity(name="latent")(x)
    x = keras.layers.Dense(inputs, name="phi")(x)
    x = keras.layers.Dense(classes, use_bias=False, name="head")(x)
    return keras.Model(patterns, x)


def clusters(classes, count=24, seed=0, inputs=6):
    """Patterns with two units of their class, and no others, above zero."""
    rng = np.random.default_rng(seed)
    labels = np.resize(classes, count)
    x = np.zeros((count, inputs), "float32")
    for row, label in enumerate(labels):
        x[row, 2 * label : 2 * label + 2] = rng.uniform(0.5, 1, 2)
    return x, labels


class CountTraces(keras.layers.Layer):
    traces = 0

    def call(self, x):
        type(self).traces += 1
        return x


def learn_three_experiences(loss):
    """One class an experience; a linear head right on the patterns.

    Returns:
        The head's rows after each experience.
    """
    keras.utils.set_random_seed(0)
    head = keras.layers.Dense(3, use_bias=False)
    model = keras.Sequential([keras.Input((6,)), CountTraces(), head])
    model.compile(keras.optimizers.SGD(0.5), loss, metrics=[CurrentAccuracy()])
    old = Memory(*clusters([0], count=0))
    rows = [head.kernel.numpy().T]
    CountTraces.traces = 0
    for label in range(3):
        x, labels = clusters([label], seed=label)
        if isinstance(loss, NegativeReplayLoss):
            loss.begin_experience(labels)
        dataset = tf.data.Dataset.from_tensor_slices((x, labels))
        mixed = mix_batches(dataset, old, 8, replay_per_batch=4)
        model.fit(mixed, epochs=5, verbose=0)
        old = Memory(
            np.concatenate([old.latents, x]),
            np.concatenate([old.labels, labels]),
        )
        rows.append(head.kernel.numpy().T)
    return rows


def test_fit_leaves_what_old_rows_know_of_their_class():
    """Current patterns have zeros there, and replayed ones do not reach it."""
    rows = learn_three_experiences(NegativeReplayLoss(3))
    for experience in (1, 2):
        before, after = rows[experience : experience + 2]
        for label in range(experience):
            own = slice(2 * label, 2 * label + 2)
            np.testing.assert_array_equal(after[label, own], before[label, own])
            # The row of the new class has learned that it is not this one.
            fall = before[experience, own] - after[experience, own]
            assert (fall > 0.05).all()
    # One trace, whatever the classes and the memory.
    assert CountTraces.traces == 1


def test_the_same_with_positive_replay_moves_old_rows():
    class Positive(keras.losses.Loss):
        def call(self, y_true, y_pred):
            return keras.losses.sparse_categorical_crossentropy(
                y_true[:, 0], y_pred, from_logits=True
            )

    rows = learn_three_experiences(Positive())
    assert (np.abs(rows[2][0, :2] - rows[1][0, :2]) > 0.01).all()


def test_step_of_fit_is_that_of_the_package():
    """As ER with negative replay, all patterns in one batch."""
    x, labels = clusters([2], count=6, seed=1)
    old_x, old_labels = clusters([0, 1], count=2, seed=2)
    memory = Memory(old_x.astype("float16"), old_labels.astype("int32"))
    x = x.astype("float16").astype("float32")

    model = classifier()
    loss = NegativeReplayLoss(3, current_classes=[2])
    model.compile(keras.optimizers.SGD(0.5), loss)
    dataset = tf.data.Dataset.from_tensor_slices((x, labels))
    model.fit(mix_batches(dataset, memory, 8), verbose=0)

    expected = classifier()
    strategy = strategies.er(OriginalReplay(2), "negative")
    trainer = ClassifierTrainer(
        expected,
        "latent",
        objective=strategy.objective,
        batch_size=8,
        weight_decay=0.0,
        momentum=0.0,
    )
    trainer.fit_latents(
        x.astype("float16"),
        labels.astype("int32"),
        memory,
        2,
        Phase(1, 0.5, 0.5),
        np.random.default_rng(0),
    )
    start = classifier()
    for name in ("phi", "head"):
        one, other, before = (
            each.get_layer(name).kernel.numpy()
            for each in (model, expected, start)
        )
        np.testing.assert_allclose(one, other, atol=1e-6)
        assert np.abs(one - before).max() > 1e-2


def test_weights_in_fit_are_those_of_the_patterns():
    """Each pattern has a unit of its own, so its step stands alone there.

    From weights of zero all probabilities are 1/3: of a batch of four, the
    step of a pattern of class 2 and weight w is w / 4 * (-1/3, -1/3, 2/3) at
    a rate of 1. One of class 0 that is replayed acts on class 2 alone, with
    the weight 1: (0, 0, -1/12).
    """
    head = keras.layers.Dense(3, use_bias=False, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((4,)), head])
    loss = NegativeReplayLoss(3, current_classes=[2])
    model.compile(keras.optimizers.SGD(1.0), loss)
    x = np.eye(4, dtype="float32")
    dataset = tf.data.Dataset.from_tensor_slices(
        (x[:3], np.array([2, 2, 2]), np.array([1.0, 12.0, 0.0]))
    )
    model.fit(mix_batches(dataset, Memory(x[3:], np.array([0])), 4), verbose=0)
    np.testing.assert_allclose(
        head.kernel.numpy(),
        [[-1 / 12, -1 / 12, 1 / 6], [-1, -1, 2], [0, 0, 0], [0, 0, -1 / 12]],
        rtol=1e-6,
        atol=1e-7,
    )


def test_evaluation_needs_no_flags():
    loss = NegativeReplayLoss(3, current_classes=[1])
    model = classifier()
    model.compile("sgd", loss, metrics=[CurrentAccuracy()])
    x, labels = clusters([0, 1, 2])
    y = np.stack([labels, labels == 0], 1)
    model.fit(x, y, verbose=0)
    logits = model.predict(x, verbose=0)
    expected = np.mean(logits.argmax(1) == labels)
    found = model.evaluate(x, labels, return_dict=True, verbose=0)
    assert found["accuracy"] == pytest.approx(expected)


def test_accuracy_counts_current_patterns_alone():
    metric = CurrentAccuracy()
    scores = np.eye(3)[[0, 1, 2, 2]]
    metric.update_state([[0, 0], [0, 0], [0, 1], [2, 0]], scores)
    assert float(metric.result()) == pytest.approx(2 / 3)
    metric.update_state([[1, 0]], np.eye(3)[[1]], sample_weight=[3.0])
    assert float(metric.result()) == pytest.approx(5 / 6)


def test_current_classes_are_those_begun_last():
    loss = NegativeReplayLoss(4)
    assert loss.current_classes.tolist() == []
    loss.begin_experience(np.array([[2], [0], [2]]))
    assert loss.current_classes.tolist() == [0, 2]
    loss.begin_experience([1])
    assert loss.current_classes.tolist() == [1]


@pytest.mark.parametrize(
    "labels, message",
    [
        ([], "at least one pattern"),
        ([0, 4], r"\[0, 4\).*0 to 4"),
        ([-1], r"\[0, 4\).*-1"),
        ([0.5], "one integer per pattern"),
    ],
)
def test_labels_that_cannot_be_are_refused(labels, message):
    loss = NegativeReplayLoss(4, current_classes=[3])
    with pytest.raises(ValueError, match=message):
        loss.begin_experience(labels)
    assert loss.current_classes.tolist() == [3]


def test_experience_that_was_not_begun_is_an_error():
    with pytest.raises(RuntimeError, match="begin_experience"):
        NegativeReplayLoss(4)(np.array([[0, 1]]), LOGITS)


def test_shapes_that_do_not_fit_are_refused():
    loss = NegativeReplayLoss(4, current_classes=[0])
    with pytest.raises(ValueError, match=r"shape \(1, 4\)"):
        loss(np.eye(4)[:1], LOGITS)
    with pytest.raises(ValueError, match=r"4 logits.*shape \(1, 3\)"):
        loss(np.array([[0, 1]]), LOGITS[:, :3])
