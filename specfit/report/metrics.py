"""Counters to ratios: sums first, one division at the end.

Cycle 0 is prefill: it is in no per-cycle and no decode ratio. Failed requests are in no ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from specfit.base.types import SpecfitError
from specfit.storage.rows import RunRows

PHASES = ("draft", "route", "select", "verify", "commit")
MEASURES = ("score", "rouge1", "rouge2", "rougel", "rougelsum")
COUNTERS = (
    "committed_tokens",
    "accepted_tokens",
    "verified_nodes",
    "demand_experts",
    "hit_experts",
    "transferred_experts",
    "prefetched_experts",
    "used_prefetched_experts",
    "host_experts",
    "transferred_bytes",
    "billed_bytes",
    "transfer_wait_ns",
    "cycle_ns",
    *(f"{phase}_ns" for phase in PHASES),
)


def ratio(numerator: float, denominator: float) -> float | None:
    """None where there is nothing to divide by; a missing number never becomes 0."""
    return numerator / denominator if denominator else None


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums per request that did not fail, in request order; columns are COUNTERS and `cycles`."""

    decode: pd.DataFrame
    prefill: pd.DataFrame

    @cached_property
    def places(self) -> dict[str, int]:
        """Request -> its row."""
        return {str(name): at for at, name in enumerate(self.decode.index)}

    def sum(self, column: str) -> int:
        """Over the decode cycles of every request."""
        return int(self.decode[column].sum())

    def prefill_sum(self, column: str) -> int:
        return int(self.prefill[column].sum())


@lru_cache(maxsize=2048)
def totals(run: RunRows) -> Totals:
    """Kept per run (by identity): every cell of a table needs them."""
    kept = run.sums is not None and not run.sums.empty
    rows = run.sums if kept and run.sums is not None else run.cycles
    is_prefill = (rows["prefill"] if kept else rows["cycle"] == 0).to_numpy(bool)
    counts = np.ones((len(rows), len(COUNTERS) + 1), np.int64)
    for at, name in enumerate(COUNTERS if not kept else (*COUNTERS, "cycles")):
        counts[:, at] = rows[name].to_numpy(np.int64, na_value=0)
    places = {name: at for at, name in enumerate(run.ok_ids)}
    names = rows["request_id"].to_numpy(object)
    place = np.array([places.get(str(name), -1) for name in names], np.intp)

    def sums(wanted: NDArray[np.bool_]) -> pd.DataFrame:
        found = np.zeros((len(places), counts.shape[1]), np.int64)
        np.add.at(found, place[wanted & (place >= 0)], counts[wanted & (place >= 0)])
        return pd.DataFrame(found, index=list(places), columns=[*COUNTERS, "cycles"])

    return Totals(sums(~is_prefill), sums(is_prefill))


@dataclass(frozen=True)
class Summary:
    """A run in ratios. None where there was nothing to divide by."""

    requests: int
    failed: int
    decode_tokens: int
    tokens_per_second: float | None  # decode
    tokens_per_second_with_prefill: float | None
    committed_per_cycle: float | None  # acceptance length
    verified_per_cycle: float | None
    experts_per_token: float | None  # decode transfers / decode committed
    experts_per_token_with_prefill: float | None
    hit_rate: float | None  # of the experts demanded in decode
    phase_ns_per_cycle: dict[str, float | None]
    phase_shares: dict[str, float | None]
    wait_ns_per_cycle: float | None  # lies inside verify
    transferred_bytes: int  # prefill included
    billed_bytes: int
    timed_ns: int  # prefill_ns + decode_ns
    elapsed_ns: int | None  # None where no timings were kept: reference rows
    atlas_ns: int | None
    mean_score: float | None


