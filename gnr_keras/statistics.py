"""Classifiers in closed form, from running statistics of features.

Both are linear in the features, so that they are rows of a head: the score of
class `c` is `features @ weights[c] + biases[c]`.
"""

import numpy as np

from gnr_keras import types


class ClassMeans:
    """Nearest class mean, exact whatever the batches it is counted in.

    The squared distance to the mean `mu` of a class, without the part that
    all classes share and times -1/2, has weights `mu` and bias `-|mu|^2 / 2`.

    Attributes:
        counts: number of patterns of each class.
        means: mean of each class, in double precision, of shape
            `(classes, features)`; zero for classes never counted.

    Example:

    ```python
    means = ClassMeans()
    for features, labels in batches:
        means.update(features, labels)
    weights, biases = means.rows()
    predictions = (features @ weights.T + biases).argmax(axis=-1)
    ```
    """

    def __init__(self) -> None:
        self.counts = np.zeros(0, np.int64)
        self.means = np.zeros((0, 0))

    def update(self, features: np.ndarray, labels: np.ndarray) -> None:
        """Counts patterns; a class beyond those so far makes room for itself.

        Args:
            features: of shape `(patterns, features)`.
            labels: the class of each pattern, an integer.
        """
        features, labels = self._check(features, labels)
        if len(labels):
            self._make_room(labels.max() + 1, features.shape[1])
            self._begin(features, labels)
            self._update(features, labels)

    def state(self) -> types.State:
        """Returns all that was counted, as arrays by name."""
        return {"counts": self.counts.copy(), "means": self.means.copy()}

    def restore(self, state: types.State) -> None:
        """Goes on from what `state` returned."""
        self.counts = np.array(state["counts"])
        self.means = np.array(state["means"])

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns `(weights, biases)` of all classes, zero for unseen ones.

        Weights are of shape `(classes, features)`, biases of `(classes,)`.
        """
        return self.means.copy(), -0.5 * (self.means**2).sum(axis=1)

    def _begin(self, features, labels):
        """Sets means of new classes to a pattern, against cancellation.

        While nothing is counted, any value leads to the same statistics.
        """
        classes, first = np.unique(labels, return_index=True)
        new = self.counts[classes] == 0
        self.means[classes[new]] = features[first[new]]

    def _update(self, features, labels):
        for c in np.unique(labels):
            new = features[labels == c]
            self.counts[c] += len(new)
            shift = (new - self.means[c]).sum(axis=0)
            self.means[c] += shift / self.counts[c]

    def _make_room(self, num_classes, num_features):
        known = len(self.counts)
        if num_classes > known:
            means = np.zeros((num_classes, num_features))
            if known:
                means[:known] = self.means
            self.means = means
            self.counts = np.pad(self.counts, (0, num_classes - known))

    def _check(self, features, labels):
        features = np.asarray(features, np.float64)
        labels = np.asarray(labels)
        if features.ndim != 2 or labels.shape != features.shape[:1]:
            raise ValueError(
                "Expected features of shape (patterns, features), and one "
                f"label per pattern. Received: features of {features.shape}, "
                f"labels of {labels.shape}."
            )
        if len(self.counts) and features.shape[1] != self.means.shape[1]:
            raise ValueError(
                f"Expected {self.means.shape[1]} features, as counted before. "
                f"Received: {features.shape[1]}. For other features, build a "
                f"new {type(self).__name__}."
            )
        if not len(labels):
            return features, labels
        if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0:
            raise ValueError(
                "Labels must be integers from 0 on. Received: "
                f"{labels.dtype}, from {labels.min()}."
            )
        if not np.isfinite(features).all():
            raise ValueError(
                "Features must be finite. Received: NaN or infinity. Where a "
                "network computes them, its training may have diverged: lower "
                "its learning rates."
            )
        return features, labels.astype(np.int64)


class LinearDiscriminant(ClassMeans):
    """Streaming linear discriminant analysis.

    Each class is a Gaussian about its mean `mu`, all with one covariance `S`
    and equally likely. With the precision
    `L = inv((1 - shrinkage) * S + shrinkage * I)`, weights are `L mu` and the
    bias is `-mu^T L mu / 2`.

    `S` is the mean, over all patterns, of the outer product of a pattern's
    deviation from its class mean. The paper's update weighs a deviation by
    the number of all patterns so far and takes it from the mean before, zero
    for a new class, which makes `S` depend on the order. Here the number is
    that of the class, so that `S` is exact whatever order and batches.

    Args:
        shrinkage: share of the identity, above 0 and at most 1; at 1 the
            nearest class mean is left.

    Reference:
        Hayes and Kanan, "Lifelong Machine Learning with Deep Streaming Linear
        Discriminant Analysis", 2020.
    """

    def __init__(self, shrinkage: float = 1e-4) -> None:
        super().__init__()
        if not 0 < shrinkage <= 1:
            raise ValueError(
                "`shrinkage` must be above 0, since the covariance of few "
                "patterns has no inverse, and at most 1. Received: "
                f"{shrinkage!r}."
            )
        self.shrinkage = shrinkage
        self._scatter = np.zeros((0, 0))

    @property
    def covariance(self) -> np.ndarray:
        """The covariance `S`, of shape `(features, features)`."""
        # Symmetric but for rounding.
        scatter = (self._scatter + self._scatter.T) / 2
        return scatter / max(self.counts.sum(), 1)

    def state(self) -> types.State:
        return {**super().state(), "scatter": self._scatter.copy()}

    def restore(self, state: types.State) -> None:
        super().restore(state)
        self._scatter = np.array(state["scatter"])

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        identity = np.eye(self.means.shape[1])
        shrunk = (1 - self.shrinkage) * self.covariance
        shrunk += self.shrinkage * identity
        weights = np.linalg.solve(shrunk, self.means.T).T
        return weights, -0.5 * (self.means * weights).sum(axis=1)

    def _update(self, features, labels):
        before = self.means[labels]
        super()._update(features, labels)
        after = self.means[labels]
        if not self._scatter.size:
            self._scatter = np.zeros((features.shape[1],) * 2)
        # Welford's rule, for a batch.
        self._scatter += (features - before).T @ (features - after)
