"""Residency of all layers: conservation, reading without changing, and putting back."""

import numpy as np
import pytest

from specfit.base.types import SpecfitError
from specfit.experts.cache import ExpertCache, collect_trace
from specfit.experts.cache_plan import NONE

L, E, K = 3, 12, 3


def random_routes(rng: np.random.Generator, rows: int) -> np.ndarray:
    """[L, rows, K], distinct experts per row, low ids popular."""
    score = rng.gumbel(size=(L, rows, E)) - np.log1p(np.arange(E))
    return np.argsort(-score, axis=2)[:, :, :K].copy()


def run(cache: ExpertCache, routes: np.ndarray) -> list[list[int]]:
    """One forward, layer by layer; per layer everything the plan says."""
    cache.begin_forward()
    said = []
    for layer in range(L):
        plan = cache.plan(layer, routes[layer])
        arrays = (plan.order, plan.slots, plan.evicted, plan.wait_for)
        said.append([plan.n_hits, *np.concatenate(arrays).tolist()])
    return said


@pytest.mark.parametrize("slots", [0, 1, 4, E])
def test_residency_is_conserved_after_every_forward(slots: int) -> None:
    rng = np.random.default_rng(slots)
    cache = ExpertCache(L, E, slots)
    cache.check()
    for _ in range(200):
        run(cache, random_routes(rng, int(rng.choice([1, 4, 30]))))
        cache.check()
        for layer in range(L):
            resident = cache.resident(layer)
            assert len(resident) <= slots
            places = [cache.slot_of(layer, int(expert)) for expert in resident]
            assert len(set(places)) == len(places)


def test_check_fails_on_a_broken_residency() -> None:
    cache = ExpertCache(L, E, 4)
    run(cache, random_routes(np.random.default_rng(0), 4))
    cache._expert_in[1, 0] = cache._expert_in[1, 1]
    with pytest.raises(AssertionError):
        cache.check()


def test_a_plan_names_hits_misses_slots_and_victims() -> None:
    cache = ExpertCache(1, 6, 2)
    cache.begin_forward()
    cache.plan(0, np.array([[4, 1]], dtype=np.uint8))  # 1 -> slot 0, 4 -> slot 1
    cache.begin_forward()
    plan = cache.plan(0, np.array([[4, 0]], dtype=np.uint8))
    assert plan.hits.tolist() == [4] and plan.misses.tolist() == [0]
    assert plan.order.tolist() == [4, 0] and plan.slots.tolist() == [1, 0]
    assert plan.evicted.tolist() == [1] and plan.wait_for.tolist() == [NONE]
    assert cache.resident(0).tolist() == [0, 4]


def test_plans_of_one_forward_stay_valid_until_its_end() -> None:
    cache = ExpertCache(L, E, 4)
    cache.begin_forward()
    routes = random_routes(np.random.default_rng(0), 4)
    plans = [cache.plan(layer, routes[layer]) for layer in range(L)]
    for layer, plan in enumerate(plans):
        assert sorted(plan.order.tolist()) == np.unique(routes[layer]).tolist()


def test_replay_leaves_the_trace_and_the_residency_of_the_layer_by_layer_plans() -> None:
    rng = np.random.default_rng(5)
    for slots in (0, 1, 4, E):
        live, replayed = ExpertCache(L, E, slots), ExpertCache(L, E, slots)
        for _ in range(50):
            routes = random_routes(rng, int(rng.choice([1, 8])))
            live.begin_forward()
            plans = [live.plan(layer, routes[layer]) for layer in range(L)]
            expected = collect_trace(plans, billed_rows=7, is_prefill=False)
            got = replayed.replay(routes, billed_rows=7, is_prefill=False)
            for name in ("hits", "misses", "evictions", "wait_for"):
                assert np.array_equal(getattr(got, name), getattr(expected, name)), name
            assert (got.billed_rows, got.is_prefill) == (7, False)
            assert_same_state(live, replayed)


def assert_same_state(one: ExpertCache, other: ExpertCache) -> None:
    for name, array in one.state().items():
        assert np.array_equal(array, other.state()[name]), name


