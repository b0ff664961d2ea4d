"""Routing traces from elsewhere, by hand and by plain counting."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from specfit.base.types import SpecfitError
from specfit.experts.routing_traces import (
    belady_hits,
    check,
    events,
    lru_hits,
    policy_hits,
    union_growth,
)


def trace(*rows: tuple[int, ...]) -> np.ndarray:
    """One layer."""
    return np.array(rows, dtype=np.uint8)[:, None, :]


def random_trace(seed: int, tokens: int, layers: int, experts: int, k: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.argsort(rng.random((tokens, layers, experts)), axis=-1)[..., :k].astype(np.uint8)


def test_union_of_consecutive_tokens_by_hand() -> None:
    one = trace((0, 1), (1, 2), (0, 1), (4, 5))
    assert union_growth([one], 1, 6) == 2
    assert union_growth([one], 2, 6) == (3 + 3 + 4) / 3
    assert union_growth([one], 4, 6) == 5
    assert union_growth([one, one], 2, 6) == union_growth([one], 2, 6), "no window crosses"


def test_events_lie_within_one_trace() -> None:
    found = list(events([random_trace(0, 5, 2, 8, 2), random_trace(1, 4, 2, 8, 2)], 2))
    assert [len(event) for event in found] == [2, 2, 2, 2]


def test_an_event_is_one_access_set() -> None:
    """Both tokens want expert 1: one miss and, in the next event, one hit; never a hit between."""
    one = trace((0, 1), (1, 2), (1, 3), (1, 4))
    assert policy_hits([one], 2, 6, 6).hits == 1
    assert policy_hits([one], 2, 6, 6).demand == 3 + 3
    assert policy_hits([one], 1, 6, 6).hits == 3


@pytest.mark.parametrize("slots", [2, 3, 5])
def test_token_by_token_the_policy_is_lru(slots: int) -> None:
    one = random_trace(3, 200, 1, 8, 2)
    order: list[int] = []  # least recent first
    hits = 0
    for row in one[:, 0].tolist():
        hits += len(set(row) & set(order))
        order = [e for e in order if e not in row] + sorted(row)
        order = order[-slots:]
    assert policy_hits([one], 1, 8, slots).hits == hits


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8])
def test_plain_lru_one_access_after_the_other(slots: int) -> None:
    traces = [random_trace(seed, 60, 2, 8, 3) for seed in (4, 5)]
    hits = 0
    for layer in range(2):
        order: list[int] = []  # least recent first
        for expert in np.concatenate(traces)[:, layer].ravel().tolist():
            hits += expert in order
            order = ([e for e in order if e != expert] + [expert])[-slots:]
    found = lru_hits(traces, 8, slots)
    assert (found.hits, found.demand) == (hits, 2 * 60 * 2 * 3)


def best_by_search(rows: list[set[int]], slots: int) -> int:
    """Every choice of what stays after every event."""
    reached: dict[frozenset[int], int] = {frozenset(): 0}
    for row in rows:
        after: dict[frozenset[int], int] = {}
        for held, hits in reached.items():
            gained = hits + len(held & row)
            for kept in combinations(sorted(held | row), min(slots, len(held | row))):
                key = frozenset(kept)
                after[key] = max(after.get(key, -1), gained)
        reached = after
    return max(reached.values())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_belady_is_the_best_of_all_choices(seed: int, slots: int) -> None:
    one = random_trace(seed, 9, 1, 6, 2)
    found = belady_hits([one], 1, 6, slots)
    assert found.hits == best_by_search([set(row) for row in one[:, 0].tolist()], slots)
    assert found.hits >= policy_hits([one], 1, 6, slots).hits


def test_all_slots_miss_each_expert_once() -> None:
    one = random_trace(5, 40, 3, 16, 4)
    named = sum(len(set(one[:, layer].ravel().tolist())) for layer in range(3))
    for found in (policy_hits([one], 4, 16, 16), belady_hits([one], 4, 16, 16)):
        assert found.demand - found.hits == named


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(SpecfitError, match=r"\[tokens, layers, k\] arrays of one model"):
        check([np.zeros((4, 2), dtype=np.uint8)], 8)
    with pytest.raises(SpecfitError, match="names expert 9"):
        check([trace((0, 9))], 9)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({(3, 0, 1): -1}, "expert -1 at token 3, layer 0"),
        ({(2, 1, 0): 99}, "expert 99 at token 2, layer 1"),
        ({(4, 1, 0): 7, (4, 1, 1): 7}, "an expert twice at token 4, layer 1"),
    ],
)
def test_the_entry_at_fault_is_named(change: dict, named: str) -> None:  # type: ignore[type-arg]
    one = random_trace(0, 8, 2, 8, 3).astype(np.int64)
    check([one], 8, [1, 8])
    for place, value in change.items():
        one[place] = value
    with pytest.raises(SpecfitError, match=named):
        check([one], 8)


def test_traces_too_short_or_of_another_kind_are_refused() -> None:
    one = random_trace(0, 2, 2, 8, 3)
    with pytest.raises(SpecfitError, match="longest trace has 2 tokens, an event 8"):
        check([one], 8, [1, 8])
    with pytest.raises(SpecfitError, match="holds float64"):
        check([one.astype(float)], 8)
    with pytest.raises(SpecfitError, match="none of them empty"):
        check([one[:0]], 8)
