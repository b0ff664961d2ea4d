"""Both clocks: what a lap holds, what stands still, and which clock `auto` means."""

from dataclasses import replace

import numpy as np
import pytest

from specfit.base.types import ForwardTrace, SpecfitError
from specfit.hardware.clock import ModelledClock, WallClock, choose_clock
from specfit.hardware.profile import Billing, Profile

PAPER = Profile("paper_main", link_gbps=25, fixed_ms=70)
EXPERT = 9_437_184  # bytes of one bf16 expert of Qwen3-30B-A3B: 3 x 2048 x 768 x 2
COPY = 377_487  # ns at 25 GB/s: 9437184 / 25 = 377487.36


def misses_only(layers: int, per_layer: int, rows: int, is_prefill: bool = False) -> ForwardTrace:
    misses = np.full(layers, per_layer)
    waits = np.full((layers, per_layer), -1)
    return ForwardTrace(rows, is_prefill, misses * 0, misses, misses * 0, waits)


def test_an_uncached_ar_token_of_the_paper_is_70_plus_145_ms() -> None:
    clock = ModelledClock(PAPER, Billing.own(48, EXPERT))
    clock.start()
    wait = clock.bill_forward(misses_only(48, 8, rows=0))
    # per layer round(70e6 / 48) = 1458333 and 8 x 377487 = 3019896
    assert clock.lap() == 48 * (1_458_333 + 8 * COPY) == 214_954_992
    assert wait == 48 * 8 * COPY == 144_955_008


def test_the_embedded_target_is_billed_as_the_real_one() -> None:
    billing = Billing("qwen3-30b-a3b", 48, EXPERT, own_layers=8, own_expert_bytes=24_576)
    clock = ModelledClock(PAPER, billing)
    clock.start()
    trace = misses_only(8, 8, rows=0)
    clock.bill_forward(trace)
    assert clock.lap() == 214_954_992
    assert clock.billed_bytes(trace) == 384 * EXPERT


def test_verified_nodes_and_prefill_tokens_have_their_own_price() -> None:
    clock = ModelledClock(PAPER, Billing.own(48, EXPERT))
    clock.start()
    clock.bill_forward(misses_only(48, 0, rows=7))
    # round((70 + 7 x 0.6 ms) / 48) = round(1545833.33)
    assert clock.lap() == 48 * 1_545_833
    clock.bill_forward(misses_only(48, 1, rows=300, is_prefill=True))
    # round((70 + 300 x 0.2 ms) / 48) = round(2708333.33)
    assert clock.lap() == 48 * (2_708_333 + COPY)


def test_a_lap_is_the_sum_of_its_bills_and_the_next_starts_at_zero() -> None:
    clock = ModelledClock(replace(PAPER, commit_ms=0.5), Billing.own(48, EXPERT))
    clock.bill_draft_level()  # before the start: in no phase
    clock.start()
    clock.bill_draft_level()
    clock.bill_draft_level()
    assert clock.lap() == 6_000_000
    clock.bill_selection()
    assert clock.lap() == 3_000_000
    assert clock.lap() == 0
    clock.bill_commit()
    assert clock.lap() == 500_000
    assert all(type(ns) is int for ns in (clock.lap(), clock.bill_forward(misses_only(48, 1, 0))))


def test_latency_expert_time_and_copies_in_flight_reach_the_timeline() -> None:
    profile = replace(PAPER, fixed_ms=0, copy_latency_us=10, expert_us=20, copies_in_flight=1)
    clock = ModelledClock(profile, Billing.own(1, EXPERT))
    clock.start()
    wait = clock.bill_forward(misses_only(1, 2, rows=0))
    # arrivals at 10000 + COPY and twice that; 20000 of compute after each
    assert (clock.lap(), wait) == (2 * (10_000 + COPY) + 20_000, 2 * (10_000 + COPY) - 20_000)


