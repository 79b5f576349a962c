"""Tests of the schedule of batch renormalisation, under `model.fit`."""

import keras
import kinds
import numpy as np
import pytest
import tensorflow as tf

from gnr_keras.callbacks import BatchRenormalizationSchedule
from gnr_keras.layers import BatchRenormalization

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
Y = np.zeros((8, 1), "float32")


class Record(keras.callbacks.Callback):
    """Notes the limits and the rate that each batch was trained with."""

    def __init__(self, layer):
        super().__init__()
        self._layer = layer
        self.values = []

    def on_train_batch_end(self, batch, logs=None):
        self.values.append(limits(self._layer))


def limits(layer):
    return [
        float(variable.numpy())
        for variable in (layer.r_max, layer.d_max, layer.update_rate)
    ]


def make_model(*inner):
    model = keras.Sequential([keras.Input((3,)), *inner, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def fit(model, schedule, layer, epochs=2, batch_size=2, data=None):
    record = Record(layer)
    arguments = {"x": X, "y": Y, "batch_size": batch_size}
    model.fit(
        **(arguments if data is None else {"x": data}),
        epochs=epochs,
        verbose=0,
        callbacks=[schedule, record],
    )
    return np.array(record.values)


def schedule_3_5():
    return BatchRenormalizationSchedule(
        r_max=3.0, d_max=5.0, first_update_rate=0.1, later_update_rate=0.02
    )


def test_limits_grow_linearly_over_the_first_training():
    layer = BatchRenormalization(name="norm")
    values = fit(make_model(layer), schedule_3_5(), layer)
    # 2 epochs of 4 batches: batch i runs at i / 8 of the way from (1, 0) to
    # (3, 5).
    r_max = [1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75]
    d_max = [0, 0.625, 1.25, 1.875, 2.5, 3.125, 3.75, 4.375]
    np.testing.assert_allclose(values[:, 0], r_max, rtol=1e-6)
    np.testing.assert_allclose(values[:, 1], d_max, rtol=1e-6)
    np.testing.assert_allclose(values[:, 2], [0.1] * 8, rtol=1e-6)


def test_limits_have_reached_their_final_values_after_the_first_training():
    layer = BatchRenormalization()
    fit(make_model(layer), schedule_3_5(), layer)
    np.testing.assert_allclose(limits(layer)[:2], [3, 5], rtol=1e-6)


def test_later_trainings_keep_the_limits_and_slow_the_statistics_down():
    layer = BatchRenormalization()
    model, schedule = make_model(layer), schedule_3_5()
    fit(model, schedule, layer)
    for _ in range(2):
        values = fit(model, schedule, layer, epochs=1)
        np.testing.assert_allclose(values, [[3, 5, 0.02]] * 4, rtol=1e-6)


def test_default_values_are_those_of_the_package():
    layer = BatchRenormalization()
    model, schedule = make_model(layer), BatchRenormalizationSchedule()
    first = fit(model, schedule, layer, epochs=1)
    np.testing.assert_allclose(first[0], [1, 0, 0.01], rtol=1e-6)
    later = fit(model, schedule, layer, epochs=1)
    np.testing.assert_allclose(later[0], [1.25, 0.5, 5e-5], rtol=1e-6)


def test_statistics_move_at_the_scheduled_rate():
    layer = BatchRenormalization()
    model, schedule = make_model(layer), schedule_3_5()
    fit(model, schedule, layer, epochs=1, batch_size=8)
    first = layer.moving_mean.numpy()
    np.testing.assert_allclose(first, 0.1 * X.mean(0), rtol=1e-4)
    fit(model, schedule, layer, epochs=1, batch_size=8)
    # From 0.1 m towards m at the rate 0.02: (0.1 + 0.02 * 0.9) m.
    np.testing.assert_allclose(
        layer.moving_mean.numpy(), 0.118 * X.mean(0), rtol=1e-4
    )


def test_all_layers_of_the_model_follow():
    layers = [BatchRenormalization() for _ in range(2)]
    model, schedule = make_model(*layers), schedule_3_5()
    fit(model, schedule, layers[0], epochs=1)
    fit(model, schedule, layers[0], epochs=1)
    for layer in layers:
        np.testing.assert_allclose(limits(layer), [3, 5, 0.02], rtol=1e-6)


def test_layers_of_a_backbone_inside_the_model_follow():
    layer = BatchRenormalization()
    backbone = keras.Sequential([keras.Input((3,)), layer])
    values = fit(make_model(backbone), schedule_3_5(), layer, epochs=1)
    # Half of 4 batches: (1 + 3) / 2 and (0 + 5) / 2.
    np.testing.assert_allclose(values[2], [2, 2.5, 0.1], rtol=1e-6)


def test_data_of_unknown_length_advances_with_the_epochs():
    def batches():
        for start in range(0, 8, 2):
            yield X[start : start + 2], Y[start : start + 2]

    data = tf.data.Dataset.from_generator(
        batches,
        output_signature=(
            tf.TensorSpec((2, 3), tf.float32),
            tf.TensorSpec((2, 1), tf.float32),
        ),
    )
    layer = BatchRenormalization()
    values = fit(make_model(layer), schedule_3_5(), layer, 4, data=data)
    at_epoch_start = values[::4]
    # 4 epochs: 0, 1/4, 2/4 and 3/4 of the way from 1 to 3 and from 0 to 5.
    np.testing.assert_allclose(
        at_epoch_start[:, :2],
        [[1, 0], [1.5, 1.25], [2, 2.5], [2.5, 3.75]],
        rtol=1e-6,
    )
    assert (np.diff(values[:, 0]) >= 0).all()


def test_limits_change_without_new_traces():
    class CountTraces(keras.layers.Layer):
        traces = 0

        def call(self, inputs):
            CountTraces.traces += 1
            return inputs

    layer = BatchRenormalization()
    model, schedule = make_model(layer, CountTraces()), schedule_3_5()
    fit(model, schedule, layer, epochs=1)
    after_first = CountTraces.traces
    fit(model, schedule, layer, epochs=2)
    assert CountTraces.traces == after_first


def test_model_without_the_layer_trains_as_usual():
    model = make_model()
    before = model.get_weights()[0]
    model.fit(X, Y, verbose=0, callbacks=[BatchRenormalizationSchedule()])
    assert (model.get_weights()[0] != before).any()


def test_model_that_fit_has_yet_to_build_is_a_clear_error():
    model = keras.Sequential([BatchRenormalization(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="[Bb]uil"):
        model.fit(X, Y, verbose=0, callbacks=[schedule_3_5()])


def test_layers_inside_layers_of_a_subclassed_model_are_found():
    layer = BatchRenormalization()
    model = kinds.subclassed(kinds.Block(layer), keras.layers.Dense(1))
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")
    model.fit(x, Y, verbose=0, callbacks=[schedule_3_5()])
    np.testing.assert_allclose(limits(layer)[:2], [3, 5], rtol=1e-6)
