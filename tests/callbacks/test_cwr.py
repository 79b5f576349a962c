"""Tests of CWR consolidation: the branches of Algorithm 1, by hand.

A row of two weights (a, b), less its mean, is ((a - b) / 2, (b - a) / 2).
"""

import keras
import kinds
import numpy as np
import pytest

from gnr_keras import guards
from gnr_keras.callbacks import CWRConsolidation


def head_model(features=2, classes=3, use_bias=False):
    inputs = keras.Input((features,))
    head = keras.layers.Dense(classes, use_bias=use_bias, name="head")
    return keras.Model(inputs, head(inputs))


def kernel_rows(model):
    return model.get_layer("head").kernel.numpy().T


def begin(cwr, model, labels, replay_labels=()):
    cwr.set_model(model)
    cwr.begin_experience(labels, replay_labels)
    cwr.on_train_begin()


def learn(cwr, model, labels, trained, replay_labels=(), bias=None):
    """An experience in which training ends at the rows `trained`."""
    begin(cwr, model, labels, replay_labels)
    head = model.get_layer("head")
    head.kernel.assign(np.transpose(trained))
    if bias is not None:
        head.bias.assign(bias)
    cwr.on_train_end()


def learn_two_classes(**options):
    """Classes 0 (4 patterns) and 1 (9 patterns) of three are learned.

    Consolidated rows: (3, 1) -> (1, -1) and (0, 4) -> (-2, 2).
    """
    cwr, model = CWRConsolidation(**options), head_model()
    learn(cwr, model, [0] * 4 + [1] * 9, [[3, 1], [0, 4], [5, -7]])
    return cwr, model


