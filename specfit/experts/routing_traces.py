"""Routing traces from elsewhere, [tokens, layers, k] arrays: what a cache would make of them.

An event is one forward over n consecutive tokens, and its experts are one access set: an expert is
a hit if it was resident when the event began, however many of the tokens use it. Counting one
token after the other inside a verify would call the second of them a hit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import SpecfitError
from specfit.experts.cache import ExpertCache
from specfit.experts.eviction import POLICIES
from specfit.experts.policy_cache import Movement, MovingCache

Trace = NDArray[np.integer]


@dataclass(frozen=True)
class Hits:
    """Sums over events and layers."""

    hits: int
    demand: int

    @property
    def rate(self) -> float:
        if not self.demand:
            raise SpecfitError("no event fits into these traces, so there is no hit rate")
        return self.hits / self.demand


def check(traces: Sequence[Trace], experts: int, tokens: Sequence[int] = (1,)) -> None:
    """Raises SpecfitError unless these are traces of one model with `experts` per layer, long
    enough for events of `tokens` each; the first entry at fault is named."""
    shapes = {tuple(trace.shape[1:]) for trace in traces}
    if len(shapes) != 1 or any(trace.ndim != 3 or 0 in trace.shape for trace in traces):
        found = sorted({tuple(trace.shape) for trace in traces})
        raise SpecfitError(
            f"traces are [tokens, layers, k] arrays of one model, none of them empty; found {found}"
        )
    for number, trace in enumerate(traces):
        if not np.issubdtype(trace.dtype, np.integer):
            raise SpecfitError(f"trace {number} holds {trace.dtype}; expected integer expert ids")
        outside = np.argwhere((trace < 0) | (trace >= experts))
        if len(outside):
            token, layer, place = outside[0]
            raise SpecfitError(
                f"trace {number} names expert {trace[token, layer, place]} at token {token}, layer "
                f"{layer} ({len(outside)} such entries); this model has 0 to {experts - 1}"
            )
        ordered = np.sort(trace, axis=2)
        twice = np.argwhere((ordered[..., 1:] == ordered[..., :-1]).any(axis=2))
        if len(twice):
            token, layer = twice[0]
            raise SpecfitError(
                f"trace {number} names an expert twice at token {token}, layer {layer} "
                f"({len(twice)} such rows); a router's k experts are distinct"
            )
    longest = max(len(trace) for trace in traces)
    if longest < max(tokens):
        raise SpecfitError(
            f"the longest trace has {longest} tokens, an event {max(tokens)}; use longer traces or "
            "smaller events"
        )


def events(traces: Sequence[Trace], tokens: int) -> Iterator[Trace]:
    """[tokens, L, k] after another, within one trace each; a shorter rest is left out."""
    for trace in traces:
        for start in range(0, len(trace) - tokens + 1, tokens):
            yield trace[start : start + tokens]


def union_growth(traces: Sequence[Trace], tokens: int, experts: int) -> float:
    """Distinct experts per layer of `tokens` consecutive tokens: the mean over all windows."""
    total = windows = 0
    for trace in traces:
        named = np.zeros((*trace.shape[:2], experts), dtype=np.bool_)
        np.put_along_axis(named, trace.astype(np.int64), True, axis=2)
        counts = np.cumsum(named, axis=0, dtype=np.int32)
        counts = np.concatenate([np.zeros_like(counts[:1]), counts])
        union = (counts[tokens:] - counts[:-tokens]) > 0
        total += int(union.sum())
        windows += union.shape[0] * union.shape[1]
    return total / windows


def count_uses(traces: Sequence[Trace], experts: int) -> NDArray[np.int64]:
    """[L, E] tokens that used each expert."""
    rows = np.concatenate(list(traces)).astype(np.int64)
    uses = [
        np.bincount(rows[:, layer].reshape(-1), minlength=experts) for layer in range(rows.shape[1])
    ]
    return np.array(uses, dtype=np.int64)


def policy_hits(
    traces: Sequence[Trace],
    tokens: int,
    experts: int,
    slots: int,
    policy: str = "lru",
    uses: NDArray[np.int64] | None = None,
) -> Hits:
    """By the engine's own rule; contents are carried from trace to trace, as between requests.

    `uses` [L, E]: what a policy that pins goes by, counted elsewhere (`count_uses`).
    """
    layers = traces[0].shape[1]
    cache: ExpertCache = ExpertCache(layers, experts, slots)
    if policy != "lru":
        cache = MovingCache(
            layers, experts, slots, movement=Movement(POLICIES[policy], bypass=uses is not None)
        )
        if uses is not None:
            cache.count(uses)
    hits = demand = 0
    for event in events(traces, tokens):
        trace = cache.replay(event.swapaxes(0, 1), tokens, is_prefill=False)
        hits += int(trace.hits.sum())
        demand += int(trace.demand.sum())
    return Hits(hits, demand)


def lru_hits(traces: Sequence[Trace], experts: int, slots: int) -> Hits:
    """Plain LRU with one access after the other, as traces are often replayed elsewhere: a token's
    own misses may evict what it uses next. For comparison with such figures only."""
    ids = np.concatenate([trace.astype(np.int64) for trace in traces])  # [tokens, L, k]
    layers = (np.ascontiguousarray(ids[:, layer]).reshape(-1) for layer in range(ids.shape[1]))
    return Hits(sum(int(_lru_layer(layer, experts, slots)) for layer in layers), ids.size)


@njit(cache=True)
def _lru_layer(accesses: NDArray[np.int64], experts: int, slots: int) -> int:
    used = np.full(experts, -1, dtype=np.int64)  # when last; -1 not resident
    hits = resident = 0
    for now, expert in enumerate(accesses):
        if used[expert] >= 0:
            hits += 1
        elif resident < slots:
            resident += 1
        else:
            oldest = -1
            for other in range(experts):
                if used[other] >= 0 and (oldest < 0 or used[other] < used[oldest]):
                    oldest = other
            used[oldest] = -1
        used[expert] = now
    return hits


def belady_hits(traces: Sequence[Trace], tokens: int, experts: int, slots: int) -> Hits:
    """The most hits any policy could have, knowing the future.

    After an event any `slots` of the residents and the demanded may stay. A hit is a stay from one
    use of an expert to its next; at most `slots` stays overlap, each counts one, so keeping those
    that end first is optimal (interval scheduling on `slots` machines).
    """
    rows = np.stack(list(events(traces, tokens)))  # [events, n, L, k]
    demand = np.zeros((rows.shape[2], len(rows), experts), dtype=np.bool_)
    for layer in range(rows.shape[2]):
        ids = rows[:, :, layer].reshape(len(rows), -1).astype(np.int64)
        np.put_along_axis(demand[layer], ids, True, axis=1)
    hits = sum(int(_belady_layer(layer, slots)) for layer in demand)
    return Hits(hits, int(demand.sum()))


@njit(cache=True)
def _belady_layer(demand: NDArray[np.bool_], slots: int) -> int:
    """demand [events, E] -> hits."""
    n_events, experts = demand.shape
    never = n_events
    next_use = np.empty((n_events, experts), dtype=np.int64)  # after each event
    ahead = np.full(experts, never, dtype=np.int64)
    for event in range(n_events - 1, -1, -1):
        for expert in range(experts):
            next_use[event, expert] = ahead[expert]
            if demand[event, expert]:
                ahead[expert] = event
    resident = np.zeros(experts, dtype=np.bool_)
    hits = 0
    for event in range(n_events):
        n_kept = 0
        for expert in range(experts):
            if demand[event, expert]:
                hits += resident[expert]
                resident[expert] = True
            n_kept += resident[expert]
        while n_kept > slots:
            farthest, victim = -1, -1
            for expert in range(experts):
                if resident[expert] and next_use[event, expert] > farthest:
                    farthest, victim = next_use[event, expert], expert
            resident[victim] = False
            n_kept -= 1
    return hits
