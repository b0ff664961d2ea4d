"""A machine's constants from observed cycles: non-negative least squares and ratios of sums.

verify_ns of a decode cycle = fixed + node * verified + expert * demand + copy * misses. Where
copies overlap with computing (a GPU) only cycles without a miss are fitted, and the copy comes
from the link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from specfit.core import SpecfitError
from specfit.hardware.rebill import Observed

OUTLIER = 4.0
"""Cycles further from the first fit than this many median deviations were interrupted."""


@dataclass(frozen=True)
class ForwardCost:
    fixed_ns: float
    node_ns: float
    expert_ns: float  # of one expert of one layer
    copy_ns: float  # what a miss adds; 0 where copies overlap


def fit_forward(cycles: Sequence[Observed], overlap: bool) -> ForwardCost:
    used = [c for c in cycles if c.record.cycle > 0 and (not overlap or c.misses == 0)]
    columns = 3 if overlap else 4
    if len(used) < 2 * columns:
        raise SpecfitError(
            f"the probe saw {len(used)} usable cycles and needs {2 * columns}; raise limit or "
            "max_new_tokens"
        )
    design = np.array([_terms(c)[:columns] for c in used], dtype=np.float64)
    time = np.array([c.record.verify_ns for c in used], dtype=np.float64)
    solution = _solve(design, time)
    distance = np.abs(design @ solution - time)
    kept = distance <= OUTLIER * max(float(np.median(distance)), 1.0)
    if kept.sum() >= 2 * columns:
        solution = _solve(design[kept], time[kept])
    return ForwardCost(*solution.tolist(), *([0.0] if overlap else []))


def _terms(cycle: Observed) -> tuple[int, int, int, int]:
    record = cycle.record
    return 1, record.verified_nodes, record.demand_experts, cycle.misses


def _solve(design: NDArray[np.float64], time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every cycle counts by its relative error; columns are scaled to order one."""
    scale = np.maximum(design.max(axis=0), 1.0)
    solution, _ = nnls(design / scale / time[:, None], np.ones(len(time)))
    return np.asarray(solution / scale)


def prefill_token_ns(cycles: Sequence[Observed], cost: ForwardCost) -> float:
    """What a prompt token costs beside the forward's fixed part, its experts and its copies."""
    firsts = [c for c in cycles if c.record.cycle == 0]
    rest = 0.0
    for c in firsts:
        rest += c.record.cycle_ns - cost.fixed_ns * len(c.traces)
        rest -= cost.expert_ns * c.record.demand_experts + cost.copy_ns * c.misses
    tokens = sum(trace.billed_rows for c in firsts for trace in c.traces)
    return max(0.0, rest / tokens) if tokens else 0.0


def per_unit_ns(
    cycles: Sequence[Observed],
    ns: Callable[[Observed], int],
    units: Callable[[Observed], int],
) -> float:
    """Ratio of sums over decode cycles; 0 where nothing was counted."""
    decode = [c for c in cycles if c.record.cycle > 0]
    total = sum(units(c) for c in decode)
    return sum(ns(c) for c in decode) / total if total else 0.0


def spread(
    cycles: Mapping[str, Sequence[Observed]],
    estimate: Callable[[Mapping[str, Sequence[Observed]]], Mapping[str, float]],
) -> dict[str, tuple[float, float]]:
    """Least and greatest value of every constant when one request at a time is left out."""
    requests = sorted({c.record.request_id for group in cycles.values() for c in group})
    found: list[Mapping[str, float]] = []
    for left_out in requests:
        rest = {
            name: [c for c in group if c.record.request_id != left_out]
            for name, group in cycles.items()
        }
        try:
            found.append(estimate(rest))
        except SpecfitError:
            continue  # too few cycles without this one
    names = found[0] if found else {}
    return {n: (min(f[n] for f in found), max(f[n] for f in found)) for n in names}
