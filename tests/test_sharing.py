"""Tests of what learners share: the same bits, and less work."""

import functools
import multiprocessing
import time
import types

import helpers
import numpy as np
import pytest

from gnr_keras import GeneratedReplay
from gnr_keras import GeneratorTrainer
from gnr_keras import Learner
from gnr_keras import NoReplay
from gnr_keras import OriginalReplay
from gnr_keras import Phase
from gnr_keras import datasets
from gnr_keras import optimizers
from gnr_keras import sharing
from gnr_keras import strategies
from gnr_keras import trainers

STRATEGIES = {
    "none": strategies.ar1free,
    "NR-OD": lambda: strategies.ar1free(OriginalReplay(16, 6)),
    "PR-GD": lambda: strategies.ar1free(_generated(), "positive"),
    "ER": lambda: strategies.er(OriginalReplay(16, 6)),
    "LwF": strategies.lwf,
    "SI": lambda: strategies.ar1(
        functools.partial(optimizers.SynapticIntelligence, strength=1e3)
    ),
    "cumulative": strategies.cumulative,
}


def _generated():
    return GeneratedReplay(
        16,
        6,
        trainer=functools.partial(GeneratorTrainer, epochs=1, batch_size=16),
    )


def learn(strategy, share_dir=None, experiences=None, **options):
    """Returns the learner, and the epochs of its first experience."""
    options = {"first": Phase(3, 0.02, 0.02), "seed": 3, **options}
    learner = Learner(
        helpers.small_backbone(),
        options.pop("latent_layer", "latent"),
        num_classes=4,
        strategy=strategy,
        following=Phase(2, 1e-3, 0.02),
        trainer=functools.partial(
            trainers.ClassifierTrainer,
            batch_size=options.pop("batch_size", 16),
            steps_per_call=options.pop("steps_per_call", 16),
        ),
        share_dir=share_dir,
        **options,
    )
    stream = helpers.blob_stream()
    trained = []
    fit_images = learner.trainer.fit_images

    def counted(*args):
        trained.append(learner.experiences_learned)
        fit_images(*args)

    learner.trainer.fit_images = counted
    for experience in list(stream)[:experiences]:
        learner.fit(experience)
        learner.evaluate(stream.test)
    return learner, trained.count(0)


def weights(learner):
    return [v.numpy() for v in learner.model.variables]


def assert_same(ours, theirs):
    for mine, other in zip(weights(ours), weights(theirs), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert ours._rng.bit_generator.state == theirs._rng.bit_generator.state


@pytest.mark.parametrize("name", STRATEGIES)
def test_sharing_changes_no_bit_of_what_is_learned(name, tmp_path):
    alone, _ = learn(STRATEGIES[name]())
    first, trained = learn(STRATEGIES[name](), tmp_path)
    assert trained == 1
    second, trained = learn(STRATEGIES[name](), tmp_path)
    assert trained == 0
    assert_same(alone, first)
    assert_same(alone, second)


def test_runs_that_differ_only_later_share_the_first_experience(tmp_path):
    learn(STRATEGIES["none"](), tmp_path, 1)
    for name in ("NR-OD", "PR-GD"):
        shared, trained = learn(STRATEGIES[name](), tmp_path)
        assert trained == 0
        assert_same(shared, learn(STRATEGIES[name]())[0])


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"batch_size": 8},
        # The limits of batch renormalisation move once a call.
        {"steps_per_call": 1},
        {"first": Phase(3, 0.02, 0.03)},
        {"first": Phase(3, 0.02, 0.02, epoch_schedule=lambda e: 1 - e / 4)},
        {"first": Phase(3, 0.02, 0.02, augment=datasets.random_flip)},
        {"batch_renormalization": False},
        {"head_bias": True},
        {"latent_layer": "back_bn"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_first_experience_is_not_taken_for_the_same(change, tmp_path):
    learn(strategies.ar1free(NoReplay()), tmp_path, 1)
    _, trained = learn(strategies.ar1free(NoReplay()), tmp_path, 1, **change)
    assert trained == 1


@pytest.mark.parametrize("name", ["ER", "SI", "cumulative"])
def test_another_kind_of_first_experience_is_not_the_same(name, tmp_path):
    learn(STRATEGIES["none"](), tmp_path, 1)
    assert learn(STRATEGIES[name](), tmp_path, 1)[1] == 1


def test_images_that_no_learner_can_know_again_leave_nothing(tmp_path):
    learner, _ = learn(STRATEGIES["NR-OD"](), tmp_path)
    images, labels, _ = helpers.blobs(per_class=8, seed=1)
    before = set(tmp_path.rglob("*"))
    learner.predict(images)
    learner.evaluate((images, labels))
    assert set(tmp_path.rglob("*")) == before


def test_a_full_disk_has_no_room_for_latents(tmp_path, monkeypatch):
    alone, _ = learn(STRATEGIES["NR-OD"]())
    used = {"free": 100}
    monkeypatch.setattr(
        sharing.shutil,
        "disk_usage",
        lambda folder: types.SimpleNamespace(total=1000, **used),
    )
    full, _ = learn(STRATEGIES["NR-OD"](), tmp_path)
    assert not list(tmp_path.rglob("*latents*.npy"))
    assert_same(alone, full)
    used["free"] = 10**9
    learn(STRATEGIES["NR-OD"](), tmp_path)
    assert list(tmp_path.rglob("*latents*.npy"))


def test_the_front_runs_once_for_all_learners(tmp_path):
    learn(STRATEGIES["NR-OD"](), tmp_path)
    learner, _ = learn(STRATEGIES["NR-OD"](), tmp_path, 1)

    def fail(images):
        raise AssertionError("The front ran again.")

    learner._inference._extract = fail
    stream = helpers.blob_stream()
    for experience in list(stream)[1:]:
        learner.fit(experience)
    assert learner.evaluate(stream.test).accuracy_whole > 0.5


def test_sources_with_other_images_or_labels_have_other_fingerprints():
    images, labels, _ = helpers.blobs()
    source = datasets.ArraySource(images, labels)
    same = datasets.ArraySource(images.copy(), labels.copy())
    assert source.fingerprint == same.fingerprint
    others = [
        datasets.ArraySource(255 - images, labels),
        datasets.ArraySource(images, 3 - labels),
        source.subset([0, 1, 2]),
        source.subset([0, 2, 1]),
        source.renumber([1, 0, 2, 3]),
    ]
    found = {source.fingerprint, *(other.fingerprint for other in others)}
    assert len(found) == 6


def _slow_state(folder, counter):
    def compute():
        with counter.get_lock():
            counter.value += 1
        time.sleep(0.5)
        return {"x": np.arange(3)}

    state, _ = sharing.SharedStart(folder, "start").state(compute)
    assert state["x"].tolist() == [0, 1, 2]


def test_processes_wait_for_what_one_of_them_computes(tmp_path):
    context = multiprocessing.get_context("fork")
    counter = context.Value("i", 0)
    processes = [
        context.Process(target=_slow_state, args=(tmp_path, counter))
        for _ in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert counter.value == 1


def test_what_was_cut_off_is_computed_again(tmp_path):
    shared = sharing.SharedStart(tmp_path, "start")

    def interrupted(array):
        array[:] = 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shared.latents("a", (2, 3), interrupted)

    def whole(array):
        array[:] = 2

    latents = sharing.SharedStart(tmp_path, "start").latents("a", (2, 3), whole)
    np.testing.assert_array_equal(latents, np.full((2, 3), 2, np.float16))
