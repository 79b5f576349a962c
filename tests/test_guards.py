"""Tests of the guards: NaN and infinity stop, with where and why."""

import contextlib
import functools

import helpers
import keras
import numpy as np
import pytest

from gnr_keras import ClassifierTrainer
from gnr_keras import ConditionalVAE
from gnr_keras import GeneratedReplay
from gnr_keras import GeneratorTrainer
from gnr_keras import Learner
from gnr_keras import OriginalReplay
from gnr_keras import Phase
from gnr_keras import callbacks
from gnr_keras import checkpoint
from gnr_keras import comparison
from gnr_keras import experiment
from gnr_keras import gin_bindings
from gnr_keras import guards
from gnr_keras import saving
from gnr_keras import strategies
from gnr_keras.replay import Memory


def make_learner(strategy=None, **options):
    options = {
        "backbone": helpers.small_backbone(),
        "latent_layer": "latent",
        "num_classes": 4,
        "strategy": strategy or strategies.ar1free(),
        "first": Phase(1, 1e-3, 1e-3),
        "following": Phase(1, 1e-3, 1e-3),
        "trainer": functools.partial(ClassifierTrainer, batch_size=16),
        **options,
    }
    return Learner(**options)


def generated(learning_rate=1e-3, **options):
    return GeneratedReplay(
        16,
        6,
        generator=functools.partial(
            ConditionalVAE, width=4, hidden=8, z_dim=3, **options
        ),
        trainer=functools.partial(
            GeneratorTrainer,
            epochs=1,
            batch_size=16,
            optimizer=keras.optimizers.SGD(learning_rate),
        ),
    )


class Spoil(keras.callbacks.Callback):
    """Sets one weight as a step that nobody looks at would."""

    def __init__(self, variable, value):
        super().__init__()
        self._variable = variable
        self._value = value

    def on_train_end(self, logs=None):
        weights = self._variable.numpy()
        weights.flat[3] = self._value
        self._variable.assign(weights)


@pytest.fixture(scope="module")
def stream():
    return helpers.blob_stream()


def test_loss_that_is_none_names_experience_step_and_cause(stream):
    learner = make_learner(strategies.er(), following=Phase(3, 1e30, 1e30))
    learner.fit(stream[0])
    with pytest.raises(guards.NotFiniteError) as error:
        learner.fit(stream[1])
    message = str(error.value)
    assert message.startswith("Experience 2: The loss of 'classifier' is ")
    assert "in epoch 2, by step 2 of 2 (cross_entropy nan)" in message
    assert message.endswith("diverged. Lower its learning rates.")
    assert learner.experiences_learned == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_the_last_step_spoiled_are_found(value, stream):
    """The loss is computed before the step, and tells nothing of it."""
    learner = make_learner(strategies.er())
    kernel = learner.model.get_layer("head").kernel
    with pytest.raises(
        guards.NotFiniteError,
        match=r"^Experience 1: 'classifier' after its training holds NaN or "
        r"infinity: 1 of 1024 numbers in head/kernel\. It diverged",
    ):
        learner.fit(stream[0], callbacks=[Spoil(kernel, value)])


def test_consolidation_takes_no_rows_that_are_none(stream):
    learner = make_learner()
    learner.fit(stream[0])
    cwr = learner.strategy.consolidation
    rows, counts = cwr.rows.copy(), cwr.past_counts.copy()
    kernel = learner.model.get_layer("head").kernel
    with pytest.raises(
        guards.NotFiniteError, match="^Experience 2: The head 'head' after"
    ):
        learner.fit(stream[1], callbacks=[Spoil(kernel, np.nan)])
    np.testing.assert_array_equal(cwr.rows, rows)
    np.testing.assert_array_equal(cwr.past_counts, counts)


