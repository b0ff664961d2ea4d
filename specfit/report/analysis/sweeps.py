"""Curves of the documents that scripts/sweep_selection.py leaves: speed against one setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specfit.report.intervals import Interval, paired_ratio
from specfit.report.suite_runs import workload_of

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

    workload: str
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
    workload, points = workload_of(document["info"]["dataset"]), document["points"]
    (shipped,) = [p for p in points if _is_shipped(p)]
    keys = list(dict.fromkeys((p["axis"], p["system"]) for p in points))
    found = []
    for axis, system in keys:
        line = [p for p in points if (p["axis"], p["system"]) == (axis, system)]
        ratios = tuple(paired_ratio(_speed(p), _speed(shipped)) for p in line)
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
