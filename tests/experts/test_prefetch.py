"""Copies ahead of demand: which, when, how many, and that a wrong one does no harm."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specfit.base.types import PROBABILITY_ONE, DraftTree, Routes, Selection, SpecfitError
from specfit.experts.host_experts import HostLane
from specfit.experts.policy_cache import Movement, MovingCache
from specfit.experts.prefetch import Prefetcher
from specfit.experts.prefetch_plan import needed, plan_copies
from specfit.hardware.clock import ModelledClock
from specfit.hardware.idle_link import IdleLink
from specfit.hardware.profile import Billing, Profile

LAYERS, EXPERTS = 3, 8
COPY = 100
LINK = IdleLink(COPY, 10, 1, 60, 30, 90, 150.0, 5.0, 0.0)
NO_NODES = DraftTree.empty()


def rows(*ids: int) -> np.ndarray:
    """One row that routes to the same two experts in every layer."""
    return np.array([ids] * LAYERS)


def prefetcher(mode: str = "layer", blocks: int = 4) -> Prefetcher:
    made = Prefetcher(mode, blocks, LAYERS, EXPERTS, LINK)
    made.watch(lambda: np.zeros((LAYERS, EXPERTS), dtype=np.bool_))
    return made


def told(made: Prefetcher, *ids: int, nodes: tuple[int, ...] = ()) -> None:
    """The root alone, and the selection that follows."""
    made.on_prediction(NO_NODES, Routes(rows(*ids), np.zeros((0, LAYERS, 2), dtype=np.int64)))


def arrived(made: Prefetcher) -> set[tuple[int, int]]:
    return set(made._in)


# -- how much time -------------------------------------------------------------------------------


def test_a_copy_takes_idle_time_wherever_it_finds_some() -> None:
    made = prefetcher("root")
    told(made, 2, 5)
    made.on_idle("level")  # 60 of 100
    assert arrived(made) == set() and made.brought.begun == 1
    made.on_idle("route")  # 90
    made.on_idle("level")  # 150: one whole, half of the next
    assert arrived(made) == {(0, 2)} and made.brought.begun == 2
    made.on_idle("select")  # 240
    assert len(arrived(made)) == 2


def test_time_without_a_candidate_is_lost() -> None:
    made = prefetcher("root")
    made.on_idle("select")
    told(made, 2, 5)
    made.on_idle("level")
    assert arrived(made) == set()


@pytest.mark.parametrize(("mode", "copies"), [("root", 0), ("tree", 0), ("layer", 1)])
def test_only_one_mode_copies_while_layers_compute(mode: str, copies: int) -> None:
    made = prefetcher(mode)
    told(made, 2, 5)
    made.before_layer(0)  # 150: one whole
    assert len(arrived(made)) == copies


def test_pieces_end_within_the_free_stretch() -> None:
    profile = Profile("p", link_gbps=1.0, fixed_ms=0.001, draft_level_ms=0.0005)
    link = IdleLink.of(profile, Billing("b", 4, 300, 2, 10), 0.0)
    assert (link.copy_ns, link.piece_ns, link.scale) == (600, 100, 2)
    assert link.before_routes(0) == 2 * 200  # 1000 ns over 4 layers: 2 pieces of 100 in 250 each
    assert link.drafting("level") == 500
    with pytest.raises(SpecfitError, match="use prefetch=off"):
        IdleLink.of(Profile("q", None, 1.0), Billing.own(2, 10), 0.0)
    with pytest.raises(SpecfitError, match="take turns"):
        IdleLink.of(Profile("q", 1.0, 1.0, overlap=False), Billing.own(2, 10), 0.0)


def test_a_full_area_takes_no_more() -> None:
    made = prefetcher(blocks=2)
    told(made, 2, 5)
    for _ in range(30):
        made.on_idle("select")
    assert len(arrived(made)) == 2 and made.brought.begun == 2
    made.after_layer(0, used=0)
    made.on_idle("select")
    made.on_idle("select")
    assert all(layer > 0 for layer, _ in arrived(made))


def test_a_layer_that_has_had_its_turn_gets_no_more_copies() -> None:
    """While no deadline is near the queue goes by chance, a passed layer's candidates anywhere."""
    made = prefetcher("tree", blocks=2)
    chances = np.zeros((1, LAYERS, EXPERTS), dtype=np.uint8)
    chances[0, 0, [1, 2]], chances[0, 2, 3], chances[0, 0, 5] = 250, 200, 150
    no_nodes = np.zeros((0, LAYERS, 2), dtype=np.int64)
    made.on_prediction(NO_NODES, Routes(rows(5, 3), no_nodes, chances))
    for _ in range(4):
        made.on_idle("select")
    assert arrived(made) == {(0, 1), (0, 2)}  # which fill the area
    for layer in range(LAYERS):
        made.after_layer(layer, used=0)
        for _ in range(4):
            made.on_idle("select")
        assert all(at > layer for at, _ in arrived(made))
    assert made.end_forward().begun == 3


