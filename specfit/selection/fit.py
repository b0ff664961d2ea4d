"""Calibration (app. B): b_0 .. b_K and beta from probe cycles, all >= 0, no order imposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specfit.base.types import IntArray, SpecfitError
from specfit.selection.cost import CostModel, FloatArray

Fitting = Callable[[ArrayLike, ArrayLike, ArrayLike, int], CostModel]
"""`fit` or `fit_affine`: sizes, demands, times in ns, K -> the cost model."""
FAR = 2.0
"""Factor by which beta may differ from what an expert of the union costs on average."""
SLACK = 0.02
"""Share of b_0 by which b_K may lie below it: noise of a measured clock."""


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Each probe as predicted by a fit that saw no probe of its state; in input order."""

    predicted_ns: FloatArray  # [n]
    absolute_ns: FloatArray  # [n], |predicted - measured|
    relative: FloatArray  # [n], absolute / measured


def _checked(
    sizes: ArrayLike, demands: ArrayLike, times_ns: ArrayLike, k: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    size = np.asarray(sizes, dtype=np.int64)
    demand = np.asarray(demands, dtype=np.float64)
    time = np.asarray(times_ns, dtype=np.float64)
    if not (size.ndim == 1 and size.shape == demand.shape == time.shape):
        raise SpecfitError("calibration needs one size, one demand and one time per probe")
    if not (np.isfinite(time).all() and (time > 0).all()):
        raise SpecfitError("calibration times must be positive; a probe took no time at all")
    if not (np.isfinite(demand).all() and (demand > 0).all()):
        raise SpecfitError("calibration demands must be positive; the root alone demands experts")
    if size.size and (size.min() < 0 or size.max() > k):
        raise SpecfitError(f"calibration probes must have 0 to {k} nodes, found {size.max()}")
    missing = sorted(set(range(k + 1)) - set(size.tolist()))
    if missing:
        raise SpecfitError(
            f"calibration has no probe of {missing[0]} nodes; every size 0 to {k} needs one"
        )
    return size, demand, time


def _design(size: IntArray, demand: FloatArray, k: int) -> FloatArray:
    """[n, K + 2]: one indicator per size, then the demand."""
    return np.column_stack([size[:, None] == np.arange(k + 1), demand]).astype(np.float64)


def solve(design: FloatArray, times: FloatArray) -> FloatArray:
    """Least squares with every coefficient >= 0."""
    from scipy.optimize import nnls  # a third of a second, paid by who fits

    found: FloatArray = nnls(design, times)[0]
    return found


def fit(sizes: ArrayLike, demands: ArrayLike, times_ns: ArrayLike, k: int) -> CostModel:
    """Non-negative least squares of T(S) = b_|S| + beta F(S) over probes.

    Columns and times are scaled to order one before the solve (demands are hundreds, times 1e8),
    which changes the conditioning and not the minimiser.
    """
    size, demand, time = _checked(sizes, demands, times_ns, k)
    demand_unit, time_unit = demand.max(), time.mean()
    design = _design(size, demand / demand_unit, k)
    if np.linalg.matrix_rank(design) < k + 2:
        raise SpecfitError(
            "calibration cannot tell the cost of an expert from the intercepts: probes of equal "
            "size all demand equally many experts; probe trees or states that differ in demand"
        )
    solution = solve(design, time / time_unit)
    return CostModel(solution[:-1] * time_unit, float(solution[-1] * time_unit / demand_unit))


def fit_affine(sizes: ArrayLike, demands: ArrayLike, times_ns: ArrayLike, k: int) -> CostModel:
    """b_k = a + c k with a, c >= 0, on the probes of `fit`: what the closure needs (app. A.3).

    Priced up to `k` nodes, which may exceed the largest probe: a line goes on, free intercepts
    do not.
    """
    largest = int(np.max(np.asarray(sizes, dtype=np.int64), initial=0))
    size, demand, time = _checked(sizes, demands, times_ns, largest)
    size_unit, demand_unit, time_unit = max(largest, 1), demand.max(), time.mean()
    columns = [np.ones(len(size)), size / size_unit, demand / demand_unit]
    design = np.column_stack(columns)
    if np.linalg.matrix_rank(design) < 3:
        raise SpecfitError(
            "calibration cannot tell the cost of an expert from that of a node: demand grows with "
            "size in the same way in every probe; probe trees or states that differ in demand"
        )
    base, node, expert = solve(design, time / time_unit)
    intercepts = base * time_unit + node * time_unit / size_unit * np.arange(k + 1)
    return CostModel(intercepts, float(expert * time_unit / demand_unit))


def leave_one_out(
    states: Sequence[Any] | NDArray[Any],
    sizes: ArrayLike,
    demands: ArrayLike,
    times_ns: ArrayLike,
    k: int,
    fitting: Fitting = fit,
) -> LeaveOneOut:
    """The cost model's error: every state is predicted by a fit on the other states."""
    size, demand, time = _checked(sizes, demands, times_ns, k)
    names = np.unique(np.asarray(states), return_inverse=True)[1].reshape(-1)
    if len(names) != len(size):
        raise SpecfitError("calibration needs the state of every probe")
    if len(names) == 0 or names.max() == 0:
        raise SpecfitError("leaving one state out needs probes of two states or more")
    predicted = np.empty(len(size))
    for state in range(names.max() + 1):
        held_out = names == state
        model = fitting(size[~held_out], demand[~held_out], time[~held_out], k)
        pairs = zip(size[held_out].tolist(), demand[held_out].tolist(), strict=True)
        predicted[held_out] = [model.predict_ns(s, d) for s, d in pairs]
    absolute = np.abs(predicted - time)
    return LeaveOneOut(predicted, absolute, absolute / time)


def doubts(
    cost: CostModel,
    demands: Sequence[int] = (),
    missing: Sequence[int | None] = (),
    miss_ns: float | None = None,
) -> list[str]:
    """Signs that a fitted cost model says something else than what it is read as.

    Sentences without a full stop; none of a fit that can be read as nodes and misses.

    `demands` and `missing` are those of the probes; `miss_ns` is the time of a copy, where the
    clock knows one and nothing hides it. Without any of them beta is not judged.
    """
    found = []
    first, last = cost.intercepts_ns[0] / 1e6, cost.intercepts_ns[-1] / 1e6
    if last < (1 - SLACK) * first:
        found.append(
            f"b_k falls from {first:.1f} ms at no node to {last:.1f} ms at {cost.k}: beta has "
            "taken in what nodes cost, and times at another union are not to be trusted"
        )
    known = [absent for absent in missing if absent is not None]
    if miss_ns is None or len(known) != len(demands) or not sum(demands):
        return found
    share = sum(known) / sum(demands)
    expected, beta = share * miss_ns, cost.expert_ns
    if not expected / FAR <= beta <= FAR * expected:
        found.append(
            f"beta is {beta / 1e3:.0f} us an expert, where the probes missed {100 * share:.0f} % "
            f"of their experts and a miss costs {miss_ns / 1e3:.0f} us ({expected / 1e3:.0f} us an "
            "expert): the union does not say how many are missed"
        )
    return found
