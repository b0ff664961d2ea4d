"""Predicted against realised time and tokens of SpecFit's cycles; the drafter's reliability.

python scripts/figure_predictions.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from drawing import Drawing
from matplotlib.figure import SubFigure

from specfit.report.analysis.predictions import (
    Bin,
    Drafter,
    Promises,
    bias,
    calibration_error,
    mape,
    path_bins,
    promised,
    reward_bins,
)
from specfit.report.artifact import main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.reader import ResultsReader
from specfit.report.styles import WORKLOADS, style_of
from specfit.report.table_format import change

EARLY, LINE = "#56B4E9", {"color": "0.3", "lw": 0.9, "ls": "--"}


def make(reader: ResultsReader) -> Drawing:
    promises, drafters, rows = promised(reader)
    word = words_of(rows)
    errors = ", ".join(
        f"{WORKLOADS[p.workload]} time {mape(p.cycles, 'ms').value:.0f} %" for p in promises
    )
    alt = (
        f"Predicted against realised cycle time and tokens, and accepted share against path "
        f"probability. Mean error: {errors}."
    )
    marks = "Dots are means of a bin and grow with its cases; dashed: as predicted."
    bars = INTERVALS.replace("Brackets", "Bars")
    stamp = reader.stamp(rows, "predictions", extra=[marks, bars])
    return Drawing(
        "figure_predictions",
        f"What SpecFit predicts, and what comes (times {word})",
        2.9 * len(promises),
        stamp,
        alt,
        lambda sheet: paint(sheet, promises, drafters, word),
    )


def paint(sheet: SubFigure, promises: list[Promises], drafters: list[Drafter], word: str) -> None:
    axes: Any = sheet.subplots(len(promises), 3, squeeze=False)
    known = {d.workload: d for d in drafters}
    for row, one in zip(axes, promises, strict=True):
        place = WORKLOADS[one.workload]
        _times(row[0], one, place, word)
        _bins(row[1], reward_bins(one), "tokens predicted", "tokens committed")
        tokens = one.cycles[one.cycles["whole"]]
        row[1].set_title(f"tokens predicted: {change(bias(tokens, 'tokens').value or 1.0)} in sum")
        drafted = known[one.workload]
        _bins(row[2], path_bins(drafted), "path probability", "share accepted")
        row[2].set_title(f"drafter: calibration error {calibration_error(drafted).value:.3f}")
        row[2].set_xlim(-0.02, 1.02)
        row[2].set_ylim(-0.02, 1.02)


def _times(panel: Any, one: Promises, place: str, word: str) -> None:
    style = style_of("specfit")
    for full, name, colour, marker in (
        (False, "stopped early", EARLY, "x"),
        (True, "full depth", style.colour, style.marker),
    ):
        group = one.cycles[one.cycles["full"] == full]
        if len(group):
            error = mape(group, "ms").value or 0.0
            panel.plot(
                group["predicted_ms"],
                group["ms"],
                marker,
                ms=3,
                alpha=0.45,
                color=colour,
                mew=0.7,
                label=f"{name}: off by {error:.0f} %, n={len(group)}",
            )
    ends = [one.cycles[["predicted_ms", "ms"]].min().min(), one.cycles["predicted_ms"].max()]
    panel.plot(ends, ends, **LINE)
    panel.set_xlabel(f"predicted, ms ({word})")
    panel.set_ylabel(f"realised, ms ({word})")
    panel.set_title(f"{place}'s place: cycle time")
    panel.set_ylim(top=1.22 * one.cycles["ms"].max())
    legend = panel.legend(loc="upper left", fontsize=7, markerscale=1.5)
    for handle in legend.legend_handles:
        handle.set_alpha(1)


def _bins(panel: Any, bins: list[Bin], x: str, y: str) -> None:
    """What came against what was promised; marks grow with the number of cases."""
    style = style_of("specfit")
    most = max(b.count for b in bins)
    for b in bins:
        value = b.came.value or 0.0
        low, high = b.came.low, b.came.high
        if low is not None and high is not None:
            panel.plot([b.predicted, b.predicted], [low, high], color="#222222", lw=0.9)
        size = 3 + 7 * np.sqrt(b.count / most)
        panel.plot(b.predicted, value, "o", ms=size, color=style.colour, mec="#222222", mew=0.6)
    ends = [min(b.predicted for b in bins), max(b.predicted for b in bins)]
    panel.plot(ends, ends, **LINE)
    panel.set_xlabel(x)
    panel.set_ylabel(y)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
