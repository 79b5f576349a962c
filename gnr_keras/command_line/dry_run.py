"""What the trainer would do, as text."""

import statistics

from gnr_keras import dry
from gnr_keras import gin_bindings
from gnr_keras import measuring
from gnr_keras import planning


def describe_runs(gin_files, overrides, gin_dir, names, seeds, data_dir):
    """Plans all runs, measures a few steps of each, and writes nothing.

    Args:
        gin_files: gin files of the experiment.
        overrides: bindings that override them.
        gin_dir: folder that includes are relative to.
        names: the paper's names of the runs.
        seeds: integers.
        data_dir: folder of the data sets.

    Yields:
        The plan of each run and what they come to, for people.
    """
    total = 0.0
    with dry.run():
        gin_bindings.configure(gin_files, overrides, gin_dir, names)
        # A seed may be none of a protocol's runs.
        with gin_bindings.run_scope(names[0]):
            for seed in seeds[1:]:
                gin_bindings.build_experiment().build_stream(seed, data_dir)
        for name in names:
            gin_bindings.configure(gin_files, overrides, gin_dir, [name])
            with gin_bindings.run_scope(name):
                experiment = gin_bindings.build_experiment()
                stream = experiment.build_stream(seeds[0], data_dir)
                learner = experiment.build_learner(
                    name, seeds[0], stream.num_classes, data_dir
                )
            plan = planning.plan(learner, stream, experiment.evaluate_every)
            seconds = measuring.estimate_seconds(learner, stream, plan)
            total += seconds * len(seeds)
            yield _describe_run(name, plan, seconds)
    yield (
        f"All runs, of {len(seeds)} seed(s) each: about {_duration(total)}. "
        "This is an estimate, from\na few steps on this machine as busy as it "
        "is now; data that have to be fetched or\ndrawn come on top. Nothing "
        "was written."
    )


def _describe_run(name, plan, seconds):
    first, *later = plan.experiences
    rows = [
        ("experiences", len(plan.experiences)),
        ("classes", plan.classes),
        ("images", f"{_images(first, later)}; to test: {plan.test_images:,}"),
        ("evaluations", plan.evaluations),
        ("steps of the classifier", _steps(first, later, "steps")),
        ("  its batch", _batch(first, later, plan.batch_size, "replayed")),
    ]
    if plan.generator_batch_size:
        rows += [
            (
                "steps of the generator",
                _steps(first, later, "generator_steps"),
            ),
            (
                "  its batch",
                _batch(
                    first,
                    later,
                    plan.generator_batch_size,
                    "generator_replayed",
                ),
            ),
        ]
    rows += [
        ("memory of latents", _megabytes(plan.latent_bytes)),
        ("memory of replay", _megabytes(plan.replay_bytes)),
        ("memory of test latents", _megabytes(plan.test_bytes)),
        ("estimated time", _duration(seconds)),
    ]
    lines = [f"  {label:<25}{value}" for label, value in rows]
    return "\n".join([name, *lines])


def _images(first, later):
    return _first_and_later(first.images, [e.images for e in later])


def _steps(first, later, key):
    values = [getattr(e, key) for e in (first, *later)]
    text = _first_and_later(values[0], values[1:])
    return f"{text}; {sum(values):,} in all"


def _batch(first, later, size, key):
    def compose(experience):
        replayed = getattr(experience, key)
        return f"{size - replayed} current + {replayed} replayed"

    texts = [compose(first)]
    if later:
        middle = sorted(later, key=lambda e: getattr(e, key))[len(later) // 2]
        texts.append(f"then {compose(middle)}")
    return ", ".join(texts)


def _first_and_later(first, later):
    if not later:
        return f"{first:,}"
    least, most = min(later), max(later)
    middle = f"{statistics.median_low(later):,}"
    between = "" if least == most else f" ({least:,} to {most:,})"
    return f"{first:,} at first, then {middle}{between}"


def _megabytes(count):
    return f"{count / 1e6:,.1f} MB"


def _duration(seconds):
    minutes, seconds = divmod(max(round(seconds), 1), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
