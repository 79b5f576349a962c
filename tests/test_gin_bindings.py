"""Tests of the gin files: each parses, and each value reaches its object."""

import json
import pathlib
import re
import tarfile

import core50_tree
import gin
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from gnr_keras import backbones
from gnr_keras import gin_bindings
from gnr_keras import runs
from gnr_keras import statistics
from gnr_keras import streams
from gnr_keras.centered import CenteredVAE
from gnr_keras.datasets import ArraySource
from gnr_keras.datasets import drawing
from gnr_keras.gaussian import ClassGaussian
from gnr_keras.generator import ConditionalVAE
from gnr_keras.reproduction import items

GIN = pathlib.Path(__file__).parent.parent / "gin"
TOP_FILES = sorted(path.name for path in GIN.glob("*.gin"))
# With the values that a variant has over one file.
OWN_VARIANTS = sorted((GIN / "variants").glob("*/*.gin"))


def scoped_names(text):
    """Names of the parameters that a config text binds."""
    text = re.sub(r"\\\n\s*", " ", text)
    return set(re.findall(r"^([\w/.]+\.\w+) = ", text, flags=re.MULTILINE))


def bound_names(text):
    """The same without scopes."""
    return {name.split("/")[-1] for name in scoped_names(text)}


@pytest.fixture(autouse=True)
def clean_gin():
    yield
    gin.clear_config()


def test_there_is_a_quickstart():
    assert "quickstart.gin" in TOP_FILES


def test_every_file_belongs_to_an_experiment():
    reached = set()

    def follow(name):
        reached.add(name)
        for included in re.findall(r'include "(.+)"', (GIN / name).read_text()):
            follow(included)

    for name in TOP_FILES:
        follow(name)
    for item in items.ITEMS.values():
        for entry in item.entries:
            for variant in entry.variants:
                follow(f"variants/{variant}.gin")
    for path in OWN_VARIANTS:
        follow(str(path.relative_to(GIN)))
    shipped = {str(path.relative_to(GIN)) for path in GIN.rglob("*.gin")}
    assert reached == shipped


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """CORe50 and own images; the files are never opened."""
    root = tmp_path_factory.mktemp("data")
    for session in range(1, 12):
        for number in range(1, 51):
            folder = root / f"core50_128x128/s{session}/o{number}"
            folder.mkdir(parents=True)
            (folder / f"C_{session:02d}_{number:02d}_000.png").touch()
    for class_name in ("cat", "dog", "owl"):
        folder = root / "images" / class_name
        folder.mkdir(parents=True)
        for number in range(2):
            (folder / f"{number}.jpg").touch()
    write_tiny_imagenet(root)
    write_fruits360(root)
    return root


def write_fruits360(root):
    """Four frames a video, and lists of a cell of each object, one of two."""
    for video in (1, 2, 3):
        for number in range(1, 51):
            folder = root / f"fruits360_50x3/s{video}/o{number}"
            folder.mkdir(parents=True)
            for frame in range(4):
                (folder / f"r0_{frame}.jpg").touch()
    names = [f"fruit {number}" for number in range(1, 51)]
    meta = root / "fruits360_50x3" / "meta.json"
    meta.write_text(json.dumps({"classes": names}))
    cells = [[(1, number, 0)] for number in range(1, 51)] + [[(2, 1, 0)]]
    lists = root / "core50"
    core50_tree.write_lists(lists / "NIC_v2_391/run0", cells)
    archive = lists / "NICv2_all_runs_train_filelists.tar.xz"
    with tarfile.open(archive, "w:xz") as file:
        file.add(lists / "NIC_v2_391", "NIC_v2_391")


def write_tiny_imagenet(root):
    """One image of each of 100 classes, of no bytes, in each part."""
    part = {
        "jpeg": np.zeros(0, "uint8"),
        "offsets": np.zeros(101, int),
        "y": np.arange(100),
    }
    np.savez(
        root / "tiny_imagenet_100.npz",
        names=np.arange(100).astype(str),
        **{f"{name}_{k}": part[k] for name in ("train", "val") for k in part},
    )


