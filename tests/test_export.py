"""Tests of exports: by plain TensorFlow, by LiteRT, and through the script."""

import functools
import json
import re
import subprocess
import sys

import helpers
import keras
import numpy as np
import pytest
import tensorflow as tf
import test_gin_bindings
import vae_helpers
from ai_edge_litert.interpreter import Interpreter
from test_strategies import make_learner
from test_strategies import protect
from test_train_script import ROOT
from test_train_script import TINY

import gnr_keras
from gnr_keras import comparison
from gnr_keras import continuing
from gnr_keras import datasets
from gnr_keras import export
from gnr_keras import strategies
from gnr_keras.export import folders
from gnr_keras.export import functions

NAMES = ["cup", "light bulb", "Schlüssel", "pen"]
SEEN = [0, 1, 3]
IMAGES = helpers.blobs(per_class=8, seed=5)[0]
# Many of each class, to compare their distributions.
LABELS = np.repeat(SEEN, 500).astype(np.int32)
KINDS = {
    "conditional": (
        functools.partial(gnr_keras.ConditionalVAE, z_dim=6, hidden=16),
        functools.partial(gnr_keras.GeneratorTrainer, epochs=1),
    ),
    "centered": (
        functools.partial(gnr_keras.CenteredVAE, z_dim=6, hidden=16),
        functools.partial(gnr_keras.GeneratorTrainer, epochs=1),
    ),
    "gaussian": (
        functools.partial(gnr_keras.ClassGaussian, rank=3),
        gnr_keras.GaussianTrainer,
    ),
}
# Those that the other tests do not export.
OTHERS = {
    "lwf": strategies.lwf,
    "ar1": functools.partial(strategies.ar1, protect()),
    "cumulative": strategies.cumulative,
    "ncm": strategies.ncm,
    "slda": functools.partial(strategies.slda, 0.5),
}
both_litert = pytest.mark.parametrize("precision", ["float32", "int8"])


def learn(strategy, **options):
    """A learner of two experiences, whose third class has not come yet."""
    learner = make_learner(strategy, **options)
    images, labels, _ = helpers.blobs()
    for classes in ([0, 1], [3]):
        chosen = np.isin(labels, classes)
        learner.fit((images[chosen], labels[chosen]))
    return learner


def learn_with(kind):
    generator, trainer = KINDS[kind]
    replay = gnr_keras.GeneratedReplay(
        16, replay_per_batch=4, generator=generator, trainer=trainer
    )
    learner = learn(strategies.ar1free(replay))
    if kind == "gaussian":
        learner.add_classes(1)
    else:
        # In so short a time, they learn little more than the means.
        vae_helpers.perturb(replay.generator, 0.1)
    return learner


def names_of(learner):
    return [*NAMES, "hat"][: learner.num_classes]


@pytest.fixture(scope="module")
def learners():
    return {kind: learn_with(kind) for kind in KINDS}


_ELSEWHERE = """
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("gnr_keras", "gin"):
            raise ImportError(f"{name} is not installed here")


sys.meta_path.insert(0, Blocked())
import numpy as np
import tensorflow as tf

folder, *kinds = sys.argv[1:]
given = np.load(f"{folder}/given.npz")
images, labels = tf.constant(given["images"]), tf.constant(given["labels"])
results = {}
for kind in kinds:
    model = tf.saved_model.load(f"{folder}/{kind}")
    run = model.signatures
    found = {
        "serve": run["serve"](images=images),
        "one": run["serve"](images=images[:1]),
        "serving_default": run["serving_default"](images=images),
        "serve_float": run["serve_float"](images=tf.cast(images, tf.float32)),
        "features": run["features"](images=images),
    }
    for seed in (3, 4):
        found[f"generate_{seed}"] = run["generate"](
            labels=labels, seed=tf.constant(seed)
        )
    for signature, outputs in found.items():
        for name, value in outputs.items():
            # Strings as text, which a file without pickles can hold.
            value = value.numpy()
            if value.dtype == object:
                value = np.char.decode(value.astype(bytes), "utf-8")
            results[f"{kind}/{signature}/{name}"] = value
    for wrong in ([0, 2], [0, -1], [99], []):
        try:
            run["generate"](
                labels=tf.constant(wrong, tf.int32), seed=tf.constant(0)
            )
        except tf.errors.InvalidArgumentError as error:
            assert "one label or more, of classes that were" in str(error)
        else:
            raise AssertionError(wrong)
np.savez(f"{folder}/found.npz", **results)
"""