def expect(cwr, model, rows):
    np.testing.assert_allclose(cwr.rows, rows, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(kernel_rows(model), cwr.rows)


def test_new_classes_keep_their_centred_rows_and_others_stay_zero():
    cwr, model = learn_two_classes()
    expect(cwr, model, [[1, -1], [-2, 2], [0, 0]])
    np.testing.assert_array_equal(cwr.past_counts, [4, 9, 0])
    np.testing.assert_array_equal(cwr.seen, [True, True, False])


def test_seen_class_is_weighted_by_the_root_of_past_over_current():
    cwr, model = learn_two_classes()
    # Class 0: sqrt(4 / 1) = 2, (8, 0) -> (4, -4), (2 * 1 + 4) / 3 = 2.
    # Class 2 is new: (1, 7) -> (-3, 3). Class 1 is absent.
    learn(cwr, model, [0, 2, 2], [[8, 0], [9, 5], [1, 7]])
    expect(cwr, model, [[2, -2], [-2, 2], [-3, 3]])
    # Class 0 again, with 4 + 1 past patterns: sqrt(5 / 20) = 0.5,
    # (10, 0) -> (5, -5), (0.5 * 2 + 5) / 1.5 = 4.
    learn(cwr, model, [0] * 20, [[10, 0], [9, 5], [1, 7]])
    expect(cwr, model, [[4, -4], [-2, 2], [-3, 3]])


@pytest.mark.parametrize(
    "replay_sign, row",
    [
        # sqrt(9 / 4) = 1.5 with 4 patterns in the replay memory,
        # (12, 2) -> (5, -5), (1.5 * -2 + 5) / 2.5 = 0.8.
        ("positive", [0.8, -0.8]),
        ("negative", [-2, 2]),
    ],
)
def test_class_that_is_only_replayed(replay_sign, row):
    cwr, model = learn_two_classes(replay_sign=replay_sign)
    # Class 0 is absent, class 2 is new: (1, 7) -> (-3, 3).
    learn(cwr, model, [2], [[8, 0], [12, 2], [1, 7]], [1] * 4)
    expect(cwr, model, [[1, -1], row, [-3, 3]])


@pytest.mark.parametrize("replay_sign", ["positive", "negative"])
def test_replay_of_a_current_class_does_not_count_as_current(replay_sign):
    cwr, model = learn_two_classes(replay_sign=replay_sign)
    # sqrt(4 / 1) = 2, as without the 99 replayed patterns.
    learn(cwr, model, [0], [[8, 0], [12, 2], [1, 7]], [0] * 99)
    expect(cwr, model, [[2, -2], [-2, 2], [0, 0]])


@pytest.mark.parametrize(
    "load_rows, replayed_row",
    [("current_and_replay", [1, -1]), ("current", [0, 0])],
)
def test_rows_loaded_at_the_start(load_rows, replayed_row):
    cwr, model = learn_two_classes(load_rows=load_rows)
    begin(cwr, model, [1, 2], replay_labels=[0])
    np.testing.assert_array_equal(
        kernel_rows(model), [replayed_row, [-2, 2], [0, 0]]
    )


def test_absent_classes_are_not_loaded():
    cwr, model = learn_two_classes()
    begin(cwr, model, [2], replay_labels=[0])
    np.testing.assert_array_equal(kernel_rows(model), [[1, -1], [0, 0], [0, 0]])


def test_first_experience_starts_from_an_empty_head():
    model = head_model(use_bias=True)
    model.get_layer("head").bias.assign([1, 2, 3])
    begin(CWRConsolidation(), model, [0, 1])
    np.testing.assert_array_equal(kernel_rows(model), np.zeros((3, 2)))
    np.testing.assert_array_equal(model.get_layer("head").bias, np.zeros(3))


@pytest.mark.parametrize(
    "centering, rows",
    [
        ("class", [[2, -2], [-1, 1], [0, 0]]),
        # (5 + 1 + 0 + 2) / 4 = 2; the row of absent class 2 has no part.
        ("all", [[3, -1], [-2, 0], [0, 0]]),
    ],
)
def test_centering(centering, rows):
    cwr, model = CWRConsolidation(centering=centering), head_model()
    learn(cwr, model, [0, 1], [[5, 1], [0, 2], [100, 100]])
    expect(cwr, model, rows)


def test_centering_over_all_includes_rows_trained_as_negatives():
    cwr, model = learn_two_classes(centering="all")
    # First: (3 + 1 + 0 + 4) / 4 = 2. Then (9 + 3 + 3 + 1) / 4 = 4.
    learn(cwr, model, [2], [[9, 3], [50, 50], [3, 1]], replay_labels=[0])
    expect(cwr, model, [[1, -1], [-2, 2], [-1, -3]])


@pytest.mark.parametrize(
    "count_replay, row",
    [
        # Past: 4 patterns, so sqrt(4 / 4) = 1 and (1 + 4) / 2 = 2.5.
        (False, [2.5, -2.5]),
        # Past: 4 + 12 patterns, so sqrt(16 / 4) = 2 and (2 + 4) / 3 = 2.
        (True, [2, -2]),
    ],
)
def test_replayed_patterns_may_count_as_past_ones(count_replay, row):
    cwr, model = learn_two_classes(count_replay=count_replay)
    learn(cwr, model, [2], [[7, 5], [0, 0], [1, 7]], replay_labels=[0] * 12)
    learn(cwr, model, [0] * 4, [[8, 0], [0, 0], [0, 0]])
    expect(cwr, model, [row, [-2, 2], [-3, 3]])


@pytest.mark.parametrize(
    "align_norms, new_row",
    [
        (False, [5, -5]),
        # Norms of the earlier rows: sqrt(2) and 2 sqrt(2), mean 1.5 sqrt(2).
        (True, [1.5, -1.5]),
        (1, [1.5, -1.5]),
        # Half way is the geometric mean with its own 5 sqrt(2): sqrt(7.5)
        # times sqrt(2).
        (0.5, [7.5**0.5, -(7.5**0.5)]),
        (0.25, [5**0.75 * 1.5**0.25, -(5**0.75) * 1.5**0.25]),
    ],
)
def test_new_row_gets_the_mean_norm_of_earlier_ones(align_norms, new_row):
    cwr, model = learn_two_classes(align_norms=align_norms)
    expect(cwr, model, [[1, -1], [-2, 2], [0, 0]])
    learn(cwr, model, [2], [[3, 0], [0, 3], [10, 0]], replay_labels=[0])
    expect(cwr, model, [[1, -1], [-2, 2], new_row])


@pytest.mark.parametrize("align_norms", [-0.1, 1.5, "half", None, np.nan])
def test_how_far_norms_are_aligned_is_from_0_to_1(align_norms):
    with pytest.raises(ValueError, match="align_norms.*from 0 to 1.*Received"):
        CWRConsolidation(align_norms=align_norms)


def test_aligned_norm_is_the_mean_over_earlier_rows_in_many_dimensions():
    cwr, model = CWRConsolidation(align_norms=True), head_model(7, 5)
    rng = np.random.default_rng(0)
    learn(cwr, model, [0, 1, 3], rng.normal(size=(5, 7)))
    earlier = cwr.rows.copy()
    learn(cwr, model, [2, 4], 30 * rng.normal(size=(5, 7)))
    mean_norm = np.sqrt((earlier[[0, 1, 3]] ** 2).sum(1)).mean()
    np.testing.assert_allclose(
        np.sqrt((cwr.rows[[2, 4]] ** 2).sum(1)), mean_norm, rtol=1e-5
    )


def test_row_consolidated_again_is_aligned_too():
    cwr, model = learn_two_classes(align_norms=True)
    # sqrt(4 / 1) = 2, (8, 0) -> (4, -4), (2 * 1 + 4) / 3 = 2, whose norm
    # 2 sqrt(2) becomes 1.5 sqrt(2).
    learn(cwr, model, [0], [[8, 0], [0, 0], [0, 0]])
    expect(cwr, model, [[1.5, -1.5], [-2, 2], [0, 0]])


def test_rows_that_are_only_replayed_keep_their_norms():
    """Positive replay that moved nothing changes nothing."""
    cwr = CWRConsolidation(align_norms=True, replay_sign="positive")
    model = head_model(2, 3)
    cwr.set_model(model)
    cwr.begin_experience([0, 1])
    cwr.on_train_begin()
    model.layers[-1].kernel.assign([[3.0, 1.0, 0.0], [-3.0, -1.0, 0.0]])
    cwr.on_train_end()
    cwr.begin_experience([2], [0, 1])
    cwr.on_train_begin()
    kernel = model.layers[-1].kernel.numpy()
    kernel[:, 2] = [5.0, -5.0]
    model.layers[-1].kernel.assign(kernel)
    cwr.on_train_end()
    # Saved norms 3 * sqrt(2) and sqrt(2): the new row gets their mean.
    np.testing.assert_allclose(
        cwr.rows, [[3.0, -3.0], [1.0, -1.0], [2.0, -2.0]], rtol=1e-6
    )


def test_aligning_leaves_a_zero_row_zero():
    cwr, model = learn_two_classes(align_norms=True)
    learn(cwr, model, [2], [[0, 0], [0, 0], [4, 4]])
    expect(cwr, model, [[1, -1], [-2, 2], [0, 0]])


@pytest.mark.parametrize("centering", ["class", "all"])
def test_bias_is_consolidated_but_not_centred(centering):
    cwr = CWRConsolidation(centering=centering)
    model = head_model(classes=2, use_bias=True)
    # One class in the experience: both ways of centring subtract its mean.
    learn(cwr, model, [0] * 4, [[3, 1], [6, 6]], bias=[0.5, 9])
    np.testing.assert_allclose(cwr.rows, [[1, -1, 0.5], [0, 0, 0]])
    # sqrt(4 / 1) = 2: (2 * 1 + 4) / 3 = 2 and (2 * 0.5 + 3.5) / 3 = 1.5.
    learn(cwr, model, [0], [[8, 0], [6, 6]], bias=[3.5, 9])
    np.testing.assert_allclose(cwr.rows, [[2, -2, 1.5], [0, 0, 0]], rtol=1e-6)
    np.testing.assert_allclose(kernel_rows(model), cwr.rows[:, :2])
    np.testing.assert_allclose(model.get_layer("head").bias, cwr.rows[:, 2])


CENTRES = np.array([[4, 0, 0, 1], [0, 4, 0, 1], [0, 0, 4, 1]], "float32")


def clusters(classes, per_class=8, seed=0):
    labels = np.repeat(classes, per_class)
    noise = np.random.default_rng(seed).normal(0, 0.3, (len(labels), 4))
    return (CENTRES[labels] + noise).astype("float32"), labels


def layers_of_classifier():
    return (
        keras.layers.Dense(4, activation="relu", trainable=False),
        keras.layers.Dense(3, use_bias=False, name="predictions"),
    )


def functional_classifier():
    inputs = keras.Input((4,))
    features = keras.layers.Dense(4, activation="relu", trainable=False)
    head = keras.layers.Dense(3, use_bias=False, name="head")
    return keras.Model(inputs, head(features(inputs)))


def compiled(model):
    model.compile(
        keras.optimizers.SGD(0.05, momentum=0.9),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def fit(model, cwr, x, y, epochs=3):
    model.fit(x, y, batch_size=8, epochs=epochs, verbose=0, callbacks=[cwr])


def trained_model(rows, bias=None):
    """A model whose head was trained before, without consolidation."""
    model = head_model(classes=len(rows), use_bias=bias is not None)
    model.get_layer("head").kernel.assign(np.transpose(rows))
    if bias is not None:
        model.get_layer("head").bias.assign(bias)
    return model


def test_adopted_rows_are_those_of_an_experience_with_these_patterns():
    model = trained_model([[3, 1], [0, 4], [5, -7]])
    cwr = CWRConsolidation()
    cwr.adopt(model, [0] * 4 + [1] * 9)
    # Class 2 was in the head, but not in what the model was trained on.
    np.testing.assert_array_equal(cwr.rows, [[1, -1], [-2, 2], [0, 0]])
    np.testing.assert_array_equal(cwr.past_counts, [4, 9, 0])
    np.testing.assert_array_equal(cwr.seen, [True, True, False])
    np.testing.assert_array_equal(kernel_rows(model), [[3, 1], [0, 4], [5, -7]])
    # sqrt(4 / 1) = 2, (8, 0) -> (4, -4), (2 * 1 + 4) / 3 = 2; and class 2 is
    # new: (1, 7) -> (-3, 3).
    learn(cwr, model, [0, 2, 2], [[8, 0], [9, 5], [1, 7]])
    expect(cwr, model, [[2, -2], [-2, 2], [-3, 3]])
    np.testing.assert_array_equal(cwr.past_counts, [5, 9, 2])


def test_adopted_rows_are_centred_over_all_and_keep_their_bias():
    model = trained_model([[5, 1], [0, 2], [100, 100]], bias=[0.5, -2, 9])
    cwr = CWRConsolidation(centering="all")
    cwr.adopt(model, [0, 1])
    # (5 + 1 + 0 + 2) / 4 = 2.
    np.testing.assert_array_equal(
        cwr.rows, [[3, -1, 0.5], [-2, 0, -2], [0, 0, 0]]
    )


def linear_classifier(classes=3):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((4,))
    return compiled(
        keras.Model(inputs, keras.layers.Dense(classes, name="head")(inputs))
    )


def test_fit_with_new_classes_keeps_what_plain_fit_has_learned():
    """And without `adopt`, it does not."""

    def accuracies(adopts):
        model = linear_classifier()
        x, y = clusters([0, 1])
        model.fit(x, y, batch_size=8, epochs=10, verbose=0)
        cwr = CWRConsolidation()
        if adopts:
            cwr.adopt(model, y)
        x, y = clusters([2])
        cwr.begin_experience(y)
        fit(model, cwr, x, y, epochs=10)
        x, y = clusters([0, 1, 2], seed=2)
        correct = model.predict(x, verbose=0).argmax(-1) == y
        return [correct[y == label].mean() for label in range(3)]

    assert accuracies(adopts=True) == [1, 1, 1]
    # Both have the same row, of zeros: one of them is never predicted.
    assert 0 in accuracies(adopts=False)[:2]


def test_adopted_rows_go_into_a_larger_head():
    small = linear_classifier(classes=2)
    x, y = clusters([0, 1])
    small.fit(x, y, batch_size=8, epochs=10, verbose=0)
    cwr = CWRConsolidation()
    cwr.adopt(small, y)
    large = linear_classifier(classes=3)
    x, y = clusters([2])
    cwr.begin_experience(y)
    fit(large, cwr, x, y, epochs=10)
    x, y = clusters([0, 1, 2], seed=2)
    np.testing.assert_array_equal(large.predict(x, verbose=0).argmax(-1), y)


def test_adopt_comes_first():
    cwr, model = learn_two_classes()
    with pytest.raises(RuntimeError, match="before the first training"):
        cwr.adopt(model, [0])
    # A training that ended early has reset the head, too.
    begun = CWRConsolidation()
    begin(begun, model, [0])
    with pytest.raises(RuntimeError, match="before the first training"):
        begun.adopt(model, [0])


def test_adopt_can_be_corrected_after_an_error():
    model, cwr = trained_model([[3, 1], [0, 4]]), CWRConsolidation()
    with pytest.raises(ValueError, match=r"\[0, 2\).*0 to 2"):
        cwr.adopt(model, [0, 2])
    with pytest.raises(ValueError, match="at least one pattern"):
        cwr.adopt(model, [])
    broken = trained_model([[3, np.nan], [0, 4]])
    with pytest.raises(guards.NotFiniteError, match="'head'"):
        cwr.adopt(broken, [0, 1])
    cwr.adopt(model, [0, 1])
    np.testing.assert_array_equal(cwr.rows, [[1, -1], [-2, 2]])


def fit_two_classes():
    model, cwr = linear_classifier(), CWRConsolidation()
    x, y = clusters([0, 1])
    cwr.begin_experience(y)
    fit(model, cwr, x, y, epochs=10)
    return model, cwr


class Interrupt(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        raise KeyboardInterrupt


def test_interrupted_fit_can_be_undone_and_done_again():
    model, cwr = fit_two_classes()
    before, counts = model.get_weights(), cwr.past_counts.copy()
    x, y = clusters([2])
    cwr.begin_experience(y)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y, verbose=0, callbacks=[Interrupt(), cwr])
    old_x, old_y = clusters([0, 1], seed=2)
    assert (model.predict(old_x, verbose=0).argmax(-1) != old_y).any()

    cwr.write_rows(model)
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    fit(model, cwr, x, y, epochs=10)
    # What was interrupted does not count.
    np.testing.assert_array_equal(cwr.past_counts, counts + [0, 0, 8])
    x, y = clusters([0, 1, 2], seed=2)
    np.testing.assert_array_equal(model.predict(x, verbose=0).argmax(-1), y)


def test_best_weights_are_consolidated_where_the_callback_is_last():
    class Best(keras.callbacks.Callback):
        """Keeps the rows of the epoch that is restored, the first."""

        def on_epoch_end(self, epoch, logs=None):
            if epoch == 0:
                self.rows = kernel_rows(self.model)

    model, cwr = fit_two_classes()
    old_rows = cwr.rows[:2].copy()
    x, y = clusters([2])
    cwr.begin_experience(y)
    # The loss falls, so by this measure the first epoch is the best.
    early = keras.callbacks.EarlyStopping(
        "loss", mode="max", patience=2, restore_best_weights=True
    )
    best = Best()
    model.fit(x, y, epochs=9, verbose=0, callbacks=[best, early, cwr])
    assert early.stopped_epoch == 2
    np.testing.assert_array_equal(cwr.rows[:2], old_rows)
    np.testing.assert_allclose(
        cwr.rows[2, :4], best.rows[2] - best.rows[2].mean(), rtol=1e-5
    )
    np.testing.assert_array_equal(kernel_rows(model), cwr.rows[:, :4])


def test_checkpoint_within_fit_gets_its_rows_back(tmp_path):
    model, cwr = fit_two_classes()
    x, y = clusters([2])
    cwr.begin_experience(y)
    path = tmp_path / "model.keras"
    checkpoint = keras.callbacks.ModelCheckpoint(path)
    model.fit(
        x, y, batch_size=8, epochs=10, verbose=0, callbacks=[checkpoint, cwr]
    )
    loaded = keras.saving.load_model(path)
    x, y = clusters([0, 1, 2], seed=2)
    assert (loaded.predict(x, verbose=0).argmax(-1) != y).any()
    cwr.write_rows(loaded)
    np.testing.assert_array_equal(
        loaded.predict(x, verbose=0), model.predict(x, verbose=0)
    )


def test_rows_can_be_written_into_a_larger_head():
    cwr, _ = learn_two_classes()
    larger = head_model(classes=4)
    cwr.write_rows(larger)
    expect(cwr, larger, [[1, -1], [-2, 2], [0, 0], [0, 0]])


def test_there_is_nothing_to_write_before_the_first_training():
    with pytest.raises(RuntimeError, match="no consolidated rows"):
        CWRConsolidation().write_rows(head_model())


def test_callback_that_is_given_twice_counts_once():
    model, cwr = linear_classifier(), CWRConsolidation()
    x, y = clusters([0, 1])
    cwr.begin_experience(y)
    model.fit(x, y, batch_size=8, epochs=3, verbose=0, callbacks=[cwr, cwr])
    once, reference = linear_classifier(), CWRConsolidation()
    reference.begin_experience(y)
    fit(once, reference, x, y)
    np.testing.assert_array_equal(cwr.past_counts, [8, 8, 0])
    np.testing.assert_array_equal(cwr.rows, reference.rows)
    np.testing.assert_array_equal(kernel_rows(model), kernel_rows(once))


def test_state_of_before_the_first_training_forgets_all():
    before = CWRConsolidation().state()
    cwr, model = learn_two_classes()
    cwr.restore(before)
    assert not cwr.state()
    with pytest.raises(RuntimeError, match="no consolidated rows"):
        cwr.write_rows(model)
    # As a new one: (5, 1) -> (2, -2), in which the old row has no share.
    learn(cwr, model, [0], [[5, 1], [0, 0], [0, 0]])
    expect(cwr, model, [[2, -2], [0, 0], [0, 0]])
    np.testing.assert_array_equal(cwr.past_counts, [1, 0, 0])


def test_state_of_something_else_is_refused():
    with pytest.raises(
        ValueError, match=r"no \['past_counts', 'real_counts'\].*\['rows'\]"
    ):
        CWRConsolidation().restore({"rows": np.zeros((2, 2))})


@kinds.every_kind
@kinds.head_by_name_and_as_layer
@pytest.mark.parametrize("replay_sign", ["negative", "positive"])
def test_fit_moves_rows_of_replayed_classes_only_if_positive(
    make_model, find_head, replay_sign
):
    keras.utils.set_random_seed(0)
    features, head = layers_of_classifier()
    model = compiled(make_model(features, head))
    cwr = CWRConsolidation(find_head(head), replay_sign=replay_sign)
    x, y = clusters([0, 1])
    cwr.begin_experience(y)
    fit(model, cwr, x, y)
    before = cwr.rows.copy()
    assert np.abs(before[:2]).max() > 0.01
    np.testing.assert_array_equal(before[2], np.zeros(4))

    x, y = clusters([2])
    replay_x, replay_y = clusters([0], seed=1)
    cwr.begin_experience(y, replay_y)
    fit(
        model,
        cwr,
        np.concatenate([x, replay_x]),
        np.concatenate([y, replay_y]),
    )
    if replay_sign == "negative":
        assert cwr.rows[0].tobytes() == before[0].tobytes()
    else:
        assert np.abs(cwr.rows[0] - before[0]).max() > 1e-4
    # Class 1 was neither in the experience nor in the replay.
    assert cwr.rows[1].tobytes() == before[1].tobytes()
    assert np.abs(cwr.rows[2]).max() > 0.01
    np.testing.assert_array_equal(head.kernel.numpy().T, cwr.rows)


def test_fit_over_two_experiences_ends_with_all_classes_known():
    inputs = keras.Input((4,))
    head = keras.layers.Dense(3, use_bias=False, name="head")
    model = compiled(keras.Model(inputs, head(inputs)))
    cwr = CWRConsolidation()
    x, y = clusters([0, 1])
    cwr.begin_experience(y)
    fit(model, cwr, x, y, epochs=10)
    x, y = clusters([2])
    replay_x, replay_y = clusters([0, 1], seed=1)
    cwr.begin_experience(y, replay_y)
    fit(
        model,
        cwr,
        np.concatenate([x, replay_x]),
        np.concatenate([y, replay_y]),
        epochs=10,
    )
    x, y = clusters([0, 1, 2], seed=2)
    predicted = model.predict(x, verbose=0).argmax(-1)
    np.testing.assert_array_equal(predicted, y)


def test_rows_and_counts_stay_when_the_head_grows():
    cwr, _ = learn_two_classes()
    larger = head_model(classes=5)
    # sqrt(4 / 1) = 2: (8, 0) -> (4, -4), (2 * 1 + 4) / 3 = 2. Class 4 is
    # new: (1, 7) -> (-3, 3). Of class 1, only replayed, the row stays.
    learn(
        cwr,
        larger,
        [0, 4],
        [[8, 0], [9, 5], [3, 3], [6, 2], [1, 7]],
        replay_labels=[1],
    )
    expect(cwr, larger, [[2, -2], [-2, 2], [0, 0], [0, 0], [-3, 3]])
    np.testing.assert_array_equal(cwr.past_counts, [5, 9, 0, 0, 1])
    np.testing.assert_array_equal(cwr.seen, [True, True, False, False, True])


def test_rows_are_loaded_into_a_head_that_grew():
    cwr, _ = learn_two_classes()
    larger = head_model(classes=4)
    begin(cwr, larger, [0, 3], replay_labels=[1])
    np.testing.assert_array_equal(
        kernel_rows(larger), [[1, -1], [-2, 2], [0, 0], [0, 0]]
    )


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (3, 4)])
def test_head_that_shrank_or_has_other_features_is_an_error(shape):
    cwr, model = learn_two_classes()
    features, classes = shape
    with pytest.raises(
        ValueError, match=rf"3 of 2 weights.*{classes} of {features}"
    ):
        begin(cwr, head_model(features, classes), [0])
    learn(cwr, model, [2], [[0, 0], [0, 0], [1, 7]])
    expect(cwr, model, [[1, -1], [-2, 2], [-3, 3]])


