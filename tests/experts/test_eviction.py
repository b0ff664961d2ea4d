"""Cache policies against an independent slow model, and what every one of them keeps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from specfit.base.types import ForwardTrace
from specfit.experts.cache import ExpertCache
from specfit.experts.eviction import HALF_LIFE, ONE_USE, POLICIES, decayed
from specfit.experts.policy_cache import Movement, MovingCache, next_uses

LAYERS, EXPERTS, TOP_K = 2, 20, 3


def story(seed: int, forwards: int = 60, widest: int = 9) -> list[np.ndarray]:
    """[L, T, k] of each forward; a few experts are far more popular than others, and it drifts."""
    rng = np.random.default_rng(seed)
    weight = 1.0 / (1.0 + np.arange(EXPERTS))
    found = []
    for number in range(forwards):
        drift = np.roll(weight, number // 20)
        rows = int(rng.choice([1, 1, 3, widest]))
        draw = [
            [rng.choice(EXPERTS, TOP_K, replace=False, p=drift / drift.sum()) for _ in range(rows)]
            for _ in range(LAYERS)
        ]
        found.append(np.array(draw))
    return found


def cache(
    policy: str, slots: int, seed: int = 0, bypass: bool = False, widest: int = 9
) -> MovingCache:
    movement = Movement(POLICIES[policy], bypass or policy == "static")
    made = MovingCache(LAYERS, EXPERTS, slots, 3, movement)
    if policy == "static":
        made.count(np.array([[EXPERTS - e for e in range(EXPERTS)]] * LAYERS))
    if policy == "belady":
        made.look_ahead()
        play(made, seed, widest)
        made.know_future()
    return made


def play(made: ExpertCache, seed: int, widest: int = 9) -> list[ForwardTrace]:
    forwards = story(seed, widest=widest)
    return [made.replay(routes, routes.shape[1] - 1, False) for routes in forwards]


class SlowLayer:
    """One layer by the sentences of `victims`, with dictionaries, fractions and sorts."""

    def __init__(self, policy: str, slots: int, future: list[set[int]]) -> None:
        self.policy, self.slots, self.future = policy, slots, future
        self.residents: dict[int, tuple[int, int]] = {}  # -> (last forward, last row)
        self.arrived: dict[int, int] = {}
        self.uses: list[tuple[int, int]] = []  # (expert, forward) of every use

    def worth(self, expert: int, now: int) -> Fraction | int:
        times = [forward for e, forward in self.uses if e == expert]
        last = self.residents[expert][0]
        if self.policy == "lfu":
            return len(times)
        if self.policy == "lfru":
            return Fraction(len(times) << 20, max(now - last, 1)).__floor__()
        if self.policy == "least_stale":
            return (2**40 if last >= now - 1 else 0) + self.arrived[expert]
        if self.policy == "belady":
            later = [f for f, demand in enumerate(self.future, 1) if f > now and expert in demand]
            return -min(later, default=10**9)
        return last

    def forward(self, now: int, rows: np.ndarray) -> tuple[int, int, int]:
        needs = {int(e): [r for r, row in enumerate(rows) if e in row] for row in rows for e in row}
        self.uses += [(expert, now) for expert in needs]
        hits = sorted(e for e in needs if e in self.residents)
        misses = sorted((min(needs[e]), e) for e in needs if e not in self.residents)
        ranked = sorted(self.residents, key=lambda e: (self.worth(e, now), *self.residents[e], e))
        place = {expert: at for at, expert in enumerate(ranked)}
        for expert in hits:
            self.residents[expert] = (now, max(needs[expert]))
            place[expert] = 10**6
        evictions = 0
        for _, expert in misses:
            if self.slots == 0:
                continue
            if len(self.residents) == self.slots:
                victim = min(self.residents, key=lambda e: (place[e], self.residents[e][1], e))
                del self.residents[victim]
                evictions += 1
            self.residents[expert], place[expert] = (now, max(needs[expert])), 10**6
            self.arrived[expert] = now
        return len(hits), len(misses), evictions


@pytest.mark.parametrize("policy", ["lru", "lfu", "lfru", "least_stale", "belady"])
@pytest.mark.parametrize("slots", [0, 1, 4, 9, EXPERTS])
def test_a_policy_does_what_it_says(policy: str, slots: int) -> None:
    for seed in range(3):
        forwards = story(seed)
        slow = [
            SlowLayer(policy, slots, [set(f[layer].reshape(-1).tolist()) for f in forwards])
            for layer in range(LAYERS)
        ]
        made = cache(policy, slots, seed)
        for number, trace in enumerate(play(made, seed)):
            for layer in range(LAYERS):
                expected = slow[layer].forward(number + 1, forwards[number][layer])
                got = trace.hits[layer], trace.misses[layer], trace.evictions[layer]
                assert tuple(map(int, got)) == expected
        for layer in range(LAYERS):
            assert set(made.resident(layer).tolist()) == set(slow[layer].residents)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("bypass", [False, True])
def test_every_policy_keeps_the_invariants(policy: str, bypass: bool) -> None:
    """Demand is the text's; resident + free = slots; what was stored goes on alike."""
    reference = [trace.demand for trace in play(ExpertCache(LAYERS, EXPERTS, 6), 5)]
    made = cache(policy, 6, 5, bypass)
    half = len(reference) // 2
    first = [made.replay(r, r.shape[1] - 1, False) for r in story(5)[:half]]
    stored = made.state()
    rest = [made.replay(r, r.shape[1] - 1, False) for r in story(5)[half:]]
    made.check()
    for trace, demand in zip([*first, *rest], reference, strict=True):
        assert np.array_equal(trace.demand, demand)
    made.load_state(stored)
    made.check()
    again = [made.replay(r, r.shape[1] - 1, False) for r in story(5)[half:]]
    for a, b in zip(rest, again, strict=True):
        assert np.array_equal(a.misses, b.misses) and np.array_equal(a.wait_for, b.wait_for)