def test_nothing_is_billed_while_the_modelled_clock_stands_still() -> None:
    clock = ModelledClock(PAPER, Billing.own(48, EXPERT))
    clock.start()
    clock.bill_selection()
    with clock.off():
        for call in (clock.bill_draft_level, clock.bill_selection, clock.lap, clock.start):
            with pytest.raises(AssertionError):
                call()
        with pytest.raises(AssertionError):
            clock.bill_forward(misses_only(48, 1, rows=0))
    assert clock.lap() == 3_000_000


def test_a_trace_of_another_model_is_not_billed() -> None:
    with pytest.raises(AssertionError):
        ModelledClock(PAPER, Billing.own(48, EXPERT)).bill_forward(misses_only(8, 1, rows=0))


@pytest.mark.parametrize("name", ["link_gbps", "fixed_ms"])
def test_a_profile_with_unknown_values_cannot_be_modelled(name: str) -> None:
    with pytest.raises(SpecfitError, match=r"specfit\.probe"):
        ModelledClock(replace(PAPER, **{name: None}), Billing.own(48, EXPERT))


class Machine:
    """A device whose queued work takes time only when it is waited for."""

    def __init__(self) -> None:
        self.now = self.queued = 0

    def synchronise(self) -> None:
        self.now += self.queued
        self.queued = 0


def test_the_wall_clock_charges_the_wait_to_the_phase_that_ends() -> None:
    machine = Machine()
    clock = WallClock(machine.synchronise, expert_bytes=10, timer=lambda: machine.now)
    machine.queued = 1000  # work from before the start is in no phase
    clock.start()
    machine.now += 5
    machine.queued = 70
    assert clock.lap() == 75
    machine.now += 3
    assert clock.lap() == 3


def test_off_clock_time_is_in_no_phase() -> None:
    machine = Machine()
    clock = WallClock(machine.synchronise, expert_bytes=10, timer=lambda: machine.now)
    clock.start()
    machine.now += 5
    machine.queued = 20  # queued by the phase: the clock stops after it
    with clock.off():
        machine.now += 1000
        machine.queued = 400  # queued by the atlas: the clock goes on after it
        with pytest.raises(AssertionError):
            clock.lap()
    machine.now += 7
    assert clock.lap() == 5 + 20 + 7


def test_the_wall_clock_ignores_bills_and_reports_the_measured_wait() -> None:
    clock = WallClock(lambda: None, expert_bytes=10)
    clock.bill_draft_level()
    clock.bill_selection()
    clock.bill_commit()
    trace = replace(misses_only(2, 3, rows=0), transfer_wait_ns=42)
    assert clock.bill_forward(trace) == 42
    assert clock.billed_bytes(trace) == 60


@pytest.mark.parametrize(
    ("requested", "profile", "device", "kind"),
    [
        ("auto", "rtx4090", "NVIDIA GeForce RTX 4090", "wall"),
        ("auto", "rtx4090", "nvidia geforce rtx 4090", "wall"),
        ("auto", "rtx4090", "NVIDIA GeForce RTX 4090 Laptop GPU", "modelled"),
        ("auto", "rtx4090", "cpu", "modelled"),
        ("auto", "paper_main", "NVIDIA GeForce RTX 4090", "modelled"),
        ("auto", "local", "cpu", "wall"),
        ("modelled", "rtx4090", "NVIDIA GeForce RTX 4090", "modelled"),
        ("wall", "paper_main", "cpu", "wall"),
    ],
)
def test_which_clock(requested: str, profile: str, device: str, kind: str) -> None:
    names = ("NVIDIA GeForce RTX 4090",) if profile == "rtx4090" else ()
    assert choose_clock(requested, replace(PAPER, name=profile, gpu_names=names), device) == kind


def test_an_unknown_clock_is_refused() -> None:
    with pytest.raises(SpecfitError, match="auto, wall or modelled"):
        choose_clock("gpu", PAPER, "cpu")
