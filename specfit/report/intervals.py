"""Intervals: the resampling unit is the request, never the cycle. 95 %, seeded, vectorised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specfit.report.metrics import shared_requests, totals
from specfit.storage.rows import RunRows

DRAWS = 10_000
SEED = 20_261
TAILS = (2.5, 97.5)  # percent

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A statistic of sums over n requests. No bounds where fewer than two requests carry it."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    excluded: int = 0  # requests that failed in one run or both


@lru_cache(maxsize=4)
def _draws(n: int, draws: int) -> Floats:
    """[draws, n]: how often each request is drawn. A table has a hundred intervals of one n."""
    counts = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=draws)
    return counts.astype(np.float64)


def interval_of(
    statistic: Callable[[Floats], Floats], columns: NDArray[Any], excluded: int = 0
) -> Interval:
    """`columns` [n, c] are counters per request; `statistic` maps sums [..., c] to [...].

    A draw of n requests with replacement is a row of multinomial counts, so all draws are one
    matrix product.
    """
    n = len(columns)
    values = np.asarray(columns, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(values.sum(axis=0)))
        if not np.isfinite(value):
            return Interval(None, None, None, n, excluded)
        if n < 2:
            return Interval(value, None, None, n, excluded)
        drawn = statistic(_draws(n, DRAWS) @ values)
    drawn = drawn[np.isfinite(drawn)]  # a draw of requests without any decode cycle says nothing
    low, high = np.percentile(drawn, TAILS)
    return Interval(value, float(low), float(high), n, excluded)


def ratio_interval(numerators: NDArray[Any], denominators: NDArray[Any]) -> Interval:
    """Sum over sum, per request counters [n] each."""
    columns = np.stack([numerators, denominators], axis=1)
    return interval_of(lambda sums: sums[..., 0] / sums[..., 1], columns)


def paired_ratio(ours: NDArray[Any], theirs: NDArray[Any], excluded: int = 0) -> Interval:
    """One sum over sum divided by another; [n, 2] each, numerators and denominators of the same
    requests, so that what makes a request easy cancels."""

    def statistic(sums: Floats) -> Floats:
        ratio: Floats = (sums[..., 0] / sums[..., 1]) / (sums[..., 2] / sums[..., 3])
        return ratio

    return interval_of(statistic, np.concatenate([ours, theirs], axis=1), excluded)


def speedup(run: RunRows, baseline: RunRows) -> Interval:
    """Decode tokens/s of `run` over that of `baseline` on the same requests, paired by request."""
    shared, excluded = shared_requests(run, baseline)
    ours, theirs = (
        totals(r).decode.loc[shared, ["committed_tokens", "cycle_ns"]].to_numpy()
        for r in (run, baseline)
    )
    return paired_ratio(ours, theirs, excluded)
