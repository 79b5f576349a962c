"""Every strategy with every replay in every scenario, end to end.

By default some of the runs, so chosen that each two parts that make sense
together meet; `pytest -m grid` runs them all.
"""

import itertools

import helpers
import numpy as np
import pytest

from gnr_keras import ClassifierTrainer
from gnr_keras import GeneratedReplay
from gnr_keras import GeneratorTrainer
from gnr_keras import Learner
from gnr_keras import OriginalReplay
from gnr_keras import Phase
from gnr_keras import RandomReplay
from gnr_keras import strategies
from gnr_keras import streams
from gnr_keras.optimizers import SynapticIntelligence

SCENARIOS = ("NC", "NI", "NIC")
SOURCES = ("none", "original", "generated", "random")
# Strategies, by the replays that they can have.
STRATEGIES = {
    "er": SOURCES,
    "lwf": SOURCES,
    "ar1": ("none",),
    "ar1free": SOURCES,
    "cumulative": ("none",),
}
# Noise is no example of any class: it can be a negative only.
SIGNS = {
    "none": ("none",),
    "original": ("positive", "negative"),
    "generated": ("positive", "negative"),
    "random": ("negative",),
}

GRID = [
    (strategy, source, sign, scenario)
    for strategy, sources in STRATEGIES.items()
    for source in sources
    for sign in SIGNS[source]
    for scenario in SCENARIOS
]
PAIRWISE = [
    ("er", "none", "none", "NC"),
    ("er", "original", "positive", "NI"),
    ("er", "generated", "negative", "NIC"),
    ("er", "random", "negative", "NC"),
    ("lwf", "none", "none", "NI"),
    ("lwf", "original", "positive", "NIC"),
    ("lwf", "generated", "positive", "NC"),
    ("lwf", "random", "negative", "NI"),
    ("ar1free", "none", "none", "NIC"),
    ("ar1free", "original", "negative", "NC"),
    ("ar1free", "generated", "positive", "NI"),
    ("ar1free", "random", "negative", "NIC"),
    ("ar1", "none", "none", "NC"),
    ("ar1", "none", "none", "NI"),
    ("ar1", "none", "none", "NIC"),
    ("cumulative", "none", "none", "NC"),
    ("cumulative", "none", "none", "NI"),
    ("cumulative", "none", "none", "NIC"),
]


def make_stream(scenario):
    """Four classes in three sessions, in three or more experiences."""
    train = helpers.blobs(sessions=3)
    test = helpers.blobs(per_class=8, seed=1)
    if scenario == "NC":
        return streams.new_classes(train, test, 2, 1)
    if scenario == "NI":
        return streams.new_instances(train, test)
    return streams.new_instances_and_classes(train, test, 2, 4)


def make_replay(source):
    if source == "none":
        return None
    if source == "original":
        return OriginalReplay(32, replay_per_batch=6)
    if source == "random":
        return RandomReplay(32, replay_per_batch=6)
    return GeneratedReplay(
        32,
        replay_per_batch=6,
        trainer=lambda *parts: GeneratorTrainer(
            *parts, epochs=1, batch_size=16
        ),
    )


def make_strategy(name, source, sign):
    if name == "ar1":
        return strategies.ar1(
            lambda optimizer: SynapticIntelligence(optimizer, 1e3)
        )
    if name == "cumulative":
        return strategies.cumulative()
    options = {} if sign == "none" else {"replay_sign": sign}
    return getattr(strategies, name)(make_replay(source), **options)


def floor_of(strategy, sign, scenario):
    """What the accuracy on all four classes must reach; chance is 1/4."""
    # Without consolidation and without positives, classes that do not come
    # again are forgotten: not all of them, but some.
    forgets = strategy in ("er", "lwf") and sign != "positive"
    return 0.4 if forgets and scenario == "NC" else 0.8


def traced_functions(learner):
    trainer = learner.trainer
    functions = {
        "latents": trainer._run_latents,
        "images": trainer._run_images,
        "responses to latents": trainer._above.respond,
        "responses to images": trainer._whole.respond,
        "front": learner._inference._extract,
        "predict": learner._inference._predict,
    }
    if isinstance(learner.replay, GeneratedReplay):
        functions["generator"] = learner.replay.trainer._run
        functions["decode"] = learner.replay.generator._decode_batch
    return functions


def check_run(strategy, source, sign, scenario):
    """Learns a stream: what came of it, and that nothing was retraced."""
    stream = make_stream(scenario)
    assert len(stream) >= 3
    learner = Learner(
        helpers.small_backbone(),
        "latent",
        stream.num_classes,
        make_strategy(strategy, source, sign),
        first=Phase(4, 0.05, 0.05),
        following=Phase(4, 0.01, 0.05),
        trainer=lambda *parts, **options: ClassifierTrainer(
            *parts, batch_size=16, **options
        ),
    )
    for experience in stream:
        learner.fit(experience)
        result = learner.evaluate(stream.test)
    assert learner.seen.all()
    assert result.accuracy_whole >= floor_of(strategy, sign, scenario)
    for variable in learner.model.variables:
        assert np.isfinite(variable.numpy()).all(), variable.path
    counts = {
        name: function.experimental_get_tracing_count()
        for name, function in traced_functions(learner).items()
    }
    assert max(counts.values()) == 1, counts


@pytest.mark.parametrize("run", PAIRWISE, ids="-".join)
def test_pairwise_run_learns(run):
    check_run(*run)


@pytest.mark.grid
@pytest.mark.parametrize("run", GRID, ids="-".join)
def test_run_of_the_grid_learns(run):
    check_run(*run)


def test_pairwise_runs_are_of_the_grid_and_leave_out_no_pair():
    assert set(PAIRWISE) <= set(GRID)

    def pairs(runs):
        return {
            (i, j, run[i], run[j])
            for run in runs
            for i, j in itertools.combinations(range(4), 2)
        }

    assert pairs(PAIRWISE) == pairs(GRID)
