"""Beta, K and pool width of the selection: speed against each, over recorded pools.

python scripts/figure_sweep.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys
from typing import Any

from drawing import Drawing
from drawing.panels import series
from matplotlib.figure import SubFigure

from specfit.report.analysis.sweeps import AXES, SHIPPED, Curve, curves
from specfit.report.artifact import main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.reader import ResultsReader
from specfit.report.styles import WORKLOADS, style_of

SUITE = "sweep"


def make(reader: ResultsReader) -> Drawing:
    rows = [member.rows for member in reader.members(SUITE, kind="replay")]
    found = reader.suites(SUITE)[0]
    documents = [found.document(cell.label) for cell in found.suite.cells if cell.kind == "bench"]
    drawn = curves(documents)
    best = "; ".join(
        f"{WORKLOADS[c.workload]}, {c.axis}: {c.best[0]:g} ({c.best[1].value:.3f})"
        for c in drawn
        if c.system == "specfit"
    )
    alt = f"Decode speed over that at the paper's settings. SpecFit is fastest at {best}."
    extra = [
        "Every point is a replay of its own; EAGLE-3 + cache at the same K or width.",
        INTERVALS.replace("Brackets", "Bars"),
    ]
    stamp = reader.stamp(rows, SUITE, extra=extra)
    title = f"What the selection's settings are worth (times {words_of(rows)})"
    return Drawing("figure_sweep", title, 4.6, stamp, alt, lambda sheet: paint(sheet, drawn))


def paint(sheet: SubFigure, drawn: list[Curve]) -> None:
    workloads = list(dict.fromkeys(curve.workload for curve in drawn))
    axes: Any = sheet.subplots(len(workloads), len(AXES), sharey="row", squeeze=False)
    for row, workload in enumerate(workloads):
        for panel, axis in zip(axes[row], AXES, strict=True):
            held = [c for c in drawn if (c.workload, c.axis) == (workload, axis)]
            _draw(panel, held, axis)
        axes[row][0].set_ylabel(f"{WORKLOADS[workload]}'s place\nspeed, paper's = 1")
    for panel, label in zip(axes[-1], AXES.values(), strict=True):
        panel.set_xlabel(label)
    handles, labels = axes[0][1].get_legend_handles_labels()
    sheet.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def _draw(panel: Any, held: list[Curve], axis: str) -> None:
    """Settings are evenly spaced whatever their size; the paper's one is marked."""
    values = sorted({value for curve in held for value in curve.values})
    place = {value: at for at, value in enumerate(values)}
    for curve in held:
        at = [place[value] for value in curve.values]
        series(panel, at, curve.ratios, style_of(curve.system))
    panel.axhline(1, color="0.3", lw=0.8)
    panel.axvline(place[SHIPPED[axis]], color="0.3", lw=0.8, ls=":")
    panel.set_xticks(range(len(values)), [f"{value:g}" for value in values])


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
