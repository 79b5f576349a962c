"""Tests of the callback that ends an experience for the optimizer."""

import keras
import kinds
import numpy as np
import pytest
import tensorflow as tf

from gnr_keras import layers
from gnr_keras.callbacks import SynapticIntelligenceConsolidation
from gnr_keras.optimizers import SynapticIntelligence


class Block(keras.layers.Layer):
    """A dense layer with its normalisation inside, as residual blocks have."""

    def __init__(self, normalization, **kwargs):
        super().__init__(**kwargs)
        # A bias would do nothing: the normalisation takes the mean away.
        self.dense = keras.layers.Dense(6, use_bias=False)
        self.normalization = normalization

    def call(self, x, training=None):
        return self.normalization(self.dense(x), training=training)


def classifier():
    """One normalisation in the model, one in a block, one in a nested model."""
    keras.utils.set_random_seed(0)
    inner = keras.Input((6,))
    x = keras.layers.Dense(6, use_bias=False, name="deep")(inner)
    nested = keras.Model(inner, layers.BatchRenormalization()(x))
    inputs = keras.Input((5,))
    x = keras.layers.Dense(6, use_bias=False, name="low")(inputs)
    x = keras.layers.BatchNormalization()(x)
    x = Block(keras.layers.LayerNormalization(), name="block")(x)
    x = nested(keras.layers.ReLU()(x))
    return keras.Model(inputs, keras.layers.Dense(3, name="head")(x))


def protected(strength=1.0, **options):
    options = {"strength": strength, "clip": 1.0, "epsilon": 1e-3, **options}
    return SynapticIntelligence(keras.optimizers.SGD(0.05), **options)


def compiled(model, optimizer):
    model.compile(
        optimizer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def fit(model, callback, seed=0, features=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(32, features)).astype("float32")
    y = (x @ rng.normal(size=(features, 3))).argmax(1)
    model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=[callback])


def train(model, optimizer, callback):
    """One experience of one step, by gradients of 1, in a custom loop."""
    callback.set_model(model)
    callback.on_train_begin()
    variables = model.trainable_variables
    optimizer.apply([tf.ones(v.shape) for v in variables], variables)
    callback.on_train_end()


def importance_by_path(model, optimizer):
    """The largest importance in each variable."""
    return {
        variable.path: float(np.max(importance.numpy()))
        for variable, importance in zip(
            model.trainable_variables, optimizer.importances, strict=True
        )
    }


def test_each_fit_is_an_experience_and_excluded_layers_stay_free():
    optimizer = protected(clip=float("inf"))
    model = compiled(classifier(), optimizer)
    callback = SynapticIntelligenceConsolidation()
    totals = []
    for seed in range(2):
        before = [v.numpy() for v in model.trainable_variables]
        fit(model, callback, seed)
        found = importance_by_path(model, optimizer)
        free = {p for p in found if "head" in p or "normalization" in p}
        # Kernel and bias of the head, gammas and betas of the normalisations.
        assert len(free) == 2 + 3 * 2 and len(found) == len(free) + 3
        for path, value in found.items():
            assert value == 0 if path in free else value > 1e-3, path
        for old, variable, anchor, trail in zip(
            before,
            model.trainable_variables,
            optimizer.anchors,
            optimizer.paths,
            strict=True,
        ):
            np.testing.assert_array_equal(anchor, variable)
            np.testing.assert_array_equal(trail, np.zeros(trail.shape))
            assert np.abs(variable.numpy() - old).max() > 1e-4
        totals.append(optimizer.importances[0].numpy())
    # The second experience adds to the first.
    assert totals[1].sum() > 1.05 * totals[0].sum()


@kinds.every_kind
@kinds.head_by_name_and_as_layer
def test_fit_of_every_kind_of_model(make_model, find_head):
    keras.utils.set_random_seed(0)
    features = keras.layers.Dense(6, use_bias=False)
    head = keras.layers.Dense(3, use_bias=False, name="predictions")
    model = make_model(features, head)
    free = protected(strength=0.0)
    compiled(model, free)
    callback = SynapticIntelligenceConsolidation(head=find_head(head))
    fit(model, callback, features=4)
    importance = dict(
        zip(map(id, model.trainable_variables), free.importances, strict=True)
    )
    assert np.max(importance[id(features.kernel)]) > 1e-3
    np.testing.assert_array_equal(
        importance[id(head.kernel)], np.zeros(head.kernel.shape)
    )


