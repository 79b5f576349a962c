"""Keras optimizers of the package."""

import contextlib
import copy
from collections.abc import Sequence

import keras
import tensorflow as tf
from keras import ops


@keras.saving.register_keras_serializable(package="gnr_keras")
class SynapticIntelligence(keras.optimizers.Optimizer):
    """Wraps an optimizer, and holds back weights that mattered earlier.

    Each step, with `g` the gradient of the loss over all replicas:

        before = weight
        inner optimizer's step on g + strength * importance * (weight - anchor)
        path += -g * (weight - before)

    The second term is the gradient of a penalty, `strength / 2 * sum(
    importance * (weight - anchor) ** 2)`; the path sums what each weight
    contributed to the fall of the loss. At the end of an experience,
    `consolidate` makes importances of paths:

        gain = multiplier * path / ((weight - anchor) ** 2 + epsilon)
        importance = clip(importance + gain, 0, clip)
        anchor, path = weight, 0

    Importances are zero in the first experience, which trains as without the
    penalty. The first anchor is the weight when the optimizer is built, by
    the first `fit` or by `build`: load pretrained weights before that.

    Why an optimizer: it is the only place in Keras that sees both a gradient
    and the step it causes, in `fit` and in custom loops alike. What it cannot
    know is when an experience ends; a callback does, see
    `gnr_keras.callbacks.SynapticIntelligenceConsolidation`.

    Whatever is in the gradients counts as loss: regularisation losses of
    layers, L2 that a loop adds by hand. Whatever the inner optimizer does to
    the gradients (clipping, momentum) or besides (decoupled `weight_decay`,
    moving averages, constraints) is part of the step, not of `g`. With
    `gradient_accumulation_steps`, `g` is that of the batch that completes a
    step: right on average, but noisier than the mean over its batches.

    Rate, schedule, clipping and the like are those of the inner optimizer;
    `learning_rate` reads and sets its rate. With `strength=0` the inner
    optimizer gets the very gradients that came in, and the weights are, to
    the last bit, those of the inner optimizer alone. (TensorFlow regroups
    products in a graph when only one operation reads them. So the last bit
    may differ for a gradient that ends in a product, such as the scale's of
    a batch normalisation of vectors, since the path reads it too.)

    Args:
        optimizer: the Keras optimizer to wrap. Not a `LossScaleOptimizer`,
            which goes around this one (as `compile` puts it).
        strength: factor of the penalty, at least 0. It is compiled into the
            training step, hence fixed.
        clip: largest importance, at least 0; `float("inf")` for no limit.
            With plain SGD, steps on the penalty diverge if `learning_rate *
            strength * clip` is above 2.
        multiplier: factor of what an experience adds to the importances, at
            least 0. Read at each consolidation: it may differ between
            experiences.
        epsilon: keeps the importance of a weight that hardly moved finite,
            above 0.
        name: name of the optimizer.

    Example:

    ```python
    model.compile(
        SynapticIntelligence(keras.optimizers.SGD(0.01), strength=1e3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    for x, y in experiences:
        model.fit(x, y, callbacks=[SynapticIntelligenceConsolidation()])
    ```

    Reference:
        Zenke, Poole and Ganguli, "Continual learning through synaptic
        intelligence", 2017. Limits and sum of the importances, after Maltoni
        and Lomonaco, "Continuous learning in single-incremental-task
        scenarios", 2019.
    """

    def __init__(
        self,
        optimizer: keras.optimizers.Optimizer,
        strength: float,
        clip: float = 1e-3,
        multiplier: float = 1.0,
        epsilon: float = 1e-7,
        name: str | None = None,
    ) -> None:
        _check_optimizer(optimizer)
        # The steps are those of the inner optimizer, whole: so any rule can
        # be wrapped, also one that does more than `update_step`. A callable
        # rate spares a variable that nothing would read.
        super().__init__(
            learning_rate=lambda: optimizer.learning_rate,
            loss_scale_factor=optimizer.loss_scale_factor,
            name=name,
        )
        self.strength = _number("strength", strength)
        self.clip = _number("clip", clip, limit=float("inf"))
        self.multiplier = _number("multiplier", multiplier)
        self.epsilon = _number("epsilon", epsilon)
        if not self.epsilon:
            raise ValueError(
                "`epsilon` must be above 0: a weight that did not move would "
                f"get the importance 0 / 0. Received: {epsilon!r}."
            )
        self.inner_optimizer = optimizer
        # Gradients are unscaled here, and must not be again.
        self.inner_optimizer.loss_scale_factor = None
        self._importances: list[keras.Variable] = []
        self._paths: list[keras.Variable] = []
        self._anchors: list[keras.Variable] = []

    def build(self, variables):
        if self.built:
            return
        variables = list(variables)
        with _outside_function(variables):
            self.inner_optimizer.build(variables)
            super().build(variables)
            add = self.add_variable_from_reference
            self._importances = [add(v, "importance") for v in variables]
            self._paths = [add(v, "path") for v in variables]
            # As initial values: in a `tf.function` an assignment would be a
            # part of the step.
            self._anchors = [
                add(v, "anchor", initializer=_ValueOf(v)) for v in variables
            ]

    @property
    def importances(self) -> list[keras.Variable]:
        """Importance of each trainable variable's weights."""
        return list(self._importances)

    @property
    def paths(self) -> list[keras.Variable]:
        """What the weights contributed to the loss in this experience."""
        return list(self._paths)

    @property
    def anchors(self) -> list[keras.Variable]:
        """Weights at the end of the last experience."""
        return list(self._anchors)

    @property
    def variables(self):
        return self._variables + self.inner_optimizer.variables

    @property
    def iterations(self):
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self):
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate):
        self.inner_optimizer.learning_rate = learning_rate

    def apply(self, grads, trainable_variables=None):
        if not self.built and trainable_variables is not None:
            with tf.name_scope(self.name):
                self.build(trainable_variables)
        if not self.built:
            raise ValueError(
                "The optimizer does not know the variables of these "
                "gradients. Pass them, or call `build(variables)` before."
            )
        grads = list(grads)
        if not grads:
            return
        variables = list(trainable_variables or self._trainable_variables)
        if len(grads) != len(variables):
            raise ValueError(
                "Expected one gradient (or None) per variable. Received: "
                f"{len(grads)} gradients for {len(variables)} variables."
            )
        self._check_variables_are_known(variables)
        # The inner optimizer skips variables without a gradient, and those
        # whose "gradient" is their new value (as of float8 scales).
        followed = [
            i
            for i, (gradient, variable) in enumerate(
                zip(grads, variables, strict=True)
            )
            if gradient is not None
            and not self._overwrite_variable_with_gradient(variable)
        ]
        if self.loss_scale_factor is not None:
            for i in followed:
                grads[i] = grads[i] / self.loss_scale_factor
        moved = [variables[i] for i in followed]
        before = [tf.convert_to_tensor(variable) for variable in moved]
        loss_grads = [
            tf.cast(tf.convert_to_tensor(grads[i]), variables[i].dtype)
            for i in followed
        ]
        # Without a penalty the inner optimizer gets the very gradients that
        # came in, sparse ones included.
        if self.strength:
            for i, gradient in zip(followed, loss_grads, strict=True):
                grads[i] = gradient + self._penalty_gradient(variables[i])
        self.inner_optimizer.apply(grads, variables)
        if moved:
            self._lengthen_paths(moved, before, loss_grads)
        self._iterations.assign_add(1)

    def consolidate(self, exclude: Sequence[keras.Variable] = ()) -> None:
        """Ends an experience: importances of paths, new anchors.

        Call it between steps; under `tf.distribute`, outside `strategy.run`.

        Args:
            exclude: variables whose importance is to be 0. Those that the
                optimizer does not train are ignored.
        """
        if not self.built:
            raise ValueError(
                "There is nothing to consolidate before the optimizer has "
                "variables. Train first, or call `build(variables)`."
            )
        excluded = {self._var_key(variable) for variable in exclude}
        for variable, importance, path, anchor in zip(
            self._trainable_variables,
            self._importances,
            self._paths,
            self._anchors,
            strict=True,
        ):
            if self._var_key(variable) in excluded:
                importance.assign(ops.zeros_like(importance))
            else:
                distance = ops.square(ops.subtract(variable, anchor))
                gain = self.multiplier * (path / (distance + self.epsilon))
                importance.assign(ops.clip(importance + gain, 0.0, self.clip))
            path.assign(ops.zeros_like(path))
            anchor.assign(variable)

    def _penalty_gradient(self, variable):
        index = self._get_variable_index(variable)
        distance = tf.convert_to_tensor(variable) - self._anchors[index]
        # The inner optimizer sums the gradients of the replicas.
        replicas = tf.distribute.get_replica_context().num_replicas_in_sync
        return self.strength / replicas * self._importances[index] * distance

    def _lengthen_paths(self, variables, before, gradients):
        gradients = tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.SUM, gradients
        )
        steps = [
            -gradient * (tf.convert_to_tensor(variable) - old)
            for variable, old, gradient in zip(
                variables, before, gradients, strict=True
            )
        ]
        paths = [
            self._paths[self._get_variable_index(variable)].value
            for variable in variables
        ]

        def add_steps(strategy, steps):
            for path, step in zip(paths, steps, strict=True):
                strategy.extended.update(
                    path, _assign_add, args=(step,), group=False
                )

        # As in Keras: variables of a strategy take no assignment in the
        # context of one replica.
        tf.__internal__.distribute.interim.maybe_merge_call(
            add_steps, self._distribution_strategy, steps
        )

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

    def finalize_variable_values(self, var_list):
        self.inner_optimizer.finalize_variable_values(var_list)

    def set_weights(self, weights):
        own = len(self._variables)
        super().set_weights(weights[:own])
        self.inner_optimizer.set_weights(weights[own:])

    def load_own_variables(self, store):
        super().load_own_variables(store)
        if len(store.keys()) != len(self.variables):
            # A model that was saved before it trained: Keras builds its
            # optimizer on random weights, and then loads the others.
            for variable, anchor in zip(
                self._trainable_variables, self._anchors, strict=True
            ):
                anchor.assign(variable)

    def get_config(self):
        inner = keras.saving.serialize_keras_object(self.inner_optimizer)
        inner["config"]["loss_scale_factor"] = self.loss_scale_factor
        return {
            "optimizer": inner,
            "strength": self.strength,
            "clip": self.clip,
            "multiplier": self.multiplier,
            "epsilon": self.epsilon,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        # A copy, since Keras puts the schedule that it makes into what it
        # is given.
        optimizer = keras.saving.deserialize_keras_object(
            copy.deepcopy(config["optimizer"]), custom_objects=custom_objects
        )
        return cls(**{**config, "optimizer": optimizer})


class _ValueOf(keras.initializers.Initializer):
    """Initial value that is the present value of another variable."""

    def __init__(self, variable):
        self.variable = variable

    def __call__(self, shape, dtype=None):
        return tf.cast(tf.convert_to_tensor(self.variable), dtype)


def _outside_function(variables):
    """Returns a scope in which variables may start at the value of others.

    `fit` builds an optimizer while it traces the training step, where values
    are not known, and XLA refuses variables whose initial value is not. So
    variables are created outside, if those that they copy have values there
    and belong to no strategy (which is known inside only).
    """
    if tf.executing_eagerly() or tf.distribute.has_strategy():
        return contextlib.nullcontext()
    with tf.init_scope():
        known = tf.executing_eagerly() and all(
            tf.compat.v1.is_variable_initialized(
                v.value if isinstance(v, keras.Variable) else v
            )
            for v in variables
        )
    return tf.init_scope() if known else contextlib.nullcontext()


def _assign_add(variable, value):
    variable.assign_add(value)


def _check_optimizer(optimizer):
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ValueError(
            "`optimizer` must be a Keras optimizer, such as "
            f"`keras.optimizers.SGD(0.01)`. Received: {optimizer!r}."
        )
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise ValueError(
            "A LossScaleOptimizer cannot be inside SynapticIntelligence: its "
            "gradients are scaled, and not always finite. Put it outside, as "
            "`LossScaleOptimizer(SynapticIntelligence(optimizer, ...))`. "
            f"Received: {optimizer!r}."
        )


def _number(name, value, limit=None):
    """Returns `value` as a float, refused if negative or not finite."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not (0 <= number < float("inf") or number == limit):
        raise ValueError(
            f"`{name}` must be a finite number from 0 on. Received: {value!r}."
        )
    return number
