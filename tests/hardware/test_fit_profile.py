"""Constants are found again in cycles that were made from them; a cycle is billed as it was
decoded.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specfit.base.types import CycleRecord, ForwardTrace, SpecfitError
from specfit.hardware.clock import ModelledClock
from specfit.hardware.clock_error import Observed, compare, modelled_ns
from specfit.hardware.fit_profile import fit_draft, fit_forward, mean_ns, prefill_token_ns, spread
from specfit.hardware.profile import Billing, Profile

LAYERS = 4
FIXED, TREE, NODE, EXPERT, COPY, TOKEN = 5_000_000, 400_000, 70_000, 30_000, 12_000, 9_000


def cycle(
    number: int, rows: int, hits: int, misses: int, ns: int, request: str = "r0", wait: int = 0
) -> Observed:
    """`hits` and `misses` per layer; everything but verify takes a round number."""
    counts = (np.full(LAYERS, n) for n in (hits, misses, 0))
    wait_for = np.full((LAYERS, misses), -1)
    trace = ForwardTrace(rows, number == 0, *counts, wait_for)
    drafted, demand = 5 if number else 0, LAYERS * (hits + misses)
    record = CycleRecord(
        request_id=request,
        cycle=number,
        context_tokens=10,
        drafted_levels=drafted,
        pool_nodes=18,
        verified_nodes=rows if number else 0,
        accepted_tokens=0,
        committed_tokens=1,
        stop_reason=None,
        demand_experts=demand,
        hit_experts=LAYERS * hits,
        transferred_experts=LAYERS * misses,
        prefetched_experts=0,
        host_experts=0,
        transferred_bytes=0,
        billed_bytes=0,
        evicted_experts=0,
        peak_layer_demand=hits + misses,
        route_mismatches=None,
        draft_ns=drafted * 1000,
        route_ns=0,
        select_ns=300,
        verify_ns=ns,
        transfer_wait_ns=wait,
        commit_ns=40,
        cycle_ns=drafted * 1000 + 300 + ns + 40,
        predicted_reward=None,
        predicted_ns=None,
        searched_subtrees=None,
    )
    return Observed(record, [trace])


def made(noise: float = 0.0, misses: bool = True, request: str = "r0") -> list[Observed]:
    rng = np.random.default_rng(len(request))
    cycles = []
    for number in range(1, 40):
        rows, hits = int(rng.integers(0, 8)), int(rng.integers(2, 30))
        late = int(rng.integers(0, 20)) if misses else 0
        ns = (
            FIXED
            + TREE * (rows > 0)
            + NODE * rows
            + LAYERS * (EXPERT * (hits + late) + COPY * late)
        )
        cycles.append(
            cycle(number, rows, hits, late, round(ns * (1 + noise * rng.standard_normal())))
        )
    return cycles


@pytest.mark.parametrize("overlap", [False, True])
def test_constants_are_found_again(overlap: bool) -> None:
    cost = fit_forward(made(), overlap)
    assert cost.fixed_ns == pytest.approx(FIXED, rel=1e-4)
    assert cost.tree_ns == pytest.approx(TREE, rel=1e-2)
    assert cost.node_ns == pytest.approx(NODE, rel=1e-3)
    assert cost.expert_ns == pytest.approx(EXPERT, rel=1e-3)
    assert cost.miss_ns == pytest.approx(COPY, rel=1e-3)


def test_an_interrupted_cycle_does_not_move_them() -> None:
    cycles = made(noise=0.005)
    cycles[7] = cycle(8, 3, 5, 2, 400_000_000)
    cost = fit_forward(cycles, overlap=False)
    assert cost.fixed_ns == pytest.approx(FIXED, rel=0.05)
    assert cost.expert_ns == pytest.approx(EXPERT, rel=0.05)


def test_scatter_does_not_shorten_the_totals() -> None:
    """Times that scatter upwards: the fit's total is the cycles' own, within a percent."""
    rng = np.random.default_rng(7)
    cycles = []
    for number in range(1, 2000):
        rows, hits = int(rng.integers(0, 8)), int(rng.integers(2, 30))
        ns = FIXED + TREE * (rows > 0) + NODE * rows + LAYERS * EXPERT * hits
        cycles.append(cycle(number, rows, hits, 0, round(ns * rng.lognormal(0, 0.3))))
    cost = fit_forward(cycles, overlap=False)
    fitted = sum(
        cost.fixed_ns
        + cost.tree_ns * (c.record.verified_nodes > 0)
        + cost.node_ns * c.record.verified_nodes
        + cost.expert_ns * c.record.demand_experts
        for c in cycles
    )
    assert fitted == pytest.approx(sum(c.record.verify_ns for c in cycles), rel=0.01)


def test_where_copies_overlap_the_waits_are_taken_out() -> None:
    waiting = [
        cycle(n, 1, 5, 3, FIXED + TREE + NODE + LAYERS * EXPERT * 8 + 9_000_000, wait=9_000_000)
        for n in range(1, 20)
    ]
    cost = fit_forward([*made(misses=False), *waiting], overlap=True)
    assert cost.fixed_ns == pytest.approx(FIXED, rel=1e-3)
    assert cost.miss_ns == pytest.approx(0.0, abs=20)
    with pytest.raises(SpecfitError, match="raise limit or max_new_tokens"):
        fit_forward(waiting[:7], overlap=True)


def test_drafting_has_an_extension_and_levels() -> None:
    cycles = [
        replace(
            c,
            record=replace(
                c.record, drafted_levels=n, draft_ns=ns, cycle_ns=ns + c.record.verify_ns + 340
            ),
        )
        for c, (n, ns) in zip(
            made(), [(n, 700_000 + 90_000 * n) for n in (1, 2, 3, 5, 5, 4, 2)], strict=False
        )
    ]
    found = fit_draft(cycles)
    assert found.extension_ns == pytest.approx(700_000, rel=1e-3)
    assert found.level_ns == pytest.approx(90_000, rel=1e-3)
    assert fit_draft(made()[:0]).level_ns == 0.0


def test_a_prompt_token_costs_what_the_forward_does_not_explain() -> None:
    cost = fit_forward(made(), overlap=False)
    ns = FIXED + LAYERS * (EXPERT * 25 + COPY * 5) + 200 * TOKEN
    first = cycle(0, 200, 20, 5, ns)
    found = prefill_token_ns([*made(), first], cost, overlap=False)
    assert found == pytest.approx(TOKEN + 340 / 200, rel=0.02)
    assert prefill_token_ns(made(), cost, overlap=False) == 0.0
    waited = cycle(0, 200, 20, 5, ns, wait=200 * 4_000)
    assert prefill_token_ns([waited], cost, overlap=True) == pytest.approx(found - 4_000)


def test_a_mean_leaves_prefill_out() -> None:
    cycles = [cycle(0, 9, 1, 1, 10), cycle(1, 2, 1, 1, 10), cycle(2, 2, 1, 1, 30)]
    assert mean_ns(cycles, lambda c: c.record.verify_ns) == 20
    assert mean_ns(cycles[:1], lambda c: c.record.verify_ns) == 0


def test_the_spread_leaves_one_request_out() -> None:
    group = {"a": [cycle(1, 0, 1, 0, ns, name) for name, ns in (("x", 10), ("y", 20), ("z", 60))]}

    def mean(cycles: dict) -> dict[str, float]:  # type: ignore[type-arg]
        return {"ns": mean_ns(cycles["a"], lambda c: c.record.verify_ns)}

    assert spread(group, mean) == {"ns": (15.0, 40.0)}  # type: ignore[arg-type]


# -- billing again --------------------------------------------------------------------------------


def clock(**values: float) -> ModelledClock:
    settings: dict[str, float] = {"link_gbps": 2.0, "fixed_ms": 0.4, "node_ms": 0.1}
    profile = Profile("p", expert_us=3.0, commit_ms=0.5, **(settings | values))  # type: ignore[arg-type]
    return ModelledClock(profile, Billing.own(LAYERS, 4000))


def test_a_serial_machine_adds_up_every_copy_and_every_expert() -> None:
    """4 layers: base 100 + 50 us, 3 experts of 3 us, of which one is copied in 2 us + 1 us."""
    serial = clock(overlap=False, copy_latency_us=1.0)
    serial.start()
    trace = cycle(1, 2, 2, 1, 0).traces[0]
    assert serial.bill_forward(trace) == LAYERS * 3_000
    assert serial.lap() == LAYERS * (150_000 + 9_000 + 3_000)
    overlapping = clock(copy_latency_us=1.0)
    overlapping.start()
    overlapping.bill_forward(trace)
    assert overlapping.lap() == LAYERS * (150_000 + 6_000 + 3_000), "hits hide the copy"


def test_a_tree_and_an_extension_are_paid_once() -> None:
    """4 layers of (0.4 + 0.8 + 2 x 0.1 ms) / 4 and 3 experts of 3 us; drafting 1.5 + 5 x 2 ms."""
    one = clock(tree_ms=0.8, extension_ms=1.5, draft_level_ms=2.0, selection_ms=0.0)
    forward = 1_400_000 + LAYERS * 9_000
    assert modelled_ns(cycle(1, 2, 3, 0, 0), one, False) == forward + 11_500_000 + 500_000
    assert modelled_ns(cycle(2, 2, 3, 0, 0), one, False) == forward + 12_000_000, "every cycle"
    assert modelled_ns(cycle(3, 0, 3, 0, 0), one, False) == forward - 1_000_000 + 12_000_000
    prompt = modelled_ns(cycle(0, 0, 3, 0, 0), one, False)
    assert prompt == 400_000 + LAYERS * 9_000, "a prompt is no tree"


def test_prefill_pays_neither_selection_nor_commit() -> None:
    one = clock(draft_level_ms=2.0, selection_ms=7.0, prefill_token_ms=0.0)
    first, later = cycle(0, 10, 1, 0, 0), cycle(1, 0, 1, 0, 0)
    forward = 400_000 + LAYERS * 3_000
    assert modelled_ns(first, one, reads_routes=True) == forward
    assert modelled_ns(later, one, reads_routes=False) == forward + 5 * 2_000_000 + 500_000
    assert modelled_ns(later, one, reads_routes=True) == forward + 17_500_000


def test_the_error_is_of_totals() -> None:
    one = clock(draft_level_ms=0.0, selection_ms=0.0, prefill_token_ms=0.0)
    found = compare("ar", [cycle(0, 1, 1, 0, 1_000_000), cycle(1, 0, 1, 0, 500_000)], one, False)
    measured = 1_000_000 + 340 + 500_000 + 5_340
    assert found.measured_ns == measured and found.cycles == 2
    assert found.error == pytest.approx((2 * 412_000 + 500_000) / measured - 1)
    assert found.decode_error == pytest.approx(912_000 / 505_340 - 1)