def test_fit_goes_on_with_a_head_that_the_user_grew():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((4,))
    # Of four random features, too many may be zero everywhere.
    features = keras.layers.Dense(
        4, "relu", trainable=False, kernel_initializer="identity"
    )(inputs)
    cwr = CWRConsolidation()

    def with_head(classes):
        head = keras.layers.Dense(classes, name="head")
        return compiled(keras.Model(inputs, head(features)))

    small = with_head(2)
    x, y = clusters([0, 1])
    cwr.begin_experience(y)
    fit(small, cwr, x, y, epochs=10)
    rows = cwr.rows.copy()

    large = with_head(3)
    x, y = clusters([2])
    replay_x, replay_y = clusters([0, 1], seed=1)
    cwr.begin_experience(y, replay_y)
    fit(
        large,
        cwr,
        np.concatenate([x, replay_x]),
        np.concatenate([y, replay_y]),
        epochs=10,
    )
    # Weights and bias of the old classes, in a model that never had them.
    np.testing.assert_array_equal(cwr.rows[:2], rows)
    x, y = clusters([0, 1, 2], seed=2)
    np.testing.assert_array_equal(
        large.predict(x, verbose=0)[:, :2], small.predict(x, verbose=0)
    )
    assert (large.predict(x, verbose=0).argmax(-1) == y)[y == 2].all()