@pytest.fixture(scope="module")
def found(learners, tmp_path_factory):
    """What a process without our code computes."""
    folder = tmp_path_factory.mktemp("exported")
    for kind, learner in learners.items():
        export.write_saved_model(learner, names_of(learner), folder / kind)
    np.savez(folder / "given.npz", images=IMAGES, labels=LABELS)
    result = subprocess.run(
        [sys.executable, "-I", "-c", _ELSEWHERE, folder, *KINDS],
        cwd=folder,
        env={},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return dict(np.load(folder / "found.npz"))


@pytest.fixture(scope="module")
def saved(learners, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "out"
    export.write_saved_model(learners["conditional"], NAMES, folder)
    return str(folder)


def softmax_among_seen(learner, images):
    """By the classifier itself, and in double precision from there on."""
    logits = learner.model.predict(images.astype("float32"), verbose=0)
    odds = np.zeros(logits.shape)
    logits = logits[:, SEEN].astype(float)
    # Those of a closed form may be too large for powers of e.
    odds[:, SEEN] = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_plain_tensorflow_gives_the_probabilities_of_the_learner(
    kind, learners, found
):
    learner = learners[kind]
    expected = softmax_among_seen(learner, IMAGES)
    # Else the comparison would not say much.
    assert expected.std() > 0.1
    order = np.argsort(-expected, axis=1)[:, :3]
    names = np.array(names_of(learner))
    for signature in ("serve", "serving_default", "serve_float", "one"):
        outputs = {
            name: found[f"{kind}/{signature}/{name}"]
            for name in (
                "probabilities",
                "class_names",
                "top_labels",
                "top_names",
                "top_probabilities",
            )
        }
        count = 1 if signature == "one" else len(IMAGES)
        np.testing.assert_allclose(
            outputs["probabilities"], expected[:count], atol=1e-5
        )
        unseen = np.delete(outputs["probabilities"], SEEN, axis=1)
        assert unseen.size and not unseen.any()
        np.testing.assert_array_equal(outputs["top_labels"], order[:count])
        np.testing.assert_array_equal(
            outputs["top_names"], names[order[:count]]
        )
        np.testing.assert_allclose(
            outputs["top_probabilities"],
            -np.sort(-expected[:count], axis=1)[:, :3],
            atol=1e-5,
        )
        assert outputs["class_names"].shape == (count, learner.num_classes)
        assert (outputs["class_names"] == names).all()
    np.testing.assert_array_equal(order[:, 0], learner.predict(IMAGES))


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_outputs_of_the_latent_layer(kind, learners, found):
    model = learners[kind].model
    network = keras.Model(model.inputs[0], model.get_layer("latent").output)
    expected = network.predict(IMAGES.astype("float32"), verbose=0)
    np.testing.assert_allclose(
        found[f"{kind}/features/latents"], expected, atol=1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
def test_generated_latents_are_distributed_as_those_of_the_learner(
    kind, learners, found
):
    """Other draws of the same distribution, by class and unit."""
    generator = learners[kind].replay.generator
    ours = generator.generate(LABELS, seed=11).astype(float)
    theirs = found[f"{kind}/generate_3/latents"].astype(float)
    assert ours.shape == theirs.shape
    between = [ours[label == LABELS].mean(axis=0) for label in SEEN]
    assert np.std(between, axis=0).max() > 0.1
    for label in SEEN:
        pair = [x[label == LABELS].reshape(500, -1) for x in (ours, theirs)]
        means = [x.mean(axis=0) for x in pair]
        deviations = [x.std(axis=0) for x in pair]
        # Six standard errors, and the rounding of half precision.
        error = 6 * deviations[0] * np.sqrt(2 / 500) + 5e-3
        assert (np.abs(means[0] - means[1]) <= error).all()
        difference = np.abs(deviations[0] - deviations[1]).mean()
        assert difference <= 0.1 * deviations[0].mean() + 1e-3
        if kind == "gaussian":
            check_correlations(pair)


def check_correlations(pair):
    """Units that go together in one go together in the other."""
    moving = np.min([x.std(axis=0) for x in pair], axis=0) > 0.1
    ours, theirs = (np.corrcoef(x[:, moving], rowvar=False) for x in pair)
    off = ~np.eye(len(ours), dtype=bool)
    assert np.corrcoef(ours[off], theirs[off])[0, 1] > 0.8


def test_gaussian_of_each_class_has_its_own_covariance():
    """Also where classes have fewer directions than others, or none."""
    rng = np.random.default_rng(0)
    latents = rng.normal(size=(9, 4))
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2])
    generator = gnr_keras.ClassGaussian((4,), 4, 4, "linear")
    generator.update(latents, labels)
    units, decode = functions._gaussian_decoder(generator)
    for label in range(3):
        of_class = latents[labels == label]
        inputs = np.eye(units, dtype=np.float32)
        middle = decode(np.zeros_like(inputs), np.full(units, label)).numpy()
        np.testing.assert_allclose(
            middle, np.tile(of_class.mean(axis=0), (units, 1)), atol=1e-6
        )
        # Noise of covariance 1 comes out with that of the patterns.
        steps = decode(inputs, np.full(units, label)).numpy() - middle
        np.testing.assert_allclose(
            steps.T @ steps,
            np.cov(of_class, rowvar=False, bias=True),
            atol=1e-5,
        )


@pytest.mark.parametrize("kind", ["conditional", "centered"])
def test_noise_goes_through_the_decoder(kind, learners, found):
    generator = learners[kind].replay.generator
    noise = tf.random.stateless_normal((len(LABELS), 6), [3, 0], alg="philox")
    np.testing.assert_allclose(
        found[f"{kind}/generate_3/latents"],
        generator.decode(noise, LABELS),
        atol=1e-5,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_give_other_patterns(kind, found):
    first, second = (found[f"{kind}/generate_{i}/latents"] for i in (3, 4))
    assert np.abs(first - second).max() > 0.01
    # Of one class, the patterns of a call differ among themselves.
    assert first[LABELS == 0].std(axis=0).max() > 0.01


@pytest.mark.parametrize("crop_fraction", [1.0, 0.75])
def test_images_of_another_size_are_fitted_as_those_of_a_folder(
    crop_fraction, learners, tmp_path
):
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (4, 21, 13, 3), dtype=np.uint8)
    places = ("train/cup/0", "train/cup/1", "train/pen/0", "test/cup/0")
    for place, picture in zip(places, pictures, strict=True):
        path = tmp_path / "photos" / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tf.io.encode_png(picture).numpy())
    loaded = [
        image
        for source in datasets.image_folder(
            tmp_path / "photos", 8, crop_fraction=crop_fraction
        )
        for batch, _ in source.batches(np.arange(len(source)), 8)
        for image in np.asarray(batch)
    ]
    learner = learners["conditional"]
    export.write_saved_model(learner, NAMES, tmp_path / "out", crop_fraction)
    serve = tf.saved_model.load(str(tmp_path / "out")).signatures["serve"]
    served = serve(images=tf.constant(pictures))["probabilities"].numpy()
    expected = softmax_among_seen(learner, np.stack(loaded))
    np.testing.assert_allclose(served, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["serve", "serve_float", "features"])
