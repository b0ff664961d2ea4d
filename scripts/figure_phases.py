"""Where a decode cycle's time goes, per system, stacked: the rows of tables 2 and 3.

python scripts/figure_phases.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys
from typing import Any

from drawing import Drawing
from drawing.panels import EDGE, patch
from matplotlib.figure import SubFigure

from specfit.report.analysis.phases import Split, splits
from specfit.report.artifact import main
from specfit.report.footer import words_of
from specfit.report.reader import ResultsReader
from specfit.report.styles import PHASES, WORKLOADS, style_of
from specfit.report.table_format import plain

SUITES = ("table_2", "table_3")


def make(reader: ResultsReader) -> Drawing:
    members = reader.members(*SUITES)
    rows = [m.rows for m in members]
    found, word = splits(members), words_of(rows)
    longest = max(found, key=lambda s: s.cycle_ms)
    alt = (
        f"Stacked bars of a decode cycle's phases per system. Longest: "
        f"{style_of(longest.system).label}, {plain(longest.cycle_ms)} ms, of which "
        f"{plain(longest.ms['wait'])} ms wait for copies."
    )
    title = f"Where a decode cycle's time goes ({word})"
    stamp = reader.stamp(rows, *SUITES)
    return Drawing("figure_phases", title, 3.2, stamp, alt, lambda sheet: paint(sheet, found, word))


def paint(sheet: SubFigure, found: list[Split], word: str) -> None:
    workloads = list(dict.fromkeys(s.workload for s in found))
    axes: Any = sheet.subplots(1, len(workloads), sharex=True, squeeze=False)[0]
    shown = [name for name in PHASES if any(s.ms[name] for s in found)]
    for column, (panel, workload) in enumerate(zip(axes, workloads, strict=True)):
        held = [s for s in found if s.workload == workload]
        for row, split in enumerate(held):
            _stack(panel, row, split, shown)
        panel.set_yticks(range(len(held)), [style_of(s.system).label for s in held])
        if column:
            panel.set_yticklabels([])
        panel.invert_yaxis()
        panel.grid(False, axis="y")
        panel.margins(x=0.24)
        panel.set_title(f"{WORKLOADS[workload]}'s place")
        panel.set_xlabel(f"ms per cycle ({word}); beside: ms per token")
    handles = [patch(PHASES[name]) for name in shown]
    sheet.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _stack(panel: Any, row: int, split: Split, shown: list[str]) -> None:
    left = 0.0
    for name in shown:
        style = PHASES[name]
        panel.barh(
            row,
            split.ms[name],
            left=left,
            color=style.colour,
            hatch=style.hatch,
            edgecolor=EDGE,
            lw=0.5,
        )
        left += split.ms[name]
    panel.annotate(
        f"{plain(left)} ({plain(split.per_token)} / token)",
        (left, row),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=7.5,
    )


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