def test_each_fit_needs_its_own_begin_experience():
    model, cwr = compiled(functional_classifier()), CWRConsolidation()
    x, y = clusters([0, 1])
    with pytest.raises(RuntimeError, match="begin_experience"):
        fit(model, cwr, x, y)
    cwr.begin_experience(y)
    fit(model, cwr, x, y)
    rows = cwr.rows.copy()
    with pytest.raises(RuntimeError, match="begin_experience"):
        fit(model, cwr, x, y)
    np.testing.assert_array_equal(cwr.rows, rows)


@pytest.mark.parametrize(
    "labels, replay_labels, received",
    [
        ([0, 3], [], 3),
        ([-1, 0], [], -1),
        ([0], [1, 3], 3),
        ([0], [-1, 1], -1),
    ],
)
def test_labels_outside_the_head_are_an_error(labels, replay_labels, received):
    with pytest.raises(ValueError, match=r"\[0, 3\).*'head'") as error:
        begin(CWRConsolidation(), head_model(), labels, replay_labels)
    assert str(received) in str(error.value).split("Received")[1]


def test_labels_can_be_corrected_after_an_error():
    cwr, model = learn_two_classes()
    with pytest.raises(ValueError):
        begin(cwr, model, [3])
    learn(cwr, model, [2], [[0, 0], [0, 0], [1, 7]])
    expect(cwr, model, [[1, -1], [-2, 2], [-3, 3]])
    np.testing.assert_array_equal(cwr.past_counts, [4, 9, 1])