@pytest.mark.parametrize(
    "shape",
    [(1, 1, 200, 3), (0, 8, 8, 3), (0, 21, 13, 3), (2, 8, 8, 1), (2, 9, 9, 4)],
)
def test_images_that_cannot_be_are_refused(name, shape, saved):
    signature = tf.saved_model.load(saved).signatures[name]
    (images,) = signature.structured_input_signature[1].values()
    received = " ".join(map(str, shape))
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=rf"one image or more.*longer side.*\[{received}\]",
    ):
        signature(images=tf.zeros(shape, images.dtype))


@pytest.mark.parametrize("name", OTHERS)
def test_every_strategy_is_exported(name, tmp_path):
    learner = learn(OTHERS[name](), head_bias=name in ("ncm", "slda"))
    assert learner.strategy.name == name
    expected = softmax_among_seen(learner, IMAGES)
    export.write_saved_model(learner, NAMES, tmp_path / "tensorflow")
    model = tf.saved_model.load(str(tmp_path / "tensorflow"))
    outputs = model.signatures["serve"](images=tf.constant(IMAGES))
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)
    export.write_litert(learner, NAMES, tmp_path / "litert")
    served = run_litert(tmp_path / "litert" / "model_float32.tflite", IMAGES)
    np.testing.assert_allclose(served, expected, atol=1e-5)
    # Of what was learned, not of a network at chance.
    assert len(set(expected.argmax(axis=1))) > 1
    np.testing.assert_array_equal(expected.argmax(1), learner.predict(IMAGES))


