"""What the configurations of runs say, as bindings that can be compared."""

import re

_BINDING = re.compile(r"^([\w./]+) = (.*(?:\n[ \t]+.*)*)", re.MULTILINE)


def parse(text, run):
    """Reads the text of `config.gin`.

    Macros are put where they are read, and the name of the run is taken off
    its scopes: `NR_GD_following/Phase.epochs` of one run is what
    `following/Phase.epochs` is of another.

    Args:
        text: the text.
        run: name of the run.

    Returns:
        For each binding its value, both as text.
    """
    found = {
        name: " ".join(value.lstrip("\\").split())
        for name, value in _BINDING.findall(text)
    }
    macros = {name: v for name, v in found.items() if "." not in name}
    bindings = {}
    for name, value in found.items():
        if name in macros:
            continue
        value = re.sub(
            r"%(\w+)", lambda m: macros.get(m[1], m[0]), _without(run, value)
        )
        own = _without(run, name)
        # Where both are read, they are two.
        bindings[name if own != name and own in found else own] = value
    return bindings


def _without(run, text):
    scope = re.escape(run.replace("-", "_"))
    return re.sub(rf"(?<![\w']){scope}[/_](?=\w)", "", text)


def stream_bindings(bindings):
    """Returns the bindings that say what is learned, and in which order."""
    names = ["Experiment.data", "Experiment.stream"]
    chosen = {name: bindings[name] for name in names if name in bindings}
    waiting, known = list(chosen.values()), set()
    while waiting:
        for configurable in _referred(waiting.pop()):
            if configurable in known:
                continue
            known.add(configurable)
            for name, value in bindings.items():
                if name.split("/")[-1].split(".")[0] == configurable:
                    chosen[name] = value
                    waiting.append(value)
    return chosen


def _referred(value):
    return re.findall(r"@(?:\w+/)*(\w+)", value)


def differences(all_bindings):
    """Compares the bindings of several runs.

    Args:
        all_bindings: those of each run; `None` for one that is not known.

    Returns:
        `(binding, values)` for each one that is not the same in all known
        runs, those that all of them have first. A value is `None` where a
        run has none.
    """
    known = [bindings for bindings in all_bindings if bindings is not None]
    values = {
        name: [bindings.get(name) for bindings in known]
        for name in sorted({name for bindings in known for name in bindings})
    }
    differing = [name for name, found in values.items() if len(set(found)) > 1]
    differing.sort(key=lambda name: None in values[name])
    return [
        (name, [(bindings or {}).get(name) for bindings in all_bindings])
        for name in differing
    ]
