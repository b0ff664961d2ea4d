"""A machine's constants from observed cycles: non-negative least squares and ratios of sums.

    verify_ns = fixed + tree * (verified > 0) + node * verified + expert * demand + miss * misses
    draft_ns  = extension + level * drafted_levels

Where copies overlap with computing (a GPU, a disk) the measured waits are taken out of verify_ns
first: the copy comes from the link, and a miss is what computing it alone adds. Where they take
turns a miss is both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from specfit.base.types import SpecfitError
from specfit.hardware.clock_error import Observed

INTERRUPTED = 3.0
"""A cycle that took more than this many times its fitted time was interrupted. Plain scatter stays
in: it is part of what a total is made of."""

PASSES = 5
"""Of reweighting; the weights change by less than a percent after the third."""


TERMS = 5


@dataclass(frozen=True)
class ForwardCost:
    fixed_ns: float
    tree_ns: float  # what any node adds: a mask, kernels for more than one row
    node_ns: float
    expert_ns: float  # of one expert of one layer
    miss_ns: float  # what a miss adds, its copy included where copies do not overlap


@dataclass(frozen=True)
class DraftCost:
    extension_ns: float  # once a cycle: the head over the rows just committed
    level_ns: float


def fit_forward(cycles: Sequence[Observed], overlap: bool) -> ForwardCost:
    used = [c for c in cycles if c.record.cycle > 0]
    if len(used) < 2 * TERMS:
        raise SpecfitError(
            f"the probe saw {len(used)} usable cycles and needs {2 * TERMS}; raise limit or "
            "max_new_tokens"
        )
    records = [c.record for c in used]
    time = [r.verify_ns - (r.transfer_wait_ns if overlap else 0) for r in records]
    return ForwardCost(*_fit([_terms(c) for c in used], time).tolist())


def _terms(cycle: Observed) -> tuple[int, ...]:
    record = cycle.record
    nodes = record.verified_nodes
    return 1, int(nodes > 0), nodes, record.demand_experts, cycle.misses


def fit_draft(cycles: Sequence[Observed]) -> DraftCost:
    """Zeros where nothing was drafted."""
    drafted = [c.record for c in cycles if c.record.cycle > 0 and c.record.drafted_levels]
    if not drafted:
        return DraftCost(0.0, 0.0)
    solution = _fit([(1, r.drafted_levels) for r in drafted], [r.draft_ns for r in drafted])
    return DraftCost(*solution.tolist())


def _fit(terms: Sequence[tuple[int, ...]], ns: Sequence[int]) -> NDArray[np.float64]:
    """Least relative error, then again without the interrupted cycles."""
    design, time = np.array(terms, dtype=np.float64), np.array(ns, dtype=np.float64)
    solution = _solve(design, time)
    undisturbed = time <= INTERRUPTED * np.maximum(design @ solution, 1.0)
    if undisturbed.all() or undisturbed.sum() < 2 * design.shape[1]:
        return solution
    return _solve(design[undisturbed], time[undisturbed])


def _solve(design: NDArray[np.float64], time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every cycle counts by its error relative to the *fitted* time. Relative to the measured time,
    slow cycles would weigh less than fast ones, and totals come out short wherever times scatter.
    Columns are scaled to order one."""
    scale = np.maximum(design.max(axis=0), 1.0)
    weight = 1.0 / np.maximum(time, 1.0)
    for _ in range(PASSES):
        scaled, _ = nnls(design / scale * weight[:, None], time * weight)
        solution = np.asarray(scaled / scale)
        weight = 1.0 / np.maximum(design @ solution, 1.0)
    return solution


def prefill_token_ns(cycles: Sequence[Observed], cost: ForwardCost, overlap: bool) -> float:
    """What a prompt token costs beside the forward's fixed part, its experts and its copies."""
    firsts = [c for c in cycles if c.record.cycle == 0]
    rest = 0.0
    for c in firsts:
        rest += c.record.cycle_ns - cost.fixed_ns * len(c.traces)
        rest -= cost.expert_ns * c.record.demand_experts + cost.miss_ns * c.misses
        rest -= c.record.transfer_wait_ns if overlap else 0
    tokens = sum(trace.billed_rows for c in firsts for trace in c.traces)
    return max(0.0, rest / tokens) if tokens else 0.0


def mean_ns(cycles: Sequence[Observed], ns: Callable[[Observed], int]) -> float:
    """Over decode cycles; 0 where there is none."""
    decode = [ns(c) for c in cycles if c.record.cycle > 0]
    return sum(decode) / len(decode) if decode else 0.0


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
