"""Tests of precisions: what is learned, in which type, and what is refused."""

import functools

import gin
import helpers
import keras
import numpy as np
import pytest
import tensorflow as tf

import gnr_keras
from gnr_keras import CenteredVAE
from gnr_keras import GeneratedReplay
from gnr_keras import GeneratorTrainer
from gnr_keras import Learner
from gnr_keras import OriginalReplay
from gnr_keras import Phase
from gnr_keras import gin_bindings
from gnr_keras import gin_folder
from gnr_keras import optimizers
from gnr_keras import precision as precision_lib
from gnr_keras import states
from gnr_keras import strategies
from gnr_keras import trainers
from gnr_keras.trainers import scaling

LOW = [name for name in precision_lib.PRECISIONS if name != "float32"]


def generated():
    return strategies.ar1free(
        GeneratedReplay(
            16,
            6,
            generator=functools.partial(CenteredVAE, z_dim=4, width=4),
            trainer=functools.partial(
                GeneratorTrainer, epochs=2, batch_size=16
            ),
        )
    )


def make_learner(precision, strategy=None, **options):
    return Learner(
        helpers.small_backbone(),
        "latent",
        num_classes=4,
        strategy=strategy or generated(),
        first=Phase(4, 0.02, 0.02),
        following=Phase(3, 1e-3, 0.02),
        trainer=functools.partial(trainers.ClassifierTrainer, batch_size=16),
        precision=precision,
        seed=3,
        **options,
    )


def learn(precision, strategy=None):
    learner = make_learner(precision, strategy)
    stream = helpers.blob_stream()
    for experience in stream:
        learner.fit(experience)
    return learner, stream


def all_variables(learner):
    return [*learner.trainer._variables, *learner.replay.trainer._variables]


@pytest.mark.parametrize("precision", LOW)
def test_each_precision_learns_and_goes_on_to_the_bit(precision):
    learner, stream = learn(precision)
    assert learner.evaluate(stream.test).accuracy_whole >= 0.75
    for variable in all_variables(learner):
        if "float" in str(variable.dtype):
            assert variable.dtype == "float32", variable.path
    half = make_learner(precision)
    half.fit(stream[0])
    other = make_learner(precision)
    other.restore(half.state())
    for experience in stream[1:]:
        other.fit(experience)
    assert states.digest(other.state()) == states.digest(learner.state())


@pytest.mark.parametrize(
    "precision, products, others",
    [
        ("float32", "float32", "float32"),
        ("mixed_bfloat16", "bfloat16", "bfloat16"),
        ("mixed_float16", "float16", "float16"),
        ("bfloat16_products", "bfloat16", "float32"),
    ],
)
def test_types_that_layers_compute_in(precision, products, others):
    learner = make_learner(precision)
    types = {layer.name: layer.compute_dtype for layer in learner.model.layers}
    for layer in learner.model.layers[1:]:
        expected = others
        if isinstance(layer, keras.layers.Conv2D):
            expected = products
        if layer.name == "head" or isinstance(layer, keras.layers.Rescaling):
            expected = "float32"
        assert types[layer.name] == expected, layer.name
    decoder = learner.replay.generator.decoder
    dense = [x for x in decoder.layers if isinstance(x, keras.layers.Dense)]
    assert {layer.compute_dtype for layer in dense} == {products}
    noise = np.zeros((2, 4), "float32")
    x = np.ones((2, *decoder.output_shape[1:]), "float32")
    terms = learner.replay.generator.compute_losses(
        x, [0, 1], noise, learner.replay.trainer.classifier
    )
    assert {value.dtype for value in terms.values()} == {tf.float32}
    # Of a generator that is built elsewhere, Keras decides.
    assert CenteredVAE((4,), 2).decoder.layers[-1].compute_dtype == "float32"


@pytest.mark.parametrize("precision", LOW)
def test_depthwise_convolutions_are_no_products(precision):
    layer = keras.layers.DepthwiseConv2D(3)
    expected = "float32" if precision == "bfloat16_products" else precision
    assert precision_lib.policy_of(layer, precision) == expected