def test_without_a_generator_there_is_nothing_to_generate(tmp_path):
    learner = learn(strategies.er(), predict_among="all")
    export.write_saved_model(learner, NAMES, tmp_path / "out")
    model = tf.saved_model.load(str(tmp_path / "out"))
    assert set(model.signatures) == {
        "serve",
        "serving_default",
        "serve_float",
        "features",
    }
    # This learner predicts among all classes.
    outputs = model.signatures["serve"](images=tf.constant(IMAGES))
    logits = learner.model.predict(IMAGES.astype("float32"), verbose=0)
    odds = np.exp(logits.astype(float))
    np.testing.assert_allclose(
        outputs["probabilities"], odds / odds.sum(1, keepdims=True), atol=1e-5
    )
    assert outputs["top_labels"].shape == (len(IMAGES), 4)


class OwnGenerator:
    """Of another project: nothing is known of how it draws."""

    def __init__(self, data_shape, num_classes, seed):
        self._inner = gnr_keras.ClassGaussian(data_shape, num_classes)

    def __getattr__(self, name):
        return getattr(self._inner, name)


def test_a_generator_of_ones_own_is_left_out_with_a_warning(tmp_path):
    replay = gnr_keras.GeneratedReplay(
        16, 4, generator=OwnGenerator, trainer=gnr_keras.GaussianTrainer
    )
    learner = learn(strategies.ar1free(replay))
    with pytest.warns(UserWarning, match="The OwnGenerator is not exported"):
        export.write_saved_model(learner, NAMES, tmp_path / "out")
    model = tf.saved_model.load(str(tmp_path / "out"))
    assert "generate" not in model.signatures


