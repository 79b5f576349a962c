"""Tests that models with parts of the package are saved and loaded whole."""

import inspect
import subprocess
import sys

import keras
import numpy as np
import pytest

import gnr_keras
from gnr_keras.callbacks import CWRConsolidation
from gnr_keras.callbacks import SynapticIntelligenceConsolidation
from gnr_keras.layers import BatchRenormalization
from gnr_keras.layers import ReverseChannels
from gnr_keras.losses import NegativeReplayLoss
from gnr_keras.metrics import CurrentAccuracy
from gnr_keras.optimizers import SynapticIntelligence

_GO_ON = """
import sys
import gnr_keras
import keras
import numpy as np

folder = sys.argv[1]
model = keras.saving.load_model(f"{folder}/model.keras")
x, y = np.load(f"{folder}/data.npz").values()
start = model.predict(x, verbose=0)
history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
np.savez(
    f"{folder}/result.npz",
    start,
    model.loss.current_classes,
    history.history["loss"],
    history.history["accuracy"],
    *model.get_weights(),
    *[v.numpy() for v in model.optimizer.variables],
)
"""


def compiled_model():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((5,)),
            keras.layers.Dense(6),
            BatchRenormalization(r_max=1.5, d_max=0.5, update_rate=0.1),
            keras.layers.ReLU(),
            keras.layers.Dense(4, name="head"),
        ]
    )
    model.compile(
        SynapticIntelligence(
            keras.optimizers.SGD(0.1, momentum=0.9), strength=5.0, clip=0.5
        ),
        NegativeReplayLoss(4),
        metrics=[CurrentAccuracy()],
    )
    return model


def patterns(classes, replayed, seed=0):
    """32 patterns, half of them replayed, with labels and flags."""
    rng = np.random.default_rng(seed)
    flags = np.arange(32) % 2
    labels = np.where(flags, rng.choice(replayed, 32), rng.choice(classes, 32))
    x = rng.normal(size=(32, 5)) + 2 * np.eye(5)[labels]
    return x.astype("float32"), np.stack([labels, flags], 1)


def train(model, x, y, callbacks=()):
    return model.fit(
        x,
        y,
        batch_size=8,
        epochs=2,
        shuffle=False,
        verbose=0,
        callbacks=list(callbacks),
    )


def consolidation_of(labels):
    cwr = CWRConsolidation()
    cwr.begin_experience(labels)
    return cwr


def test_compiled_model_goes_on_in_a_process_that_only_imports_the_package(
    tmp_path,
):
    model = compiled_model()
    model.loss.begin_experience([2, 3])
    # What an experience leaves: importances, moving statistics, momentums.
    train(
        model,
        *patterns([2, 3], [0, 1]),
        [SynapticIntelligenceConsolidation(), consolidation_of([2, 3])],
    )
    model.save(tmp_path / "model.keras")
    x, y = patterns([2, 3], [0, 1], seed=1)
    np.savez(tmp_path / "data.npz", x, y)
    process = subprocess.run(
        [sys.executable, "-c", _GO_ON, str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    start, current, losses, accuracies, *state = np.load(
        tmp_path / "result.npz"
    ).values()
    np.testing.assert_array_equal(start, model.predict(x, verbose=0))
    np.testing.assert_array_equal(current, [2, 3])
    history = train(model, x, y).history
    np.testing.assert_allclose(losses, history["loss"], rtol=1e-5)
    np.testing.assert_allclose(accuracies, history["accuracy"], rtol=1e-5)
    here = [v.numpy() for v in model.optimizer.variables]
    for one, other in zip(state, [*model.get_weights(), *here], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_model_saved_before_it_trains_has_its_anchors_at_its_weights(tmp_path):
    model = compiled_model()
    model.save(tmp_path / "model.keras")
    with pytest.warns(UserWarning, match="Skipping variable loading"):
        loaded = keras.saving.load_model(tmp_path / "model.keras")
    for anchor, loaded_weight, weight in zip(
        loaded.optimizer.anchors,
        loaded.trainable_variables,
        model.trainable_variables,
        strict=True,
    ):
        np.testing.assert_array_equal(anchor, weight)
        np.testing.assert_array_equal(loaded_weight, weight)


def test_consolidation_goes_on_from_a_file(tmp_path):
    """Callbacks are not saved with a model: `state` is what they know."""
    model = compiled_model()
    model.loss.begin_experience([0, 1])
    cwr = consolidation_of([0, 1])
    train(model, *patterns([0, 1], [0, 1]), [cwr])
    np.savez(tmp_path / "cwr.npz", **cwr.state())
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    other = CWRConsolidation()
    other.restore(np.load(tmp_path / "cwr.npz"))
    rows = []
    for each, callback in ((model, cwr), (loaded, other)):
        each.loss.begin_experience([2])
        callback.begin_experience([2], [0, 1])
        train(each, *patterns([2], [0, 1], seed=1), [callback])
        rows.append(callback.rows)
    np.testing.assert_allclose(*rows, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(other.seen, [True, True, True, False])


@pytest.mark.parametrize(
    "make",
    [
        lambda: BatchRenormalization(2.0, 3.0, 0.5, epsilon=0.02, axis=1),
        ReverseChannels,
        lambda: NegativeReplayLoss(5, [4, 1], reduction="sum", name="mine"),
        lambda: CurrentAccuracy(name="mine"),
        lambda: SynapticIntelligence(
            keras.optimizers.Adam(0.5), 2.0, 3.0, 4.0, 5.0, name="mine"
        ),
        lambda: gnr_keras.ConditionalVAE(
            (4, 4, 2), 3, 5, 6, 7, 0.2, 0.3, 4, "relu", 8, name="mine"
        ),
        lambda: gnr_keras.CenteredVAE(
            (6,), 3, 5, 6, 7, 0.2, 0.3, 0.4, 5, "linear", 8, name="mine"
        ),
    ],
    ids=[
        "BatchRenormalization",
        "ReverseChannels",
        "NegativeReplayLoss",
        "CurrentAccuracy",
        "SynapticIntelligence",
        "ConditionalVAE",
        "CenteredVAE",
    ],
)
def test_configuration_makes_the_same_again(make):
    one = make()
    saved = keras.saving.serialize_keras_object(one)
    assert saved["registered_name"] == f"gnr_keras>{type(one).__name__}"
    other = keras.saving.deserialize_keras_object(saved)
    assert type(other) is type(one)
    assert other.get_config() == one.get_config()
    # Every argument is in it, and none of those above is a default.
    for name, parameter in inspect.signature(type(one)).parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            given = one.get_config()[name]
            assert name == "dtype" or given != parameter.default
