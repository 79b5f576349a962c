"""Tests of the learner: Algorithm 2, one experience at a time."""

import helpers
import keras
import numpy as np
import pytest

from gnr_keras import CenteredVAE
from gnr_keras import ConditionalVAE
from gnr_keras import GeneratedReplay
from gnr_keras import GeneratorTrainer
from gnr_keras import Learner
from gnr_keras import NoReplay
from gnr_keras import OriginalReplay
from gnr_keras import Phase
from gnr_keras import RandomReplay
from gnr_keras import callbacks
from gnr_keras import strategies
from gnr_keras import trainers


def small_trainer(*parts, **options):
    return trainers.ClassifierTrainer(*parts, batch_size=16, **options)


def small_generator_trainer(generator, classifier):
    return GeneratorTrainer(generator, classifier, epochs=2, batch_size=16)


def make_learner(replay=None, sign="negative", **options):
    options = {
        "strategy": strategies.ar1free(replay, sign),
        "first": Phase(8, 0.02, 0.02),
        "following": Phase(4, 1e-3, 0.02),
        **options,
    }
    return Learner(
        helpers.small_backbone(),
        "latent",
        num_classes=4,
        trainer=small_trainer,
        batch_renormalization=callbacks.BatchRenormalizationSchedule(),
        seed=3,
        **options,
    )


def generated_replay(generator=ConditionalVAE):
    return GeneratedReplay(
        32,
        replay_per_batch=6,
        generator=generator,
        trainer=small_generator_trainer,
    )


def values_of(model):
    return {v.path: v.numpy().copy() for v in model.variables}


def changed(before, model):
    return {p for p, v in values_of(model).items() if (v != before[p]).any()}


@pytest.mark.parametrize(
    "replay",
    [
        NoReplay(),
        OriginalReplay(32, replay_per_batch=6),
        generated_replay(),
        RandomReplay(32, replay_per_batch=6),
    ],
    ids=["none", "original", "generated", "random"],
)
def test_the_four_line_loop_learns_the_classes(replay):
    stream = helpers.blob_stream()
    learner = make_learner(replay)
    for experience in stream:
        learner.fit(experience)
    result = learner.evaluate(stream.test)
    # Chance is 25 %.
    assert result.accuracy_whole >= 0.6
    assert result.accuracy_whole == result.accuracy_growing


def test_front_is_frozen_after_the_first_experience():
    stream = helpers.blob_stream()
    learner = make_learner(generated_replay())
    before = values_of(learner.front)
    learner.fit(stream[0])
    assert changed(before, learner.front)
    before = values_of(learner.front)
    back = values_of(learner.back)
    learner.fit(stream[1])
    # The schedule of batch renormalisation sets limits everywhere; they
    # have no part in inference, and the front only does inference now.
    limits = ("r_max", "d_max", "update_rate")
    moved = changed(before, learner.front)
    assert not {p for p in moved if not p.endswith(limits)}
    assert any(p.endswith("head/kernel") for p in changed(back, learner.back))


def test_neither_model_moves_while_the_other_trains():
    stream = helpers.blob_stream()
    replay = generated_replay()
    learner = make_learner(replay)
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.generator = values_of(replay.generator)

        def on_train_end(self, logs=None):
            seen.append(changed(self.generator, replay.generator))
            self.generator = None

    real_update = replay.update

    def watched_update(*args):
        classifier = values_of(learner.model)
        generator = values_of(replay.generator)
        real_update(*args)
        seen.append(changed(classifier, learner.model))
        assert changed(generator, replay.generator) == set(generator)

    replay.update = watched_update
    for experience in stream:
        learner.fit(experience, callbacks=[Watch()])
    assert seen == [set()] * 2 * len(stream)


