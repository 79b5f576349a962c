"""Names of runs: the paper's, a replay sign and source each, and one more."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Run:
    """One way to replay.

    Attributes:
        name: the paper's name; "cumulative" is ours, for all data so far.
        sign: "positive", "negative" or `None`.
        source: "original", "generated", "random" or `None`.
        keep_data: whether all data so far are trained on.
    """

    name: str
    sign: str | None = None
    source: str | None = None
    keep_data: bool = False


RUNS = {
    run.name: run
    for run in (
        Run("none"),
        Run("PR-OD", "positive", "original"),
        Run("PR-GD", "positive", "generated"),
        Run("NR-OD", "negative", "original"),
        Run("NR-GD", "negative", "generated"),
        Run("NR-RD", "negative", "random"),
        Run("cumulative", keep_data=True),
    )
}


def get_run(name):
    """Returns the `Run` of that name."""
    if name not in RUNS:
        raise ValueError(
            f"Unknown run {name!r}; expected one of {', '.join(RUNS)}."
        )
    return RUNS[name]


def parse_seeds(texts):
    """Returns seeds as integers."""
    for text in texts:
        if not text.strip().isdecimal():
            raise ValueError(
                f"A seed is an integer from 0 on. Received: {text!r}."
            )
    return [int(text) for text in texts]