def test_a_trace_counts_the_plans_of_its_forward_and_keeps_no_view() -> None:
    cache = ExpertCache(2, 6, 1)
    cache.begin_forward()
    plans = [cache.plan(0, np.array([[0, 1, 2]])), cache.plan(1, np.array([[5, 5, 5]]))]
    trace = collect_trace(plans, billed_rows=1, is_prefill=True, transfer_wait_ns=9)
    cache.clear()
    cache.begin_forward()
    cache.plan(0, np.array([[3, 3, 3]]))
    assert trace.hits.tolist() == [0, 0] and trace.misses.tolist() == [3, 1]
    assert trace.evictions.tolist() == [2, 0] and trace.demand.tolist() == [3, 1]
    assert trace.wait_for.tolist() == [[-1, 0, 1], [-1, -1, -1]]
    assert (trace.billed_rows, trace.is_prefill, trace.transfer_wait_ns) == (1, True, 9)


def test_asking_where_an_expert_is_changes_nothing() -> None:
    rng = np.random.default_rng(6)
    asked, silent = ExpertCache(L, E, 4), ExpertCache(L, E, 4)
    for _ in range(30):
        routes = random_routes(rng, 4)
        for layer in range(L):
            for expert in range(E):
                slot = asked.slot_of(layer, expert)
                assert (slot != NONE) == (expert in asked.resident(layer))
        assert run(asked, routes) == run(silent, routes)
    assert_same_state(asked, silent)


@pytest.mark.parametrize("slots", [0, 1, 4, E])
def test_a_restored_cache_goes_on_as_the_original(slots: int) -> None:
    """Ids, recency and the forward number: without any of them the victims would differ."""
    rng = np.random.default_rng(7)
    original = ExpertCache(L, E, slots)
    for _ in range(20):
        run(original, random_routes(rng, 4))
    resumed = ExpertCache(L, E, slots)
    moved = resumed.load_state(original.state())
    assert len(moved) == sum(len(original.resident(layer)) for layer in range(L))
    for _ in range(30):
        routes = random_routes(rng, int(rng.choice([1, 4, 20])))
        assert run(resumed, routes) == run(original, routes)
    assert_same_state(original, resumed)


def test_a_probe_is_undone_and_names_the_blocks_to_copy_back() -> None:
    rng = np.random.default_rng(8)
    cache, untouched = ExpertCache(L, E, 4), ExpertCache(L, E, 4)
    for _ in range(10):
        routes = random_routes(rng, 4)
        run(cache, routes), run(untouched, routes)
    before = cache.state()
    run(cache, random_routes(rng, 6))
    during = cache.state()["expert_in"]
    moved = cache.load_state(before)
    assert_same_state(cache, untouched)
    wrong = {tuple(place) for place in np.argwhere(during != before["expert_in"])}
    assert {(layer, slot) for layer, slot, _ in moved.tolist()} == wrong and wrong
    assert all(cache.slot_of(layer, expert) == slot for layer, slot, expert in moved.tolist())
    assert len(cache.load_state(before)) == 0, "nothing is missing a second time"


def test_a_state_is_not_changed_by_later_forwards() -> None:
    cache = ExpertCache(L, E, 4)
    run(cache, random_routes(np.random.default_rng(9), 4))
    state = cache.state()
    kept = {name: array.copy() for name, array in state.items()}
    run(cache, random_routes(np.random.default_rng(10), 4))
    assert all(np.array_equal(state[name], kept[name]) for name in kept)


def test_clear_makes_a_new_cache() -> None:
    cache = ExpertCache(L, E, 4)
    run(cache, random_routes(np.random.default_rng(11), 8))
    cache.clear()
    assert_same_state(cache, ExpertCache(L, E, 4))


@pytest.mark.parametrize("slots", [-1, E + 1])
def test_slots_beyond_the_experts_are_refused(slots: int) -> None:
    with pytest.raises(SpecfitError, match=f"cache_slots={slots} .* use 0 to {E}"):
        ExpertCache(L, E, slots)


def test_a_state_of_another_shape_or_damaged_is_refused() -> None:
    small = ExpertCache(L, E, 2)
    run(small, random_routes(np.random.default_rng(12), 4))
    with pytest.raises(SpecfitError, match="force=true"):
        ExpertCache(L, E, 4).load_state(small.state())
    for wrong in (E, 1):  # beyond the layer; or twice in one layer
        state = small.state()
        state["expert_in"][:] = wrong
        with pytest.raises(SpecfitError, match="damaged"):
            ExpertCache(L, E, 2).load_state(state)