def test_generator_sees_what_the_classifier_makes_of_latents():
    stream = helpers.blob_stream()
    replay = generated_replay()
    learner = make_learner(replay)
    learner.fit(stream[0])
    images = next(stream.test.batches(range(8), 8))[0]
    latents = learner.front(images, training=False)
    features, logits = (
        values.numpy()
        for values in replay.trainer.classifier(latents, training=False)
    )
    np.testing.assert_allclose(
        logits, learner.model(images, training=False), rtol=1e-5, atol=1e-5
    )
    # 4 x 4 x 16 features, and a head without a bias.
    assert features.shape == (8, 256)
    kernel = learner.model.get_layer("head").kernel.numpy()
    np.testing.assert_allclose(features @ kernel, logits, rtol=1e-4, atol=1e-4)


def test_means_of_the_generator_are_those_of_real_latents():
    """What was replayed in an experience does not count."""
    stream = helpers.blob_stream()
    replay = generated_replay(CenteredVAE)
    learner = make_learner(replay)
    real = []
    replay.watch(
        lambda latents, labels: real.append((np.array(latents), labels))
    )
    for experience in stream:
        learner.fit(experience)
    latents = np.concatenate([latents for latents, _ in real]).astype(float)
    labels = np.concatenate([labels for _, labels in real])
    generator = replay.generator
    np.testing.assert_array_equal(generator.class_counts, [24] * 4)
    for c in range(4):
        np.testing.assert_allclose(
            generator.class_means[c],
            latents[labels == c].mean(0),
            rtol=1e-5,
            atol=1e-6,
        )


def test_generator_learns_latents_right_below_the_head():
    """Then features are latents."""
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.Rescaling(1 / 127.5, offset=-1)(inputs)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(32, activation="relu6", name="latent")(x)
    replay = generated_replay(CenteredVAE)
    learner = Learner(
        keras.Model(inputs, x),
        "latent",
        num_classes=4,
        strategy=strategies.ar1free(replay),
        trainer=small_trainer,
        first=Phase(8, 0.02, 0.02),
        following=Phase(4, 1e-3, 0.02),
    )
    stream = helpers.blob_stream()
    for experience in stream:
        learner.fit(experience)
    # Chance is 25 %.
    assert learner.evaluate(stream.test).accuracy_whole >= 0.6
    learner.add_classes(2)
    latents = np.random.default_rng(0).uniform(0, 1, (5, 32)).astype("float32")
    features, logits = replay.trainer.classifier(latents, training=False)
    np.testing.assert_array_equal(features, latents)
    assert logits.shape == (5, 6)


def test_latents_computed_once_equal_latents_computed_each_epoch():
    """Training the back on cached latents is training behind the front."""
    stream = helpers.blob_stream()
    learner = make_learner()
    learner.fit(stream[0])
    data = stream[1].data
    images = np.concatenate([x for x, _ in data.batches(range(len(data)), 24)])
    cached = learner._inference.latents(data)
    learner.fit(stream[1])
    each_epoch = learner.front(images.astype("float32"), training=False)
    # Half precision keeps 11 bits: latents up to 6 are off by 0.002.
    np.testing.assert_allclose(cached, each_epoch, atol=2e-3)


def count_images_of_front(learner):
    """Returns a list of the sizes of the batches that go through it."""
    counted = []
    extract = learner._inference._extract

    def counting(images):
        counted.append(len(images))
        return extract(images)

    learner._inference._extract = counting
    return counted


def test_front_runs_once_per_image():
    stream = helpers.blob_stream()
    learner = make_learner()
    counted = count_images_of_front(learner)
    learner.fit(stream[0])
    assert counted == []  # Nothing replays what the first one saw.
    learner.fit(stream[1])
    learner.evaluate(stream.test)
    learner.fit(stream[2])
    learner.evaluate(stream.test)
    assert sum(counted) == len(stream[1]) + len(stream.test) + len(stream[2])


def test_front_runs_once_per_image_of_data_that_are_kept():
    stream = helpers.blob_stream()
    learner = make_learner(strategy=strategies.cumulative(train_front=False))
    counted = count_images_of_front(learner)
    for experience in stream:
        learner.fit(experience)
    assert sum(counted) == sum(map(len, stream))