@pytest.mark.parametrize(
    "write", [export.write_saved_model, export.write_litert]
)
def test_a_folder_is_whole_or_not_there(write, learners, tmp_path, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    learner = learners["conditional"]
    with monkeypatch.context() as patch:
        # The last that is written.
        patch.setattr(folders, "describe", full)
        with pytest.raises(OSError, match="No space left"):
            write(learner, NAMES, tmp_path / "out")
    assert not list(tmp_path.iterdir())
    write(learner, NAMES, tmp_path / "new" / "out")
    place = tmp_path / "new" / "out"
    assert [path.name for path in place.parent.iterdir()] == ["out"]
    # Others may serve what was written here.
    assert place.stat().st_mode == place.parent.stat().st_mode
    assert (place / "labels.txt").read_text("utf-8").splitlines() == NAMES
    about = json.loads((place / "model.json").read_text())
    assert about["class_names"] == NAMES
    assert about["seen"] == [True, True, False, True]
    assert about["image_shape"] == [8, 8, 3]
    assert about["latent_layer"] == "latent"
    assert about["latent_shape"] == [4, 4, 8]
    before = sorted(path.stat().st_mtime_ns for path in place.rglob("*"))
    with pytest.raises(FileExistsError, match="stays as it is. Choose another"):
        write(learner, NAMES, place)
    after = sorted(path.stat().st_mtime_ns for path in place.rglob("*"))
    assert before == after


def test_what_cannot_be_exported_is_refused(learners, tmp_path):
    learner = learners["conditional"]
    refuse = functools.partial(export.write_saved_model, folder=tmp_path / "a")
    with pytest.raises(ValueError, match="has 4 classes.* Received: 3"):
        refuse(learner, NAMES[:3])
    with pytest.raises(ValueError, match="on one line each.*'a.nb'"):
        refuse(learner, [*NAMES[:3], "a\nb"])
    with pytest.raises(ValueError, match=r"as text. Received: 0, a int.*str\("):
        refuse(learner, range(4))
    with pytest.raises(ValueError, match="several times: 'cup'"):
        refuse(learner, ["pen", "cup", "can", "cup"])
    with pytest.raises(ValueError, match="`fit` an experience first"):
        refuse(make_learner(strategies.er()), NAMES)
    assert not list(tmp_path.iterdir())


def test_litert_says_what_to_install(learners, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_quantizer", None)
    with pytest.raises(ImportError, match=r'pip install "gnr_keras\[litert\]"'):
        export.write_litert(learners["conditional"], NAMES, tmp_path / "out")


def run_litert(path, images):
    runner = Interpreter(str(path)).get_signature_runner()
    return np.concatenate(
        [runner(images=image[None])["probabilities"] for image in images]
    )


@both_litert
def test_litert_predicts_as_the_learner(precision, learners, tmp_path):
    learner = learners["gaussian"]
    export.write_litert(learner, names_of(learner), tmp_path / "out")
    path = tmp_path / "out" / f"model_{precision}.tflite"
    (given,) = Interpreter(str(path)).get_input_details()
    assert given["dtype"] is np.uint8
    assert given["shape"].tolist() == [1, 8, 8, 3]
    served = run_litert(path, IMAGES)
    expected = softmax_among_seen(learner, IMAGES)
    atol = {"float32": 1e-5, "int8": 0.05}[precision]
    np.testing.assert_allclose(served, expected, atol=atol)
    assert not np.delete(served, SEEN, axis=1).any()
    np.testing.assert_array_equal(served.argmax(1), learner.predict(IMAGES))


def test_learners_of_mixed_precision_are_exported(tmp_path):
    learner = learn(strategies.er(), precision="mixed_bfloat16")
    expected = learner.predict(IMAGES)
    export.write_saved_model(learner, NAMES, tmp_path / "tensorflow")
    model = tf.saved_model.load(str(tmp_path / "tensorflow"))
    outputs = model.signatures["serve"](images=tf.constant(IMAGES))
    assert outputs["probabilities"].dtype == tf.float32
    assert np.mean(outputs["top_labels"][:, 0] == expected) >= 0.9
    export.write_litert(learner, NAMES, tmp_path / "litert")
    for path in (tmp_path / "litert").glob("*.tflite"):
        found = run_litert(path, IMAGES).argmax(axis=1)
        assert np.mean(found == expected) >= 0.9


_LOAD = """
import sys
import gnr_keras
import keras
import numpy as np

folder = sys.argv[1]
images = np.load(f"{folder}/images.npy")
model = keras.saving.load_model(f"{folder}/model.keras")
np.save(f"{folder}/logits.npy", model.predict(images, verbose=0))
for kind in ("conditional", "centered"):
    generator = keras.saving.load_model(f"{folder}/{kind}.keras")
    np.save(f"{folder}/{kind}.npy", generator.generate([0, 1, 3], seed=2))
"""


def test_keras_files_load_where_the_package_is_imported(learners, tmp_path):
    model = learners["conditional"].model
    model.save(tmp_path / "model.keras")
    images = IMAGES.astype("float32")
    np.save(tmp_path / "images.npy", images)
    generators = {
        kind: learners[kind].replay.generator
        for kind in ("conditional", "centered")
    }
    for kind, generator in generators.items():
        generator.save(tmp_path / f"{kind}.keras")
    result = subprocess.run(
        [sys.executable, "-c", _LOAD, tmp_path], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-3000:]
    np.testing.assert_allclose(
        np.load(tmp_path / "logits.npy"),
        model.predict(images, verbose=0),
        atol=1e-5,
    )
    for kind, generator in generators.items():
        np.testing.assert_allclose(
            np.load(tmp_path / f"{kind}.npy"),
            generator.generate([0, 1, 3], seed=2),
            atol=5e-3,
        )


# Through the script.


# At 32 pixels, and with one epoch, a run would stay at chance.
TRAINED = (
    *TINY,
    "embedded_objects.image_size = 64",
    "mobilenet_v1.input_shape = (64, 64, 3)",
    "first/Phase.epochs = 4",
    "following/Phase.epochs = 4",
    "following/Phase.learning_rate_head = 0.01",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that knows 50 drawn objects, and pictures of them."""
    folder = tmp_path_factory.mktemp("finished")
    comparison.compare(
        ["quickstart.gin"],
        TRAINED,
        ROOT / "gin",
        ["NR-GD"],
        [0],
        folder / "runs" / "objects",
        folder,
    )
    _, test = datasets.embedded_objects(
        64, frames_per_session=1, data_dir=folder
    )
    pictures, _ = next(test.batches(np.arange(len(test)), len(test)))
    names = np.array(test.class_names)[test.labels]
    return folder / "runs/objects/NR-GD/seed_0", np.asarray(pictures), names


def call_script(folder, *arguments):
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "export.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_the_script_exports_a_finished_run(finished, tmp_path):
    run_dir, pictures, _ = finished
    result = call_script(tmp_path, f"--run_dir={run_dir}")
    assert result.returncode == 0, result.stderr[-3000:]
    place = tmp_path / "saved_models" / "objects_NR-GD_seed_0_saved_model"
    for name in ("saved_model.pb", "labels.txt", "model.json"):
        assert f"MB  saved_models/{place.name}/{name}" in result.stdout
    run = continuing.load_run(run_dir)
    serve = tf.saved_model.load(str(place)).signatures["serve"]
    outputs = serve(images=tf.constant(pictures))
    logits = run.learner.model.predict(pictures.astype("float32"), verbose=0)
    odds = np.exp(logits.astype(float))
    np.testing.assert_allclose(
        outputs["probabilities"], odds / odds.sum(1, keepdims=True), atol=1e-5
    )
    names = np.array(run.class_names)[run.learner.predict(pictures)]
    assert outputs["top_names"].shape == (len(pictures), 5)
    best = [name.decode() for name in outputs["top_names"][:, 0].numpy()]
    assert np.mean(best == names) > 0.99
    # Once more, it is refused, before anything is loaded.
    result = call_script(tmp_path, f"--run_dir={run_dir}")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("error: saved_models/")
    assert "Traceback" not in result.stderr


def test_the_script_exports_what_went_on_for_litert(finished, tmp_path):
    run_dir, pictures, names = finished
    run = continuing.load_run(run_dir)
    run.save(tmp_path / "next_month")
    result = call_script(
        tmp_path, "--run_dir=next_month", "--format=litert", "--output=phone"
    )
    assert result.returncode == 0, result.stderr[-3000:]
    expected = run.learner.predict(pictures)
    # Of a classifier at chance, agreement would say nothing.
    assert np.mean(np.array(run.class_names)[expected] == names) > 0.6
    sizes = {}
    for precision, least in (("float32", 0.99), ("int8", 0.97)):
        path = tmp_path / "phone" / f"model_{precision}.tflite"
        sizes[precision] = path.stat().st_size
        found = run_litert(path, pictures).argmax(axis=1)
        assert np.mean(found == expected) >= least
    assert sizes["int8"] < 0.4 * sizes["float32"]
    lines = (tmp_path / "phone" / "labels.txt").read_text("utf-8").splitlines()
    assert lines == run.class_names


def test_agreement_is_measured(finished, tmp_path):
    """On noise, whose classes have the names of those of the run."""
    run_dir, _, names = finished
    test_gin_bindings.write_fruits360(tmp_path)
    root = tmp_path / "fruits360_50x3"
    (root / "meta.json").write_text(json.dumps({"classes": sorted({*names})}))
    rng = np.random.default_rng(0)
    for path in root.glob("s*/o*/*.jpg"):
        image = rng.integers(0, 256, (10, 10, 3), "uint8")
        path.write_bytes(tf.io.encode_jpeg(image).numpy())
    result = subprocess.run(
        [
            sys.executable,
            "benchmarks/agreement.py",
            f"--run_dir={run_dir}",
            f"--data_dir={tmp_path}",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    count, *lines = result.stdout.splitlines()
    assert count == "50 pictures"
    rows = [
        re.fullmatch(
            r"(\S.*?) +(?:[\d.]+ MB)? +as the learner ([\d.]+)%"
            r" +accuracy ([\d.]+)%",
            line,
        ).groups()
        for line in lines
    ]
    assert [name for name, _, _ in rows] == [
        "learner",
        "SavedModel",
        "model_float32.tflite",
        "model_int8.tflite",
        "TensorFlow's quantisation",
    ]
    assert rows[0][1] == "100.0"
    # Of 50, one or two may lie between two classes.
    assert min(float(agreed) for _, agreed, _ in rows[1:3]) >= 96


def test_sizes_and_latencies_are_measured():
    result = subprocess.run(
        [sys.executable, "benchmarks/serving.py", "--tiny", "--calls=2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    rows = re.findall(r"^(.+?) +([\d.]+) (MB|ms)", result.stdout, re.M)
    assert [unit for _, _, unit in rows] == 3 * ["MB"] + 6 * ["ms"]
    sizes = {name: float(value) for name, value, _ in rows[:3]}
    assert 0 < sizes["model_int8.tflite"] < sizes["model_float32.tflite"]


# On photographs.

WEIGHTS = "weights/mobilenet_v1_1.0_224_imagenet.weights.h5"


@pytest.fixture(scope="module")
def photographs():
    """A learner of 50 fruits, and pictures of a quarter turn held out."""
    train, test = datasets.fruits360(
        128, validation=True, data_dir=helpers.SHARED
    )
    learner = gnr_keras.Learner(
        gnr_keras.mobilenet_v1((128, 128, 3), weights=helpers.SHARED / WEIGHTS),
        "conv5_4/dw",
        num_classes=50,
        strategy=strategies.slda(),
        first=gnr_keras.Phase(1, 1e-4, 1e-3),
        head_bias=True,
    )
    for classes in (range(10), range(10, 50)):
        chosen = np.flatnonzero(np.isin(train.labels, classes))[::3]
        learner.fit(train.subset(chosen))
    pictures, _ = next(test.batches(np.arange(len(test)), len(test)))
    return learner, list(train.class_names), test, np.asarray(pictures)


@pytest.mark.long
@helpers.needs_shared(WEIGHTS)
@helpers.needs_shared("fruits360_50x3/s1")
def test_photographs_by_litert(photographs, tmp_path):
    learner, class_names, test, pictures = photographs
    assert len(pictures) > 300
    expected = learner.predict(pictures)
    # Of a classifier at chance, agreement would say nothing.
    assert np.mean(expected == test.labels) > 0.6
    export.write_litert(learner, class_names, tmp_path / "out")
    for precision, least in (("float32", 0.99), ("int8", 0.97)):
        path = tmp_path / "out" / f"model_{precision}.tflite"
        found = run_litert(path, pictures).argmax(axis=1)
        assert np.mean(found == expected) >= least, precision


@pytest.mark.long
@helpers.needs_shared(WEIGHTS)
@helpers.needs_shared("fruits360_50x3/s1")
def test_photographs_by_tensorflow(photographs, tmp_path):
    learner, class_names, test, pictures = photographs
    export.write_saved_model(learner, class_names, tmp_path / "out")
    serve = tf.saved_model.load(str(tmp_path / "out")).signatures["serve"]
    outputs = serve(images=tf.constant(pictures))
    logits = learner.model.predict(pictures.astype("float32"), verbose=0)
    logits = logits.astype(float) - logits.max(axis=1, keepdims=True)
    odds = np.exp(logits)
    np.testing.assert_allclose(
        outputs["probabilities"], odds / odds.sum(1, keepdims=True), atol=1e-5
    )
    found = outputs["top_labels"].numpy()[:, 0]
    assert np.mean(found == learner.predict(pictures)) >= 0.99