def test_labels_may_be_a_column_as_for_fit():
    cwr, model = CWRConsolidation(), head_model()
    learn(cwr, model, np.array([[0], [2]]), [[3, 1], [1, 1], [1, 7]])
    expect(cwr, model, [[1, -1], [0, 0], [-3, 3]])


@pytest.mark.parametrize("labels", [np.eye(3), np.eye(3, dtype=int), [0.5]])
def test_labels_that_are_no_integers_are_an_error(labels):
    with pytest.raises(ValueError, match="integer"):
        begin(CWRConsolidation(), head_model(), labels)


def test_experience_without_patterns_is_an_error():
    with pytest.raises(ValueError, match="at least one pattern"):
        CWRConsolidation().begin_experience([])


def test_seen_before_the_head_is_known_is_a_clear_error():
    with pytest.raises(RuntimeError):
        _ = CWRConsolidation().seen


def test_head_that_is_not_there_is_an_error_that_names_the_layers():
    cwr = CWRConsolidation(head="predictions")
    with pytest.raises(ValueError, match="'predictions'.*head"):
        begin(cwr, head_model(), [0])


def test_head_of_another_model_is_an_error():
    one, other = head_model(), head_model()
    cwr = CWRConsolidation(head=one.get_layer("head"))
    with pytest.raises(ValueError, match="not one of the model.*its name"):
        begin(cwr, other, [0])


