"""A headline over pairs: the same suite run with a target and a head of another training seed.

    make reproduce SUITE=table_2 ARGS="model.path=<pair>/target drafter.path=<pair>/drafter"

leaves such a suite as a variant of the shipped one. An interval over requests does not say what
another training run would have given; the range over pairs does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from specfit.report.intervals import Interval
from specfit.report.reader import ResultsReader
from specfit.report.suite_runs import SuiteRun
from specfit.report.table_format import DASH, Cell, Entry, Sheet, Shown, measured
from specfit.storage.suite import FULL, read_suite

MODEL = "model.path"
PAIR_KEYS = frozenset({MODEL, "drafter.path"})
"""Overrides that make a suite one of another pair, where they are all there are."""

Ratio = Callable[[Sequence[SuiteRun]], Interval | None]
"""A headline of one pair's runs; None where a run of it is not among them."""


@dataclass(frozen=True)
class Pairs:
    """The runs of one suite: of the pair that is shown, then by name of every other one."""

    shown: Sequence[SuiteRun]
    others: Sequence[tuple[str, Sequence[SuiteRun]]] = ()

    def each(self, ratio: Ratio) -> list[Interval | None]:
        return [ratio(members) for members in (self.shown, *(runs for _, runs in self.others))]

    def range(self, ratio: Ratio, form: Shown) -> Cell:
        """Lowest to highest over all pairs; a dash where one of them lacks it."""
        values = [None if x is None else x.value for x in self.each(ratio)]
        known = sorted(value for value in values if value is not None)
        if len(known) < len(values):
            return Cell(DASH)
        low, high = known[0], known[-1]
        text = f"{form(low).removesuffix('x').removesuffix(' %')} to {form(high)}"
        return Cell(text, known[len(known) // 2], low, high)

    @property
    def heading(self) -> str:
        """Of a range."""
        return f"range over {1 + len(self.others)} pairs"


def pairs_of(reader: ResultsReader, suite: str) -> Pairs:
    """Of the place that the suite's rows lie in; no others where it is itself a variant."""
    shown = reader.members(suite)
    if reader.variant:
        return Pairs(shown)
    place, others = reader.place(suite), []
    for path in sorted((place / "suites").glob(f"*/{suite}.json")):
        found = read_suite(place, suite, path.parent.name)
        if found is None or found.size != FULL or found.missing(place):
            continue
        values = dict(line.split("=", 1) for line in found.arguments)
        if values.keys() == PAIR_KEYS:
            other = ResultsReader(reader.results, found.variant)
            if other.place(suite) == place:
                others.append((Path(values[MODEL]).parent.name, other.members(suite)))
    return Pairs(shown, others)


def pairs_sheet(
    pairs: Pairs,
    columns: tuple[str, ...],
    lines: Sequence[tuple[tuple[Entry, ...], Ratio]],
    form: Shown,
    title: str,
) -> dict[str, Sheet]:
    """{"pairs": one row a headline, one column a pair}; nothing where there are no other pairs.

    `columns` name the cells that a line begins with.
    """
    if not pairs.others:
        return {}
    names = [name for name, _ in pairs.others]
    rows = tuple(
        (*first, *(measured(x, form) for x in pairs.each(ratio)), pairs.range(ratio, form))
        for first, ratio in lines
    )
    heads = (*columns, "the pair shown", *names, pairs.heading)
    return {"pairs": Sheet(title, heads, rows, NOTE)}


NOTE = (
    "Each pair is a target and a head of another training seed, measured on the same requests. "
    "Brackets are over requests of one pair; the range is over pairs."
)
