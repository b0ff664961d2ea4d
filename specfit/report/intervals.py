"""Intervals: requests are resampled, and clusters of requests; never cycles. 95 %, seeded.

Requests made from one template are alike, so that n of them say less than n independent ones. Where
clusters are known, whole clusters are drawn as well, and the wider of the two intervals is given.
With few clusters a percentile interval is too narrow; theirs is the *expanded* one, whose tails are
those of Student's t at clusters - 1 degrees of freedom (Hesterberg, "What Teachers Should Know
About the Bootstrap", 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specfit.report.metrics import shared_requests, totals
from specfit.storage.rows import RunRows

DRAWS = 10_000
SEED = 20_261
TAILS = (2.5, 97.5)  # percent
Z = NormalDist().inv_cdf(0.975)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A statistic of sums over n requests. No bounds where fewer than two requests carry it."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    excluded: int = 0  # requests that failed in one run or both
    clusters: int = 0  # where the bounds are those over clusters, the wider ones

    @property
    def width(self) -> float:
        return 0.0 if self.low is None or self.high is None else self.high - self.low


Clusters = Sequence[Hashable] | None
"""Of each request; None where they are not known."""


@lru_cache(maxsize=8)
def _draws(n: int, draws: int) -> Floats:
    """[draws, n]: how often each request is drawn. A table has a hundred intervals of one n."""
    counts = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=draws)
    return counts.astype(np.float64)


def interval_of(
    statistic: Callable[[Floats], Floats],
    columns: NDArray[Any],
    excluded: int = 0,
    clusters: Clusters = None,
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
        found = Interval(value, *_bounds(statistic, values, TAILS), n, excluded)
        known = set() if clusters is None else set(clusters)
        if len(known) < 2 or None in known:
            return found
        order = {name: at for at, name in enumerate(sorted(known, key=str))}
        sums = np.zeros((len(order), values.shape[1]))
        np.add.at(sums, [order[name] for name in clusters or ()], values)
        low, high = _bounds(statistic, sums, expanded_tails(len(order)))
    wider = Interval(value, low, high, n, excluded, len(order))
    return wider if wider.width > found.width else found


def _bounds(
    statistic: Callable[[Floats], Floats], values: Floats, tails: tuple[float, float]
) -> tuple[float, float]:
    """`values` [units, c], resampled unit by unit."""
    drawn = statistic(_draws(len(values), DRAWS) @ values)
    drawn = drawn[np.isfinite(drawn)]  # a draw of requests without any decode cycle says nothing
    low, high = np.percentile(drawn, tails)
    return float(low), float(high)


def expanded_tails(units: int) -> tuple[float, float]:
    """Percentiles at which 95 % of a bootstrap over few units lie."""
    low = 100 * NormalDist().cdf(-sqrt(units / (units - 1)) * student(units - 1))
    return low, 100 - low


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, within 1 % (Cornish and Fisher's expansion)."""
    if freedom <= 2:
        return (12.706, 4.303)[freedom - 1]
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
    )
    return Z + sum(term / freedom ** (at + 1) for at, term in enumerate(terms))


def ratio_interval(
    numerators: NDArray[Any], denominators: NDArray[Any], clusters: Clusters = None
) -> Interval:
    """Sum over sum, per request counters [n] each."""
    columns = np.stack([numerators, denominators], axis=1)
    return interval_of(lambda sums: sums[..., 0] / sums[..., 1], columns, clusters=clusters)


def paired_ratio(
    ours: NDArray[Any], theirs: NDArray[Any], excluded: int = 0, clusters: Clusters = None
) -> Interval:
    """One sum over sum divided by another; [n, 2] each, numerators and denominators of the same
    requests, so that what makes a request easy cancels."""

    def statistic(sums: Floats) -> Floats:
        ratio: Floats = (sums[..., 0] / sums[..., 1]) / (sums[..., 2] / sums[..., 3])
        return ratio

    return interval_of(statistic, np.concatenate([ours, theirs], axis=1), excluded, clusters)


@lru_cache(maxsize=2048)
def _cluster_by_id(run: RunRows) -> dict[str, Hashable]:
    """Kept per run (by identity), as its totals are."""
    return dict(zip(run.request_ids, run.requests["cluster"].to_numpy(object), strict=True))


def clusters_in(run: RunRows, names: Sequence[str]) -> Clusters:
    """Of these requests of a run; None where one of them has none."""
    known = _cluster_by_id(run)
    found = [known[name] for name in names]
    return None if any(one is None or one != one for one in found) else found


def speedup(run: RunRows, baseline: RunRows) -> Interval:
    """Decode tokens/s of `run` over that of `baseline` on the same requests, paired by request."""
    shared, excluded = shared_requests(run, baseline)
    ours, theirs = (
        totals(r).decode.loc[shared, ["committed_tokens", "cycle_ns"]].to_numpy()
        for r in (run, baseline)
    )
    return paired_ratio(ours, theirs, excluded, clusters_in(run, shared))
