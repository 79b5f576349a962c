"""Scaling of a loss whose gradients half precision could not hold."""

import keras
import tensorflow as tf

# Where scaling starts, and after how many steps it tries twice as much: as
# `keras.optimizers.LossScaleOptimizer` has it, which wraps one optimizer,
# where here two of them share a loss.
_FIRST = 2.0**15
_PATIENCE = 2000


def of_model(model, strategy):
    """Returns the `LossScale` of a model's training, `None` for none.

    Args:
        model: a `keras.Model`; only layers in float16 need scaling.
        strategy: the `tf.distribute.Strategy` that it trains under.
    """
    layers = model._flatten_layers(include_self=False)
    if all(layer.compute_dtype != "float16" for layer in layers):
        return None
    if tf.distribute.has_strategy() or strategy.num_replicas_in_sync > 1:
        raise ValueError(
            "In mixed_float16 a step is left out where its gradients overflow, "
            "which devices of a tf.distribute strategy cannot agree upon. "
            f"Received: {type(strategy).__name__}. Take mixed_bfloat16, which "
            "needs no scaling, or one device."
        )
    return LossScale()


class LossScale:
    """Makes a loss larger, and steps on its gradients if they are finite.

    Where they are not, the step is left out, and the scale halved; after
    2000 steps in a row it is doubled.
    """

    def __init__(self):
        self._scale = keras.Variable(
            _FIRST, trainable=False, dtype="float32", name="loss_scale"
        )
        self._steps = keras.Variable(
            0, trainable=False, dtype="int32", name="steps_at_this_scale"
        )

    @property
    def variables(self):
        return [self._scale, self._steps]

    def enlarge(self, loss):
        """Returns the loss to take gradients of."""
        return loss * self._scale

    def reduce(self, gradients):
        """Returns what the gradients of the loss itself are."""
        return [gradient / self._scale for gradient in gradients]

    def step(self, gradients, apply):
        """Calls `apply` where gradients are finite, and moves the scale.

        Args:
            gradients: as `reduce` returned them.
            apply: function without arguments that makes the step.
        """
        finite = tf.reduce_all(
            [tf.reduce_all(tf.math.is_finite(g)) for g in gradients]
        )

        def go():
            apply()
            steps = self._steps + 1
            more = steps >= _PATIENCE
            self._scale.assign(self._scale * tf.where(more, 2.0, 1.0))
            self._steps.assign(tf.where(more, 0, steps))

        def leave_out():
            self._scale.assign(self._scale * 0.5)
            self._steps.assign(0)

        tf.cond(finite, go, leave_out)