@pytest.fixture
def mocked_imagenet():
    """One image of each class, in each split; none is ever decoded."""

    def records(builder, split, **options):
        return [
            tf.train.Example(
                features=tf.train.Features(
                    feature={
                        "label": tf.train.Feature(
                            int64_list=tf.train.Int64List(value=[label])
                        )
                    }
                )
            ).SerializeToString()
            for label in range(1000)
        ]

    with tfds.testing.mock_data(as_data_source_fn=records):
        yield


# Small, and with nothing to download.
SMALL = {
    "embedded_objects": ["embedded_objects.frames_per_session = 1"],
    "core50": ["mobilenet_v1.weights = None"],
    "fruits360": ["mobilenet_v1.weights = None"],
    "load_images": ["mobilenet_v1.weights = None"],
    "tfds_images": [],
    "tiny_imagenet": [],
}


@pytest.mark.filterwarnings("ignore:There are no lists")
@pytest.mark.parametrize("name", TOP_FILES)
def test_every_binding_reaches_its_object(name, data_dir, mocked_imagenet):
    """What the files bind is what building and streaming reads."""
    gin_bindings.configure([name], gin_dir=GIN)
    data = gin.query_parameter("Experiment.data").configurable.name
    gin_bindings.configure([name], SMALL[data], gin_dir=GIN)
    operative = ""
    for run in runs.RUNS.values():
        with gin_bindings.run_scope(run.name):
            experiment = gin_bindings.build_experiment()
            # Models take long to build, and read the same in all runs.
            if run.name in ("none", "NR-GD"):
                stream = experiment.build_stream(0, data_dir)
                learner = experiment.build_learner(
                    run.name, 0, stream.num_classes
                )
                if learner.first.augment:
                    image = tf.zeros((9, 9, 3), tf.uint8)
                    learner.first.augment(image, (4, 4), tf.constant([0, 0]))
            else:
                experiment._build_strategy(run)
        operative += gin_bindings.operative_config(run.name)
    assert learner.num_classes == stream.num_classes
    assert not bound_names(gin.config_str()) - bound_names(operative)


# A run that reads the variant, and whether its strategy is the variant's.
VARIANTS = {
    "aligned": ("NR-GD", lambda s: s.consolidation.align_norms is True),
    "balanced": ("PR-OD", lambda s: s.replay.rule == "balanced"),
    "every_39th": ("cumulative", lambda s: s.train_every == 39),
    "gaussian": ("NR-GD", lambda s: has_generator(s, ClassGaussian)),
    "half_aligned": ("NR-GD", lambda s: s.consolidation.align_norms == 0.5),
    "naive": ("none", lambda s: not s.consolidation and not s.train_front),
    "ncm": ("none", lambda s: type(s.statistics) is statistics.ClassMeans),
    "plain_vae": ("NR-GD", lambda s: has_generator(s, ConditionalVAE)),
    "slda": (
        "none",
        lambda s: isinstance(s.statistics, statistics.LinearDiscriminant),
    ),
    "si": ("none", lambda s: s.protection and s.train_front),
}


def has_generator(strategy, kind):
    strategy.replay.build((2,), 3, None, 0)
    # A `CenteredVAE` is an instance of `ConditionalVAE` as well.
    return type(strategy.replay.generator) is kind


@pytest.mark.parametrize("name", TOP_FILES)
def test_photographs_have_the_generator_around_class_means(name):
    """And experiments of the paper the one of the paper."""
    photographs = "fruits360", "tiny_imagenet", "own_images"
    kind = CenteredVAE if name.startswith(photographs) else ConditionalVAE
    gin_bindings.configure([name], gin_dir=GIN)
    with gin_bindings.run_scope("NR-GD"):
        experiment = gin_bindings.build_experiment()
        strategy = experiment._build_strategy(runs.RUNS["NR-GD"])
    assert has_generator(strategy, kind)


