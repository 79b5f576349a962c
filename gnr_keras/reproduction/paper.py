"""The numbers that the paper gives, in percent.

Graffieti et al., "Generative Negative Replay for Continual Learning". What it
shows as a curve only is not here.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Number:
    """An accuracy in percent; the deviation over 3 runs where it is given."""

    mean: float
    deviation: float | None = None

    def __str__(self):
        # As many digits as the paper prints.
        if self.deviation is None:
            return f"{self.mean:.1f}"
        return f"{self.mean:.2f} ± {self.deviation:.2f}"


# By benchmark and run. At the end all classes are seen, so that the whole and
# the growing test set are one.
_FINAL = {
    # Table 2, which prints NR-OD as "NR-OG".
    ("core50_nc", "none"): Number(60.99, 0.49),
    ("core50_nc", "NR-OD"): Number(68.60, 1.38),
    ("core50_nc", "NR-GD"): Number(68.87, 0.88),
    ("core50_nc", "NR-RD"): Number(64.05, 0.71),
    ("core50_nic391", "none"): Number(52.71, 1.02),
    ("core50_nic391", "NR-OD"): Number(67.93, 0.31),
    ("core50_nic391", "NR-GD"): Number(61.46, 0.67),
    ("core50_nic391", "NR-RD"): Number(58.85, 0.58),
    # Table 3: AR1 with a memory of 20,000 original patterns.
    ("imagenet1000_nc", "PR-OD"): Number(33.1),
}

# Table 1, by benchmark, test set and run. It does not name the test sets:
# these are the ones of figure 3, which it is printed with. The averages agree,
# below the final accuracy on CORe50 (60.99) and above it on ImageNet (33.1).
_AVERAGE = {
    ("core50_nc", "whole", "none"): Number(41.68, 0.62),
    ("core50_nc", "whole", "PR-OD"): Number(47.02, 0.45),
    ("core50_nc", "whole", "PR-GD"): Number(34.05, 0.29),
    ("core50_nc", "whole", "NR-GD"): Number(44.63, 0.77),
    ("imagenet1000_nc", "growing", "none"): Number(31.91, 0.17),
    ("imagenet1000_nc", "growing", "PR-OD"): Number(38.02, 0.08),
    ("imagenet1000_nc", "growing", "PR-GD"): Number(18.29, 0.07),
    ("imagenet1000_nc", "growing", "NR-GD"): Number(32.74, 0.17),
}

# Table 3: final accuracy on ImageNet-1000 of other methods with the same
# memory, which the paper took from Masana et al. (2020).
REPORTED_BY = "reported by Masana et al. (2020)"
REPORTED = {
    "Fine Tuning (Naive)": Number(27.4),
    "EWC-E": Number(28.4),
    "RWalk": Number(24.9),
    "LwM": Number(17.7),
    "LwF": Number(19.8),
    "iCaRL": Number(30.2),
    "EEIL": Number(25.1),
    "LUCIR": Number(20.1),
    "IL2M": Number(29.7),
    "BiC": Number(32.4),
}


# What the paper has numbers of.
MEASURES = ("final", "average")


def find_number(entry, measure, test_set):
    """Returns the paper's `Number` for an entry, or `None`.

    Args:
        entry: an `Entry`.
        measure: "final", "average", or one of ours.
        test_set: "whole" or "growing".
    """
    changes = (entry.variant, entry.replay_percent, entry.rate_factor)
    if measure not in MEASURES or any(c is not None for c in changes):
        return None
    if measure == "final":
        return _FINAL.get((entry.benchmark, entry.run))
    return _AVERAGE.get((entry.benchmark, test_set, entry.run))
