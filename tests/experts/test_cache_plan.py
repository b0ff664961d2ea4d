"""The cache rule against an independent slow model, and against examples worked out by hand."""

import numpy as np
import pytest

from specfit.experts import cache_plan
from specfit.experts.cache_plan import NONE

Item = tuple[int, int, int, int]  # expert, slot, evicted, wait_for


class SlowLayer:
    """Load order and victims, written a second time with dictionaries and sorts."""

    def __init__(self, slots: int, staging: int = 3) -> None:
        self.slots, self.staging = slots, staging
        self.where: dict[int, int] = {}  # resident expert -> slot
        self.used: dict[int, tuple[int, int]] = {}  # resident expert -> (forward, last row)

    def forward(self, number: int, rows: list[list[int]]) -> tuple[int, list[Item]]:
        needs = {e: [r for r, row in enumerate(rows) if e in row] for row in rows for e in row}
        hits = sorted(e for e in needs if e in self.where)
        misses = sorted((min(needs[e]), e) for e in needs if e not in self.where)
        items: list[Item] = []
        ran: list[int] = []
        for expert in hits:
            self.used[expert] = (number, max(needs[expert]))
            items.append((expert, self.where[expert], -1, -1))
            ran.append(expert)
        for _, expert in misses:
            items.append((expert, *self._load(number, expert, max(needs[expert]), ran)))
            ran.append(expert)
        return len(hits), items

    def _load(self, number: int, expert: int, last: int, ran: list[int]) -> tuple[int, int, int]:
        if self.slots == 0:
            return -1, -1, max(len(ran) - self.staging, -1)
        victim, wait = -1, -1
        free = sorted(set(range(self.slots)) - set(self.where.values()))
        if free:
            slot = free[0]
        else:
            victim = min(self.where, key=lambda e: (*self.used[e], e))
            if self.used[victim][0] == number:
                wait = ran.index(victim)
            slot = self.where.pop(victim)
            del self.used[victim]
        self.where[expert], self.used[expert] = slot, (number, last)
        return slot, victim, wait


def rows_of_experts(topk: np.ndarray, experts: int) -> tuple[np.ndarray, np.ndarray]:
    first_row, last_row = np.empty((2, experts), dtype=np.int64)
    cache_plan.mark_rows(topk, first_row, last_row)
    return first_row, last_row


class FastLayer:
    """`plan_layer` with its arrays."""

    def __init__(self, experts: int, slots: int, staging: int = 3) -> None:
        self.experts, self.staging = experts, staging
        self.slot_of = np.full(experts, NONE)
        self.expert_in = np.full(slots, NONE)
        self.last_forward = np.full(experts, NONE)
        self.last_row = np.full(experts, NONE)

    def forward(self, number: int, rows: list[list[int]]) -> tuple[int, list[Item]]:
        first, last = rows_of_experts(np.array(rows), self.experts)
        plan = np.full((4, self.experts), -7)
        n_hits, n_misses = cache_plan.plan_layer(
            first,
            last,
            self.slot_of,
            self.expert_in,
            self.last_forward,
            self.last_row,
            number,
            self.staging,
            *plan,
        )
        n = n_hits + n_misses
        return n_hits, [tuple(column) for column in plan[:, :n].T.tolist()]

    def residency(self) -> dict[int, tuple[int, int, int]]:
        return {
            e: (int(self.slot_of[e]), int(self.last_forward[e]), int(self.last_row[e]))
            for e in np.flatnonzero(self.slot_of != NONE).tolist()
        }


def random_rows(rng: np.random.Generator, experts: int, n_rows: int, k: int) -> list[list[int]]:
    """Rows of k distinct experts, some experts far more popular than others."""
    weight = 1.0 / (1.0 + np.arange(experts))
    weight /= weight.sum()
    return [rng.choice(experts, k, replace=False, p=weight).tolist() for _ in range(n_rows)]


