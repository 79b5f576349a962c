"""The page of all gin knobs, from docstrings."""

import inspect
import pathlib
import re
import sys

import gnr_keras
from gnr_keras import gin_bindings

_INTRODUCTION = """\
# Every knob

Everything that a gin file, or `--gin_bindings`, can set. This page is made from
the docstrings by

    python scripts/gin_page.py --output=docs/gin.md

A binding is `Name.parameter = value`, such as `Learner.head_bias = True`.
`@Name` is the class or function itself, `@Name()` what it returns. Names that
nothing reads, and scopes that nothing enters, are errors.

**Scopes.** `first/Phase.epochs = 8` is for the reference `@first/Phase()`
alone. The name of a run with underscores is a scope, too:
`NR_RD/RandomReplay.percentile = 80.0` is for the run NR-RD alone. Scopes do not
nest: for one run, bind what refers to it, as in `none/Learner.first =
@none_first/Phase()`, and then `none_first/Phase.epochs = 8`.

**Required** is what a file has to bind where it is used; everything else has
the default given here. What a flag of the script or the code itself gives
cannot be bound, and is left out.

To see all values of a run: `operative_config.gin` beside its results.
"""
# Headings of the page, by how modules begin.
_GROUPS = {
    "The experiment": ("experiment",),
    "Data": ("datasets",),
    "Streams": ("streams", "protocols"),
    "Backbones": ("backbones",),
    "Learner and training": (
        "learner",
        "trainers.classifier",
        "trainers.phase",
    ),
    "Strategies": ("strategies",),
    "Protection and normalisation": ("callbacks", "optimizers"),
    "Replay": ("replay",),
    "Generators": ("generator", "centered", "gaussian", "trainers.generator"),
    "Rates and optimizers": ("schedules", "gin_bindings"),
}


def make_page(gin_dir):
    """Returns the page as Markdown.

    Args:
        gin_dir: folder of the gin files, for the macros that they have.
    """
    parts = [_INTRODUCTION, _describe_macros(pathlib.Path(gin_dir))]
    left = gin_bindings.knobs()
    for heading, modules in _GROUPS.items():
        starts = tuple(f"gnr_keras.{module}" for module in modules)
        group = [n for n, (it, _) in left.items() if _is_in(it, starts)]
        parts.append(f"## {heading}\n")
        parts += [_describe(name, *left.pop(name)) for name in sorted(group)]
    if left:
        raise ValueError(
            f"No heading of the page covers {', '.join(left)}; add their "
            "modules to `_GROUPS`."
        )
    return "\n".join(parts)


def _is_in(configurable, starts):
    module = f"{configurable.__module__}."
    return any(module.startswith(f"{start}.") for start in starts)


def _describe(name, configurable, parameters):
    summary = (inspect.getdoc(configurable) or "").split("\n\n")[0]
    lines = [f"### `{name}`", "", " ".join(summary.split()), ""]
    if parameters:
        lines += ["| knob | default | meaning |", "|---|---|---|"]
    meanings = describe_parameters(configurable)
    defaults = inspect.signature(configurable).parameters
    for parameter, required in parameters.items():
        default = "**required**"
        if not required:
            default = f"`{_format(defaults[parameter].default)}`"
        meaning = meanings[parameter].replace("|", "\\|")
        lines.append(f"| `{name}.{parameter}` | {default} | {meaning} |")
    return "\n".join([*lines, ""])


def describe_parameters(configurable):
    """Returns what a docstring says of each parameter.

    Where it ends in "see `Other`", or is "likewise", what that says is taken.

    Args:
        configurable: a class or function.
    """
    meanings: dict[str, str] = {}
    elsewhere: dict[str, str] = {}
    for parameter, text in _read_arguments(configurable).items():
        reference = re.match(r"([^;]*, )?see `([\w.]+)`(?:;.*)?\.?$", text)
        before = ""
        if reference:
            before = (reference[1] or "").replace(", ", ": ")
            other = _find(reference[2], configurable)
            # A module is good to be looked at, but says nothing of this.
            known = (
                {} if inspect.ismodule(other) else describe_parameters(other)
            )
            elsewhere = known or elsewhere
        if text in ("likewise.", "see there.") or (reference and known):
            text = before + elsewhere[parameter]
        meanings[parameter] = text
    return meanings


def _read_arguments(configurable):
    doc = inspect.getdoc(configurable) or ""
    section = re.search(
        r"^(?:Args|Attributes):\n((?:    .*\n?|\n)+)", doc, re.M
    )
    entries = re.findall(
        r"^    (\w+): (.*(?:\n {8}.*)*)", section[1] if section else "", re.M
    )
    return {name: " ".join(text.split()) for name, text in entries}


def _find(path, configurable):
    """Returns what a docstring means by a name."""
    first, *rest = path.removeprefix("gnr_keras.").split(".")
    module = configurable.__module__
    places = [sys.modules[module], sys.modules[module.rpartition(".")[0]]]
    found = next(
        getattr(place, first)
        for place in [*places, gnr_keras]
        if hasattr(place, first)
    )
    for name in rest:
        found = getattr(found, name)
    return found


def _format(default):
    if inspect.isclass(default) or inspect.isfunction(default):
        return f"@{default.__name__}"
    return repr(default)


def _describe_macros(gin_dir):
    """Values that the files give a name of their own."""
    text = "\n".join(p.read_text() for p in sorted(gin_dir.rglob("*.gin")))
    lines = [
        "## Macros of the files",
        "",
        "What is set once and read in several places: `memory_size = 300`.",
        "",
        "| macro | read by |",
        "|---|---|",
    ]
    for macro in sorted(set(re.findall(r"^(\w+) = ", text, re.M))):
        names = set(re.findall(rf"^(\w+\.\w+) = %{macro}$", text, re.M))
        readers = ", ".join(f"`{name}`" for name in sorted(names))
        lines.append(f"| `{macro}` | {readers} |")
    return "\n".join([*lines, ""])