@pytest.mark.parametrize(
    "path", OWN_VARIANTS, ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_own_variant_of_a_file_is_the_variant_with_other_values(path):
    """All that it binds is read over that file, and fits its latents."""
    small = ["mobilenet_v1.weights = None", "mobilenet_v1.alpha = 0.25"]
    text = path.read_text()
    assert f'include "variants/{path.stem}.gin"\n' in text
    gin_bindings.configure(
        [f"{path.parent.name}.gin", str(path.relative_to(GIN))],
        small if path.parent.name.startswith("fruits360") else [],
        gin_dir=GIN,
    )
    read = set()
    for run in ("PR-GD", "NR-GD"):
        with gin_bindings.run_scope(run):
            experiment = gin_bindings.build_experiment()
            learner = experiment.build_learner(run, 0, 3)
        assert type(learner.replay.generator) is ClassGaussian
        assert (
            learner.replay.generator.output_activation
            == backbones.output_activation(learner.front)
        )
        read |= scoped_names(gin_bindings.operative_config(run))
    assert scoped_names(text) and scoped_names(text) <= read


def test_every_variant_is_looked_at():
    shipped = {path.stem for path in (GIN / "variants").glob("*.gin")}
    assert set(VARIANTS) == shipped


@pytest.mark.parametrize("name", ["fruits360_nc.gin", "core50_nc.gin"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_take_effect_over_a_file(variant, name):
    """Also where the file binds something for the run alone."""
    run, is_the_variants = VARIANTS[variant]
    gin_bindings.configure([name, f"variants/{variant}.gin"], gin_dir=GIN)
    with gin_bindings.run_scope(run):
        experiment = gin_bindings.build_experiment()
        assert is_the_variants(experiment._build_strategy(runs.RUNS[run]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_binding_of_a_variant_reaches_its_object(variant, data_dir):
    run, _ = VARIANTS[variant]
    gin_bindings.configure(
        ["fruits360_nc.gin", f"variants/{variant}.gin"],
        ["mobilenet_v1.weights = None", "mobilenet_v1.alpha = 0.25"],
        gin_dir=GIN,
    )
    with gin_bindings.run_scope(run):
        experiment = gin_bindings.build_experiment()
        stream = experiment.build_stream(0, data_dir)
        experiment.build_learner(run, 0, stream.num_classes)
    bound = scoped_names((GIN / "variants" / f"{variant}.gin").read_text())
    read = scoped_names(gin_bindings.operative_config(run))
    assert bound
    assert {name.removeprefix(f"{run}/") for name in bound} <= read


def test_quickstart_values_arrive(tmp_path):
    gin_bindings.configure(
        ["quickstart.gin"],
        [
            "embedded_objects.frames_per_session = 1",
            "ClassifierTrainer.batch_size = 96",
            "following/Phase.epochs = 7",
            "NR_GD/ConditionalVAE.beta = 0.5",
            "memory_size = 123",
        ],
        gin_dir=GIN,
    )
    data = ArraySource(
        drawing.draw_session(0, 1, 2, 64), [0, 1], class_names=["a", "b"]
    )
    stream = streams.new_classes(data, data, 1, 1)
    betas = {}
    for name in ("PR-GD", "NR-GD"):
        with gin_bindings.run_scope(name):
            experiment = gin_bindings.build_experiment()
            learner = experiment.build_learner(name, 0, stream.num_classes)
        betas[name] = learner.replay.generator.loss_weights["kl"]
    assert learner.trainer.batch_size == 96
    assert learner.following.epochs == 7
    assert learner.first.epochs != 7
    assert learner.replay.memory_size == 123
    assert betas == {"PR-GD": 0.1, "NR-GD": 0.5}


def test_essential_values_are_required():
    with pytest.raises(ValueError, match="not bound: ") as caught:
        gin_bindings.configure(
            [
                str(GIN / "strategies" / "ar1free.gin"),
                str(GIN / "models" / "conditional_vae.gin"),
            ],
            ["memory_size = 1", "replay_per_batch = 1"],
            gin_dir=GIN,
        )
    for name in ("Experiment.stream", "ConditionalVAE.beta", "Phase.epochs"):
        assert name in str(caught.value)
    # Bound in one of the files.
    assert "ConditionalVAE.z_dim" not in str(caught.value)


@pytest.mark.parametrize(
    "binding, suggestion",
    [
        ("Lerner.head_bias = True", "'Learner'"),
        ("Learner.headbias = True", "'head_bias'"),
        ("Experiment.stream = @new_clases", "'new_classes'"),
        ("ConditionalVAE.betta = 1", "'beta'"),
    ],
)
def test_unknown_names_get_the_nearest_known_one(binding, suggestion):
    with pytest.raises(ValueError, match=f"Did you mean {suggestion}"):
        gin_bindings.configure(["quickstart.gin"], [binding], gin_dir=GIN)


@pytest.mark.parametrize(
    "binding, message",
    [
        (
            "memory_sise = 3",
            "reads the value 'memory_sise'. Did you mean 'memory_size'",
        ),
        ("adam.beta_1 = %beta", "%beta is used, but not set"),
    ],
)
def test_macros_that_lead_nowhere_are_refused(binding, message):
    with pytest.raises(ValueError, match=message):
        gin_bindings.configure(["quickstart.gin"], [binding], gin_dir=GIN)


def test_scope_of_no_run_is_refused():
    with pytest.raises(ValueError, match="scope 'NRGD'.*NR_GD"):
        gin_bindings.configure(
            ["quickstart.gin"],
            ["NRGD/Learner.head_bias = True"],
            gin_dir=GIN,
        )


@pytest.mark.parametrize(
    "binding",
    [
        "NR_OD/following/Phase.epochs = 7",
        "NR_OD/Phase.epochs = 7",
        "NR_OD/replay_per_batch = 21",
    ],
)
def test_bindings_that_would_do_nothing_are_refused(binding):
    with pytest.raises(ValueError, match="would do nothing"):
        gin_bindings.configure(["quickstart.gin"], [binding], gin_dir=GIN)


@pytest.mark.parametrize(
    "name",
    [
        "Learner.seed",
        "CWRConsolidation.replay_sign",
        "new_classes.seed",
        "er.replay_sign",
    ],
)
def test_what_the_flags_say_cannot_be_bound(name):
    message = f"'{name.split('.')[1]}'.*\n(.*\n)*.*flag of the script gives"
    with pytest.raises(ValueError, match=message):
        gin_bindings.configure(["quickstart.gin"], [f"{name} = 1"], gin_dir=GIN)


def test_parameters_without_default_are_required_where_referred_to():
    with pytest.raises(ValueError, match="classes.first_sequences, new_inst"):
        gin_bindings.configure(
            ["quickstart.gin"],
            ["Experiment.stream = @new_instances_and_classes"],
            gin_dir=GIN,
        )


def test_one_run_can_have_phases_of_its_own():
    gin_bindings.configure(
        ["quickstart.gin"],
        [
            "none/Learner.first = @none_first/Phase()",
            "none_first/Phase.epochs = 9",
            "none_first/Phase.learning_rate_features = 0.5",
            "none_first/Phase.learning_rate_head = 0.25",
        ],
        gin_dir=GIN,
    )
    data = ArraySource(
        drawing.draw_session(0, 1, 2, 64), [0, 1], class_names=["a", "b"]
    )
    stream = streams.new_classes(data, data, 1, 1)
    epochs = {}
    for name in ("none", "NR-OD"):
        with gin_bindings.run_scope(name):
            experiment = gin_bindings.build_experiment()
            learner = experiment.build_learner(name, 0, stream.num_classes)
        epochs[name] = learner.first.epochs
    assert epochs == {"none": 9, "NR-OD": 4}


def test_percent_signs_in_strings_are_no_macros():
    gin_bindings.configure(
        ["quickstart.gin"],
        ['mobilenet_v1.weights = "50%off.h5"'],
        gin_dir=GIN,
    )


def test_operative_configs_of_parts_of_a_run_are_joined():
    """A process that goes on does not call what the first one called."""
    first = (
        "# Macros:\n# ===\nsize = 3\n\n"
        "# Parameters for Phase:\n# ===\nPhase.epochs = 1\n\n"
        "# Parameters for random_flip:\n# ===\n# None.\n"
    )
    second = (
        "# Macros:\n# ===\nsize = 3\n\n"
        "# Parameters for Phase:\n# ===\nPhase.epochs = 1\nPhase.rate = 2\n"
    )
    joined = (
        "# Macros:\n# ===\nsize = 3\n\n"
        "# Parameters for Phase:\n# ===\nPhase.epochs = 1\nPhase.rate = 2\n\n"
        "# Parameters for random_flip:\n# ===\n# None.\n"
    )
    assert gin_bindings.merge_operative(first, second) == joined
    assert gin_bindings.merge_operative("", first) == first
