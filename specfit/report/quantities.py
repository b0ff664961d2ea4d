"""What the tables and figures show of a run: each a sum over a sum, with an interval over requests.

A quantity is stated once, as its two counters per request; its value, its interval and its paired
ratio to another run follow. Copies are counted as the clock bills them (design, "Billing").
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from specfit.base.published import PUBLISHED
from specfit.report.intervals import (
    Floats,
    Interval,
    clusters_in,
    interval_of,
    paired_ratio,
    ratio_interval,
)
from specfit.report.machines import unequal
from specfit.report.metrics import Totals, shared_requests, totals
from specfit.storage.rows import RunRows

BILLED_EXPERT_BYTES = {name: shape.expert_bytes() for name, shape in PUBLISHED.items()}
"""Bytes of one expert of a model that runs are billed as; a run billed as itself counts its own."""

Pair = tuple[pd.Series, pd.Series]  # numerator and denominator of each request


@dataclass(frozen=True)
class Quantity:
    """`better` says which way is an improvement: +1 more, -1 less, 0 neither."""

    label: str
    unit: str
    pair: Callable[[Totals], Pair]
    better: int
    billed: bool = False  # the numerator counts copies, to be scaled to the billed model
    scale: float = 1.0
    timed: bool = False  # a ratio of two runs then needs equal machines

    def of(self, run: RunRows) -> Interval:
        top, bottom = self.pair(totals(run))
        clusters = clusters_in(run, run.ok_ids)
        found = ratio_interval(top.to_numpy(), bottom.to_numpy(), clusters)
        factor = self.scale * (copy_scale(run) if self.billed else 1.0)
        return times(found, factor)

    def ratio(
        self, run: RunRows, baseline: RunRows, without: Collection[str] = frozenset()
    ) -> Interval:
        """`run`'s over `baseline`'s on the requests that failed in neither, paired by request;
        those in `without` left out."""
        shared, excluded = shared_requests(run, baseline)
        shared = [name for name in shared if name not in without]
        if self.timed and unequal(run, baseline):
            return Interval(None, None, None, len(shared), excluded)  # the footer says why
        ours, theirs = (self._columns(r, shared) for r in (run, baseline))
        return paired_ratio(ours, theirs, excluded, clusters_in(run, shared))

    def leaving_out(self, run: RunRows, baseline: RunRows) -> dict[str, float]:
        """The ratio without each request in turn, by its id; a ratio of nothing is left out."""
        shared, _ = shared_requests(run, baseline)
        if self.timed and unequal(run, baseline):
            return {}
        ours, theirs = (self._columns(r, shared).astype(float) for r in (run, baseline))
        with np.errstate(divide="ignore", invalid="ignore"):
            a, b = (columns.sum(axis=0) - columns for columns in (ours, theirs))
            found = (a[:, 0] / a[:, 1]) / (b[:, 0] / b[:, 1])
        return {n: float(x) for n, x in zip(shared, found, strict=True) if np.isfinite(x)}

    def ratio_of_ratios(self, a: RunRows, b: RunRows, c: RunRows, d: RunRows) -> Interval:
        """(a over b) over (c over d), on the requests that failed in none, paired by request."""
        names = [set(shared_requests(a, other)[0]) for other in (b, c, d)]
        shared = [name for name in a.request_ids if all(name in held for held in names)]
        excluded = len(a.request_ids) - len(shared)
        if self.timed and any(unequal(a, other) for other in (b, c, d)):
            return Interval(None, None, None, len(shared), excluded)
        columns = np.concatenate([self._columns(r, shared) for r in (a, d, b, c)], axis=1)

        def statistic(sums: Floats) -> Floats:
            one = sums[..., 0::2] / sums[..., 1::2]
            found: Floats = one[..., 0] * one[..., 1] / (one[..., 2] * one[..., 3])
            return found

        return interval_of(statistic, columns, excluded, clusters_in(a, shared))

    def _columns(self, run: RunRows, shared: list[str]) -> NDArray[Any]:
        known = totals(run)
        places = [known.places[name] for name in shared]
        return np.stack([column.to_numpy() for column in self.pair(known)], axis=1)[places]


def _decode(top: str, bottom: str) -> Callable[[Totals], Pair]:
    return lambda t: (t.decode[top], t.decode[bottom])


def _all(top: str, bottom: str) -> Callable[[Totals], Pair]:
    return lambda t: (t.decode[top] + t.prefill[top], t.decode[bottom] + t.prefill[bottom])


QUANTITIES: dict[str, Quantity] = {
    "speed": Quantity(
        "tokens/s", "tokens/s", _decode("committed_tokens", "cycle_ns"), 1, scale=1e9, timed=True
    ),
    "speed_with_prefill": Quantity(
        "tokens/s with prefill",
        "tokens/s",
        _all("committed_tokens", "cycle_ns"),
        1,
        scale=1e9,
        timed=True,
    ),
    "committed": Quantity("committed / cycle", "tokens", _decode("committed_tokens", "cycles"), 1),
    "verified": Quantity("verified / cycle", "nodes", _decode("verified_nodes", "cycles"), 0),
    "cycle": Quantity(
        "cycle time", "ms", _decode("cycle_ns", "cycles"), -1, scale=1e-6, timed=True
    ),
    "experts": Quantity(
        "experts / token",
        "copies",
        _decode("transferred_experts", "committed_tokens"),
        -1,
        billed=True,
    ),
    "experts_with_prefill": Quantity(
        "experts / token with prefill",
        "copies",
        _all("transferred_experts", "committed_tokens"),
        -1,
        billed=True,
    ),
    "transfers": Quantity(
        "experts / cycle", "copies", _decode("transferred_experts", "cycles"), -1, billed=True
    ),
    "demand": Quantity("demand / cycle", "experts", _decode("demand_experts", "cycles"), 0),
    "hit_rate": Quantity("hit rate", "%", _decode("hit_experts", "demand_experts"), 1, scale=100.0),
}


def copy_scale(run: RunRows) -> float:
    """Copies of the billed model that one copy of this run stands for; 1 where it bills itself."""
    size = BILLED_EXPERT_BYTES.get(run.info.billed or "self")
    t = totals(run)
    columns = ("transferred_experts", "prefetched_experts")
    copies = sum(t.sum(name) + t.prefill_sum(name) for name in columns)
    billed = t.sum("billed_bytes") + t.prefill_sum("billed_bytes")
    return 1.0 if size is None or not copies else billed / size / copies


def score(run: RunRows, name: str) -> Interval:
    """Mean of one of metrics.MEASURES over the requests that have it."""
    scores = run.requests[run.requests["status"] == "ok"].set_index("request_id")[name].dropna()
    if not len(scores):
        return Interval(None, None, None, 0)
    clusters = clusters_in(run, list(scores.index))
    return ratio_interval(scores.to_numpy(float), np.ones(len(scores)), clusters)


def times(interval: Interval, factor: float) -> Interval:
    """In other units."""
    value, low, high = (
        None if x is None else x * factor for x in (interval.value, interval.low, interval.high)
    )
    return Interval(value, low, high, interval.n, interval.excluded, interval.clusters)