def test_name_of_several_layers_is_an_error_unless_one_lies_above():
    keras.utils.set_random_seed(0)
    inner = [keras.layers.Dense(4, name="head") for _ in range(2)]
    blocks = kinds.Block(inner[0]), kinds.Block(inner[1])
    with pytest.raises(ValueError, match="2 layers 'head'.*the layer itself"):
        begin(CWRConsolidation(), kinds.subclassed(*blocks), [0])
    outer = keras.layers.Dense(3, name="head")
    model = kinds.subclassed(kinds.Block(*blocks), outer)
    before = inner[0].kernel.numpy()
    begin(CWRConsolidation(), model, [0])
    np.testing.assert_array_equal(outer.kernel, np.zeros((4, 3)))
    np.testing.assert_array_equal(inner[0].kernel, before)


def test_head_that_is_not_dense_is_an_error():
    inputs = keras.Input((2,))
    model = keras.Model(inputs, keras.layers.ReLU(name="head")(inputs))
    with pytest.raises(ValueError, match="Dense.*'head'.*ReLU"):
        begin(CWRConsolidation(), model, [0])


def test_model_that_fit_has_yet_to_build_is_a_clear_error():
    head = keras.layers.Dense(3, use_bias=False, name="head")
    model, cwr = compiled(keras.Sequential([head])), CWRConsolidation()
    x, y = clusters([0, 1])
    cwr.begin_experience(y)
    with pytest.raises(ValueError, match="Build the model"):
        fit(model, cwr, x, y)
    # The way that the message names.
    model(x[:1])
    fit(model, cwr, x, y)


@pytest.mark.parametrize("option", ["replay_sign", "centering", "load_rows"])
def test_wrong_option_is_an_error_that_names_it(option):
    with pytest.raises(ValueError, match=f"{option}.*'sideways'"):
        CWRConsolidation(**{option: "sideways"})
