"""Runs every example, and looks at the effect that it prints."""

import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def run(name):
    """Returns the numbers that an example prints, by what it says of them."""
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    # What people copy is not complained of.
    assert "Warning" not in result.stderr
    found = {}
    for line in result.stdout.splitlines():
        what, _, values = line.partition(": ")
        found[what] = [float(v) for v in re.findall(r"[\d.]+(?=%)", values)]
    return found


def check_cwr(found):
    (alone,) = found["model.fit alone"]
    (consolidated,) = found["with CWRConsolidation"]
    # Two of ten classes are left without it.
    assert alone < 35 and consolidated > alone + 50
    (erased,) = found["with CWRConsolidation only"]
    (adopted,) = found["with adopted rows"]
    assert erased < 35 and adopted > 85


def check_synaptic_intelligence(found):
    alone = found["model.fit alone"]
    protected = found["with SynapticIntelligence"]
    # The first condition is kept better, and the last is learned.
    assert protected[0] > alone[0] + 8
    assert min(alone[-1], protected[-1]) > 90


def check_negative_replay(found):
    alone = found["without replay"]
    negative = found["with negative replay"]
    assert alone[0] < 15 and negative[0] > alone[0] + 30
    assert min(alone[1], negative[1]) > 90


def check_batch_renormalization(found):
    (normalized,) = found["with batch normalisation"]
    (renormalized,) = found["with batch renormalisation"]
    assert renormalized > normalized + 8
    (converted,) = found["with batch renormalisation after the first 10"]
    assert converted > normalized + 8


def check_generator(found):
    (forgetful,) = found["ConditionalVAE without replay"]
    (replayed,) = found["ConditionalVAE with replay"]
    (gaussian,) = found["ClassGaussian"]
    assert forgetful < 85 and replayed > 85 and gaussian > 90


CHECKS = {
    "cwr_fit.py": check_cwr,
    "synaptic_intelligence_fit.py": check_synaptic_intelligence,
    "negative_replay_fit.py": check_negative_replay,
    "batch_renormalization.py": check_batch_renormalization,
    "generator.py": check_generator,
}


@pytest.mark.parametrize("name", CHECKS)
def test_example_shows_its_effect(name):
    CHECKS[name](run(name))


def test_every_example_is_run_and_in_the_table():
    table = (EXAMPLES / "README.md").read_text()
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == set(CHECKS)
    assert set(re.findall(r"\]\((\w+\.py)\)", table)) == names
