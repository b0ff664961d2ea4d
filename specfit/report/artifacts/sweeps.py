"""Curves of the documents that the study `sweeps` leaves: speed against one setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specfit.report.figures import Drawing, series
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Interval, paired_ratio
from specfit.report.many import sentence
from specfit.report.reader import ResultsReader
from specfit.report.styles import Workload, style_of, workload_of

AXES = {
    "beta": "beta in selection, times the fit's",
    "k": "K, the cost refitted at each",
    "width": "best N nodes of the pool",
}


SHIPPED = {"beta": 1.0, "k": 7, "width": 18}


"""The paper's settings, where every curve of SpecFit is 1."""


@dataclass(frozen=True)
class Curve:
    """Decode speed of a system over that of SpecFit at the paper's settings, same requests."""

    workload: Workload
    axis: str
    system: str
    values: tuple[float, ...]
    ratios: tuple[Interval, ...]
    verified: tuple[float, ...]  # nodes per cycle

    @property
    def best(self) -> tuple[float, Interval]:
        at = int(np.argmax([interval.value or 0.0 for interval in self.ratios]))
        return self.values[at], self.ratios[at]


def curves(documents: Sequence[Mapping[str, Any]]) -> list[Curve]:
    return [curve for document in documents for curve in _of_one(document)]


def _of_one(document: Mapping[str, Any]) -> list[Curve]:
    workload, points = workload_of(document["info"]), document["points"]
    (shipped,) = [p for p in points if _is_shipped(p)]
    keys = list(dict.fromkeys((p["axis"], p["system"]) for p in points))
    found = []
    for axis, system in keys:
        line = [p for p in points if (p["axis"], p["system"]) == (axis, system)]
        clusters = document.get("clusters")
        ratios = tuple(paired_ratio(_speed(p), _speed(shipped), 0, clusters) for p in line)
        verified = tuple(
            sum(p["requests"]["verified_nodes"]) / sum(p["requests"]["cycles"]) for p in line
        )
        values = tuple(float(p["value"]) for p in line)
        found.append(Curve(workload, axis, system, values, ratios, verified))
    return found


def _is_shipped(point: Mapping[str, Any]) -> bool:
    return (point["axis"], point["system"], point["value"]) == ("beta", "specfit", SHIPPED["beta"])


def _speed(point: Mapping[str, Any]) -> np.ndarray:
    """[n, 2] tokens and nanoseconds per request."""
    sums = point["requests"]
    return np.array([sums["committed_tokens"], sums["decode_ns"]], dtype=np.float64).T


SUITE = "sweep"


def figure_sweep(reader: ResultsReader) -> Drawing:
    """Beta, K and pool width of the selection: speed against each, over recorded pools."""
    rows = [member.rows for member in reader.members(SUITE, kind="replay")]
    found = reader.suites(SUITE)[0]
    documents = [found.document(cell.label) for cell in found.suite.cells if cell.kind == "bench"]
    drawn = curves(documents)
    best = "; ".join(
        f"{c.workload.short}, {c.axis}: {c.best[0]:g} ({c.best[1].value:.3f})"
        for c in drawn
        if c.system == "specfit"
    )
    alt = f"Decode speed over that at the paper's settings. SpecFit is fastest at {best}."
    extra = [
        "Every point is a replay of its own; EAGLE-3 + cache at the same K or width. Which value "
        "is fastest is read on the text that it is shown on; the shipped ones are the paper's.",
        *([told] if (told := sentence([r for c in drawn for r in c.ratios])) else []),
        INTERVALS.replace("Brackets", "Bars"),
    ]
    stamp = reader.stamp(rows, SUITE, extra=extra)
    title = f"What the selection's settings are worth (times {words_of(rows)})"
    return Drawing("figure_sweep", title, 4.6, stamp, alt, lambda sheet: paint(sheet, drawn))


def paint(sheet: Any, drawn: list[Curve]) -> None:
    workloads = list(dict.fromkeys(curve.workload for curve in drawn))
    axes: Any = sheet.subplots(len(workloads), len(AXES), sharey="row", squeeze=False)
    for row, workload in enumerate(workloads):
        for panel, axis in zip(axes[row], AXES, strict=True):
            held = [c for c in drawn if (c.workload, c.axis) == (workload, axis)]
            _draw(panel, held, axis)
        axes[row][0].set_ylabel(f"{workload.short}\nspeed, paper's = 1")
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