def test_plan_equals_the_slow_model_on_random_traces() -> None:
    """1,500 traces: no slots, one slot, few, all; single rows and prefills wider than the slots."""
    rng = np.random.default_rng(0)
    waves = evictions = 0
    for _ in range(1500):
        experts = int(rng.integers(2, 17))
        k = int(rng.integers(1, min(experts, 4) + 1))
        slots = int(rng.choice([0, 1, rng.integers(0, experts + 1), experts]))
        staging = int(rng.integers(1, 5))
        slow, fast = SlowLayer(slots, staging), FastLayer(experts, slots, staging)
        for number in range(1, int(rng.integers(2, 8))):
            rows = random_rows(rng, experts, int(rng.choice([1, 2, 4, 8, 30])), k)
            expected = slow.forward(number, rows)
            assert fast.forward(number, rows) == expected
            assert fast.residency() == {e: (slow.where[e], *slow.used[e]) for e in slow.where}
            evictions += sum(item[2] >= 0 for item in expected[1])
            waves += slots > 0 and any(item[3] >= 0 for item in expected[1])
    assert waves > 900 and evictions > 7000, "the traces reach waves and evictions"


def test_plan_equals_the_slow_model_at_the_real_geometry() -> None:
    """128 experts, top-8, 8 rows, and a 300-row prefill first, at the paper's slot counts."""
    rng = np.random.default_rng(1)
    for slots in (0, 12, 24, 48, 128):
        slow, fast = SlowLayer(slots), FastLayer(128, slots)
        for number in range(1, 20):
            rows = random_rows(rng, 128, 300 if number == 1 else 8, 8)
            assert fast.forward(number, rows) == slow.forward(number, rows)


def test_rows_of_experts_by_hand() -> None:
    first, last = rows_of_experts(np.array([[4, 1], [1, 0], [4, 0]]), 6)
    #        expert 0  1   2   3  4   5
    assert first.tolist() == [1, 0, -1, -1, 0, -1]
    assert last.tolist() == [2, 1, -1, -1, 2, -1]


@pytest.mark.parametrize("expert", [-1, 6])
def test_a_route_outside_the_layer_is_refused(expert: int) -> None:
    with pytest.raises(AssertionError, match="does not exist"):
        rows_of_experts(np.array([[0, 1], [2, expert]]), 6)


def test_order_hits_by_id_then_misses_by_first_row_then_id() -> None:
    layer = FastLayer(8, 8)
    layer.forward(1, [[6, 2]])
    n_hits, items = layer.forward(2, [[6, 7], [5, 2], [3, 1]])
    assert n_hits == 2
    # hits 2, 6; then row 0's 7, row 1's 5, row 2's 1 and 3
    assert [item[0] for item in items] == [2, 6, 7, 5, 1, 3]


def test_free_slots_are_taken_lowest_first() -> None:
    layer = FastLayer(6, 4)
    assert [item[1] for item in layer.forward(1, [[5, 0]])[1]] == [0, 1]
    assert [item[1] for item in layer.forward(2, [[4, 3]])[1]] == [2, 3]


def test_the_victim_has_the_oldest_forward() -> None:
    layer = FastLayer(6, 2)
    layer.forward(1, [[0]])
    layer.forward(2, [[1]])
    layer.forward(3, [[0]])  # a hit renews expert 0, so 1 is the oldest though it came later
    assert layer.forward(4, [[2]])[1] == [(2, 1, 1, -1)]


def test_among_equal_forwards_the_lowest_last_row_goes_then_the_lowest_id() -> None:
    layer = FastLayer(8, 4)
    layer.forward(1, [[0, 1], [1, 2], [0, 3]])
    assert {e: row for e, (_, _, row) in layer.residency().items()} == {0: 2, 1: 1, 2: 1, 3: 2}
    evicted = [item[2] for item in layer.forward(2, [[4, 5], [6, 7]])[1]]
    # rows 1, 1, 2, 2: ids 1 and 2 (row 1, lower id first), then 0 and 3 (row 2, lower id first)
    assert evicted == [1, 2, 0, 3]


def test_the_last_row_counts_where_the_expert_was_last_used() -> None:
    layer = FastLayer(6, 2)
    layer.forward(1, [[0], [0], [1]])  # 0 used last in row 1, 1 in row 2
    layer.forward(2, [[1], [0]])  # there 1 is used in row 0, 0 in row 1
    assert layer.forward(3, [[2]])[1] == [(2, 1, 1, -1)]


