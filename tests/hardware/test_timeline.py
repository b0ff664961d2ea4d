"""The modelled timeline against a tick-by-tick simulation, against hand counts, and by property."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from specfit.hardware import timeline


class Case(NamedTuple):
    hits: int
    wait_for: list[int]
    copy: int
    latency: int
    expert: int
    in_flight: int
    longer: int = 0  # a miss computes than a hit


def run(*case: Any) -> tuple[int, int]:
    hits, wait_for, copy, latency, expert, in_flight, longer = Case(*case)
    waits = np.array(wait_for, dtype=np.int64)
    experts = expert, expert + longer
    return timeline.layer_ns(hits, len(waits), waits, copy, latency, *experts, in_flight)


def simulate(case: Case) -> tuple[int, int]:
    """Two lanes and a queue, one nanosecond a tick; copy and expert take at least one tick."""
    hits, wait_for, copy, latency, expert, in_flight, longer = case
    n = len(wait_for)
    queued: list[int] = []  # the tick at which each issued copy may have its first byte moved
    left = [copy] * n
    sent = ran = idle = now = 0  # copies arrived, items run
    busy = 0  # ticks left of the item being computed
    while ran < hits + n:
        while len(queued) < n and len(queued) - sent < in_flight and wait_for[len(queued)] < ran:
            queued.append(now + latency)
        if busy == 0 and ran < hits + sent:
            busy = expert if ran < hits else expert + longer
        if busy == 0:
            idle += 1
        if sent < len(queued) and queued[sent] <= now:  # the link's one copy moves for a tick
            left[sent] -= 1
            sent += left[sent] == 0
        if busy > 0:
            busy -= 1
            ran += busy == 0
        now += 1
    return now, idle


@st.composite
def layers(draw: st.DrawFn, least: int = 1) -> Case:
    hits = draw(st.integers(0, 4))
    misses = draw(st.integers(0, 8))
    waits = [draw(st.integers(-1, hits + j - 1)) for j in range(misses)]
    copy, expert = draw(st.integers(least, 9)), draw(st.integers(least, 9))
    latency, in_flight = draw(st.integers(0, 9)), draw(st.integers(1, 4))
    return Case(hits, waits, copy, latency, expert, in_flight, draw(st.integers(0, 9)))


@settings(max_examples=1000, deadline=None)
@given(layers())
def test_a_layer_equals_the_tick_by_tick_simulation(case: Case) -> None:
    assert run(*case) == simulate(case)


def test_one_or_two_copies_in_flight_by_hand() -> None:
    # One at a time, every copy pays its latency: 10 + 100 each. Computes at 110, 220, 330; 5 each.
    assert run(0, [-1, -1, -1], 100, 10, 5, 1) == (335, 110 + 105 + 105)
    # Two: the second's latency passes under the first's bytes. Arrivals 110, 210, 310.
    assert run(0, [-1, -1, -1], 100, 10, 5, 2) == (315, 110 + 95 + 95)
    # Latency longer than a copy, two in flight: issued 0, 0; bytes 250-350, 350-450; the third is
    # issued at 350 when the first has arrived, bytes 600-700. Computes 350, 450, 700.
    assert run(0, [-1, -1, -1], 100, 250, 0, 2) == (700, 700)
    # Three in flight: bytes 250-350, 350-450, 450-550.
    assert run(0, [-1, -1, -1], 100, 250, 0, 3) == (550, 550)


def test_a_miss_that_is_computed_alone_takes_longer_by_hand() -> None:
    # Hits 0-10, 10-20; arrivals 30, 60; misses 30-55 (10 and 15 more), 60-85: idle 10 + 5.
    assert run(2, [-1, -1], 30, 0, 10, 2, 15) == (85, 15)


def test_hits_hide_copies_by_hand() -> None:
    # Hits compute 0-40, 40-80, 80-120; the copy arrives at 100 and waits for the lane.
    assert run(3, [-1], 100, 0, 40, 2) == (160, 0)
    # Two hits end at 80, the copy arrives at 100: 20 idle.
    assert run(2, [-1], 100, 0, 40, 2) == (140, 20)


def test_the_copy_of_a_wave_waits_for_its_victim_by_hand() -> None:
    # The victim is item 0, a miss that arrives at 100 and runs 100-160. Its slot is free at 160.
    assert run(0, [-1, 0], 100, 0, 60, 2) == (320, 100 + 100)
    # The victim is hit 1, which has run at 120: bytes 120-220, then 60 of compute.
    assert run(2, [1], 100, 0, 60, 2) == (280, 100)
    # A victim that ran long ago delays nothing: the link is the limit. Arrivals 100, 200, 300.
    assert run(0, [-1, -1, 0], 100, 0, 60, 2) == (360, 100 + 40 + 40)


@settings(deadline=None)
@given(layers(least=0))
def test_never_below_link_or_compute_and_idle_is_the_rest(case: Case) -> None:
    hits, waits, copy, latency, expert, _, longer = case
    total, idle = run(*case)
    n = len(waits)
    assert total >= n * copy + (latency if n else 0) + (expert + longer if n else 0)
    assert total == (hits + n) * expert + n * longer + idle, (
        "the lane ends last, so what it did not run it waited"
    )


@settings(deadline=None)
@given(layers(least=0))
def test_one_more_miss_never_makes_a_layer_shorter(case: Case) -> None:
    hits, waits, *times = case
    totals = [run(hits, waits[:n], *times) for n in range(len(waits) + 1)]
    assert totals == sorted(totals)
    assert [idle for _, idle in totals] == sorted(idle for _, idle in totals)


@settings(deadline=None)
@given(layers(least=0))
def test_copies_in_flight_hide_latency_and_nothing_else(case: Case) -> None:
    hits, waits, copy, latency, expert, in_flight, longer = case
    alone = run(hits, waits, copy, 0, expert, 1, longer)
    assert alone == run(hits, waits, copy, 0, expert, in_flight, longer)
    assert run(hits, waits, copy, latency, expert, in_flight + 1, longer) <= run(*case)


def test_a_forward_is_the_sum_of_its_layers_times_the_scale() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        hits, misses = rng.integers(0, 5, size=(2, 4))
        waits = np.full((4, 5), -1)
        waits[:, 1:] = rng.integers(-1, 1, size=(4, 4))
        parts = [
            timeline.layer_ns(h, m, w, 100, 7, 13, 15, 2)
            for h, m, w in zip(hits, misses, waits, strict=True)
        ]
        total, idle = timeline.forward_ns(hits, misses, waits, 1000, 100, 7, 13, 15, 2, 6)
        assert total == 6 * sum(1000 + layer for layer, _ in parts)
        assert idle == 6 * sum(wait for _, wait in parts)


def test_a_forward_without_misses_is_its_base_and_its_hits() -> None:
    hits = np.array([8, 8])
    none = np.zeros((2, 0), dtype=np.int64)
    assert timeline.forward_ns(hits, hits * 0, none, 1000, 100, 7, 13, 15, 2, 1) == (2208, 0)
