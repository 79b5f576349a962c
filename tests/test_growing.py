"""Tests of learners whose classes come later."""

import functools
import gc
import subprocess
import sys
import weakref

import helpers
import keras
import numpy as np
import pytest

from gnr_keras import CenteredVAE
from gnr_keras import ClassifierTrainer
from gnr_keras import ConditionalVAE
from gnr_keras import GeneratedReplay
from gnr_keras import GeneratorTrainer
from gnr_keras import Learner
from gnr_keras import OriginalReplay
from gnr_keras import Phase
from gnr_keras import RandomReplay
from gnr_keras import strategies
from gnr_keras.datasets import ArraySource
from gnr_keras.optimizers import SynapticIntelligence

# Of `helpers.small_backbone`: 4 x 4 x 16.
FEATURES = 256


def data_of(*classes, per_class=24, seed=0):
    """Blobs of some of six classes."""
    images, labels, _ = helpers.blobs(6, per_class, seed=seed)
    chosen = np.isin(labels, classes)
    return images[chosen], labels[chosen].astype("int32")


def make_learner(strategy=None, num_classes=4, **options):
    options = {
        "first": Phase(8, 0.02, 0.02),
        "following": Phase(4, 1e-3, 0.02),
        **options,
    }
    return Learner(
        helpers.small_backbone(),
        "latent",
        num_classes,
        strategy=strategy or strategies.er(),
        trainer=functools.partial(ClassifierTrainer, batch_size=16),
        seed=3,
        **options,
    )


def original_replay():
    return OriginalReplay(32, replay_per_batch=6, rule="balanced")


def random_replay():
    return RandomReplay(32, replay_per_batch=6)


def generated_replay(generator=ConditionalVAE):
    return GeneratedReplay(
        32,
        replay_per_batch=6,
        generator=generator,
        trainer=functools.partial(GeneratorTrainer, epochs=2, batch_size=16),
    )


def protected(optimizer):
    return SynapticIntelligence(optimizer, strength=1e3, clip=0.1)


def logits_of(learner, images):
    return learner.model(images.astype("float32"), training=False).numpy()


def values_of(variables):
    return [variable.numpy().copy() for variable in variables]


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