def test_the_default_ranks_as_the_plain_cache_does() -> None:
    for slots in (0, 1, 5, EXPERTS):
        plain, ranked = ExpertCache(LAYERS, EXPERTS, slots), cache("lru", slots)
        for a, b in zip(play(plain, 1), play(ranked, 1), strict=True):
            for name in ("hits", "misses", "evictions", "wait_for"):
                assert np.array_equal(getattr(a, name), getattr(b, name))
        kept = ranked.state()
        assert all(np.array_equal(v, kept[k]) for k, v in plain.state().items())


def test_who_knows_the_future_misses_least() -> None:
    """Where no layer wants more than its slots, of all policies that take in every miss."""
    for seed in range(6):
        missed = {
            p: sum(int(t.misses.sum()) for t in play(cache(p, 9, seed, widest=3), seed, 3))
            for p in POLICIES
            if p != "static"
        }
        assert min(missed, key=lambda p: missed[p]) == "belady", missed


def test_a_pinned_expert_never_goes_and_others_pass_through() -> None:
    made = cache("static", 4)
    for routes in story(2, forwards=200):
        before = [set(made.resident(layer).tolist()) & {0, 1, 2, 3} for layer in range(LAYERS)]
        made.replay(routes, 0, False)
        for layer in range(LAYERS):
            assert before[layer] <= set(made.resident(layer).tolist())
    assert all(set(made.resident(layer).tolist()) == {0, 1, 2, 3} for layer in range(LAYERS))


def test_bypass_has_no_waves() -> None:
    """12 experts through 4 slots: 4 stay, 8 stream through 3 staging blocks, each block in turn."""
    made = cache("lru", 4, bypass=True)
    made.begin_forward()
    plan = made.plan(0, np.arange(12).reshape(4, 3))
    assert plan.slots.tolist() == [0, 1, 2, 3] + [-1] * 8
    assert plan.evicted.tolist() == [-1] * 12
    assert plan.wait_for.tolist() == [-1] * 7 + [4, 5, 6, 7, 8]
    assert made.resident(0).tolist() == [0, 1, 2, 3]


def test_heat_halves() -> None:
    assert decayed(ONE_USE, 0) == ONE_USE
    assert decayed(ONE_USE, HALF_LIFE) == ONE_USE // 2
    assert decayed(ONE_USE, 3 * HALF_LIFE) == ONE_USE // 8
    assert decayed(ONE_USE, HALF_LIFE // 2) == ONE_USE * 3 // 4
    values = [decayed(ONE_USE, age) for age in range(40 * HALF_LIFE)]
    assert values == sorted(values, reverse=True) and values[-1] == 0


def test_next_uses_by_hand() -> None:
    demands = [np.array([[True, False]]), np.array([[False, False]]), np.array([[True, False]])]
    never = np.iinfo(np.int32).max
    assert next_uses(demands)[:, 0].tolist() == [[1, never], [3, never], [3, never], [never, never]]
