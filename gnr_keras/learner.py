"""The learner: the paper's Algorithm 2, one experience at a time."""

import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Literal

import keras
import numpy as np
import tensorflow as tf

from gnr_keras import backbones
from gnr_keras import batches
from gnr_keras import callbacks as callbacks_lib
from gnr_keras import centered
from gnr_keras import checks
from gnr_keras import cloning
from gnr_keras import growing
from gnr_keras import guards
from gnr_keras import inference
from gnr_keras import midway
from gnr_keras import precision as precision_lib
from gnr_keras import sharing
from gnr_keras import states
from gnr_keras import storage
from gnr_keras import strategies
from gnr_keras import trainers
from gnr_keras import types
from gnr_keras.datasets import source as source_lib
from gnr_keras.replay import GeneratedReplay
from gnr_keras.trainers import parts

HEAD = "head"


class Learner(inference.Predictor):
    """Learns classes and instances as they come.

    Args:
        backbone: functional `keras.Model` from images to features. It is
            cloned, and itself left as it is; feature maps are pooled.
        latent_layer: name of the layer at which the backbone is split. What
            is below, the front, is frozen after the first experience, unless
            the strategy trains it.
        num_classes: rows of the head; `add_classes` adds more later.
        strategy: a `Strategy`, such as `gnr_keras.strategies.lwf()`; by
            default AR1free with aligned norms, and 500 patterns of a
            `CenteredVAE` as negatives, 32 in a batch.
        first: `Phase` of the first experience, which trains the whole
            network.
        following: `Phase` of all later ones.
        trainer: builds the `ClassifierTrainer` from `(model, latent_layer,
            head)` and the strategy's `objective`, `protection` and
            `block_features`.
        batch_renormalization: the `BatchRenormalizationSchedule` of the
            batch renormalisation that takes the place of the backbone's batch
            normalisation; by default that of the paper. `False` leaves the
            backbone as it is.
        head_bias: whether the head has a bias; a strategy with statistics
            needs one.
        predict_among: "seen" predicts among the classes seen so far, "all"
            among all rows (a row never trained is zero, and beats negative
            logits).
        initialize: whether the backbone's weights are drawn anew from
            `seed`; otherwise they are kept, as for a pretrained one.
        inference_batch_size: images in a batch when nothing is trained; on a
            processor fewer, where their maps are large.
        precision: in which layers and generator compute, whatever the
            backbone was built in: "float32"; "mixed_bfloat16" or
            "mixed_float16", the dtype policies of Keras, for GPUs; or
            "bfloat16_products", for processors that have them: convolutions
            and dense layers, and all of it where nothing trains. Weights, the
            head, losses and consolidation are in float32 always.
        latent_memory_limit: bytes of memory for latents, those of the
            experience (dropped at its end, but with a strategy that keeps
            data) and of the test set together; by default 4 GB. What goes
            beyond it is kept on disk.
        cache_dir: existing folder on that disk, by default the system's for
            temporary files. The files there have no name, and vanish with
            the process at the latest.
        share_dir: folder in which learners share what is the same to the
            last bit: the first experience, where its data, seed and all that
            it depends on are the same, and then the latents of images, as
            many bytes as they have. By default nothing is shared. Delete the
            folder when you are done.
        seed: all randomness of the learner comes from it.

    Example:

    ```python
    learner = Learner(backbone, "conv5_4/dw", stream.num_classes)
    for experience in stream:
        learner.fit(experience)
    print(learner.evaluate(stream.test).accuracy_whole)
    ```
    """

    def __init__(
        self,
        backbone: keras.Model,
        latent_layer: str,
        num_classes: int,
        strategy: strategies.Strategy | None = None,
        first: trainers.Phase = trainers.Phase(4, 1e-3, 1e-3),
        following: trainers.Phase = trainers.Phase(4, 5e-5, 5e-4),
        trainer: Callable[
            ..., trainers.ClassifierTrainer
        ] = trainers.ClassifierTrainer,
        batch_renormalization: callbacks_lib.BatchRenormalizationSchedule
        | Literal[False]
        | None = None,
        head_bias: bool = False,
        predict_among: str = "seen",
        initialize: bool = False,
        inference_batch_size: int = 256,
        precision: str = "float32",
        latent_memory_limit: float = 4_000_000_000,
        cache_dir: types.Path | None = None,
        share_dir: types.Path | None = None,
        seed: int = 0,
    ) -> None:
        if batch_renormalization is None:
            batch_renormalization = callbacks_lib.BatchRenormalizationSchedule()
        checks.check_whole("seed", seed, least=0)
        precision_lib.check_precision(precision)
        for name, phase in (("first", first), ("following", following)):
            if not isinstance(phase, trainers.Phase):
                raise ValueError(
                    f"`{name}` must be a `Phase`. Received: {phase!r}."
                )
        self.first = first
        self.following = following
        self.experiences_learned = 0
        self._batch_renormalization = batch_renormalization
        self._inference_batch_size = inference_batch_size
        self._precision = precision
        self._share_dir = share_dir
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._distribution = tf.distribute.get_strategy()
        # Of a strategy that keeps data: experiences, and latents of them.
        self._kept: list[source_lib.Source] = []
        self._kept_latents: list[np.ndarray] = []
        self._midway: types.State = {}
        self._course = midway.Course()
        if batch_renormalization:
            _check_unused(
                not batch_renormalization.trainings, batch_renormalization
            )
        with self._distribution.scope():
            model = cloning.clone(
                backbones.with_head(
                    backbone, num_classes, HEAD, head_bias, seed
                ),
                seed,
                batch_renormalization=bool(batch_renormalization),
                keep_weights=not initialize,
                policy=self._policy,
            )
            super().__init__(
                model,
                latent_layer,
                predict_among,
                inference_batch_size,
                storage.ArrayStore(latent_memory_limit, cache_dir),
                precision_lib.of_inference(precision),
            )
            guards.check_variables(
                model.variables,
                "The backbone, before anything was learned,",
                "Give it whole weights, or draw them with initialize=True.",
            )
            self.strategy = strategy or self._default_strategy()
            if not isinstance(self.strategy, strategies.Strategy):
                raise ValueError(
                    "`strategy` must be a `Strategy`, such as "
                    "`gnr_keras.strategies.er()`. Received: "
                    f"{self.strategy!r}."
                )
            if following.augment and not self.strategy.train_front:
                raise ValueError(
                    "Images of later experiences cannot be augmented: their "
                    "latents are what is trained on. Leave `augment` of "
                    "`following` away."
                )
            if self.strategy.consolidation:
                _check_unused(
                    self.strategy.consolidation.rows is None,
                    self.strategy.consolidation,
                )
            if self.strategy.statistics:
                _check_statistics(self.strategy.statistics, head_bias)
                self._features = self._build_features()
            self.trainer = trainer(
                self.model,
                latent_layer,
                HEAD,
                objective=self.strategy.objective,
                protection=self.strategy.protection,
                block_features=self.strategy.block_features,
            )
            self.replay = self.strategy.replay
            batches.check_replay_per_batch(
                self.replay.replay_per_batch, self.trainer.batch_size
            )
            with precision_lib.scope(precision):
                self.replay.build(
                    self.front.output_shape[1:],
                    num_classes,
                    backbones.above(self.model, latent_layer, HEAD),
                    seed,
                )

    @guards.name_experience
    def fit(
        self,
        experience: types.Data,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        on_steps: Callable[[], None] | None = None,
        generator_callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        """Learns one experience: one turn of Algorithm 2's loop.

        Args:
            experience: an `Experience`, a `Source` or a tuple
                `(images, labels)`.
            callbacks: Keras callbacks; they see one training of the
                classifier. With statistics in the strategy, nothing trains
                after the first experience.
            on_steps: function without arguments, called whenever some steps
                are done, of classifier or generator. There `state` returns
                all that is needed to go on in the middle of the experience:
                `restore` it, and `fit` the same experience.
            generator_callbacks: Keras callbacks that see the training of the
                generator, where there is one.
        """
        new = data = self._check_data(experience)
        saved, self._midway = self._midway, {}
        before = None if on_steps is None else self.state()
        self._course = midway.Course(new, saved, before, on_steps)
        try:
            if self.strategy.keep_data:
                self._kept.append(new)
                data = source_lib.join(self._kept)
            if self.strategy.trains_in(self.experiences_learned):
                self._learn(data, callbacks, generator_callbacks)
        except BaseException:
            # What is given again is not to be there twice.
            del self._kept[self.experiences_learned :]
            del self._kept_latents[self.experiences_learned :]
            raise
        finally:
            self._course = midway.Course()
        self.seen[np.unique(data.labels)] = True
        self.experiences_learned += 1

    def _learn(self, data, callbacks, generator_callbacks):
        """X_k, Y_k are `data`, and M_k is `memory`."""
        share, memory = self._populate_memory(data)  # lines 6 to 12
        latents = self._train_classifier(data, share, memory, callbacks)
        self._train_generator(  # lines 19 to 22
            latents, data.labels, memory, generator_callbacks
        )
        if self.strategy.statistics:
            self._update_statistics(self.strategy.statistics, data)

    def add_classes(self, count: int) -> None:
        """Grows the head, and all that is made for its classes.

        All that was learned stays, the old rows of the head to the last bit;
        so do the old logits, where the machine sums each of them alike
        whatever their number. The new rows are what they would be, had they
        been there all the time: drawn from the seed, or zero after a
        consolidation or statistics.

        Args:
            count: number of new classes; they follow the old ones.
        """
        growing.check_count(count)
        num_classes = self.num_classes + int(count)
        consolidation = self.strategy.consolidation
        consolidated = consolidation and consolidation.rows is not None
        counted = self.strategy.statistics and self.experiences_learned
        with self._distribution.scope():
            model = growing.grow_head(
                self.model,
                HEAD,
                int(count),
                self._seed,
                zeros=bool(consolidated or counted),
            )
            _, back = backbones.split(model, self._latent_layer)
            with precision_lib.scope(self._precision):
                self.replay.grow(
                    num_classes,
                    backbones.above(model, self._latent_layer, HEAD),
                )
            self.trainer.grow(model)
        self._replace_head(model, back)

    def state(self) -> types.State:
        """Returns all that was learned, as arrays by name.

        A learner that is built alike, and restores them, goes on as this one
        would, to the last bit on the same machine. Data that `keep_data` of
        the strategy keeps are not among them.
        """
        if self._course.can_be_saved:
            return self._course.state()
        return {
            "seen": self.seen.copy(),
            "experiences_learned": np.array(self.experiences_learned),
            **self._classifier_state(),
            **states.gather(self._other_parts()),
        }

    def restore(
        self, state: types.State, past: Sequence[types.Data] = ()
    ) -> None:
        """Goes on from what `state` returned.

        Args:
            state: of a learner that was built alike; classes that were added
                to it are added here too. Where it is that of the middle of an
                experience, `fit` has to be given that experience next.
            past: the experiences that it has learned. A strategy that keeps
                data needs them; with `share_dir`, the first of them lets
                latents be shared again, where no classes were added.
        """
        if self.experiences_learned:
            raise ValueError(
                "A learner that has learned cannot take over what another "
                "one has. Build a new one."
            )
        under_way = states.part_of(state, midway.PART)
        state = states.without(state, midway.PART)
        saving = {**self._classifier_parts(), **self._other_parts()}
        if not self.replay.memory_size:
            del saving["replay"]
        states.check_parts(state, saving)
        learned = int(state["experiences_learned"])
        if self.strategy.keep_data and len(past) != learned:
            raise ValueError(
                f"The strategy keeps data: expected the {learned} experiences "
                f"learned so far as `past`. Received: {len(past)}."
            )
        added = len(state["seen"]) - self.num_classes
        if added < 0:
            raise ValueError(
                f"The learner has {self.num_classes} classes. Received: a "
                f"state of {len(state['seen'])}. Build the learner with as "
                "many as it was built with then."
            )
        if added:
            self.add_classes(added)
        elif self._share_dir is not None and past:
            # Before anything changes: the key is that of the start.
            key = self._first_key(self._check_data(past[0]))
            self._share_latents(sharing.SharedStart(self._share_dir, key))
        self._restore_classifier(state)
        states.spread(self._other_parts(), state)
        self.seen = np.array(state["seen"])
        self.experiences_learned = learned
        self._midway = under_way
        if self.strategy.keep_data:
            self._kept = [self._check_data(experience) for experience in past]
            self._kept_latents = []

    def replay_accuracy(self) -> float | None:
        """Tests the learner on what it would replay next.

        Returns:
            The fraction of the memory's patterns that the classifier gives
            their label, or `None` where there is no memory. Of generated
            patterns this says how good the generator is.
        """
        if not self.replay.memory_size or not self.experiences_learned:
            return None
        # Of its own, so that looking at it changes nothing.
        rng = np.random.default_rng([self._seed, self.experiences_learned])
        with self._timed("evaluation"):
            memory = self.replay.populate(
                np.flatnonzero(self.seen), (), self.replay.memory_size, rng
            )
        if not len(memory):
            return None
        predictions = self._inference.predict(memory.latents, self.seen)
        return float((predictions == memory.labels).mean())

    @property
    def _front_stands(self):
        return self.experiences_learned and not self.strategy.train_front

    def _populate_memory(self, data):
        """Shares the batch with the memory M, and fills that."""
        if self.experiences_learned == 0:
            return 0, self.replay.empty()
        with self._timed("replay"):
            share = batches.replay_share(
                len(data),
                self.replay.memory_size,
                self.trainer.batch_size,
                self.replay.replay_per_batch,
            )
            steps = self.trainer.steps_per_epoch(len(data), share)
            memory = self.replay.populate(
                np.flatnonzero(self.seen),
                np.unique(data.labels),
                steps * self.following.epochs * share,
                self._rng,
            )
        guards.check_memory(memory, type(self.replay).__name__)
        # Without room in the batch, no class counts as replayed.
        if not share or not len(memory):
            return 0, self.replay.empty()
        return share, memory

    def _train_classifier(self, data, share, memory, callbacks):
        """Lines 13 to 18; the consolidation is one of the callbacks.

        Returns:
            The latents of the experience, for the generator.
        """
        if self.strategy.statistics and self.experiences_learned:
            return None
        if self.strategy.consolidation:
            self.strategy.consolidation.begin_experience(
                data.labels, memory.labels
            )
        callbacks = self._callbacks(callbacks)
        past_classes = np.flatnonzero(self.seen)
        if self.experiences_learned == 0 or self.strategy.train_front:
            first = self.experiences_learned == 0
            phase = self.first if first else self.following

            def train_on_images():
                self.trainer.fit_images(
                    data, phase, self._rng, callbacks, past_classes
                )

            with self._timed("classifier"):
                if first and self._share_dir is not None:
                    self._share_first(data, train_on_images)
                else:
                    self._train_or_take_over(train_on_images)
            # Nothing but a replay looks at these latents; where there is
            # one, the front is frozen from here on.
            if not self.replay.memory_size:
                return None
            return self._inference.latents(data)
        latents = self._latents(data)

        def train_on_latents():
            self.trainer.fit_latents(
                latents,
                data.labels,
                memory,
                share,
                self.following,
                self._rng,
                callbacks,
                past_classes,
            )

        with self._timed("classifier"):
            self._train_or_take_over(train_on_latents)
        return latents

    def forget_latents(self) -> None:
        super().forget_latents()
        self._kept_latents.clear()

    def _latents(self, data):
        """Runs the front over what it was not run over before."""
        if not self.strategy.keep_data:
            return self._inference.latents(data)
        for experience in self._kept[len(self._kept_latents) :]:
            self._kept_latents.append(self._inference.latents(experience))
        return self._inference.join(self._kept_latents)

    def _train_or_take_over(self, train):
        """Trains, unless that was over when the state was saved."""
        past = self._course.past("classifier")
        if past:
            self._restore_classifier(past)
            return
        with self._course.training("classifier", self.trainer, dict):
            train()

    def _share_first(self, data, train):
        """Trains, or takes over what another learner came to."""
        shared = sharing.SharedStart(self._share_dir, self._first_key(data))

        def compute():
            self._train_or_take_over(train)
            return self._classifier_state()

        state, found = shared.state(compute)
        if found:
            self._restore_classifier(state)
        self._share_latents(shared)

    def _share_latents(self, shared):
        if not self.strategy.train_front:
            self._inference.share(shared)

    def _first_key(self, data):
        return sharing.first_experience_key(
            data,
            self._seed,
            self._latent_layer,
            self.trainer,
            self.first,
            self.strategy,
            self._batch_renormalization,
        )

    def _classifier_parts(self):
        """What the training of the classifier changes, by name."""
        parts = {
            "trainer": self.trainer,
            "batch_renormalization": self._batch_renormalization,
            "consolidation": self.strategy.consolidation,
        }
        return {name: part for name, part in parts.items() if part}

    def _other_parts(self):
        """What learns besides the classifier, by name."""
        parts: dict[str, Any] = {"replay": self.replay}
        if self.strategy.statistics:
            parts["statistics"] = self.strategy.statistics
        return parts

    def _classifier_state(self):
        return {
            "random_state": states.pack_generator(self._rng),
            **states.gather(self._classifier_parts()),
        }

    def _restore_classifier(self, state):
        states.unpack_generator(self._rng, state["random_state"])
        states.spread(self._classifier_parts(), state)

    def _train_generator(self, latents, labels, memory, callbacks):
        """Only generated replay has a generator; others store patterns."""
        # Of the start: the training that goes on draws its numbers again.
        random_state = states.pack_generator(self._rng)

        def past():
            return {**self._classifier_state(), "random_state": random_state}

        with (
            self._timed("generator"),
            self._course.training("generator", self.replay.trained, past),
        ):
            self.replay.update(latents, labels, memory, self._rng, callbacks)

    def _update_statistics(self, statistics, data):
        """Counts the features of the experience, and sets the head."""
        # In half precision, as they are in tests.
        latents = self._inference.latents(data)
        with self._timed("classifier"):
            for i in range(0, len(data), self._inference_batch_size):
                part = slice(i, i + self._inference_batch_size)
                features = self._features(latents[part]).numpy()
                statistics.update(features, data.labels[part])
            weights, biases = statistics.rows()
            unseen = self.num_classes - len(biases)
            head = self.model.get_layer(HEAD)
            with self._distribution.scope():
                head.kernel.assign(np.pad(weights.T, ((0, 0), (0, unseen))))
                head.bias.assign(np.pad(biases, (0, unseen)))
            guards.check_variables(
                head.variables,
                f"The head that {type(statistics).__name__} sets",
                "Features are too large, or too alike to be told apart.",
            )

    def _build_features(self):
        """Returns what computes the head's inputs from latents."""
        part = parts.Part(self.front.outputs[0], self.model.get_layer(HEAD))
        return tf.function(
            lambda x: tf.cast(
                part.features(tf.cast(x, tf.float32), training=False),
                tf.float32,
            ),
            input_signature=[tf.TensorSpec(self.back.input_shape, tf.float16)],
        )

    def _policy(self, layer):
        # Small differences of logits count.
        if layer.name == HEAD:
            return "float32"
        return precision_lib.policy_of(layer, self._precision)

    def _callbacks(self, extra):
        callbacks = [*extra]
        if self._batch_renormalization:
            callbacks.insert(0, self._batch_renormalization)
        # Others may restore weights at the end: what consolidates comes last.
        if self.strategy.protection:
            callbacks.append(
                callbacks_lib.SynapticIntelligenceConsolidation(
                    HEAD, self.trainer.feature_optimizer
                )
            )
        if self.strategy.consolidation:
            callbacks.append(self.strategy.consolidation)
        return callbacks

    def _default_strategy(self):
        return strategies.ar1free(
            GeneratedReplay(
                memory_size=500,
                replay_per_batch=32,
                generator=functools.partial(
                    centered.CenteredVAE,
                    output_activation=backbones.output_activation(self.front),
                ),
            ),
            consolidation=functools.partial(
                callbacks_lib.CWRConsolidation, HEAD, align_norms=True
            ),
        )


def _check_unused(unused, part):
    if not unused:
        raise ValueError(
            f"This {type(part).__name__} has learned with another learner, and "
            "keeps what it learned. Build a new one."
        )


def _check_statistics(statistics, head_bias):
    _check_unused(not len(statistics.counts), statistics)
    if not head_bias:
        raise ValueError(
            f"{type(statistics).__name__} gives the head weights and biases. "
            f"Received: head_bias={head_bias!r}. Build the learner with "
            "head_bias=True."
        )
