"""Every gin registration, in one place that only scripts import.

The modules that other projects import know nothing of gin.
"""

import contextlib
import difflib
import inspect
import os
import pathlib
import re
import tokenize

import gin
import keras

from gnr_keras import backbones
from gnr_keras import callbacks
from gnr_keras import centered
from gnr_keras import datasets
from gnr_keras import experiment
from gnr_keras import gaussian
from gnr_keras import generator
from gnr_keras import learner
from gnr_keras import optimizers
from gnr_keras import protocols
from gnr_keras import replay
from gnr_keras import runs
from gnr_keras import schedules
from gnr_keras import strategies
from gnr_keras import streams
from gnr_keras import trainers
from gnr_keras import wording


def adam(learning_rate, beta_1, beta_2):
    """Builds Adam with the values that the paper names, all required.

    Args:
        learning_rate: the rate.
        beta_1: decay of the mean of gradients.
        beta_2: decay of the mean of their squares.
    """
    return keras.optimizers.Adam(learning_rate, beta_1, beta_2)


def sgd(learning_rate, momentum):
    """Builds SGD, with all its values required too.

    Args:
        learning_rate: the rate.
        momentum: share of the last step in the next one.
    """
    return keras.optimizers.SGD(learning_rate, momentum)


_CONFIGURABLES = {
    configurable.__name__: configurable
    for configurable in (
        adam,
        sgd,
        backbones.application,
        backbones.mobilenet_v1,
        backbones.resnet_18,
        callbacks.BatchRenormalizationSchedule,
        callbacks.CWRConsolidation,
        centered.CenteredVAE,
        datasets.core50,
        datasets.embedded_objects,
        datasets.fruits360,
        datasets.image_folder,
        datasets.load_images,
        datasets.random_flip,
        datasets.random_resized_crop,
        datasets.tfds_images,
        datasets.tiny_imagenet,
        experiment.Experiment,
        gaussian.ClassGaussian,
        gaussian.GaussianTrainer,
        generator.ConditionalVAE,
        learner.Learner,
        optimizers.SynapticIntelligence,
        protocols.core50_protocol,
        protocols.nicv2_cells,
        replay.GeneratedReplay,
        replay.OriginalReplay,
        replay.RandomReplay,
        schedules.LogisticDecay,
        schedules.StepDecay,
        strategies.ar1,
        strategies.ar1free,
        strategies.cumulative,
        strategies.er,
        strategies.lwf,
        strategies.ncm,
        strategies.slda,
        streams.new_classes,
        streams.new_instances,
        streams.new_instances_and_classes,
        trainers.ClassifierTrainer,
        trainers.GeneratorTrainer,
        trainers.Phase,
    )
}

# What no file may leave to a default: always, by replay source, and by the
# configurable that is referred to.
_REQUIRED = (
    "Experiment.data",
    "Experiment.stream",
    "Experiment.backbone",
    "Experiment.learner",
    "Experiment.strategy",
    "Experiment.evaluate_every",
)
_REQUIRED_BY_SOURCE = {
    None: (),
    "original": ("Experiment.original_replay",),
    "random": ("Experiment.random_replay",),
    "generated": ("Experiment.generated_replay",),
}
_ESSENTIAL = {
    "Learner": ("latent_layer", "first", "following", "trainer"),
    "ClassifierTrainer": ("batch_size", "momentum", "weight_decay"),
    "CenteredVAE": ("z_dim", "beta", "eta", "feature_weight"),
    "ConditionalVAE": ("z_dim", "beta", "eta"),
    "GeneratorTrainer": ("epochs", "batch_size", "optimizer"),
    "OriginalReplay": ("replay_per_batch",),
    "GeneratedReplay": ("replay_per_batch",),
    "RandomReplay": ("replay_per_batch", "percentile"),
    "SynapticIntelligence": ("strength", "clip", "multiplier"),
    "lwf": ("alpha", "temperature"),
}
# Configurables that only runs with this replay source read.
_ONLY_FOR = {
    "OriginalReplay": "original",
    "RandomReplay": "random",
    "GeneratedReplay": "generated",
    "ClassGaussian": "generated",
    "CenteredVAE": "generated",
    "ConditionalVAE": "generated",
    "GaussianTrainer": "generated",
    "GeneratorTrainer": "generated",
}
# Arguments that the code gives: a binding of these would do nothing.
_GIVEN = {
    "CWRConsolidation": ("head", "replay_sign"),
    "ClassGaussian": ("data_shape", "num_classes", "seed"),
    "ClassifierTrainer": (
        "model",
        "latent_layer",
        "head",
        "objective",
        "protection",
        "block_features",
    ),
    "CenteredVAE": ("data_shape", "num_classes", "seed", "name"),
    "ConditionalVAE": ("data_shape", "num_classes", "seed", "name"),
    "GaussianTrainer": ("generator", "classifier"),
    "GeneratorTrainer": ("generator", "classifier"),
    "Learner": ("backbone", "num_classes", "strategy", "share_dir", "seed"),
    "SynapticIntelligence": ("optimizer", "name"),
    "application": ("data_dir",),
    "ar1free": ("replay", "replay_sign"),
    "core50": ("data_dir", "progress"),
    "core50_protocol": ("train", "test", "seed"),
    "embedded_objects": ("data_dir", "progress"),
    "er": ("replay", "replay_sign"),
    "fruits360": ("data_dir", "progress"),
    "image_folder": ("data_dir", "progress"),
    "load_images": ("data_dir", "progress"),
    "lwf": ("replay", "replay_sign"),
    "mobilenet_v1": ("data_dir",),
    "new_classes": ("train", "test", "seed"),
    "new_instances": ("train", "test", "seed"),
    "new_instances_and_classes": ("train", "test", "seed"),
    "resnet_18": ("data_dir",),
    "nicv2_cells": ("train", "test", "seed"),
    "random_flip": ("image", "size", "seed"),
    "random_resized_crop": ("image", "size", "seed"),
    "tfds_images": ("data_dir", "progress"),
    "tiny_imagenet": ("data_dir", "progress"),
}

