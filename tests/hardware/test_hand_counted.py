"""Four forwards through two layers, every number derived by hand in the comments.

6 experts a layer, 3 slots, top-2. Billed as a model of 4 layers (each own layer stands for 2) with
experts of 1000 bytes; own experts have 10 bytes. Link 2 GB/s: a copy's bytes take 500 ns. 100 ns of
latency, 50 ns of compute per expert, 2 copies in flight. Fixed 4000 ns per forward, 1000 ns per
verified node, 500 ns per prompt token, all spread over 4 billed layers.

`e@s(r)` is expert e in slot s, last used in row r. Residency is written after each forward.
"""

import numpy as np
import pytest

from specfit.experts.cache import ExpertCache, LayerPlan, collect_trace
from specfit.hardware.clock import ModelledClock
from specfit.hardware.profile import Billing, Profile

PROFILE = Profile(
    "hand",
    link_gbps=2,
    fixed_ms=0.004,
    node_ms=0.001,
    prefill_token_ms=0.0005,
    copy_latency_us=0.1,
    expert_us=0.05,
    copies_in_flight=2,
)
BILLING = Billing("billed", layers=4, expert_bytes=1000, own_layers=2, own_expert_bytes=10)


class Bench:
    def __init__(self) -> None:
        self.cache = ExpertCache(2, 6, 3)
        self.clock = ModelledClock(PROFILE, BILLING)
        self.clock.start()
        self.plans: list[LayerPlan] = []
        self.moved_bytes = self.billed_bytes = 0

    def forward(
        self, layer_0: list[list[int]], layer_1: list[list[int]], rows: int, is_prefill: bool
    ) -> tuple[int, int]:
        """(total, waiting) nanoseconds; `plans` holds what was decided."""
        self.cache.begin_forward()
        self.plans = [
            self.cache.plan(layer, np.array(topk)) for layer, topk in enumerate((layer_0, layer_1))
        ]
        self.cache.check()
        trace = collect_trace(self.plans, rows, is_prefill)
        self.moved_bytes += int(trace.misses.sum()) * BILLING.own_expert_bytes
        self.billed_bytes += BILLING.billed_bytes(trace)
        wait = self.clock.bill_forward(trace)
        return self.clock.lap(), wait

    def residency(self, layer: int) -> dict[int, tuple[int, int]]:
        """{expert: (slot, last row there)}."""
        state = self.cache.state()
        experts, rows = state["expert_in"][layer].tolist(), state["last_row"][layer].tolist()
        return {e: (s, r) for s, (e, r) in enumerate(zip(experts, rows, strict=True)) if e >= 0}

    def decided(self, layer: int) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
        """(hits, misses, slots of the misses, evicted, wait_for) of the last forward."""
        plan = self.plans[layer]
        slots = plan.slots[plan.n_hits :]
        arrays = (plan.hits, plan.misses, slots, plan.evicted, plan.wait_for)
        hits, misses, taken, evicted, waits = (array.tolist() for array in arrays)
        return hits, misses, taken, evicted, waits


@pytest.fixture
def bench() -> Bench:
    return Bench()


def prefill(bench: Bench) -> tuple[int, int]:
    return bench.forward([[0, 1], [2, 0], [3, 1]], [[5, 4], [5, 4], [4, 5]], 3, True)


def verify_one_node(bench: Bench) -> tuple[int, int]:
    return bench.forward([[1, 4], [1, 0]], [[0, 1], [2, 3]], 1, False)


def verify_two_nodes(bench: Bench) -> tuple[int, int]:
    return bench.forward([[2, 3], [5, 2], [0, 2]], [[1, 2], [2, 3], [1, 3]], 2, False)


def verify_root(bench: Bench) -> tuple[int, int]:
    return bench.forward([[5, 1]], [[4, 0]], 0, False)


def test_forward_1_a_prefill_of_three_tokens_overflows_layer_0(bench: Bench) -> None:
    total, wait = prefill(bench)
    # Layer 0. First rows: 0 and 1 in row 0, 2 in row 1, 3 in row 2. Last rows: 0 -> 1, 1 -> 2,
    # 2 -> 1, 3 -> 2. Nothing resident: four misses, three free slots. Expert 3 needs a victim, all
    # of this forward (a wave): lowest last row 1 has 0 and 2, lower id 0 goes, which is item 0.
    assert bench.decided(0) == ([], [0, 1, 2, 3], [0, 1, 2, 0], [-1, -1, -1, 0], [-1, -1, -1, 0])
    assert bench.residency(0) == {3: (0, 2), 1: (1, 2), 2: (2, 1)}
    # Layer 1. 4 and 5 are both needed first by row 0, last by row 2; one slot stays free.
    assert bench.decided(1) == ([], [4, 5], [0, 1], [-1, -1], [-1, -1])
    assert bench.residency(1) == {4: (0, 2), 5: (1, 2)}
    # Base: (4000 + 3 x 500) / 4 = 1375.
    # Layer 0, bytes: 100-600, 600-1100 (its latency passed meanwhile), copy 2 issued at 600,
    # 1100-1600, copy 3 issued at 1100 (item 0 has run at 650, no delay), 1600-2100. Computes
    # 600-650, 1100-1150, 1600-1650, 2100-2150. Idle 600 + 450 + 450 + 450 = 1950.
    # Layer 1, bytes: 100-600, 600-1100. Computes 600-650, 1100-1150. Idle 600 + 450 = 1050.
    assert total == 2 * ((1375 + 2150) + (1375 + 1150)) == 12_100
    assert wait == 2 * (1950 + 1050) == 6000