def test_latents_of_kept_data_are_forgotten_with_the_others():
    stream = helpers.blob_stream()
    learner = make_learner(strategy=strategies.cumulative(train_front=False))
    learner.fit(stream[0])
    learner.fit(stream[1])
    counted = count_images_of_front(learner)
    learner.forget_latents()
    learner.fit(stream[2])
    assert sum(counted) == sum(map(len, stream))


def test_an_experience_that_was_broken_off_is_kept_once():
    stream = helpers.blob_stream()
    whole, broken = (
        make_learner(strategy=strategies.cumulative(train_front=False))
        for _ in range(2)
    )

    class Tear(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            raise InterruptedError

    for learner in (whole, broken):
        learner.fit(stream[0])
    with pytest.raises(InterruptedError):
        broken.fit(stream[1], callbacks=[Tear()])
    for learner in (whole, broken):
        learner.fit(stream[1])
    assert broken.trainer.steps_done == whole.trainer.steps_done


def test_no_function_is_traced_again_in_later_experiences():
    stream = helpers.blob_stream(2, 1, num_classes=4)
    replay = generated_replay()
    learner = make_learner(replay)
    functions = {
        "latents": learner.trainer._run_latents,
        "images": learner.trainer._run_images,
        "generator": replay.trainer._run,
        "decode": replay.generator._decode_batch,
        "front": learner._inference._extract,
        "predict": learner._inference._predict,
    }
    for experience in stream:
        learner.fit(experience)
        learner.evaluate(stream.test)
    counts = {
        name: function.experimental_get_tracing_count()
        for name, function in functions.items()
    }
    assert counts == dict.fromkeys(functions, 1)


def test_same_seed_same_weights_whatever_was_drawn_before():
    stream = helpers.blob_stream()
    results = []
    for drawn in (0, 7):
        learner = make_learner(generated_replay())
        keras.random.normal((drawn,))
        np.random.standard_normal(drawn)
        for experience in stream:
            learner.fit(experience)
        results.append(values_of(learner.model))
    for a, b in zip(results[0].values(), results[1].values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_initialize_draws_all_weights_from_the_seed():
    kernels = []
    for global_seed in (1, 2):
        keras.utils.set_random_seed(global_seed)
        learner = make_learner(initialize=True)
        kernels.append(learner.model.get_weights())
    for a, b in zip(*kernels, strict=True):
        np.testing.assert_array_equal(a, b)
    kept = helpers.small_backbone().get_weights()[0]
    assert (kernels[0][0] != kept).any()
    np.testing.assert_array_equal(make_learner().model.get_weights()[0], kept)


def test_backbone_of_the_user_is_not_touched():
    stream = helpers.blob_stream()
    backbone = helpers.small_backbone()
    before = values_of(backbone)
    learner = Learner(backbone, "latent", 4, first=Phase(1, 0.1, 0.1))
    learner.fit(stream[0])
    assert not changed(before, backbone)


def test_default_is_generative_negative_replay_with_renormalisation():
    learner = Learner(helpers.small_backbone(), "latent", num_classes=4)
    assert isinstance(learner.replay, GeneratedReplay)
    assert type(learner.replay.generator) is CenteredVAE
    assert learner.strategy.consolidation.replay_sign == "negative"
    assert learner.strategy.consolidation.align_norms
    kinds = [type(layer).__name__ for layer in learner.model.layers]
    assert kinds.count("BatchRenormalization") == 2
    plain = Learner(
        helpers.small_backbone(),
        "latent",
        num_classes=4,
        batch_renormalization=False,
    )
    kinds = [type(layer).__name__ for layer in plain.model.layers]
    assert kinds.count("BatchNormalization") == 2


def test_prediction_is_among_the_classes_seen():
    stream = helpers.blob_stream()
    learner = make_learner()
    learner.fit(stream[0])
    predictions = learner.predict(stream.test)
    assert set(predictions) <= set(stream[0].classes)
    # Rows never trained are zero; they win where all logits are negative.
    learner.predict_among = "all"
    head = learner.model.get_layer("head")
    head.kernel.assign(-np.abs(head.kernel.numpy()))
    assert not set(learner.predict(stream.test)) <= set(stream[0].classes)


def test_feature_maps_are_pooled_and_a_bias_can_be_had():
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3, activation="relu", name="latent")(inputs)
    x = keras.layers.Conv2D(5, 3, activation="relu")(x)
    learner = Learner(
        keras.Model(inputs, x), "latent", num_classes=3, head_bias=True
    )
    assert learner.back.output_shape == (None, 3)
    assert learner.model.get_layer("head").bias.shape == (3,)


@pytest.mark.parametrize(
    "images, labels, message",
    [
        (np.zeros((4, 9, 9, 3), "uint8"), [0, 0, 1, 1], "images of shape"),
        (np.zeros((4, 8, 8, 3), "uint8"), [0, 0, 4, 4], "class 4"),
        (np.zeros((0, 8, 8, 3), "uint8"), [], "no patterns"),
    ],
    ids=["size", "label", "empty"],
)
def test_bad_data_is_refused_before_training(images, labels, message):
    learner = make_learner()
    with pytest.raises(ValueError, match=message):
        learner.fit((images, np.array(labels, int)))
    assert learner.experiences_learned == 0


def test_more_replay_than_a_batch_holds_is_refused():
    with pytest.raises(ValueError, match="does not fit into a batch of 16"):
        make_learner(OriginalReplay(32, replay_per_batch=16))


def test_parts_that_have_learned_are_not_taken_by_another_learner():
    stream = helpers.blob_stream()
    learner = make_learner()
    learner.fit(stream[0])
    with pytest.raises(ValueError, match="CWRConsolidation has learned"):
        Learner(
            helpers.small_backbone(),
            "latent",
            num_classes=4,
            strategy=learner.strategy,
        )


def test_consolidation_outlasts_callbacks_that_restore_weights():
    stream = helpers.blob_stream()
    learner = make_learner()
    restore = keras.callbacks.EarlyStopping(
        monitor="loss", mode="max", patience=1, restore_best_weights=True
    )
    learner.fit(stream[0], callbacks=[restore])
    np.testing.assert_array_equal(
        learner.model.get_layer("head").kernel.numpy().T,
        learner.strategy.consolidation.rows,
    )


def test_no_room_for_replay_leaves_old_rows_alone():
    stream = helpers.blob_stream()
    learner = make_learner(
        OriginalReplay(32, replay_per_batch=0), sign="positive"
    )
    learner.fit(stream[0])
    rows = learner.strategy.consolidation.rows[stream[0].classes].copy()
    learner.fit(stream[1])
    np.testing.assert_array_equal(
        learner.strategy.consolidation.rows[stream[0].classes], rows
    )


@pytest.mark.parametrize(
    "activation, replay, message",
    [
        ("linear", generated_replay, r"patterns lie in \[0.0, 6.0\]"),
        ("linear", lambda: RandomReplay(8), "latents go down to -"),
    ],
)
def test_latents_that_a_replay_cannot_make_are_refused(
    activation, replay, message
):
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3, activation=activation, name="latent")(inputs)
    learner = Learner(
        keras.Model(inputs, keras.layers.Flatten()(x)),
        "latent",
        num_classes=4,
        strategy=strategies.ar1free(replay()),
        trainer=small_trainer,
        first=Phase(1, 0.0, 1e-6),
    )
    with pytest.raises(ValueError, match=message):
        learner.fit(helpers.blob_stream()[0])


