"""Bindings that change what a resolved configuration says."""

import re


def replay_share(config, percent):
    """Returns how many patterns are a share of the classifier's batch.

    Args:
        config: all bindings of a run, as gin text.
        percent: the share.
    """
    batch_sizes = re.findall(
        r"^ClassifierTrainer\.batch_size = (\d+)$", config, re.MULTILINE
    )
    return round(int(batch_sizes[0]) * percent / 100)


def bind_share(run, replay_per_batch):
    """Returns the binding of the patterns that a run replays in a batch."""
    # A file may bind the share of random patterns apart, as the paper does.
    name = "replay_per_batch"
    if run == "NR-RD":
        name = "NR_RD/RandomReplay.replay_per_batch"
    return f"{name} = {replay_per_batch}"


def multiply_rates(config, run, factor):
    """Returns bindings that multiply the rates of the later experiences.

    Args:
        config: all bindings of the run, as gin text.
        run: name of the run.
        factor: what both rates are multiplied by.

    Raises:
        ValueError: where the configuration has no such rates, as numbers.
    """
    scope = run.replace("-", "_")
    phases = dict(
        re.findall(
            rf"^({scope}/)?Learner\.following = @(\w+)/Phase\(\)$",
            config,
            re.MULTILINE,
        )
    )
    phase = phases.get(f"{scope}/", phases.get(""))
    rates = re.findall(
        rf"^({phase}/Phase\.learning_rate_\w+) = ([\d.e+-]+)$",
        config,
        re.MULTILINE,
    )
    if len(rates) != 2:
        raise ValueError(
            f"The rates of the run {run!r} cannot be multiplied: expected "
            "numbers for learning_rate_features and learning_rate_head of the "
            f"phase of `Learner.following`. Received: {rates} of {phase!r}. "
            "Bind both in the gin file."
        )
    # Without the last digits, where rounding errors are.
    return tuple(f"{name} = {float(v) * factor:.12g}" for name, v in rates)