def test_an_expert_of_this_forward_goes_only_when_no_older_one_is_left() -> None:
    layer = FastLayer(8, 3)
    layer.forward(1, [[0], [1], [2]])
    # 2 is a hit (item 0). 3 and 4 take the older 0 and 1. 5 finds 2 (last row 0), 3 (1), 4 (2), all
    # of this forward: the hit has run and its last row is the lowest, so it goes: a wave.
    n_hits, items = layer.forward(2, [[2], [3], [4], [5]])
    assert n_hits == 1
    assert items == [(2, 2, -1, -1), (3, 0, 0, -1), (4, 1, 1, -1), (5, 2, 2, 0)]


def test_an_oversized_layer_keeps_what_its_last_rows_used() -> None:
    layer = FastLayer(10, 3)
    # 0 is needed by every row, the others by one each.
    layer.forward(1, [[0, row] for row in range(1, 10)])
    assert sorted(layer.residency()) == [0, 8, 9]


def test_a_wave_waits_for_the_item_that_held_the_slot() -> None:
    layer = FastLayer(5, 1)
    items = layer.forward(1, [[3], [0], [4]])[1]
    assert items == [(3, 0, -1, -1), (0, 0, 3, 0), (4, 0, 0, 1)]


def test_without_slots_everything_streams_through_staging() -> None:
    layer = FastLayer(6, 0, staging=2)
    for number in (1, 2):
        n_hits, items = layer.forward(number, [[3, 0], [5, 1]])
        assert n_hits == 0
        # item j takes block j % 2, so it waits for item j - 2
        assert items == [(0, -1, -1, -1), (3, -1, -1, -1), (1, -1, -1, 0), (5, -1, -1, 1)]
        assert layer.residency() == {}


def test_no_slots_transfer_what_clearing_a_full_cache_transfers() -> None:
    """Staging; the paper's "without cache" (app. B)."""
    rng = np.random.default_rng(2)
    streamed = FastLayer(16, 0)
    for number in range(1, 200):
        rows = random_rows(rng, 16, int(rng.choice([1, 8, 40])), 4)
        cleared = FastLayer(16, 16)
        n_hits, items = streamed.forward(number, rows)
        assert (n_hits, [item[0] for item in items]) == (
            0,
            [item[0] for item in cleared.forward(number, rows)[1]],
        )


def test_a_cache_of_all_experts_loads_each_once_and_never_evicts() -> None:
    rng = np.random.default_rng(3)
    layer, seen = FastLayer(16, 16), set()
    for number in range(1, 100):
        rows = random_rows(rng, 16, 4, 4)
        n_hits, items = layer.forward(number, rows)
        demanded = {expert for row in rows for expert in row}
        assert {item[0] for item in items[n_hits:]} == demanded - seen
        assert all(item[2] == item[3] == -1 for item in items)
        seen |= demanded


def test_plan_forward_equals_plan_layer_per_layer() -> None:
    rng = np.random.default_rng(4)
    n_layers, experts, slots = 3, 12, 4
    layers = [FastLayer(experts, slots) for _ in range(n_layers)]
    slot_of, last_forward, last_row = np.full((3, n_layers, experts), NONE)
    expert_in = np.full((n_layers, slots), NONE)
    hits, misses, evictions = np.full((3, n_layers), -7)
    wait_for = np.full((n_layers, experts), -7)
    for number in range(1, 60):
        routes = [random_rows(rng, experts, int(rng.choice([1, 20])), 3) for _ in layers]
        width = max(map(len, routes))
        routes = [(rows * 20)[:width] for rows in routes]
        peak = cache_plan.plan_forward(
            np.array(routes),
            slot_of,
            expert_in,
            last_forward,
            last_row,
            number,
            3,
            hits,
            misses,
            evictions,
            wait_for,
        )
        plans = [layer.forward(number, rows) for layer, rows in zip(layers, routes, strict=True)]
        for index, (n_hits, items) in enumerate(plans):
            waits = [item[3] for item in items[n_hits:]]
            assert (hits[index], misses[index]) == (n_hits, len(waits))
            assert evictions[index] == sum(item[2] >= 0 for item in items)
            assert wait_for[index].tolist() == waits + [-1] * (experts - len(waits))
            assert np.array_equal(slot_of[index], layers[index].slot_of)
        assert peak == max(len(items) for _, items in plans)
