"""What tables and figures are made of."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Entry:
    """One curve of a figure, one row of a table: one run on one benchmark.

    Attributes:
        benchmark: name of the benchmark.
        run: name of the run.
        variant: name of a gin file in gin/variants/ (or in the folder of the
            benchmark's name there) that is read after the benchmark's, or
            several, joined by "+"; `None` for none.
        replay_percent: share of replay in the batch where it is not that of
            the benchmark.
        rate_factor: what the learning rates of the later experiences are
            multiplied by, where it is given.
        name: what to call it where not by its run and variant.
        style: of its curve, as Matplotlib writes it.
    """

    benchmark: str
    run: str
    variant: str | None = None
    replay_percent: int | None = None
    rate_factor: float | None = None
    name: str | None = None
    style: str = "-"

    @property
    def variants(self):
        """The names of its variants, in the order in which they are read."""
        return tuple(self.variant.split("+")) if self.variant else ()

    @property
    def method(self):
        """What is measured, whatever its share of replay and its rates."""
        words = ", ".join((self.run, *self.variants)).replace("_", " ")
        return self.name or words

    @property
    def is_swept(self):
        """Whether it is one of several that differ in a number."""
        return self.replay_percent is not None or self.rate_factor is not None

    @property
    def label(self):
        parts = [self.method]
        if self.replay_percent is not None:
            parts.append(f"{self.replay_percent} % replay")
        if self.rate_factor is not None:
            parts.append(f"rates x {self.rate_factor:g}")
        return ", ".join(parts)


@dataclasses.dataclass(frozen=True)
class Panel:
    """Entries that are drawn together.

    Attributes:
        entries: the `Entry`s.
        test_set: "whole", or "growing" with the classes seen.
    """

    entries: tuple[Entry, ...]
    test_set: str = "whole"


@dataclasses.dataclass(frozen=True)
class Claim:
    """That one entry is at least as accurate as another.

    Attributes:
        entry: the `Entry` that is claimed to be better.
        other: the `Entry` that it is compared with.
        by: percent points that it is better by; below zero, those that it
            may be worse by.
        measure: "final" or "average".
        test_set: "whole" or "growing".
    """

    entry: Entry
    other: Entry
    by: float = 0.0
    measure: str = "final"
    test_set: str = "whole"

    def __str__(self):
        sign = "-" if self.by < 0 else "+"
        by = f" {sign} {abs(self.by):g}" if self.by else ""
        return f"{self.entry.label} >= {self.other.label}{by}"


@dataclasses.dataclass(frozen=True)
class Item:
    """A table or figure.

    Attributes:
        name: what `--item` calls it.
        title: what it shows.
        panels: its `Panel`s.
        paper_label: the label that the paper's source gives it, or `None`
            where the paper has no such table or figure.
        drawing: "curves" over experiences, "shares" or "rates" for final
            accuracy over the share of replay or the factor of the rates,
            "bars" of the first measure, "quality" of generators over
            experiences, or `None` for a table alone.
        measures: of "final", "average" and "replay", the columns of its
            table; "replay" is the accuracy on what is replayed.
        summary: "rates", "quality" or "claims", a table of its own above
            that of the measures, or `None`.
        claims: the `Claim`s of such a summary.
        with_reported: whether the numbers that the paper took from elsewhere
            belong to it.
        note: what a reader has to know of it.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    paper_label: str | None = None
    drawing: str | None = "curves"
    measures: tuple[str, ...] = ("final", "average")
    summary: str | None = None
    claims: tuple[Claim, ...] = ()
    with_reported: bool = False
    note: str = ""

    @property
    def heading(self):
        """Its name as the paper writes it: "Figure 3"."""
        word = self.name.rstrip("0123456789")
        return f"{word} {self.name[len(word) :]}".strip().capitalize()

    @property
    def entries(self):
        """All entries, each once."""
        return tuple(
            dict.fromkeys(e for panel in self.panels for e in panel.entries)
        )

    def restricted_to(self, entries, lacking=()):
        """Returns the item with these of its entries alone.

        Args:
            entries: the `Entry`s that stay; panels without any, and claims
                about others, go.
            lacking: names of what has not been run, for the note.
        """
        panels = [
            dataclasses.replace(
                panel, entries=tuple(e for e in panel.entries if e in entries)
            )
            for panel in self.panels
        ]
        note = self.note
        if lacking:
            note = f"{note} Not run yet: {', '.join(lacking)}.".strip()
        return dataclasses.replace(
            self,
            panels=tuple(panel for panel in panels if panel.entries),
            claims=tuple(
                claim
                for claim in self.claims
                if claim.entry in entries and claim.other in entries
            ),
            note=note,
        )


def make_panel(benchmark, runs, test_set="whole"):
    """Returns the `Panel` of some runs on one benchmark."""
    return Panel(tuple(Entry(benchmark, run) for run in runs), test_set)