def summarise(run: RunRows) -> Summary:
    t = totals(run)
    cycles, decode_ns, tokens = t.sum("cycles"), t.sum("cycle_ns"), t.sum("committed_tokens")
    timed_ns = decode_ns + t.prefill_sum("cycle_ns")
    all_tokens = tokens + t.prefill_sum("committed_tokens")
    copies = t.sum("transferred_experts")
    phases = {phase: t.sum(f"{phase}_ns") for phase in PHASES}
    timings = run.timings[run.timings["request_id"].isin(run.ok_ids)]
    scores = run.requests.loc[run.requests["status"] == "ok", "score"].dropna()
    return Summary(
        requests=len(run.ok_ids),
        failed=len(run.requests) - len(run.ok_ids),
        decode_tokens=tokens,
        tokens_per_second=ratio(tokens * 1e9, decode_ns),
        tokens_per_second_with_prefill=ratio(all_tokens * 1e9, timed_ns),
        committed_per_cycle=ratio(tokens, cycles),
        verified_per_cycle=ratio(t.sum("verified_nodes"), cycles),
        experts_per_token=ratio(copies, tokens),
        experts_per_token_with_prefill=ratio(
            copies + t.prefill_sum("transferred_experts"), all_tokens
        ),
        hit_rate=ratio(t.sum("hit_experts"), t.sum("demand_experts")),
        phase_ns_per_cycle={phase: ratio(ns, cycles) for phase, ns in phases.items()},
        phase_shares={phase: ratio(ns, decode_ns) for phase, ns in phases.items()},
        wait_ns_per_cycle=ratio(t.sum("transfer_wait_ns"), cycles),
        transferred_bytes=t.sum("transferred_bytes") + t.prefill_sum("transferred_bytes"),
        billed_bytes=t.sum("billed_bytes") + t.prefill_sum("billed_bytes"),
        timed_ns=timed_ns,
        elapsed_ns=None if run.timings.empty else int(timings["elapsed_ns"].sum()),
        atlas_ns=None if run.timings.empty else int(timings["atlas_ns"].sum()),
        mean_score=float(scores.mean()) if len(scores) else None,
    )


@dataclass(frozen=True)
class SameCheck:
    """Whether two runs agree, in token ids or in scores, over requests that failed in neither."""

    compared: int
    excluded: int
    first_difference: str | None  # request id
    position: int | None = None  # first token that differs there; None for scores

    @property
    def equal(self) -> bool:
        return self.compared > 0 and self.first_difference is None

    def __str__(self) -> str:
        if self.first_difference is not None:
            token = "" if self.position is None else f", token {self.position}"
            return f"no: first at request {self.first_difference}{token}"
        return f"yes, {self.compared} requests" if self.compared else "no request to compare"


def same_ids(a: RunRows, b: RunRows) -> SameCheck:
    """Of requests whose ids are kept in both: committed rows that are no headline have none."""
    both, excluded = shared_requests(a, b)
    outputs = [run.requests.set_index("request_id")["output_ids"] for run in (a, b)]
    shared = [name for name in both if all(column[name] is not None for column in outputs)]
    for name in shared:
        left, right = ([int(token) for token in column[name]] for column in outputs)
        if left != right:
            differs = (i for i, (x, y) in enumerate(zip(left, right, strict=False)) if x != y)
            position = next(differs, min(len(left), len(right)))
            return SameCheck(len(shared), excluded, name, position)
    return SameCheck(len(shared), excluded, None)


def same_scores(a: RunRows, b: RunRows) -> SameCheck:
    """Every measure of every request: greedy output is lossless, so no selector scores better."""
    shared, excluded = shared_requests(a, b)
    left, right = (
        run.requests.set_index("request_id").loc[shared, list(MEASURES)].astype("Float64")
        for run in (a, b)
    )
    equal = (left == right) | (left.isna() & right.isna())
    differs = equal.index[~equal.fillna(False).all(axis=1)]
    return SameCheck(len(shared), excluded, str(differs[0]) if len(differs) else None)


def mean_measures(run: RunRows) -> dict[str, float]:
    """Mean of each measure over the requests that have one; measures that none has are left out."""
    ok = run.requests[run.requests["status"] == "ok"]
    columns = {name: ok[name].dropna() for name in MEASURES}
    return {name: float(column.mean()) for name, column in columns.items() if len(column)}


def shared_requests(a: RunRows, b: RunRows) -> tuple[list[str], int]:
    """Requests that failed in neither run, in order, and how many failed in one or both."""
    if a.request_ids != b.request_ids:
        raise SpecfitError(
            f"runs {a.info.run_id} and {b.info.run_id} answer different requests; "
            "only runs of the same requests can be compared"
        )
    ok = set(a.ok_ids) & set(b.ok_ids)
    shared = [name for name in a.request_ids if name in ok]
    return shared, len(a.request_ids) - len(shared)