for _name, _configurable in _CONFIGURABLES.items():
    gin.external_configurable(
        _configurable, _name, denylist=list(_GIVEN.get(_name, ())) or None
    )


def knobs():
    """Returns what can be bound.

    Returns:
        For each name that gin knows the class or function, and for each of
        its parameters that a file may bind whether it has to.
    """
    found = {}
    for name, configurable in _CONFIGURABLES.items():
        required = _essential(name)
        found[name] = (
            configurable,
            {
                parameter: parameter in required
                or f"{name}.{parameter}" in _REQUIRED
                for parameter in inspect.signature(configurable).parameters
                if parameter not in _GIVEN.get(name, ())
            },
        )
    return found


def configure(
    gin_files,
    overrides=(),
    gin_dir=".",
    run_names=tuple(runs.RUNS),
    unread_macros=False,
):
    """Reads gin files and bindings, in place of all read before.

    Args:
        gin_files: paths of gin files, seen from here or from `gin_dir`.
        overrides: bindings such as "first/Phase.epochs = 8".
        gin_dir: folder that includes are relative to.
        run_names: runs whose essential values must be bound.
        unread_macros: whether macros that nothing reads are let pass, as in
            the configuration of one run, which lacks what others read.

    Raises:
        ValueError: for an unknown file, name or value, or where an essential
            value is missing.
    """
    gin.clear_config()
    gin_dir = pathlib.Path(gin_dir).resolve()
    if not gin_files:
        raise ValueError(
            "No gin file was given; expected at least one, such as "
            "--gin_file=gin/quickstart.gin."
        )
    found = [_find(name, gin_dir) for name in gin_files]
    gin.add_config_file_search_path(os.getcwd())
    try:
        # Gin looks for an include among Python's packages before it looks
        # into its search path, but into the working directory before that.
        with contextlib.chdir(gin_dir):
            gin.parse_config_files_and_bindings(
                found, list(overrides), finalize_config=False
            )
    except OSError as error:
        raise ValueError(str(error)) from error
    except tokenize.TokenError as error:
        raise ValueError(
            f"A bracket or a quotation mark is left open in {found} or in the "
            f"bindings given, {list(overrides)}: {error.args[0]}. Close it."
        ) from error
    except (ValueError, SyntaxError) as error:
        given = f" Bindings given: {list(overrides)}." if overrides else ""
        hint = _suggestion(str(error))
        raise ValueError(f"{str(error).strip()}{given}{hint}") from error
    # Names are looked for below, and not what stands in quotes.
    text = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "''", gin.config_str())
    missing = _missing(text, run_names)
    if missing:
        raise ValueError(
            "These values have no default and are not bound: "
            f"{', '.join(missing)}. Bind them in the gin file or with "
            "--gin_bindings, to what can be written there (infinity cannot)."
        )
    _check_macros(text, unread_macros)
    _check_scopes(text)
    gin.finalize()


@contextlib.contextmanager
def run_scope(run):
    """Lets bindings for one run take effect, such as `NR_RD/Learner.x`."""
    with gin.config_scope(run.replace("-", "_")):
        yield


def build_experiment():
    """Returns the `Experiment` that the configuration describes."""
    return gin.get_configurable("Experiment")()


def unread_configurables(run):
    """Returns the names of those that only runs of other replays read."""
    source = runs.get_run(run).source
    return {name for name, only in _ONLY_FOR.items() if only != source}


def operative_config(run):
    """Returns all values that a run used, as the text of a gin file."""
    # The file describes this run alone, so its scope says nothing.
    scope = run.replace("-", "_")
    return re.sub(rf"(?<![\w/@]){scope}/", "", gin.operative_config_str())


def merge_operative(*texts):
    """Joins the operative configs of processes that did parts of one run.

    Args:
        *texts: what `operative_config` returned in each.
    """
    sections: dict[str, list[str]] = {}
    for text in texts:
        for block in re.split(r"\n(?=# (?:Parameters for|Macros))", text):
            heading, *lines = block.rstrip("\n").split("\n")
            known = sections.setdefault(heading, [])
            known += [line for line in lines if line not in known]
    blocks = ["\n".join([head, *lines]) for head, lines in sections.items()]
    return "\n\n".join(block for block in blocks if block) + "\n"