def test_forward_2_root_and_one_node(bench: Bench) -> None:
    prefill(bench)
    total, wait = verify_one_node(bench)
    # Layer 0. Resident 3@0(2) 1@1(2) 2@2(1). 1 is a hit, used in rows 0 and 1. Misses: 4 (row 0),
    # 0 (row 1). 4 takes the oldest forward's lowest last row: 2, slot 2. 0 takes the only old one
    # left: 3, slot 0. Both are older than this forward, so no copy waits.
    assert bench.decided(0) == ([1], [4, 0], [2, 0], [2, 3], [-1, -1])
    assert bench.residency(0) == {0: (0, 1), 1: (1, 1), 4: (2, 0)}
    # Layer 1. Resident 4@0(2) 5@1(2), slot 2 free. Misses 0, 1 (row 0), 2, 3 (row 1). 0 takes the
    # free slot 2; 1 evicts 4 (tie with 5, lower id), slot 0; 2 evicts 5, slot 1; 3 finds only this
    # forward's 0(0) 1(0) 2(1): 0 goes, item 0, a wave.
    assert bench.decided(1) == ([], [0, 1, 2, 3], [2, 0, 1, 2], [-1, 4, 5, 0], [-1, -1, -1, 0])
    assert bench.residency(1) == {1: (0, 0), 2: (1, 1), 3: (2, 1)}
    # Base: (4000 + 1000) / 4 = 1250.
    # Layer 0: the hit computes 0-50. Bytes 100-600, 600-1100. Computes 600-650, 1100-1150: 1150,
    # idle 550 + 450 = 1000. Layer 1: four misses as in forward 1, 2150, idle 1950.
    assert total == 2 * ((1250 + 1150) + (1250 + 2150)) == 11_600
    assert wait == 2 * (1000 + 1950) == 5900


def test_forward_3_a_wave_delays_its_copy(bench: Bench) -> None:
    prefill(bench), verify_one_node(bench)
    total, wait = verify_two_nodes(bench)
    # Layer 0. Resident 0@0(1) 1@1(1) 4@2(0). Hit 0, now last row 2. Misses 2 and 3 (row 0), 5
    # (row 1). Last rows there: 2 -> 2, 3 -> 0, 5 -> 1. 2 evicts 4 (row 0 below 1's row 1), slot 2;
    # 3 evicts 1, slot 1; 5 finds this forward's 0(2) 2(2) 3(0): 3 goes, loaded just before. Order
    # 0, 2, 3, 5: it waits for item 2.
    assert bench.decided(0) == ([0], [2, 3, 5], [2, 1, 1], [4, 1, 3], [-1, -1, 2])
    assert bench.residency(0) == {0: (0, 2), 5: (1, 1), 2: (2, 2)}
    # Layer 1. 1, 2, 3 are resident: three hits.
    assert bench.decided(1) == ([1, 2, 3], [], [], [], [])
    assert bench.residency(1) == {1: (0, 2), 2: (1, 1), 3: (2, 2)}
    # Base: (4000 + 2 x 1000) / 4 = 1500.
    # Layer 0: hit 0-50. Bytes 100-600, 600-1100. Computes 600-650 (idle 550), 1100-1150 (idle 450).
    # Copy 2 could be issued at 600, but waits for item 2 until 1150: bytes 1250-1750 (not
    # 1100-1600), computes 1750-1800 (idle 600). 1800, idle 1600. Layer 1: 3 x 50 = 150.
    assert total == 2 * ((1500 + 1800) + (1500 + 150)) == 9900
    assert wait == 2 * 1600 == 3200


def test_forward_4_the_root_alone(bench: Bench) -> None:
    prefill(bench), verify_one_node(bench), verify_two_nodes(bench)
    total, wait = verify_root(bench)
    # Layer 0. Resident 0@0(2) 5@1(1) 2@2(2). Hit 5. Miss 1: of the older 0 and 2, both last used in
    # row 2, the lower id 0 goes.
    assert bench.decided(0) == ([5], [1], [0], [0], [-1])
    # Layer 1. Resident 1@0(2) 2@1(1) 3@2(2). Misses 0 and 4, both first in row 0: by id. 0 evicts 2
    # (row 1), slot 1; 4 evicts 1 (tie with 3, lower id), slot 0.
    assert bench.decided(1) == ([], [0, 4], [1, 0], [2, 1], [-1, -1])
    # Base: 4000 / 4 = 1000. Layer 0: hit 0-50, bytes 100-600, computes 600-650, idle 550.
    # Layer 1: 1150, idle 1050, as in forward 1.
    assert total == 2 * ((1000 + 650) + (1000 + 1150)) == 7600
    assert wait == 2 * (550 + 1050) == 3200


def test_bytes_of_the_four_forwards(bench: Bench) -> None:
    prefill(bench), verify_one_node(bench), verify_two_nodes(bench), verify_root(bench)
    # Misses: 4 + 2, 2 + 4, 3 + 0, 1 + 2 = 18, of 10 own bytes; billed twice each with 1000 bytes.
    assert bench.moved_bytes == 180
    assert bench.billed_bytes == 36_000


def test_the_same_forwards_without_slots(bench: Bench) -> None:
    """Every demanded expert moves: 4 + 2, 3 + 4, 4 + 3, 2 + 2 = 24; staging has 3 blocks."""
    bench.cache = ExpertCache(2, 6, 0, staging_blocks=3)
    total, wait = prefill(bench)
    # Layer 0 as with slots, but copy 3 waits for item 0 because it takes that item's block.
    assert bench.decided(0) == ([], [0, 1, 2, 3], [-1] * 4, [-1] * 4, [-1, -1, -1, 0])
    assert (total, wait) == (12_100, 6000)
    verify_one_node(bench), verify_two_nodes(bench)
    # Two misses each: 2 x ((1000 + 1150) + (1000 + 1150)).
    assert verify_root(bench) == (8600, 4200)
    assert bench.moved_bytes == 240
