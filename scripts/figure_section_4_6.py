"""Section 4.6: speed and union size against route accuracy, and selection time (measured).

python scripts/figure_section_4_6.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from drawing import Drawing
from drawing.panels import paper_handle, series
from matplotlib.figure import SubFigure

from specfit.report.analysis.accuracy import (
    REPLAYED,
    Told,
    accuracy_members,
    device_of,
    selection_bench,
    selection_times,
    told,
)
from specfit.report.artifact import main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.paper_values import SELECTION_MEDIAN_MS, claims_of
from specfit.report.reader import ResultsReader
from specfit.report.styles import PAPER, WORKLOADS, Style, style_of

LOOKS = {"gsm8k": {"linestyle": "-"}, "news": {"linestyle": "--", "markerfacecolor": "white"}}
BELIEVED = Style("union that the selector believed", "#0072B2", "^")


def make(reader: ResultsReader) -> Drawing:
    found = reader.suites("section_4_6")[0]
    members = accuracy_members(reader)
    rows, bench = [m.rows for m in members], selection_bench(found)
    lines = told(members, found.place)
    measured = f"Selection time is measured: {device_of(bench)}."
    bars = INTERVALS.replace("Brackets", "Bars")
    stamp = reader.stamp(rows, "section_4_6", extra=[bars, REPLAYED, measured])
    title = f"Section 4.6: wrong routes (times {words_of(rows)}); selection time (measured)"
    alt = (
        "Speed over AR and union size of SpecFit as its routes get worse, from exact to half "
        "wrong; and how long one selection takes, measured."
    )
    return Drawing(
        "figure_section_4_6", title, 3.6, stamp, alt, lambda sheet: paint(sheet, lines, bench)
    )


def paint(sheet: SubFigure, lines: list[Told], bench: Mapping[str, Any]) -> None:
    axes: Any = sheet.subplots(1, 3, gridspec_kw={"width_ratios": [1, 1, 1.05]})
    speed, union, times = axes
    for workload in dict.fromkeys(t.workload for t in lines):
        line = [t for t in lines if t.workload == workload]
        at = [100 * t.accuracy for t in line]
        named = f"{WORKLOADS[workload]}'s place"
        style, look = style_of("specfit"), LOOKS[workload]
        series(speed, at, [t.over_ar for t in line], style, label=named, **look)
        series(union, at, [t.demand for t in line], style, label=f"demanded, {named}", **look)
        series(union, at, [t.believed for t in line], BELIEVED, label=f"believed, {named}", **look)
    for claim in claims_of("section_4_6"):
        speed.plot(100 * claim.accuracy, claim.value, PAPER.marker, mfc="white", mec="black", ms=7)
    handles, labels = speed.get_legend_handles_labels()
    speed.legend([*handles, paper_handle()], [*labels, "paper, GSM8K"], loc="best")
    for panel, title in ((speed, "speed over AR, x"), (union, "distinct experts / cycle")):
        panel.set_title(title)
        panel.set_xlabel("route ids that are right, %")
        panel.set_xticks(sorted({100 * t.accuracy for t in lines}))
        panel.invert_xaxis()
        panel.set_ylim(bottom=0)
    union.legend(loc="lower left", fontsize=7)
    _times(times, bench)


def _times(panel: Any, bench: Mapping[str, Any]) -> None:
    """Box: 5 to 95 %; line: median; tick: the worst call."""
    rows = selection_times(bench)
    for at, row in enumerate(rows):
        low, mid, high, worst = (
            row[key] / 1e3 for key in ("p5_us", "median_us", "p95_us", "worst_us")
        )
        panel.barh(at, high - low, left=low, height=0.45, color="#56B4E9", edgecolor="#222222")
        panel.plot([mid, mid], [at - 0.22, at + 0.22], color="#222222", lw=2)
        panel.plot(worst, at, "|", color="#222222", ms=9)
        panel.annotate(
            f"{1e3 * mid:.0f} us",
            (mid, at - 0.27),
            ha="center",
            fontsize=7.5,
        )
    panel.axvline(SELECTION_MEDIAN_MS, color="black", ls=":", lw=1.2)
    panel.annotate(
        f"paper's median\n{SELECTION_MEDIAN_MS} ms",
        (SELECTION_MEDIAN_MS, -0.55),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=7.5,
    )
    names = [row["what"].replace(", ", ",\n").replace(": ", ":\n") for row in rows]
    panel.set_yticks(range(len(rows)), names, fontsize=7.5)
    panel.set_xscale("log")
    panel.set_xlim(left=0.6 * min(row["p5_us"] for row in rows) / 1e3)
    panel.set_ylim(len(rows) - 0.5, -0.9)
    panel.set_xlabel("ms per call, measured")
    panel.set_title("selection time (measured)")


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