def explain(error):
    """Returns the message of an error, and which configurable it struck.

    Gin appends the whole chain of calls, on lines of their own.
    """
    message, *calls = str(error).split("\n  In call to configurable ")
    names = [call.split()[0].strip("'") for call in calls]
    return f"{message} (in {names[0]})" if names else message


def _check_macros(text, unread_macros):
    """A macro that nothing reads is a typing error; so is one not set."""
    defined = set(re.findall(r"^(\w+) = ", text, flags=re.MULTILINE))
    read = set(re.findall(r"%(\w+)", text))
    for name in sorted(read - defined):
        raise ValueError(
            f"The value %{name} is used, but not set. Bind it with "
            f'--gin_bindings="{name} = ...".'
        )
    for name in sorted(set() if unread_macros else defined - read):
        raise ValueError(
            f"Nothing reads the value {name!r}.{_nearest(name, read)}"
        )


def _check_scopes(text):
    """A binding under a scope that nothing enters would do nothing."""
    run_scopes = {name.replace("-", "_") for name in runs.RUNS}
    referred = set(re.findall(r"@(\w+)/(\w+)", text))
    known = run_scopes | {scope for scope, _ in referred}
    only_scoped = {name for _, name in referred}
    for scope, name in re.findall(
        r"^([\w/]+)/([\w.]+) = ", text, flags=re.MULTILINE
    ):
        never_read = scope in run_scopes and name.split(".")[0] in only_scoped
        if "/" in scope or "." not in name or never_read:
            raise ValueError(
                f"The binding of {scope}/{name} would do nothing: scopes do "
                "not nest, and macros have none. For one run, bind the "
                "parameter that refers to it, as in `none/Learner.first = "
                "@none_first/Phase()`, and the values of `none_first/Phase`."
            )
        if scope not in known:
            raise ValueError(
                f"No run or reference enters the scope {scope!r}, so its "
                f"bindings would do nothing.{_nearest(scope, known)}"
            )


def _missing(text, run_names):
    """Returns essential parameters, and those without default, not bound."""
    sources = {runs.get_run(name).source for name in run_names}
    required = [("", name) for name in _REQUIRED]
    for source in sources:
        required += [("", name) for name in _REQUIRED_BY_SOURCE[source]]
    for scope, name in re.findall(r"@(\w+/)?(\w+)", text):
        if name in _CONFIGURABLES and _ONLY_FOR.get(name) in {None, *sources}:
            required += [(scope, f"{name}.{p}") for p in _essential(name)]
    return sorted({s + n for s, n in required if not _is_bound(s, n, text)})


def _essential(name):
    without_default = [
        parameter.name
        for parameter in inspect.signature(
            _CONFIGURABLES[name]
        ).parameters.values()
        if parameter.default is parameter.empty
        and parameter.name not in _GIVEN.get(name, ())
    ]
    return [*without_default, *_ESSENTIAL.get(name, ())]


def _is_bound(scope, name, text):
    """Unscoped or under its scope; without one, under that of any run."""
    scopes = f"(?:{scope})?" if scope else r"(?:\w+/)?"
    return re.search(rf"^{scopes}{re.escape(name)} = ", text, re.MULTILINE)


def _find(name, gin_dir):
    # Where the package is installed, its folder has another name than `gin`.
    own = gin_dir / str(name).removeprefix("gin/")
    for path in (pathlib.Path(name), gin_dir / name, own):
        if path.is_file():
            try:
                path.read_text(encoding="utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path} is not a text file in UTF-8 ({error}). Give a "
                    "file of gin bindings."
                ) from error
            return str(path.resolve())
    known = sorted(str(p.relative_to(gin_dir)) for p in gin_dir.rglob("*.gin"))
    wanted = pathlib.Path(name).name
    raise ValueError(
        f"There is no gin file {str(name)!r}.{_nearest(wanted, known)} All are "
        f"in {gin_dir}."
    )


def _nearest(wanted, known):
    known = sorted(known)
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{hint} Known: {wording.name_some(known)}."


def _suggestion(message):
    """Names the nearest configurable or parameter, where gin names none."""
    parameter = re.search(
        r"Configurable '([^']+)' doesn't have a parameter named '([^']+)'",
        message,
    )
    configurable = re.search(
        r"No configurable matching[^']*'@?([^'(]+)", message
    )
    if "denylisted kwarg" in message:
        return " The code or a flag of the script gives this value."
    if parameter:
        owner = parameter.group(1).split(".")[-1]
        known = list(inspect.signature(_CONFIGURABLES[owner]).parameters)
        wanted = parameter.group(2)
    elif configurable:
        known = list(_CONFIGURABLES)
        wanted = configurable.group(1).split("/")[-1]
    else:
        return ""
    return _nearest(wanted, known)