STRATEGIES = {
    "er": strategies.er,
    "er, original": lambda: strategies.er(original_replay()),
    "er, generated": lambda: strategies.er(generated_replay(), "positive"),
    "er, random": lambda: strategies.er(random_replay()),
    "lwf": strategies.lwf,
    "lwf, original": lambda: strategies.lwf(original_replay(), "positive"),
    "ar1": lambda: strategies.ar1(protected),
    "ar1free, original": lambda: strategies.ar1free(original_replay()),
    "ar1free, generated": lambda: strategies.ar1free(generated_replay()),
    "ar1free, random": lambda: strategies.ar1free(random_replay()),
    "cumulative": strategies.cumulative,
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_was_learned_stays_and_new_classes_are_learned(name):
    learner = make_learner(STRATEGIES[name]())
    learner.fit(data_of(0, 1, 2))
    learner.fit(data_of(3))
    images, labels = data_of(0, 1, 2, 3, 4, 5, per_class=8, seed=1)
    logits = logits_of(learner, images)
    predictions = learner.predict(images)
    features = learner.trainer.feature_optimizer
    kept = [*learner.front.variables, *learner.back.variables[:-1]]
    kept += features.variables
    before = values_of(kept)

    learner.add_classes(2)
    assert learner.num_classes == learner.back.output_shape[-1] == 6
    np.testing.assert_array_equal(logits_of(learner, images)[:, :4], logits)
    np.testing.assert_array_equal(learner.predict(images), predictions)
    # The very variables of the features and of their optimizer, unchanged.
    assert learner.trainer.feature_optimizer is features
    grown = [*learner.front.variables, *learner.back.variables[:-1]]
    grown += features.variables
    assert all(a is b for a, b in zip(kept, grown, strict=True))
    assert_same(before, values_of(grown))

    learner.fit(data_of(4))
    learner.fit(data_of(5))
    assert learner.experiences_learned == learner.trainer.trainings == 4
    assert learner.seen.all()
    result = learner.evaluate((images, labels))
    # What came last is known in any case.
    assert result.accuracy_by_class[5] >= 0.5
    if name == "cumulative" or name.startswith("ar1free"):
        # As in `test_learner`, where nothing grows; chance is 1/6.
        assert result.accuracy_by_class[:4].mean() >= 0.6
        assert result.accuracy_by_class[4:].mean() >= 0.6


def test_grown_learner_is_as_good_as_one_that_knew_all_classes():
    results = []
    for start in (6, 4):
        learner = make_learner(
            strategies.ar1free(original_replay()), num_classes=start
        )
        for classes in ([0, 1], [2], [3]):
            learner.fit(data_of(*classes))
        if start == 4:
            learner.add_classes(2)
        for classes in ([4], [5]):
            learner.fit(data_of(*classes))
        images, labels = data_of(*range(6), per_class=8, seed=1)
        results.append(learner.evaluate((images, labels)))
    fixed, grown = results
    assert fixed.accuracy_whole >= 0.8
    assert grown.accuracy_whole >= 0.8
    # One step of the accuracy of 8 patterns a class, over 6 classes.
    assert abs(fixed.accuracy_whole - grown.accuracy_whole) <= 0.1


@pytest.mark.parametrize("head_bias", [False, True])
def test_old_logits_are_the_same_to_the_last_bit(head_bias):
    learner = make_learner(head_bias=head_bias)
    learner.fit(data_of(0, 1, 2, 3))
    images, _ = data_of(*range(6), per_class=8, seed=1)
    logits = logits_of(learner, images)
    if head_bias:
        assert learner.model.get_layer("head").bias.numpy().any()
    for total in (5, 8):
        learner.add_classes(total - learner.num_classes)
        grown = logits_of(learner, images)
        assert grown.shape == (len(images), total)
        assert grown[:, :4].tobytes() == logits.tobytes()


def rows_after(*counts, seed=3, **options):
    learner = Learner(
        helpers.small_backbone(),
        "latent",
        num_classes=2,
        strategy=strategies.er(),
        seed=seed,
        **options,
    )
    for count in counts:
        learner.add_classes(count)
    return learner.model.get_layer("head").kernel.numpy().T


def test_new_rows_are_drawn_as_those_of_a_head_of_this_size():
    rows = rows_after(98)
    # Glorot's uniform distribution over all 100 rows.
    limit = np.sqrt(6 / (FEATURES + 100))
    assert 0.99 * limit < np.abs(rows[2:]).max() <= limit
    # Its deviation is limit / sqrt(3), known to 0.3 % from 25,000 weights.
    assert rows[2:].std() == pytest.approx(limit / np.sqrt(3), rel=0.02)
    assert abs(rows[2:].mean()) < 0.02 * limit


def test_new_rows_depend_on_the_seed_and_on_the_size_so_far():
    keras.utils.set_random_seed(1)
    first = rows_after(1, 1)
    keras.utils.set_random_seed(2)
    np.testing.assert_array_equal(rows_after(1, 1), first)
    assert (rows_after(1, 1, seed=4)[2:] != first[2:]).all()
    # No row is another one again.
    assert (first[2] != first[3]).all()
    correlation = np.corrcoef(first)
    # Deviation 1 / sqrt(256).
    assert np.abs(correlation - np.eye(4)).max() < 0.3


def test_new_rows_are_zero_where_a_consolidation_has_learned():
    learner = make_learner(strategies.ar1free())
    learner.fit(data_of(0, 1))
    learner.add_classes(2)
    kernel = learner.model.get_layer("head").kernel.numpy()
    # As those of classes 2 and 3, which have not come yet either.
    assert not kernel[:, 2:].any()


def test_growth_before_the_first_experience_changes_nothing():
    """CWR empties the head at the start, so its first rows do not matter."""
    heads = []
    for start in (6, 4):
        learner = make_learner(strategies.ar1free(), num_classes=start)
        if start == 4:
            learner.add_classes(2)
        learner.fit(data_of(0, 4))
        learner.fit(data_of(5))
        heads.append(learner.model.get_layer("head").kernel.numpy())
    assert_same(*heads)


def test_consolidated_rows_and_counts_stay():
    learner = make_learner(strategies.ar1free())
    consolidation = learner.strategy.consolidation
    learner.fit(data_of(0, 1, 2, 3))
    rows = consolidation.rows.copy()
    learner.add_classes(2)
    learner.fit(data_of(5, per_class=10))
    np.testing.assert_array_equal(consolidation.rows[:4], rows)
    np.testing.assert_array_equal(
        consolidation.past_counts, [24, 24, 24, 24, 0, 10]
    )
    assert not consolidation.rows[4].any()
    assert consolidation.rows[5].any()


def test_importances_and_their_anchors_stay():
    learner = make_learner(
        strategies.ar1(protected), following=Phase(2, 0.0, 0.02)
    )
    optimizer = learner.trainer.feature_optimizer
    learner.fit(data_of(0, 1, 2, 3))
    importances = values_of(optimizer.importances)
    anchors = values_of(optimizer.anchors)
    assert max(value.max() for value in importances) > 1e-3
    learner.add_classes(2)
    # At a rate of zero no weight moves, and no importance is added.
    learner.fit(data_of(4))
    assert_same(values_of(optimizer.importances), importances)
    assert_same(values_of(optimizer.anchors), anchors)


def test_schedules_count_experiences_on():
    rates = []

    class Watch(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            trainer = learner.trainer
            rates.append(
                [
                    float(trainer.feature_optimizer.learning_rate),
                    float(trainer._head_optimizer.learning_rate),
                ]
            )

    halve = {"experience_schedule": lambda i: 0.5**i}
    learner = make_learner(
        first=Phase(1, 0.02, 0.04, **halve),
        following=Phase(1, 0.02, 0.04, **halve),
    )
    learner.fit(data_of(0, 1, 2), callbacks=[Watch()])
    learner.fit(data_of(3), callbacks=[Watch()])
    learner.add_classes(1)
    learner.fit(data_of(4), callbacks=[Watch()])
    np.testing.assert_allclose(
        rates, [[0.02, 0.04], [0.01, 0.02], [0.005, 0.01]], rtol=1e-6
    )


def test_replayed_patterns_of_old_classes_stay():
    for make_replay in (original_replay, generated_replay):
        replay = make_replay()
        learner = make_learner(strategies.ar1free(replay))
        learner.fit(data_of(0, 1, 2, 3))
        draw = functools.partial(replay.populate, np.arange(4), (), 0)
        before = draw(rng=np.random.default_rng(7))
        accuracy = learner.replay_accuracy()
        learner.add_classes(2)
        after = draw(rng=np.random.default_rng(7))
        np.testing.assert_array_equal(before.labels, after.labels)
        np.testing.assert_array_equal(before.latents, after.latents)
        assert learner.replay_accuracy() == accuracy


def test_generator_has_the_means_of_old_classes_and_none_of_new_ones():
    replay = generated_replay(CenteredVAE)
    learner = make_learner(strategies.ar1free(replay))
    learner.fit(data_of(0, 1, 2, 3))
    means = replay.generator.class_means.numpy()
    learner.add_classes(2)
    grown = replay.generator.class_means.numpy()
    np.testing.assert_array_equal(grown[:4], means)
    assert not grown[4:].any()
    learner.fit(data_of(5, per_class=10))
    np.testing.assert_array_equal(
        replay.generator.class_counts, [24, 24, 24, 24, 0, 10]
    )
    later = replay.generator.class_means.numpy()
    np.testing.assert_allclose(later[:4], means, rtol=1e-6)
    assert not later[4].any()
    assert later[5].any()


def test_generator_sees_the_grown_head():
    replay = generated_replay()
    learner = make_learner(strategies.ar1free(replay))
    learner.fit(data_of(0, 1, 2, 3))
    learner.add_classes(2)
    learner.fit(data_of(4))
    images, _ = data_of(*range(6), per_class=2, seed=1)
    latents = learner.front(images, training=False)
    features, logits = replay.trainer.classifier(latents, training=False)
    np.testing.assert_allclose(
        logits, logits_of(learner, images), rtol=1e-4, atol=1e-4
    )
    assert features.shape == (len(images), FEATURES)


def test_front_does_not_run_again_over_the_test_set():
    learner = make_learner()
    learner.fit(data_of(0, 1, 2, 3))
    test = ArraySource(*data_of(0, 1, 2, 3, per_class=8, seed=1))
    predictions = learner.predict(test)
    seconds = learner.seconds["front"]
    learner.add_classes(2)
    np.testing.assert_array_equal(learner.predict(test), predictions)
    assert learner.seconds["front"] == seconds


def test_nothing_is_traced_twice_after_growth():
    replay = generated_replay()
    learner = make_learner(strategies.lwf(replay))
    test = ArraySource(*data_of(0, 1, 2, 3, per_class=8, seed=1))
    learner.fit(data_of(0, 1, 2))
    learner.evaluate(test)
    learner.add_classes(2)
    functions = {
        "latents": learner.trainer._run_latents,
        "responses": learner.trainer._above.respond,
        "momentum": learner.trainer._clear_momentum,
        "generator": replay.trainer._run,
        "decode": replay.generator._decode_batch,
        "front": learner._inference._extract,
        "predict": learner._inference._predict,
    }
    for new in (3, 4, 5):
        learner.fit(data_of(new))
        learner.evaluate(test)
    counts = {
        name: function.experimental_get_tracing_count()
        for name, function in functions.items()
    }
    assert counts == dict.fromkeys(functions, 1)


def test_old_heads_are_not_kept():
    learner = make_learner(strategies.lwf(generated_replay()))
    learner.fit(data_of(0, 1, 2, 3))
    heads = []
    for _ in range(2):
        heads.append(weakref.ref(learner.model.get_layer("head")))
        learner.add_classes(1)
        learner.fit(data_of(4))
    gc.collect()
    assert [head() for head in heads] == [None, None]


@pytest.mark.parametrize("count", [0, -1, 1.0, True, "2", None])
def test_other_counts_are_refused(count):
    learner = make_learner()
    with pytest.raises(ValueError, match="whole number of at least 1.*Rec"):
        learner.add_classes(count)
    assert learner.num_classes == learner.back.output_shape[-1] == 4


def test_labels_beyond_the_head_name_the_way_out():
    learner = make_learner()
    for method in (learner.fit, learner.evaluate):
        with pytest.raises(ValueError, match="4 classes.*class 5.*add_classes"):
            method(data_of(0, 5))
    learner.add_classes(np.int64(2))
    learner.fit(data_of(0, 5))


_DEVICES = """
import functools
import sys
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
sys.path.insert(0, sys.argv[1])
import test_growing as tests
from gnr_keras import callbacks, objectives, strategies

def learn(distribution):
    with distribution.scope():
        learner = tests.make_learner(
            strategies.Strategy(
                replay=tests.generated_replay(),
                objective=objectives.LearningWithoutForgetting(),
                consolidation=callbacks.CWRConsolidation(),
                protection=tests.protected,
            ),
            num_classes=3,
            first=tests.Phase(2, 0.01, 0.01),
            following=tests.Phase(2, 1e-3, 0.01),
        )
        learner.fit(tests.data_of(0, 1))
        learner.fit(tests.data_of(2))
        learner.add_classes(2)
        learner.fit(tests.data_of(3))
        learner.fit(tests.data_of(4))
    replay = learner.replay
    variables = [*learner.model.variables, *replay.generator.variables]
    variables += learner.trainer.feature_optimizer.importances
    variables += replay.trainer._optimizer.variables
    return [v.numpy() for v in variables]

one = learn(tf.distribute.MirroredStrategy(["CPU:0"]))
two = learn(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))
pairs = zip(one, two, strict=True)
print(max(np.abs(a - b).max() / (1 + np.abs(a).max()) for a, b in pairs))
"""


@pytest.mark.long
def test_one_device_and_two_grow_alike():
    tests = helpers.__file__.rsplit("/", 1)[0]
    result = subprocess.run(
        [sys.executable, "-c", _DEVICES, tests], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-2000:]
    # Sums in another order: rounding, amplified by a few dozen steps.
    assert float(result.stdout.split()[-1]) < 2e-3