def test_consolidation_guards_a_fit_of_ones_own():
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3, name="head")]
    )
    model.compile(
        keras.optimizers.SGD(1e38),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    cwr = callbacks.CWRConsolidation()
    x, y = np.eye(4, dtype="float32")[:3] * 1e6, np.arange(3)
    cwr.begin_experience(y)
    with pytest.raises(ValueError, match="so nothing is consolidated: lower"):
        model.fit(x, y, epochs=3, callbacks=[cwr], verbose=0)


@pytest.mark.parametrize("learning_rate", [1e25, 1e38])
def test_generators_that_diverge_are_named(learning_rate, stream):
    """One shows in the loss of a later step, the other in the weights."""
    learner = make_learner(strategies.ar1free(generated(learning_rate)))
    with pytest.raises(
        guards.NotFiniteError, match="^Experience 1: .*'generator'.*diverged"
    ):
        learner.fit(stream[0])


def test_moments_of_an_optimizer_count_as_weights(stream):
    """Adam divides by them: what is infinite would stop a weight for good."""
    replay = generated()
    replay._make_trainer = functools.partial(
        GeneratorTrainer, epochs=1, batch_size=16
    )
    learner = make_learner(strategies.ar1free(replay))
    moment = replay.trainer._optimizer.variables[3]
    moment.assign(np.full(moment.shape, np.inf))
    with pytest.raises(guards.NotFiniteError, match="'generator' after its"):
        learner.fit(stream[0])


def test_replayed_patterns_beyond_half_precision_are_found(stream):
    replay = generated(output_activation="relu")
    learner = make_learner(strategies.ar1free(replay))
    learner.fit(stream[0])
    *_, last = (
        layer
        for layer in replay.generator.decoder.layers
        if isinstance(layer, keras.layers.Conv2D)
    )
    last.bias.assign(np.full(8, 7e4))
    with pytest.raises(
        guards.NotFiniteError,
        match="^Experience 2: Pattern 0 of 16 that GeneratedReplay replays, of "
        "class .* beyond 65504",
    ):
        learner.fit(stream[1])


def test_memories_name_the_pattern_that_is_none():
    latents = np.zeros((5, 2, 2), np.float16)
    memory = Memory(latents, np.array([4, 3, 2, 1, 0]))
    guards.check_memory(memory, "a replay")
    latents[3, 1, 0] = -np.inf
    with pytest.raises(guards.NotFiniteError, match="Pattern 3 .* class 1, is"):
        guards.check_memory(memory, "a replay")


def scaled_backbone(scale):
    """Pixels of 0 to 255, times `scale`, are the latents."""
    x = inputs = keras.Input((8, 8, 3))
    x = keras.layers.Rescaling(scale, name="latent")(x)
    x = keras.layers.Rescaling(1 / (255 * scale))(x)
    return keras.Model(inputs, keras.layers.Flatten()(x))


def test_overflow_of_half_precision_is_told_from_divergence(stream):
    """65504 is the largest number that latents are kept as."""
    images = np.full((3, 8, 8, 3), 255, np.uint8)
    labels = np.arange(3)
    options = {"strategy": strategies.er(OriginalReplay(8, 4))}
    fits = make_learner(backbone=scaled_backbone(65504 / 255), **options)
    fits.fit((images, labels))
    options = {"strategy": strategies.er(OriginalReplay(8, 4))}
    overflows = make_learner(backbone=scaled_backbone(300.0), **options)
    with pytest.raises(
        guards.NotFiniteError,
        match="^Experience 1: The latents of 'latent' are not finite in half "
        "precision: pattern 0 of a batch reaches 76500, beyond 65504. Split",
    ):
        overflows.fit((images, labels))
    with pytest.raises(guards.NotFiniteError, match="reaches 65600, beyond"):
        fits.predict_latents(np.full((1, 8, 8, 3), 65600.0))


def test_weights_that_are_none_from_the_start_are_refused():
    backbone = helpers.small_backbone()
    bias = backbone.layers[2].bias
    bias.assign(np.full(bias.shape, np.nan))
    with pytest.raises(
        guards.NotFiniteError,
        match="The backbone, before anything was learned, holds NaN .*8 of 8",
    ):
        make_learner(backbone=backbone)
    make_learner(backbone=backbone, initialize=True)


def test_the_last_good_checkpoint_stays(monkeypatch, tmp_path, stream):
    """The third experience diverges; what the second one left is whole."""
    rates = iter([1e-3, 1e30])
    built = experiment.Experiment(
        data=lambda data_dir, progress: (stream.train, stream.test),
        stream=lambda train, test, seed: stream,
        backbone=lambda data_dir: helpers.small_backbone(),
        learner=lambda backbone, **options: make_learner(
            backbone=backbone,
            following=Phase(
                1, 1.0, 1.0, experience_schedule=lambda _: next(rates)
            ),
            **options,
        ),
        strategy=strategies.er,
    )
    monkeypatch.setattr(gin_bindings, "configure", lambda *_: None)
    monkeypatch.setattr(gin_bindings, "build_experiment", lambda: built)
    with pytest.raises(guards.NotFiniteError) as error:
        comparison.run_cell(
            *([], [], ".", "none", 0, tmp_path),
            config="",
            checkpoints=functools.partial(checkpoint.Checkpoints, seconds=0),
        )
    folder = tmp_path / "none" / "seed_0" / "checkpoints"
    assert str(error.value).startswith("Experience 3: 'classifier' after its")
    assert f"stays in {folder}; the same bindings lead" in str(error.value)
    with checkpoint.Checkpoints(folder) as checkpoints:
        learned, state = checkpoints.latest()
    assert learned == 2
    for name, value in state.items():
        if name.startswith("learner/") and value.dtype.kind == "f":
            assert np.isfinite(value).all(), name
    assert not (folder.parent / "results.json").exists()


@pytest.mark.parametrize("spoiled", [False, True])
def test_what_has_diverged_is_not_saved_midway(spoiled, tmp_path, stream):
    """Between two looks of a guard, a step may have spoiled the weights."""
    learner = make_learner()
    first = stream[0]

    def look():
        if spoiled:
            head = learner.model.get_layer("head").kernel
            head.assign(np.full(head.shape, np.nan))
        saves._save_within({})

    with checkpoint.Checkpoints(tmp_path, within_seconds=0) as checkpoints:
        about = {"run": "none", "seed": 0}
        saves = saving.Saving(checkpoints, None, learner, {}, stream, about, 0)
        with contextlib.suppress(guards.NotFiniteError):
            learner.fit(first, on_steps=look)
    assert bool(list(tmp_path.glob("*_part_*.npz"))) is not spoiled


def test_weights_whose_sum_overflows_are_no_fault():
    """Each of them is finite, if only just; beside infinity they are not."""
    variable = keras.Variable(np.full(3, 3e38, "float32"))
    guards.check_variables([variable], "The head", "")
    variable.assign([3e38, np.inf, -np.inf])
    with pytest.raises(guards.NotFiniteError, match="2 of 3 numbers"):
        guards.check_variables([variable], "The head", "")
