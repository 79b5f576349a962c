"""CWR: consolidation of a classification head, class by class."""

from collections.abc import Sequence

import keras
import numpy as np

from gnr_keras import checks
from gnr_keras import types
from gnr_keras.callbacks import head_rows


class CWRConsolidation(keras.callbacks.Callback):
    """Keeps one consolidated row of head weights per class.

    One training (`on_train_begin` to `on_train_end`, hence one `model.fit`)
    is one experience. At its start the head is reset, and the consolidated
    rows of the classes at hand are loaded into it; at its end Algorithm 1 of
    the paper consolidates what was learned, and the head gets the
    consolidated rows of all classes, ready to predict.

    With `past` and `current` the numbers of patterns of class `c`, and `w'`
    its consolidated row, a row `w` is first centred and then becomes:

    | class `c` is                         | row                            |
    |--------------------------------------|--------------------------------|
    | new                                  | `w`                            |
    | in the experience, seen before       | `(w' * s + w) / (s + 1)`, with |
    |                                      | `s = sqrt(past / current)`     |
    | only in the replay, sign "positive"  | likewise                       |
    | only in the replay, sign "negative"  | `w'`                           |
    | in neither                           | `w'`                           |

    For a class that is only in a positive replay, `current` is its number of
    patterns in the replay memory. A bias, where the head has one, is
    consolidated with its class but not centred.

    The head may have more rows in a later training, for classes that nobody
    knew of before: rows and counts so far stay as they are.

    The first experience resets the head as well. Where a model was trained
    before, by `fit` alone, `adopt` takes its rows over; without it they are
    lost, and nothing can tell them from those of a new model.

    Between start and end the head has no rows of other classes. So validation
    and what `ModelCheckpoint` writes in `fit` do not know them, and neither
    does a model whose `fit` was interrupted: `write_rows` gives them back.
    In `callbacks` this one comes last. Behind it,
    `EarlyStopping(restore_best_weights=True)` would undo the consolidation;
    before it, the best weights are what is consolidated.

    Args:
        head: name of the head, a `Dense` layer of the model, or the layer
            itself.
        replay_sign: "negative" (replayed patterns leave the rows of their
            classes as they were) or "positive".
        centering: "class" subtracts from each row its own mean, as the paper
            says; "all" subtracts one mean over all rows trained now, as the
            authors' earlier code does.
        load_rows: which consolidated rows are loaded at the start,
            "current_and_replay" or "current".
        count_replay: whether replayed patterns count as past ones of their
            class.
        align_norms: how far the rows of the experience's classes are scaled
            towards the mean norm (bias included) of the rows consolidated
            before: 0 or `False` not at all, 1 or `True` all the way, 0.5 half
            way, to the geometric mean of that norm and their own. Rows that
            were learned at other rates or against other antagonists have
            other norms, and do not compete fairly; a part of the difference
            is what the competition asks for. After weight aligning (Zhao et
            al., 2020). Not in the paper. Rows of classes that are only
            replayed keep their norms.

    Example:

    ```python
    cwr = CWRConsolidation(head="predictions")
    for x, y in experiences:
        cwr.begin_experience(y)
        model.fit(x, y, epochs=4, callbacks=[cwr])
    ```

    With a model that knows some classes already, `y_old` its labels:

    ```python
    cwr = CWRConsolidation(head="predictions")
    cwr.adopt(model, y_old)
    cwr.begin_experience(y_new)
    model.fit(x_new, y_new, epochs=4, callbacks=[cwr])
    ```

    Reference:
        Maltoni and Lomonaco, "Continuous learning in single-incremental-task
        scenarios", 2019.
    """

    def __init__(
        self,
        head: str | keras.layers.Layer = "head",
        replay_sign: str = "negative",
        centering: str = "class",
        load_rows: str = "current_and_replay",
        count_replay: bool = False,
        align_norms: float = 0.0,
    ) -> None:
        super().__init__()
        _check("replay_sign", replay_sign, ("negative", "positive"))
        _check("centering", centering, ("class", "all"))
        _check("load_rows", load_rows, ("current_and_replay", "current"))
        if align_norms is not True and align_norms is not False:
            checks.check_number("align_norms", align_norms, most=1.0)
        self.head = head
        self.replay_sign = replay_sign
        self.centering = centering
        self.load_rows = load_rows
        self.count_replay = count_replay
        self.align_norms = align_norms
        # Rows of shape (classes, features [+ 1 for the bias]), and the number
        # of patterns of each class so far; made when the head is known.
        self.rows: np.ndarray | None = None
        self.past_counts = self._real_counts = np.zeros(0, np.int64)
        self._labels: tuple[np.ndarray, np.ndarray] | None = None

    def begin_experience(
        self,
        labels: np.ndarray | Sequence[int],
        replay_labels: np.ndarray | Sequence[int] = (),
    ) -> None:
        """Tells what the next training will be on.

        Args:
            labels: the label of each pattern of the experience.
            replay_labels: the label of each pattern of the replay memory.
        """
        self._labels = (
            _as_labels(labels),
            checks.as_labels("replay_labels", replay_labels),
        )

    def adopt(
        self, model: keras.Model, labels: np.ndarray | Sequence[int]
    ) -> None:
        """Takes what a model has learned before the first experience.

        The rows of the classes in `labels` are consolidated as at the end of
        an experience with these patterns: centred, and with their numbers as
        past ones. Rows of other classes are left out. The model stays as it
        is; the next training may also be that of a copy with a larger head.

        As after any experience, rows compete, and those that were trained
        longer are larger; a class that is learned alone gets a small one.
        Where new classes are hardly predicted, `align_norms=True` and some
        replayed patterns help; where nothing else is, fewer epochs do.

        Args:
            model: with a trained head.
            labels: the label of each pattern that it was trained on. Where
                only their numbers are known, `np.repeat(classes, numbers)`.
        """
        if self.rows is not None:
            raise RuntimeError(
                "`adopt` comes before the first training with this "
                "CWRConsolidation, which resets the head. Build a new one, "
                "and give it the model as it was trained before."
            )
        layer = head_rows.find_head(model, self.head)
        head_rows.check_finite(layer)
        self._begin(layer, _as_labels(labels), np.zeros(0, np.int64))
        self._end(layer)

    def write_rows(self, model: keras.Model) -> None:
        """Gives a model the consolidated rows of all classes.

        The end of a training does that by itself. This is for what holds the
        rows of a training at hand: a model whose `fit` was interrupted, or a
        checkpoint from within `fit`. What was interrupted is not
        consolidated; `fit` the experience again to learn it.

        Args:
            model: as it was trained; its head may have more rows.
        """
        if self.rows is None:
            raise RuntimeError(
                "There are no consolidated rows before the first training."
            )
        layer = head_rows.find_head(model, self.head)
        head_rows.write(layer, self._make_room(head_rows.read(layer)))

    @property
    def seen(self) -> np.ndarray:
        """Boolean per class: whether it was in an experience so far."""
        if self.rows is None:
            raise RuntimeError(
                "The classes are not known before the first training."
            )
        return self._real_counts > 0

    def state(self) -> types.State:
        """Returns all that was consolidated, as arrays by name."""
        if self.rows is None:
            return {}
        return {
            "rows": self.rows,
            "past_counts": self.past_counts,
            "real_counts": self._real_counts,
        }

    def restore(self, state: types.State) -> None:
        """Goes on from what `state` returned."""
        if not state:
            # What `state` returns before the first training.
            self.rows = self._labels = None
            self.past_counts = self._real_counts = np.zeros(0, np.int64)
            return
        missing = {"rows", "past_counts", "real_counts"} - {*state}
        if missing:
            raise ValueError(
                "The state is not that of a CWRConsolidation: it has no "
                f"{sorted(missing)}. Received: {sorted(state)}. Give what "
                "`state` returned."
            )
        self.rows = state["rows"]
        self.past_counts = state["past_counts"]
        self._real_counts = state["real_counts"]
        self._labels = None

    def on_train_begin(self, logs=None):
        if self._labels is None:
            raise RuntimeError(
                "CWRConsolidation does not know the classes of this "
                "experience. Call `begin_experience(labels)` before each "
                "training."
            )
        layer = head_rows.find_head(self.model, self.head)
        rows = self._begin(layer, *self._labels)
        loaded = self._current > 0
        if self.load_rows == "current_and_replay":
            loaded = loaded | (self._replayed > 0)
        head_rows.write(layer, np.where(loaded[:, None], rows, 0.0))

    def on_train_end(self, logs=None):
        # Where it is in `callbacks` twice, the first has done it all.
        if self._labels is None:
            return
        layer = head_rows.find_head(self.model, self.head)
        head_rows.check_finite(layer)
        self._end(layer)
        head_rows.write(layer, self.rows)
        self._labels = None

    def _begin(self, layer, labels, replay_labels):
        """Counts patterns, and returns rows, as many as the head has."""
        trained = head_rows.read(layer)
        both = np.concatenate([labels, replay_labels])
        if both.min() < 0 or both.max() >= len(trained):
            raise ValueError(
                f"Labels must lie in [0, {len(trained)}), the rows of "
                f"{layer.name!r}. Received: {both.min()} to {both.max()}."
            )
        rows = self._make_room(trained)
        self._current = np.bincount(labels, minlength=len(trained))
        self._replayed = np.bincount(replay_labels, minlength=len(trained))
        return rows

    def _end(self, layer):
        """Consolidates the rows of the head, and counts what it learned."""
        trained = head_rows.read(layer)
        features = layer.kernel.shape[0]
        rows = self._make_room(trained)
        self.rows = self._consolidate(rows, trained, features)
        self._real_counts = self._real_counts + self._current
        self.past_counts = self.past_counts + self._current
        if self.count_replay:
            self.past_counts = self.past_counts + self._replayed

    def _make_room(self, trained):
        """Adds rows of zeros up to those of the head; returns all rows."""
        if self.rows is None:
            self.rows = np.zeros_like(trained[:0])
        missing = len(trained) - len(self.rows)
        if missing < 0 or trained.shape[1] != self.rows.shape[1]:
            raise ValueError(
                f"Expected the head {self.head!r} with the rows consolidated "
                f"so far, {self.rows.shape[0]} of {self.rows.shape[1]} "
                f"weights, or more rows. Received: {trained.shape[0]} of "
                f"{trained.shape[1]}. For another model, build a new "
                "CWRConsolidation."
            )
        self.rows = np.pad(self.rows, ((0, missing), (0, 0)))
        self.past_counts = np.pad(self.past_counts, (0, missing))
        self._real_counts = np.pad(self._real_counts, (0, missing))
        return self.rows

    def _consolidate(self, rows, trained, features):
        """Algorithm 1; returns the new consolidated rows."""
        in_experience = self._current > 0
        only_replayed = ~in_experience & (self._replayed > 0)
        updated = in_experience
        if self.replay_sign == "positive":
            updated = updated | only_replayed

        trained = trained.copy()
        present = in_experience | only_replayed
        if self.centering == "class":
            trained[:, :features] -= trained[:, :features].mean(
                axis=1, keepdims=True
            )
        else:
            trained[:, :features] -= trained[present, :features].mean()

        current = np.where(in_experience, self._current, self._replayed)
        past_weight = np.sqrt(self.past_counts / np.maximum(current, 1))
        past_weight = past_weight[:, None].astype(trained.dtype)
        merged = (rows * past_weight + trained) / (past_weight + 1)
        merged = np.where(updated[:, None], merged, rows)
        if self.align_norms and self.seen.any():
            target = np.linalg.norm(rows[self.seen], axis=1).mean()
            merged = _align(merged, in_experience, target, self.align_norms)
        return merged


def _as_labels(labels):
    labels = checks.as_labels("labels", labels)
    if not len(labels):
        raise ValueError("An experience needs at least one pattern.")
    return labels


def _align(rows, chosen, target, share):
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    scale = (target / np.where(norms > 0, norms, 1.0)) ** share
    return np.where(chosen[:, None], rows * scale, rows)


def _check(name, value, allowed):
    if value not in allowed:
        raise ValueError(
            f"`{name}` must be one of {allowed}. Received: {value!r}."
        )