@pytest.mark.parametrize(
    "layer, expected",
    [
        (keras.layers.ReLU(6.0), "relu6"),
        (keras.layers.ReLU(), "relu"),
        (keras.layers.Dense(4, activation="relu"), "relu"),
        (keras.layers.Activation("relu6"), "relu6"),
        (keras.layers.ReLU(negative_slope=0.1), "linear"),
        (keras.layers.Dense(4), "linear"),
    ],
)
def test_default_generator_matches_the_latent_layer(layer, expected):
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.Dense(4)(keras.layers.Flatten()(inputs))
    layer.name = "latent"
    x = keras.layers.Dense(4)(layer(x))
    learner = Learner(keras.Model(inputs, x), "latent", num_classes=4)
    config = learner.replay.generator.get_config()
    assert config["output_activation"] == expected


def test_predict_takes_plain_images():
    stream = helpers.blob_stream()
    learner = make_learner()
    learner.fit(stream[0])
    images = next(stream.test.batches(range(8), 8))[0]
    expected = learner.predict(stream.test)[:8]
    np.testing.assert_array_equal(learner.predict(images), expected)
    with pytest.raises(ValueError, match="takes images of shape"):
        learner.predict(images[:, :4])


@pytest.mark.parametrize(
    "shape, name, message",
    [
        ((None, None, 3), "latent", "images of one size"),
        ((8, 8, 3), "head", "has a layer 'head'"),
    ],
)
def test_backbones_that_cannot_be_used_are_refused(shape, name, message):
    inputs = keras.Input(shape)
    x = keras.layers.Conv2D(4, 3, name=name)(inputs)
    x = keras.layers.Conv2D(4, 3)(x)
    with pytest.raises(ValueError, match=message):
        Learner(keras.Model(inputs, x), name, num_classes=4)


