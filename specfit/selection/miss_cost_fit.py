"""What `cost=miss` and `cost=hit_miss` charge: one price by least squares, two by throughput.

An absent expert costs its copy now and saves the copy at its next use; a resident one costs
nothing now and, by being used, keeps its slot. No error of a cycle's predicted time shows
either, so the two prices are not fitted to times: every pair of a small grid decodes the
calibration questions, and the one with most tokens per second is taken. Grid: shares of the time
that a miss was measured to take, and whole-number ratios of the two prices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from specfit.base.types import SpecfitError
from specfit.selection.cost import CostModel
from specfit.selection.fit import solve

SHARES = (0.4, 0.55, 0.75, 1.0)
WEIGHTS = ((1, 0), (4, 1), (2, 1), (1, 1))
"""(absent, resident); the last is the union at another price."""


def fit_misses(
    sizes: Sequence[int], missing: Sequence[int], times_ns: Sequence[int], k: int
) -> CostModel:
    """T = b_|S| + m x (demanded and not resident before the cycle), all >= 0."""
    size, absent = np.array(sizes), np.array(missing, dtype=np.float64)
    if not absent.any():
        raise SpecfitError(
            "no calibration probe missed an expert, so a miss has no price; use cost=union, or "
            "fewer slots"
        )
    unit, time_unit = absent.max(), float(np.mean(times_ns))
    design = np.column_stack([size[:, None] == np.arange(k + 1), absent / unit])
    solution = solve(design.astype(np.float64), np.array(times_ns) / time_unit)
    return CostModel(solution[:-1] * time_unit, float(solution[-1] * time_unit / unit))


def candidates(fitted: CostModel) -> Iterator[tuple[float, CostModel]]:
    """(share, cost). Where a miss was measured to cost nothing, all of them price it at nothing."""
    for weights in WEIGHTS:
        for share in SHARES:
            yield share, replace(fitted, expert_ns=share * fitted.expert_ns, weights=weights)


def best_prices(
    fitted: CostModel, throughput: Callable[[CostModel], float]
) -> tuple[CostModel, list[tuple[float, tuple[int, int], float]]]:
    """The candidate of highest throughput, the first of equals; and (share, weights, tokens/s) of
    each."""
    tried = [(share, cost, throughput(cost)) for share, cost in candidates(fitted)]
    best = max(tried, key=lambda one: one[2])[1]
    return best, [(share, cost.weights, speed) for share, cost, speed in tried]