# -- which ---------------------------------------------------------------------------------------


def tree() -> DraftTree:
    half = np.array([PROBABILITY_ONE // 2, PROBABILITY_ONE // 4])
    return DraftTree.empty().grown(np.array([1, 2]), np.array([-1, -1]), half)


@pytest.mark.parametrize(
    ("mode", "selection", "expected"),
    [
        ("root", None, {0, 1}),
        ("tree", None, {0, 1, 2, 3, 4}),
        ("tree", Selection((1,)), {0, 1, 4}),
        ("root", Selection((1,)), {0, 1}),
    ],
)
def test_whose_experts_come(mode: str, selection: Selection | None, expected: set[int]) -> None:
    made = prefetcher(mode, blocks=99)
    made.on_prediction(tree(), Routes(rows(0, 1), np.stack([rows(2, 3), rows(1, 4)])), selection)
    for _ in range(99):
        made.on_idle("select")
    assert {expert for _, expert in arrived(made)} == expected


def test_what_is_no_longer_likely_makes_room() -> None:
    made = prefetcher("tree", blocks=99)
    routes = Routes(rows(0, 1), np.stack([rows(2, 3), rows(1, 4)]))
    made.on_prediction(tree(), routes)
    for _ in range(99):
        made.on_idle("select")
    made.on_prediction(tree(), routes, Selection(()))
    assert {expert for _, expert in arrived(made)} == {0, 1}
    assert len(made._free) == 99 - 2 * LAYERS


def test_chances_join_as_independent() -> None:
    chances = np.zeros((3, 1, 2), dtype=np.uint8)
    chances[:, 0, 0] = 128, 64, 255
    routes = Routes(np.zeros((1, 1), dtype=np.int64), np.zeros((2, 1, 1), dtype=np.int64), chances)
    need = needed(routes, np.array([1.0, 0.5, 0.0]), 2)
    assert need[0].tolist() == pytest.approx([1 - 0.5 * (1 - 0.5 * 0.25), 0.0])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_plan_saves_most_of_all_that_are_on_time(seed: int) -> None:
    """Brute force over every set of candidates that can all be whole in time."""
    rng = np.random.default_rng(seed)
    layers, experts = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    need = rng.integers(0, 8, (layers, experts)) / 8
    wanted = rng.random((layers, experts)) < 0.8
    room = np.sort(rng.integers(0, 5, layers))
    plan = [tuple(pair) for pair in plan_copies(need, wanted, 0.2, room).tolist()]
    able = [
        (a, b) for a in range(layers) for b in range(experts) if wanted[a, b] & (need[a, b] >= 0.2)
    ]

    def on_time(chosen: tuple[tuple[int, int], ...]) -> bool:
        return all(sum(a <= at for a, _ in chosen) <= room[at] for at in range(layers))

    sets = [s for n in range(len(able) + 1) for s in combinations(able, n) if on_time(s)]
    best = max(sum(need[pair] for pair in s) for s in sets)
    assert on_time(tuple(plan)) and set(plan) <= set(able)
    assert sum(need[pair] for pair in plan) == pytest.approx(best)


# -- no harm ---------------------------------------------------------------------------------------


def cache(slots: int, ahead: Prefetcher | None, bypass: bool = False) -> MovingCache:
    return MovingCache(LAYERS, EXPERTS, slots, 3, Movement(bypass=bypass, prefetcher=ahead))


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_prediction_never_costs_a_copy(seed: int, bypass: bool) -> None:
    """Same text with and without: the same demand and, right or wrong, after every forward the same
    residents; a layer moves no more on demand, and less by exactly what came early and was used."""
    rng = np.random.default_rng(seed)
    slots, ahead = int(rng.integers(0, EXPERTS + 1)), prefetcher(blocks=int(rng.integers(1, 6)))
    plain, early = cache(slots, None, bypass), cache(slots, ahead, bypass)
    for _ in range(12):
        routes = np.stack([rng.permutation(EXPERTS)[:2] for _ in range(LAYERS * 2)])
        routes = routes.reshape(LAYERS, 2, 2)
        guess = (
            routes[:, 0] if rng.random() < 0.5 else rng.permutation(EXPERTS)[:2] + 0 * routes[:, 0]
        )
        ahead.on_prediction(
            NO_NODES, Routes(guess, np.zeros((0, LAYERS, 2), dtype=np.int64)), Selection(())
        )
        for _ in range(int(rng.integers(0, 6))):
            ahead.on_idle("select")
        a, b = plain.replay(routes, 1, False), early.replay(routes, 1, False)
        assert np.array_equal(a.demand, b.demand)
        assert (b.misses <= a.misses).all()
        assert int(a.misses.sum() - b.misses.sum()) == b.used <= b.prefetched
        early.check()
        if bypass or slots >= 4:  # no layer wants more than its slots: load order decides nothing
            for layer in range(LAYERS):
                same = np.array_equal(plain.resident(layer), early.resident(layer))
                assert same or (bypass and slots < 4)
        early.load_state(plain.state())  # the next forward starts alike


def test_a_wrong_prediction_changes_nothing_at_all() -> None:
    ahead = prefetcher()
    plain, early = cache(3, None), cache(3, ahead)
    rng = np.random.default_rng(1)
    for _ in range(30):
        routes = np.stack([rng.permutation(5)[:2] for _ in range(LAYERS * 4)]).reshape(LAYERS, 4, 2)
        told(ahead, 6, 7)
        for _ in range(4):
            ahead.on_idle("select")
        a, b = plain.replay(routes, 3, False), early.replay(routes, 3, False)
        assert b.prefetched > 0 == b.used
        for name in ("hits", "misses", "evictions", "wait_for"):
            assert np.array_equal(getattr(a, name), getattr(b, name))


def test_what_came_early_is_billed_as_bytes_and_not_as_time() -> None:
    profile = Profile("p", link_gbps=1.0, fixed_ms=0.01)
    clock = ModelledClock(profile, Billing.own(LAYERS, COPY))
    ahead = prefetcher()
    early = cache(8, ahead)
    told(ahead, 2, 5)
    for _ in range(99):
        ahead.on_idle("select")
    trace = early.replay(np.array([[[2, 5]]] * LAYERS), 0, False)
    assert (trace.prefetched, trace.used) == (6, 6) and not trace.misses.any()
    clock.start()
    assert clock.bill_forward(trace) == 0
    assert clock.billed_bytes(trace) == 6 * COPY


# -- on the host ---------------------------------------------------------------------------------


def test_the_host_takes_what_ends_first() -> None:
    assert HostLane("cpu", 7, 1).share(5, free=2) == 3
    even = HostLane("auto", 10, 10)
    assert [even.share(n, 0) for n in range(6)] == [0, 0, 1, 1, 2, 2]
    slow = HostLane("auto", 35, 10)
    assert [slow.share(n, 0) for n in range(6)] == [0, 0, 0, 0, 1, 1]
    assert HostLane("auto", 1000, 10).share(9, 0) == 0
    assert even.share(5, free=4) == 1, "free slots are filled first"


def test_a_layer_ends_when_the_host_is_done_too() -> None:
    profile = Profile("p", link_gbps=1.0, fixed_ms=0.003, host_expert_us=0.25)
    clock = ModelledClock(profile, Billing.own(LAYERS, COPY))
    lane = HostLane("cpu", 250, COPY)
    made = MovingCache(LAYERS, EXPERTS, 1, 3, Movement(host=lane))
    trace = made.replay(np.array([[[2, 5, 7]]] * LAYERS), 0, False)
    assert trace.on_host is not None and trace.on_host.tolist() == [2] * LAYERS
    assert trace.misses.tolist() == [1] * LAYERS and trace.demand.tolist() == [3] * LAYERS
    clock.start()
    assert clock.bill_forward(trace) == LAYERS * 500
    assert clock.lap() == LAYERS * (1000 + 500)  # the one copy of 100 hides behind the host


# -- bytes ---------------------------------------------------------------------------------------


def test_the_area_is_in_the_memory_table() -> None:
    """One block for every layer of the billed model is one slot of each."""
    from specfit.hardware.reference_models import BILLED_MODELS, fits

    needs = BILLED_MODELS["qwen3-30b-a3b"]
    just = needs.device_bytes(48, 3, 1000)
    card = Profile("card", 25.0, 70.0, memory_bytes=just)
    assert fits(card, "qwen3-30b-a3b", 48, 1000)
    assert not fits(card, "qwen3-30b-a3b", 48, 1000, ahead_blocks=48)
    assert fits(card, "qwen3-30b-a3b", 47, 1000, ahead_blocks=48)
    assert not fits(card, "qwen3-30b-a3b", 47, 1000, ahead_blocks=49)
