"""The cycle on hand-written scripts: what is accepted, kept, counted and billed, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from specfit.base.interfaces import Clock, RouteSource, Selector, Verified
from specfit.base.types import DraftTree, Request, Routes, Selection
from specfit.decoding.cycle import Cycle
from specfit.decoding.decoder import Decoder
from specfit.hardware.clock import ModelledClock, WallClock
from specfit.hardware.profile import Billing, Profile
from specfit.models.routes.atlas import AtlasRoutes
from specfit.models.routes.noisy import NoisyRoutes
from specfit.selection.cost import CostModel
from specfit.selection.selectors import NoDraft, SpecFit, TopProbability
from tests.fakes.table_model import (
    EXPERT_BYTES,
    EXPERTS,
    LAYERS,
    RouteTable,
    ScriptedDrafter,
    ScriptedTarget,
    chain,
)

PROFILE = Profile(
    "hand",
    link_gbps=1.0,  # a copy of 1000 bytes takes 1000 ns
    fixed_ms=0.004,
    node_ms=0.001,
    prefill_token_ms=0.0005,
    draft_level_ms=0.003,
    selection_ms=0.007,
)
PROMPT = (1, 2)
TEXT = tuple(range(10, 40))  # what the target says after the prompt
ANSWER = chain(2, *TEXT)
RIGHT = {token: (token + 1, 90) for token in TEXT}  # first guess right, second wrong
FREE = CostModel(np.full(8, 1e6), 0.0)  # nothing costs: as many nodes as allowed


@dataclass
class Setting:
    """A decoder over scripts. The pool has 2 + 4 + 4 nodes, see `test_the_pool_of_these_tests`."""

    guesses: Mapping[int, tuple[int, int]] = field(default_factory=lambda: RIGHT)
    selector: Selector = field(default_factory=lambda: TopProbability("eagle3", 7))
    depth: int = 3
    slots: int = EXPERTS
    routes: RouteTable | None = None
    chunk: int | None = None
    accuracy: float | None = None
    clock: Clock | None = None

    def __post_init__(self) -> None:
        self.target = ScriptedTarget(ANSWER, self.slots, self.routes, self.chunk)
        self.drafter = ScriptedDrafter(self.guesses, self.depth)
        clock = self.clock or ModelledClock(PROFILE, Billing.own(LAYERS, EXPERT_BYTES))
        self.decoder = Decoder(
            self.target,
            self.drafter if self.selector.drafts else None,
            self._source() if self.selector.reads_routes else None,
            self.selector,
            clock,
        )

    def _source(self) -> RouteSource:
        atlas = AtlasRoutes(self.target)
        return atlas if self.accuracy is None else NoisyRoutes(atlas, EXPERTS, self.accuracy, 0)

    def run(self, cap: int = 9, stop: frozenset[int] | set[int] = frozenset()) -> list[Cycle]:
        request = Request("r", np.array(PROMPT), cap, frozenset(stop))
        return list(self.decoder.decode(request))


class TakeUntil(Selector):
    """Takes the path to the newest node up to a level, and no newest node beyond it."""

    name, drafts, k = "until", True, 7

    def __init__(self, level: int, adaptive: bool = True, reads_routes: bool = False) -> None:
        self._level, self.adaptive_depth, self.reads_routes = level, adaptive, reads_routes
        self.asked: list[int] = []  # levels of the pools it was shown

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        assert (routes is not None) == self.reads_routes
        self.asked.append(tree.levels)
        newest = np.flatnonzero(tree.depths == min(self._level, tree.levels))
        return Selection(tree.path(int(newest[0])) if len(newest) else ())


def ids(cycles: list[Cycle]) -> list[int]:
    return [token for cycle in cycles for token in cycle.tokens]


def counts(cycles: list[Cycle]) -> list[tuple[int, int]]:
    """(accepted, committed) of the cycles after prefill."""
    return [(c.record.accepted_tokens, c.record.committed_tokens) for c in cycles[1:]]


# -- what is accepted ------------------------------------------------------------------------------


def test_the_pool_of_these_tests() -> None:
    """Level by level: 0 1 | 2 3 under 0, 4 5 under 1 | 6 7 under 2, 8 9 under 3.

    Eighths: 5 2 | 25/8 10/8, 10/8 4/8 | ..., so the best seven are 0 2 1 6 3 4 7 (tie with 8).
    """
    drafted = Setting().run()[1].drafted
    assert drafted.tree.parents.tolist() == [-1, -1, 0, 0, 1, 1, 2, 2, 3, 3]
    assert drafted.tree.tokens.tolist() == [11, 90, 12, 90, 97, 98, 13, 90, 97, 98]
    assert drafted.selection.nodes == (0, 1, 2, 3, 4, 6, 7)


@pytest.mark.parametrize(
    ("guesses", "expected"),
    [
        pytest.param({}, [(0, 1)] * 8, id="none"),
        pytest.param(RIGHT, [(3, 4), (3, 4)], id="all"),
        pytest.param({10: (11, 90), 13: (14, 90)}, [(1, 2), (0, 1), (1, 2), (0, 1)], id="one"),
        pytest.param({10: (90, 11), 11: (12, 90)}, [(2, 3), *[(0, 1)] * 5], id="second-child"),
        pytest.param({10: (90, 11), 90: (12, 91)}, [(1, 2)], id="right-token-of-a-wrong-parent"),
        # 8 hangs under the right node 3, but seven nodes leave it out: drafted, never verified
        pytest.param({10: (11, 90), 11: (90, 12), 12: (13, 90)}, [(2, 3)], id="left-out"),
    ],
)
def test_the_longest_verified_path_is_accepted(
    guesses: dict[int, tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    cycles = Setting(guesses).run(cap=9)
    assert counts(cycles)[: len(expected)] == expected
    assert ids(cycles) == list(TEXT[:9])


def test_a_smaller_k_verifies_less_and_says_the_same() -> None:
    cycles = Setting(selector=TopProbability("eagle3", 1)).run(cap=9)
    assert counts(cycles) == [(1, 2)] * 4
    assert ids(cycles) == list(TEXT[:9])


def test_without_a_drafter_each_cycle_commits_the_bonus_alone() -> None:
    setting = Setting(selector=NoDraft())
    cycles = setting.run(cap=4)
    assert counts(cycles) == [(0, 1)] * 3
    assert ids(cycles) == list(TEXT[:4])
    assert setting.drafter.rows == [] and setting.target.observed == []


# -- where it stops --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cap", "stop", "said", "last", "reason"),
    [
        pytest.param(9, {12}, 3, (2, 2), "eos", id="eos-inside-the-path"),
        pytest.param(9, {13}, 4, (3, 3), "eos", id="eos-is-the-last-draft"),
        pytest.param(9, {14}, 5, (3, 4), "eos", id="eos-is-the-bonus"),
        pytest.param(3, set(), 3, (2, 2), "length", id="cap-inside-the-path"),
        pytest.param(4, set(), 4, (3, 3), "length", id="cap-leaves-the-bonus-out"),
        pytest.param(5, set(), 5, (3, 4), "length", id="cap-is-the-bonus"),
        pytest.param(3, {12}, 3, (2, 2), "eos", id="eos-at-the-cap"),
        pytest.param(2, {12}, 2, (1, 1), "length", id="cap-before-eos"),
        pytest.param(9, {90}, 9, (3, 4), "length", id="eos-drafted-and-rejected"),
    ],
)
def test_a_stop_cuts_the_path(
    cap: int, stop: set[int], said: int, last: tuple[int, int], reason: str
) -> None:
    setting = Setting()
    cycles = setting.run(cap, stop)
    assert ids(cycles) == list(TEXT[:said])
    assert counts(cycles)[-1] == last
    assert [c.record.stop_reason for c in cycles] == [*[None] * (len(cycles) - 1), reason]
    assert setting.target.kv == [*PROMPT, *TEXT[: said - 1]]


def test_a_first_token_that_stops_leaves_one_cycle() -> None:
    setting = Setting()
    (only,) = setting.run(stop={10})
    assert only.tokens == (10,) and only.record.stop_reason == "eos"
    assert (only.record.accepted_tokens, only.record.committed_tokens) == (0, 1)
    assert setting.target.kv == list(PROMPT)


def test_one_new_token_is_the_prefill_alone() -> None:
    (only,) = Setting().run(cap=1)
    assert only.tokens == (10,) and only.record.stop_reason == "length"


# -- the two KV caches -----------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, 1])
@pytest.mark.parametrize("guesses", [{}, RIGHT, {10: (90, 11), 11: (12, 90)}])
def test_kv_holds_the_prompt_and_all_that_is_committed_but_the_root(
    guesses: dict[int, tuple[int, int]], chunk: int | None
) -> None:
    setting = Setting(guesses, chunk=chunk)
    text = list(PROMPT)
    request = Request("r", np.array(PROMPT), 12, frozenset())
    for cycle in setting.decoder.decode(request):
        if cycle.record.cycle > 0:  # the head was extended to the root this cycle began with
            pairs = list(zip(text[1:], text[:-1], strict=True))
            assert setting.drafter.rows == pairs, "x_{t+1} beside the feature of x_t"
        assert cycle.record.context_tokens == len(text)
        text += cycle.tokens
        assert setting.target.kv == text[:-1]


# -- counted by hand -------------------------------------------------------------------------------


def test_counters_and_nanoseconds_of_a_cycle_counted_by_hand() -> None:
    routes = {
        1: [[0, 1], [0, 1]],
        2: [[1, 2], [1, 0]],
        10: [[0, 3], [2, 3]],
        11: [[4, 3], [3, 2]],
        90: [[5, 6], [0, 4]],
    }
    setting = Setting(selector=TopProbability("eagle3", 2), depth=1, slots=3, routes=routes)
    prefill, cycle = (c.record for c in setting.run(cap=3))
    # Prefill. Layer 0 loads 0, 1, 2 into three free slots; layer 1 loads 0, 1.
    assert (prefill.demand_experts, prefill.hit_experts, prefill.transferred_experts) == (5, 0, 5)
    assert (prefill.evicted_experts, prefill.peak_layer_demand) == (0, 3)
    # (4000 + 2 x 500) / 2 = 2500 a layer, then 3 and 2 copies of 1000, all waited for.
    assert (prefill.verify_ns, prefill.transfer_wait_ns) == (2 * 2500 + 5000, 5000)
    assert (prefill.draft_ns, prefill.select_ns, prefill.commit_ns) == (0, 0, 0)
    # Cycle: root 10, nodes 11 and 90. Layer 0 demands 0 3 4 5 6 and has 0 1 2: hit 0; 3 takes 1's
    # slot, 4 takes 2's, 5 takes 0's (row 0, this forward), 6 takes 3's (row 1): 4 misses and
    # evictions. Layer 1 demands 2 3 0 4 and has 0 1: hit 0; 2 is free, 3 takes 1's slot, 4 takes
    # 2's: 3 misses, 2 evictions.
    assert (cycle.demand_experts, cycle.hit_experts, cycle.transferred_experts) == (9, 2, 7)
    assert (cycle.evicted_experts, cycle.peak_layer_demand) == (6, 5)
    assert (cycle.transferred_bytes, cycle.billed_bytes) == (7000, 7000)
    # (4000 + 2 x 1000) / 2 = 3000 a layer and 7 copies; one draft level.
    assert (cycle.verify_ns, cycle.transfer_wait_ns) == (2 * 3000 + 7000, 7000)
    assert (cycle.draft_ns, cycle.route_ns, cycle.select_ns) == (3000, 0, 0)
    assert cycle.cycle_ns == 16_000
    assert (cycle.pool_nodes, cycle.verified_nodes, cycle.drafted_levels) == (2, 2, 1)
    assert (cycle.accepted_tokens, cycle.committed_tokens) == (1, 2)


def test_a_model_that_stands_for_a_larger_one_bills_scaled_and_counts_its_own() -> None:
    large = ModelledClock(PROFILE, Billing("large", 6 * LAYERS, 5000, LAYERS, EXPERT_BYTES))
    own, scaled = Setting(slots=3).run(), Setting(slots=3, clock=large).run()
    for mine, billed in zip(own, scaled, strict=True):
        record = billed.record
        assert record.transferred_bytes == 1000 * record.transferred_experts
        assert record.billed_bytes == 6 * 5000 * record.transferred_experts
        assert record.transfer_wait_ns == 6 * 5 * mine.record.transfer_wait_ns
        assert record.demand_experts == mine.record.demand_experts


def test_a_chunked_prefill_is_several_forwards_in_one_cycle() -> None:
    whole, chunked = Setting(slots=0).run()[0], Setting(slots=0, chunk=1).run()[0]
    assert len(chunked.traces) == 2 and len(whole.traces) == 1
    assert chunked.record.verify_ns - chunked.record.transfer_wait_ns == 2 * 4000 + 2 * 500
    assert whole.record.demand_experts < chunked.record.demand_experts, "shared experts move twice"
    demands = [int(trace.demand.max()) for trace in chunked.traces]
    assert chunked.record.peak_layer_demand == max(demands)


# -- adaptive depth --------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "drafted"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_drafting_stops_when_none_of_the_newest_level_is_taken(level: int, drafted: int) -> None:
    selector = TakeUntil(level)
    record = Setting(selector=selector).run(cap=2)[1].record
    assert selector.asked == list(range(1, drafted + 1))
    assert record.drafted_levels == drafted
    assert record.draft_ns == drafted * 3000
    assert record.verified_nodes == min(level, drafted)


def test_full_depth_asks_once_at_the_end() -> None:
    selector = TakeUntil(0, adaptive=False)
    record = Setting(selector=selector).run(cap=2)[1].record
    assert selector.asked == [3]
    assert (record.drafted_levels, record.draft_ns) == (3, 9000)


def test_a_search_that_expects_nothing_of_drafts_pays_for_one_level() -> None:
    steep = CostModel(1e6 * 100.0 ** np.arange(8), 0.0)
    for cycle in Setting(selector=SpecFit(steep, EXPERTS)).run()[1:]:
        assert (cycle.record.drafted_levels, cycle.record.verified_nodes) == (1, 0)
        assert (cycle.record.draft_ns, cycle.record.select_ns) == (3000, 7000)


# -- routes ----------------------------------------------------------------------------------------


def test_an_atlas_is_asked_for_new_nodes_only_and_costs_no_time() -> None:
    setting = Setting(selector=SpecFit(FREE, EXPERTS))
    record = setting.run(cap=2)[1].record
    assert setting.target.observed == [2, 4, 4]
    assert record.drafted_levels == 3
    assert (record.route_ns, record.select_ns) == (0, 7000), "selection is billed once a cycle"
    assert record.route_mismatches == 0
    assert record.predicted_reward is not None and record.predicted_ns == 1_000_000


@pytest.mark.parametrize("selector", [TopProbability(), NoDraft(), TakeUntil(1)])
def test_selectors_that_read_no_routes_have_no_route_source(selector: Selector) -> None:
    setting = Setting(selector=selector)
    cycles = setting.run()
    assert setting.target.observed == []
    assert all(c.record.route_mismatches is None and c.record.select_ns == 0 for c in cycles)
    with pytest.raises(AssertionError, match="routes are for a selector that reads them"):
        Decoder(
            setting.target,
            setting.drafter if selector.drafts else None,
            AtlasRoutes(setting.target),
            selector,
            setting.decoder.clock,
        )


def test_a_source_on_the_clock_bills_to_route_ns() -> None:
    class Billed(AtlasRoutes):
        on_clock = True

        def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
            clock._bill(11)
            return super().read(root_token, tree, context_tokens)

    setting = Setting(selector=SpecFit(FREE, EXPERTS))
    clock = setting.decoder.clock
    assert isinstance(clock, ModelledClock)
    setting.decoder.routes = Billed(setting.target)
    assert setting.run(cap=2)[1].record.route_ns == 3 * 11


def test_noisy_routes_change_selections_and_no_id() -> None:
    costly = CostModel(np.full(8, 1e6), 4e5)
    exact = Setting(selector=SpecFit(costly, EXPERTS)).run(cap=25)
    noisy = Setting(selector=SpecFit(costly, EXPERTS), accuracy=0.3).run(cap=25)
    assert ids(exact) == ids(noisy) == list(TEXT[:25])
    chosen = [[c.drafted.selection.nodes for c in cycles[1:6]] for cycles in (exact, noisy)]
    assert chosen[0] != chosen[1]


# -- timer and repetition --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["modelled", "wall"])
@pytest.mark.parametrize("selector", [NoDraft(), TopProbability(), SpecFit(FREE, EXPERTS)])
def test_a_cycle_is_the_sum_of_its_phases(selector: Selector, kind: str) -> None:
    clock = WallClock(lambda: None, EXPERT_BYTES) if kind == "wall" else None
    cycles = Setting(selector=selector, clock=clock).run()
    for record in (c.record for c in cycles):
        phases = record.draft_ns, record.route_ns, record.select_ns, record.verify_ns
        assert record.cycle_ns == sum(phases) + record.commit_ns > 0
        assert min(phases) >= 0 and 0 <= record.transfer_wait_ns <= record.verify_ns
    assert [c.record.cycle for c in cycles] == list(range(len(cycles)))


def test_wall_time_leaves_the_atlas_out_and_elapsed_time_has_it() -> None:
    class Slow(AtlasRoutes):
        def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
            now[0] += 10_000_000
            return super().read(root_token, tree, context_tokens)

    now = [0]
    clock = WallClock(lambda: None, EXPERT_BYTES, timer=lambda: now[0])
    setting = Setting(selector=SpecFit(FREE, EXPERTS), clock=clock)
    setting.decoder.routes = Slow(setting.target)
    cycles = setting.run(cap=3)
    assert now[0] == 30_000_000
    assert [c.record.cycle_ns for c in cycles] == [0, 0], "three reads, all off the clock"
    assert cycles[1].timing.atlas_ns > 0 and cycles[1].timing.elapsed_ns > 0


@pytest.mark.parametrize("accuracy", [None, 0.5])
def test_two_runs_leave_equal_records(accuracy: float | None) -> None:
    costly = CostModel(np.full(8, 1e6), 1e5)

    def records() -> list[object]:
        setting = Setting(selector=SpecFit(costly, EXPERTS), slots=3, accuracy=accuracy)
        return [cycle.record for cycle in setting.run(cap=20)]

    assert records() == records()


def interrupted(*arguments: object) -> Verified:
    raise KeyboardInterrupt


def test_a_request_left_half_way_harms_no_later_one() -> None:
    """Without slots nothing may be left over; with slots only the residency is."""
    fresh = [c.record for c in Setting(selector=SpecFit(FREE, EXPERTS), slots=0).run()]
    setting = Setting(selector=SpecFit(FREE, EXPERTS), slots=0)
    left = setting.decoder.decode(Request("left", np.array([5, 2]), 9, frozenset()))
    next(left), next(left)
    verify, setting.target.verify = setting.target.verify, interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        next(left)
    setting.target.verify = verify  # type: ignore[method-assign]
    assert [c.record for c in setting.run()] == fresh


def test_contents_of_the_expert_cache_outlive_a_request() -> None:
    setting = Setting()
    first, second = setting.run(), setting.run()
    assert ids(first) == ids(second)
    assert sum(c.record.transferred_experts for c in first) > 0
    assert sum(c.record.transferred_experts for c in second) == 0
