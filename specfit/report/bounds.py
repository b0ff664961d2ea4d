"""What a system needs and what its cache could at most give: break-even, Belady, resident."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specfit.report.intervals import Floats, Interval, clusters_in, interval_of
from specfit.report.metrics import shared_requests, totals
from specfit.report.quantities import QUANTITIES
from specfit.report.styles import style_of
from specfit.storage.rows import RunRows

BELADY = "belady"
"""The policy that evicts what is needed last, and the suite of replays under it. It decides nothing
where one forward demands more experts than there are slots."""
PLAIN = "ar_cache"
BOUNDED = (PLAIN, "eagle3_cache", "specfit")
"""Systems with a cache, and so with a resident row."""
NO_COPIES = (
    "transferred_experts",
    "prefetched_experts",
    "transferred_bytes",
    "billed_bytes",
    "evicted_experts",
    "host_experts",
    "transfer_wait_ns",
)
RESIDENT_NOTE = (
    "Resident: the same cycles with every expert on the device, nothing copied, no waiting for "
    "copies: what no cache can exceed (exact on the modelled clock; trees as chosen for the cache)."
)
NOTE = (
    f"{RESIDENT_NOTE} Break-even: tokens that a cycle must commit to equal AR + cache. Belady: the "
    "hit rate of a policy that knows the future, less ours, in points."
)


def break_even(run: RunRows, plain: RunRows) -> Interval:
    """Tokens that a cycle of `run` must commit to equal `plain`, which commits one a cycle."""
    return QUANTITIES["cycle"].ratio(run, plain)


def short_of_belady(run: RunRows, knowing: RunRows) -> Interval:
    """Points of hit rate that `run` stays below `knowing`, the same run under Belady's policy."""
    shared, excluded = shared_requests(run, knowing)
    names = ["hit_experts", "demand_experts"]
    columns = [totals(r).decode.loc[shared, names].to_numpy() for r in (knowing, run)]

    def statistic(sums: Floats) -> Floats:
        points: Floats = 100 * (sums[..., 0] / sums[..., 1] - sums[..., 2] / sums[..., 3])
        return points

    clusters = clusters_in(run, shared)
    return interval_of(statistic, np.concatenate(columns, axis=1), excluded, clusters)


def resident(run: RunRows) -> RunRows:
    """The run's cycles without copies: hits are the demand, no forward waits.

    On the modelled clock these are the times of a run whose experts are all on the device, to the
    nanosecond: a layer's time is its computing and its waiting (`hardware/timeline.py`). On a
    measured clock it is an estimate, since copies also slow what computes beside them.
    """
    cycles = run.cycles.copy()
    for name in ("verify_ns", "cycle_ns"):
        cycles[name] = cycles[name] - cycles["transfer_wait_ns"]
    cycles["hit_experts"] = cycles["demand_experts"]
    cycles[list(NO_COPIES)] = 0
    requests = run.requests.copy()
    for name, is_prefill in (("prefill_ns", True), ("decode_ns", False)):
        part = cycles[(cycles["cycle"] == 0) == is_prefill]
        sums = part.groupby(part["request_id"].astype(str))["cycle_ns"].sum()
        requests[name] = requests["request_id"].astype(str).map(sums).astype("Int64")
    return replace(run, cycles=cycles, requests=requests)


def resident_label(system: str) -> str:
    """'EAGLE-3, resident' of eagle3_cache."""
    return f"{style_of(system).label.removesuffix(' + cache')}, resident"