@kinds.every_kind
def test_strength_holds_the_features_of_every_kind_of_model(make_model):
    moved = []
    for strength in (0.0, 10.0):
        keras.utils.set_random_seed(0)
        features = keras.layers.Dense(6, use_bias=False)
        head = keras.layers.Dense(3, use_bias=False, name="predictions")
        model = compiled(make_model(features, head), protected(strength))
        callback = SynapticIntelligenceConsolidation(head=head)
        fit(model, callback, seed=0, features=4)
        before = features.kernel.numpy()
        fit(model, callback, seed=1, features=4)
        moved.append(np.abs(features.kernel.numpy() - before).mean())
    assert 0 < moved[1] < 0.8 * moved[0]


def test_head_is_protected_too_if_none_is_named():
    model = compiled(classifier(), protected())
    optimizer = model.optimizer
    train(model, optimizer, SynapticIntelligenceConsolidation(head=None))
    found = importance_by_path(model, optimizer)
    assert found["head/kernel"] > 0.1
    assert max(v for p, v in found.items() if "normalization" in p) == 0


@pytest.mark.parametrize(
    "normalization",
    [
        keras.layers.BatchNormalization(),
        keras.layers.GroupNormalization(groups=2),
        keras.layers.LayerNormalization(),
        keras.layers.RMSNormalization(),
        keras.layers.UnitNormalization(),
        layers.BatchRenormalization(),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_every_kind_of_normalisation_is_excluded(normalization):
    inputs = keras.Input((5,))
    model = keras.Model(inputs, Block(normalization)(inputs))
    optimizer = protected()
    callback = SynapticIntelligenceConsolidation(head=None, optimizer=optimizer)
    train(model, optimizer, callback)
    kernel, *others = importance_by_path(model, optimizer).values()
    assert kernel > 0.1
    assert others == [0.0] * len(normalization.trainable_variables)


def test_custom_loop_names_its_optimizer():
    """The optimizer knows only some layers, and the model none."""
    model, optimizer = classifier(), protected()
    callback = SynapticIntelligenceConsolidation(optimizer=optimizer)
    callback.set_model(model)
    low = model.get_layer("low").trainable_variables
    optimizer.build(low)
    callback.on_train_begin()
    optimizer.apply([tf.ones(v.shape) for v in low], low)
    callback.on_train_end()
    # A step of 0.05 on a gradient of 1: 0.05 / (0.0025 + 0.001) > 1.
    for importance in optimizer.importances:
        np.testing.assert_array_equal(importance, np.ones(importance.shape))


def test_optimizer_is_found_inside_loss_scaling():
    optimizer = protected()
    scaled = keras.optimizers.LossScaleOptimizer(optimizer)
    model = compiled(classifier(), scaled)
    train(model, scaled, SynapticIntelligenceConsolidation())
    # Gradients of 1 at the initial scale of 2 ** 15, hence tiny steps, which
    # leave paths that only `epsilon` divides.
    assert importance_by_path(model, optimizer)["low/kernel"] > 0


@pytest.mark.parametrize(
    "optimizer, received", [(keras.optimizers.SGD(0.05), "SGD"), (None, "None")]
)
def test_model_without_synaptic_intelligence_is_refused_before_it_trains(
    optimizer, received
):
    model = classifier()
    if optimizer is not None:
        compiled(model, optimizer)
    callback = SynapticIntelligenceConsolidation()
    callback.set_model(model)
    with pytest.raises(ValueError, match=f"of the model must be.*{received}"):
        callback.on_train_begin()


def test_another_optimizer_is_refused():
    with pytest.raises(ValueError, match="`optimizer` must be.*Adam"):
        SynapticIntelligenceConsolidation(optimizer=keras.optimizers.Adam())


def test_head_that_is_not_there_is_refused_before_it_trains():
    model = compiled(classifier(), protected())
    before = model.get_weights()
    with pytest.raises(ValueError, match="'predictions'.*low.*head=None"):
        fit(model, SynapticIntelligenceConsolidation(head="predictions"))
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
