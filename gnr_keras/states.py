"""What parts of a learner know, as arrays by name.

A part has `state()`, which returns such a dict, and `restore(state)`.
"""

import hashlib
import json

import keras
import numpy as np


def gather(parts):
    """Returns the states of parts in one dict, as "part/name".

    Args:
        parts: the parts, by name.
    """
    return {
        key: value
        for name, part in parts.items()
        for key, value in under(name, part.state()).items()
    }


def under(name, state):
    """Returns arrays by name as those of a part, "part/name"."""
    return {f"{name}/{key}": value for key, value in state.items()}


def spread(parts, state):
    """Gives each part what `gather` took from it.

    Args:
        parts: the parts, by name.
        state: what `gather` returned; it may hold more.
    """
    for name, part in parts.items():
        part.restore(part_of(state, name))


def part_of(state, name):
    """Returns what one part gave to `gather`.

    Args:
        state: what `gather` returned; it may hold more.
        name: the name of the part.
    """
    start = f"{name}/"
    return {
        key.removeprefix(start): value
        for key, value in state.items()
        if key.startswith(start)
    }


def without(state, name):
    """Returns all but what one part gave to `gather`.

    Args:
        state: what `gather` returned.
        name: the name of the part.
    """
    return {k: v for k, v in state.items() if not k.startswith(f"{name}/")}


def check_parts(state, parts):
    """Raises `ValueError` for what a learner of other parts has saved.

    Args:
        state: what `Learner.state` returned.
        parts: the parts of the learner that it is for, by name. Each has
            something to save after an experience.
    """
    missing = {"experiences_learned", "seen", "random_state"} - {*state}
    if missing:
        raise ValueError(
            "The state is not that of a learner: it has no "
            f"{sorted(missing)[0]!r}. Give what `Learner.state` returned."
        )
    saved = {name.split("/")[0] for name in state if "/" in name}
    differing = saved - {*parts}
    for name, part in parts.items():
        names = {*part_of(state, name)}
        lost = not names and state["experiences_learned"] > 0
        if lost or not {*part.state()} <= names:
            differing.add(name)
    if differing:
        raise ValueError(
            "The state is that of a learner that was built otherwise: its "
            f"{' and '.join(sorted(differing))} differ. Build the learner with "
            "the strategy that it was saved with."
        )


def digest(state):
    """Returns the SHA-256 of arrays by name, as hexadecimal digits."""
    total = hashlib.sha256()
    for name, value in sorted(state.items()):
        value = np.ascontiguousarray(value)
        total.update(f"{name} {value.dtype} {value.shape}\n".encode())
        total.update(value.tobytes())
    return total.hexdigest()


def pack_generator(rng):
    """Returns the state of a `numpy.random.Generator` as an array."""
    return np.array(json.dumps(rng.bit_generator.state))


def unpack_generator(rng, packed):
    """Sets a `numpy.random.Generator` to what `pack_generator` returned."""
    rng.bit_generator.state = json.loads(str(packed))


def of_variables(variables):
    """Returns the values of Keras variables, as arrays by position."""
    return {
        f"variable_{i}": keras.ops.convert_to_numpy(variable)
        for i, variable in enumerate(variables)
    }


def assign(variables, state):
    """Sets Keras variables to what `of_variables` returned.

    Raises:
        ValueError: for values of other variables; nothing is changed then.
    """
    values = [v for name, v in state.items() if name.startswith("variable_")]
    expected = [tuple(variable.shape) for variable in variables]
    received = [
        np.shape(state.get(f"variable_{i}", ())) for i in range(len(values))
    ]
    if received != expected:
        first = next(
            (
                f"{ours} for {variables[i].path} and {theirs}"
                for i, (ours, theirs) in enumerate(
                    zip(expected, received, strict=False)
                )
                if ours != theirs
            ),
            "more or fewer of them",
        )
        raise ValueError(
            f"Expected values of {len(expected)} variables, as the model has. "
            f"Received: {len(received)}, of which the first that differ have "
            f"the shapes {first}. Restore what a model of the same layers and "
            "classes has saved."
        )
    for i, variable in enumerate(variables):
        variable.assign(state[f"variable_{i}"])
