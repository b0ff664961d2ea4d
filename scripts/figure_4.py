"""Figure 4 (sec. 4.4): gain over EAGLE-3 against slots, with cycle time and committed tokens.

python scripts/figure_4.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys
from typing import Any

from drawing import Drawing
from drawing.panels import paper_handle, series
from matplotlib.figure import SubFigure

from specfit.report.analysis.slots import QUANTITIES_SHOWN, Point, points
from specfit.report.artifact import main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Interval
from specfit.report.paper_values import claims_of
from specfit.report.reader import ResultsReader
from specfit.report.styles import PAPER, WORKLOADS, style_of

TITLES = {"speed": "decode gain, %", "cycle": "cycle time, %", "committed": "committed / cycle, %"}


def make(reader: ResultsReader) -> Drawing:
    members = reader.members("figure_4")
    rows = [m.rows for m in members]
    found = points(members)
    stamp = reader.stamp(rows, "figure_4", extra=[INTERVALS.replace("Brackets", "Bars")])
    title = f"Figure 4: against EAGLE-3 at the same slots (times {words_of(rows)})"
    gains = ", ".join(
        f"{WORKLOADS[p.workload]} {p.slots} slots {percent(p.ratios['speed'].value):+.0f} %"
        for p in found
        if p.system == "specfit"
    )
    alt = f"Decode gain, cycle time and committed tokens against slots. SpecFit's gain: {gains}."
    return Drawing("figure_4", title, 5.6, stamp, alt, lambda sheet: paint(sheet, found))


def percent(ratio: float | None) -> float:
    return 100 * ((ratio or 1.0) - 1)


def changes(interval: Interval) -> Interval:
    """A ratio as a change in percent."""
    bounds = (None if x is None else percent(x) for x in (interval.low, interval.high))
    return Interval(percent(interval.value), *bounds, interval.n)


def paint(sheet: SubFigure, found: list[Point]) -> None:
    workloads = list(dict.fromkeys(p.workload for p in found))
    slots = sorted({p.slots for p in found}, reverse=True)
    place = {count: at for at, count in enumerate(slots)}
    axes: Any = sheet.subplots(
        len(QUANTITIES_SHOWN), len(workloads), sharex=True, sharey="row", squeeze=False
    )
    for column, workload in enumerate(workloads):
        for row, quantity in enumerate(QUANTITIES_SHOWN):
            panel = axes[row][column]
            _lines(panel, [p for p in found if p.workload == workload], quantity, place)
            _paper(panel, workload, quantity, place)
            panel.axhline(0, color="0.3", lw=0.8)
            if column == 0:
                panel.set_ylabel(TITLES[quantity])
        axes[0][column].set_title(f"{WORKLOADS[workload]}'s place")
        axes[-1][column].set_xlabel("slots per layer")
        labels = [str(count) if count else "no cache" for count in slots]
        axes[-1][column].set_xticks(range(len(slots)), labels)
    handles = axes[0][0].get_legend_handles_labels()
    sheet.legend(
        [*handles[0], paper_handle()],
        [*handles[1], PAPER.label],
        loc="outside lower center",
        ncols=4,
    )


def _lines(panel: Any, found: list[Point], quantity: str, place: dict[int, int]) -> None:
    for nudge, system in enumerate(dict.fromkeys(p.system for p in found)):
        line = [p for p in found if p.system == system]
        at = [place[p.slots] + 0.05 * (nudge - 1) for p in line]
        series(panel, at, [changes(p.ratios[quantity]) for p in line], style_of(system))


def _paper(panel: Any, workload: str, quantity: str, place: dict[int, int]) -> None:
    for claim in claims_of("figure_4"):
        if (claim.workload, claim.quantity) == (workload, quantity) and claim.slots in place:
            panel.plot(
                place[claim.slots],
                percent(claim.value),
                PAPER.marker,
                mfc="white",
                mec="black",
                ms=7,
            )


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