def test_head_cannot_be_the_latent_layer():
    with pytest.raises(ValueError, match="Nothing is left above 'head'"):
        Learner(helpers.small_backbone(), "head", num_classes=4)


def test_unknown_latent_layer_lists_the_layers():
    with pytest.raises(ValueError, match="'latnet'.*front_bn, latent"):
        Learner(helpers.small_backbone(), "latnet", num_classes=4)


def test_diverged_latents_stop_with_their_cause():
    stream = helpers.blob_stream()
    learner = make_learner(OriginalReplay(8))
    kernel = learner.front.layers[2].kernel
    kernel.assign(np.full(kernel.shape, np.nan))
    with pytest.raises(ValueError, match="below the latent layer holds NaN"):
        learner.evaluate(stream.test)


def test_replay_accuracy_says_how_good_the_memory_is():
    stream = helpers.blob_stream()
    accuracies = {}
    for replay in (OriginalReplay(32), RandomReplay(64), NoReplay()):
        learner = make_learner(replay)
        assert learner.replay_accuracy() is None
        learner.fit(stream[0])
        before = learner.predict(stream.test)
        accuracies[type(replay)] = learner.replay_accuracy()
        np.testing.assert_array_equal(learner.predict(stream.test), before)
    assert accuracies[OriginalReplay] == 1.0
    # Noise with labels at random: near one half of two classes.
    assert 0.25 < accuracies[RandomReplay] < 0.75
    assert accuracies[NoReplay] is None


def test_looking_at_the_replay_changes_nothing_that_is_learned():
    stream = helpers.blob_stream()
    weights = []
    for look in (False, True):
        learner = make_learner(generated_replay())
        for experience in stream:
            learner.fit(experience)
            if look:
                learner.replay_accuracy()
        weights.append(values_of(learner.model))
    for a, b in zip(*(w.values() for w in weights), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["er", "ar1free", "lwf", "slda"])
def test_latent_layer_right_below_the_head(kind):
    """Then the latents are the features, and later only the head learns."""
    stream = helpers.blob_stream()
    make = {
        "er": lambda: strategies.er(OriginalReplay(40, 8), "positive"),
        "ar1free": lambda: strategies.ar1free(OriginalReplay(40, 8)),
        "lwf": lambda: strategies.lwf(OriginalReplay(40, 8), "positive"),
        "slda": strategies.slda,
    }[kind]
    backbone = helpers.small_backbone()
    learner = Learner(
        backbone,
        backbone.layers[-1].name,
        num_classes=4,
        strategy=make(),
        first=Phase(6, 1e-2, 1e-2),
        following=Phase(6, 1e-2, 1e-2),
        trainer=small_trainer,
        head_bias=kind == "slda",
    )
    learner.fit(stream[0])
    front = [v.numpy() for v in learner.front.trainable_variables]
    for experience in stream[1:]:
        learner.fit(experience)
    assert learner.evaluate(stream.test).accuracy_whole > 0.7
    for before, after in zip(
        front, learner.front.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(before, after)
