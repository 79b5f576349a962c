"""The paper's names of runs: a replay sign and a replay source each."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Run:
    """One way to replay.

    Attributes:
        name: the paper's name.
        sign: "positive", "negative" or `None`.
        source: "original", "generated", "random" or `None`.
    """

    name: str
    sign: str | None = None
    source: str | None = None


RUNS = {
    run.name: run
    for run in (
        Run("none"),
        Run("PR-OD", "positive", "original"),
        Run("PR-GD", "positive", "generated"),
        Run("NR-OD", "negative", "original"),
        Run("NR-GD", "negative", "generated"),
        Run("NR-RD", "negative", "random"),
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