@pytest.mark.parametrize("precision", LOW)
def test_the_head_and_its_consolidation_are_as_in_float32(precision):
    """One step from the same weights: rows differ by rounding only."""
    rows = {}
    for name in ("float32", precision):
        learner = make_learner(name, strategies.ar1free(OriginalReplay(16, 6)))
        learner.first = learner.following = Phase(1, 0.0, 1e-3)
        stream = helpers.blob_stream()
        learner.fit(stream[0])
        learner.fit(stream[1])
        head = learner.model.get_layer("head")
        assert head.kernel.dtype == "float32"
        rows[name] = np.array(keras.ops.convert_to_numpy(head.kernel))
        assert learner.strategy.consolidation.rows.dtype == np.float32
    assert np.abs(rows["float32"]).max() > 1e-3
    np.testing.assert_allclose(rows[precision], rows["float32"], atol=2e-4)


@pytest.mark.parametrize("precision", LOW)
def test_synaptic_intelligence_protects_in_each_precision(precision):
    protection = functools.partial(
        optimizers.SynapticIntelligence, strength=1e3
    )
    learner, stream = learn(precision, strategies.ar1(protection))
    importances = learner.trainer.feature_optimizer.importances
    assert max(float(np.max(x)) for x in importances) > 0
    assert all(np.isfinite(np.asarray(x)).all() for x in importances)
    assert learner.evaluate(stream.test).accuracy_whole > 0.25


def test_a_folder_is_shared_in_one_precision_only():
    data = helpers.blobs()[:2]
    keys = set()
    for precision in precision_lib.PRECISIONS:
        learner = make_learner(precision)
        keys.add(learner._first_key(learner._check_data(data)))
    assert len(keys) == len(precision_lib.PRECISIONS)


def test_new_classes_keep_the_precision():
    learner, _ = learn("mixed_bfloat16")
    learner.add_classes(2)
    images, labels, _ = helpers.blobs(num_classes=6)
    learner.fit((images[labels > 3], labels[labels > 3]))
    assert learner.model.get_layer("head").compute_dtype == "float32"
    layers = learner.replay.generator.decoder.layers
    assert layers[-1].compute_dtype == "bfloat16"


def test_a_step_whose_gradients_overflow_is_left_out():
    scale = scaling.LossScale()
    variable = keras.Variable(np.float32(1.0))

    @tf.function
    def step(gradient):
        gradients = scale.reduce([gradient])
        scale.step(gradients, lambda: variable.assign_sub(gradients[0]))

    step(tf.constant(2.0**14))
    assert float(variable) == 0.5
    step(tf.constant(float("inf")))
    assert float(variable) == 0.5
    assert float(scale.enlarge(1.0)) == 2.0**14
    scale.variables[1].assign(1999)
    step(tf.constant(0.0))
    assert float(scale.enlarge(1.0)) == 2.0**15
    assert int(scale.variables[1]) == 0


def test_float16_with_several_devices_is_refused():
    strategy = tf.distribute.MirroredStrategy(["cpu:0"])
    with (
        strategy.scope(),
        pytest.raises(ValueError, match="Take mixed_bfloat16"),
    ):
        make_learner("mixed_float16")


def test_other_names_and_a_second_scaling_are_refused():
    with pytest.raises(ValueError, match="one of float32, .*'bfloat16'"):
        make_learner("bfloat16")
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam())
    with pytest.raises(ValueError, match="scales the loss itself"):
        GeneratorTrainer(CenteredVAE((4,), 2), None, optimizer=scaled)


def test_one_binding_reaches_all_of_it():
    gin_bindings.configure(
        ["quickstart.gin"],
        [
            "Learner.precision = 'bfloat16_products'",
            "mobilenet_v1.weights = None",
            "mobilenet_v1.input_shape = (32, 32, 3)",
        ],
        gin_folder.find(),
        ["NR-GD"],
    )
    with gin_bindings.run_scope("NR-GD"):
        experiment = gin_bindings.build_experiment()
        learner = experiment.build_learner("NR-GD", 0, num_classes=3)
    gin.clear_config()
    pointwise = learner.model.get_layer("conv_pw_1")
    assert pointwise.compute_dtype == "bfloat16"
    assert learner.model.get_layer("conv_dw_1").compute_dtype == "float32"
    encoder = learner.replay.generator.encoder
    assert "bfloat16" in {layer.compute_dtype for layer in encoder.layers}
    assert isinstance(learner, gnr_keras.Learner)
