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
from gnr_keras import runs
from gnr_keras import strategies
from gnr_keras import streams
from gnr_keras.optimizers import SynapticIntelligence

SCENARIOS = ("NC", "NI", "NIC")
REPLAYS = tuple(name for name in runs.RUNS if name != "cumulative")
# Strategies, by the replays that they can have.
STRATEGIES = {
    "er": REPLAYS,
    "lwf": REPLAYS,
    "ar1free": REPLAYS,
    "ar1": ("none",),
    "cumulative": ("none",),
    "ncm": ("none",),
    "slda": ("none",),
}
GRID = [
    (strategy, replay, scenario)
    for strategy, replays in STRATEGIES.items()
    for replay in replays
    for scenario in SCENARIOS
]
PAIRWISE = [
    ("er", "none", "NC"),
    ("er", "PR-OD", "NI"),
    ("er", "PR-GD", "NIC"),
    ("er", "NR-OD", "NI"),
    ("er", "NR-GD", "NIC"),
    ("er", "NR-RD", "NC"),
    ("lwf", "none", "NI"),
    ("lwf", "PR-OD", "NIC"),
    ("lwf", "PR-GD", "NC"),
    ("lwf", "NR-OD", "NIC"),
    ("lwf", "NR-GD", "NI"),
    ("lwf", "NR-RD", "NI"),
    ("lwf", "none", "NC"),
    ("ar1free", "none", "NIC"),
    ("ar1free", "PR-OD", "NC"),
    ("ar1free", "PR-GD", "NI"),
    ("ar1free", "NR-OD", "NC"),
    ("ar1free", "NR-GD", "NC"),
    ("ar1free", "NR-RD", "NIC"),
    *(
        (name, "none", scenario)
        for name in ("ar1", "cumulative", "ncm", "slda")
        for scenario in SCENARIOS
    ),
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
    if source is None:
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


def make_strategy(name, replay):
    if name == "ar1":
        return strategies.ar1(
            lambda optimizer: SynapticIntelligence(optimizer, 1e3)
        )
    if name in ("cumulative", "ncm", "slda"):
        return getattr(strategies, name)()
    run = runs.get_run(replay)
    options = {"replay_sign": run.sign} if run.sign else {}
    return getattr(strategies, name)(make_replay(run.source), **options)


def floor_of(strategy, replay, scenario):
    """What the accuracy on all four classes must reach; chance is 1/4."""
    # Without consolidation and without positives, classes that do not come
    # again are forgotten: not all of them, but some.
    forgets = strategy in ("er", "lwf") and replay[:2] != "PR"
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


def check_run(strategy, replay, scenario):
    """Learns a stream: what came of it, and that nothing was retraced."""
    stream = make_stream(scenario)
    assert len(stream) >= 3
    learner = Learner(
        helpers.small_backbone(),
        "latent",
        stream.num_classes,
        make_strategy(strategy, replay),
        first=Phase(4, 0.05, 0.05),
        following=Phase(4, 0.01, 0.05),
        trainer=lambda *parts, **options: ClassifierTrainer(
            *parts, batch_size=16, **options
        ),
        # Closed forms need one.
        head_bias=strategy in ("ncm", "slda"),
    )
    for experience in stream:
        learner.fit(experience)
        result = learner.evaluate(stream.test)
    assert learner.seen.all()
    assert result.accuracy_whole >= floor_of(strategy, replay, scenario)
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

    def pairs(chosen):
        return {
            (i, j, run[i], run[j])
            for run in chosen
            for i, j in itertools.combinations(range(3), 2)
        }

    assert pairs(PAIRWISE) == pairs(GRID)
