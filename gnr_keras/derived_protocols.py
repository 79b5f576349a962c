"""Streams by the rules of CORe50's protocols, in orders of our own."""

from collections import deque

import numpy as np

from gnr_keras import streams

_PER_CATEGORY = 5
_CATEGORIES = 10
# Part of an NICv2 stream in which all classes have appeared.
_ALL_APPEARED = 0.87


def derive(scenario, num_experiences, train, test, seed):
    """Builds a stream by the rule that `core50_protocol` describes.

    Objects or sessions that `train` lacks are passed over.

    Args:
        scenario: "NC", "NI" or "NIC".
        num_experiences: of the whole of CORe50.
        train: training source with CORe50's classes and sessions.
        test: test source.
        seed: the order is drawn from it.
    """
    if scenario == "NI":
        return streams.new_instances(train, test, seed=seed)
    rng = np.random.default_rng(seed)
    order = f"drawn from seed {seed}"
    if scenario == "NC":
        groups = _groups(train.labels, rng)
        indices = [
            np.flatnonzero(np.isin(train.labels, group)) for group in groups
        ]
        appearing = [c for group in groups for c in group]
        rest = np.setdiff1d(np.arange(train.num_classes), appearing)
        numbering = np.argsort([*appearing, *rest])
        return streams.Stream(
            "NC", train, test, indices, numbering=numbering, order=order
        )
    cells = np.unique(np.stack([train.labels, train.sessions], 1), axis=0)
    experiences = _schedule(cells.tolist(), num_experiences, rng)
    number_of = {tuple(cell): i for i, cell in enumerate(cells.tolist())}
    keys = [
        number_of[cell]
        for cell in zip(
            train.labels.tolist(), train.sessions.tolist(), strict=True
        )
    ]
    where = np.split(
        np.argsort(keys, kind="stable"), np.cumsum(np.bincount(keys))[:-1]
    )
    indices = [
        np.concatenate([where[number_of[cell]] for cell in experience])
        for experience in experiences
    ]
    return streams.Stream("NIC", train, test, indices, order=order)


def _groups(labels, rng):
    """The classes of each experience of NC."""
    present = set(np.unique(labels).tolist())
    later = [
        [_PER_CATEGORY * category + member for category in half]
        for member in range(1, _PER_CATEGORY)
        for half in (range(_CATEGORIES // 2), range(_CATEGORIES // 2, 10))
    ]
    first = [_PER_CATEGORY * category for category in range(_CATEGORIES)]
    groups = [first, *(later[i] for i in rng.permutation(len(later)))]
    groups = [[c for c in group if c in present] for group in groups]
    return [group for group in groups if group]


def _schedule(cells, num_experiences, rng):
    """The cells, `(class, session)`, of each experience of NICv2."""
    waiting: dict[int, list[tuple]] = {}
    for label, session in sorted(cells):
        waiting.setdefault(label, []).append((label, session))
    first = [label for label in waiting if label % _PER_CATEGORY == 0]
    new = rng.permutation([label for label in waiting if label not in first])
    experiences = [[waiting[label].pop(0) for label in first]]
    left = len(cells) - len(first)
    # 390 sequences in 390, in 195 or in 78 experiences.
    size = round(390 / (num_experiences - 1))
    count = -(-left // size)
    early = max(int(_ALL_APPEARED * count), 1)
    # Where there are fewer experiences than classes, some will have to wait.
    slots = rng.choice(early, len(new), replace=len(new) > early) + 1
    queue = deque(zip(np.sort(slots).tolist(), new.tolist(), strict=True))
    begun = first
    for k in range(1, count + 1):
        experience, is_due = [], bool(queue) and queue[0][0] <= k
        for _ in range(min(size, left)):
            begun = [label for label in begun if waiting[label]]
            if is_due or not begun:
                label, is_due = queue.popleft()[1], False
                begun = [*begun, label]
            else:
                remaining = np.array([len(waiting[label]) for label in begun])
                label = rng.choice(begun, p=remaining / remaining.sum())
            experience.append(waiting[int(label)].pop(0))
            left -= 1
        experiences.append(experience)
    return experiences
