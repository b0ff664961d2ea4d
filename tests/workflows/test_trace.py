"""The drawn timeline is the billed one: span by span, and summed."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specfit.base.types import ForwardTrace
from specfit.hardware import timeline
from specfit.hardware.clock import ModelledClock
from specfit.hardware.profile import Billing, Profile
from specfit.storage.rows import load_run
from tests.fakes.tiny_model import Command, Runnable

Layers = list[tuple[int, list[int]]]  # hits, wait_for


@st.composite
def layers(draw: st.DrawFn) -> Layers:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        hits, misses = draw(st.integers(0, 4)), draw(st.integers(0, 6))
        waits = [draw(st.integers(-1, hits + j - 1)) for j in range(misses)]
        found.append((hits, waits))
    return found


@settings(deadline=None)
@given(layers(), st.integers(0, 50), st.integers(0, 20), st.integers(0, 30), st.integers(1, 3))
def test_spans_are_what_a_forward_is_billed(
    found: Layers, copy: int, latency: int, expert: int, in_flight: int
) -> None:
    hits = np.array([h for h, _ in found])
    misses = np.array([len(w) for _, w in found])
    waits = np.full((len(found), max(misses.max(), 1)), -1)
    for layer, (_, w) in enumerate(found):
        waits[layer, : len(w)] = w
    costs = 1000, copy, latency, expert, 2 * expert, in_flight, 6
    spans = timeline.forward_spans(hits, misses, waits, *costs)
    total, idle = timeline.forward_ns(hits, misses, waits, *costs)
    assert spans[-1].end == total and len(spans) == 6 * len(found)
    assert waited(spans) == idle
    end = 0
    for span in spans:
        assert span.begin == end and span.routes_known == end + 1000
        end = span.end
        n_hits = len(span.runs) - len(span.copies)
        assert n_hits == hits[span.own_layer] and len(span.copies) == misses[span.own_layer]
        computed = span.runs[:n_hits], span.runs[n_hits:]
        for items, length in (
            (span.copies, copy),
            (computed[0], expert),
            (computed[1], 2 * expert),
        ):
            assert all(b - a == length and span.routes_known <= a and b <= end for a, b in items)
        for items in (span.copies, span.runs):
            assert all(a[1] <= b[0] for a, b in pairwise(items)), "one lane"
        for copied, run in zip(span.copies, span.runs[n_hits:], strict=True):
            assert copied[1] <= run[0], "an expert runs when it has arrived"


def waited(spans: list[timeline.LayerSpans]) -> int:
    """Time the compute lane stood idle between a layer's routes and its end."""
    return sum(s.end - s.routes_known - sum(b - a for a, b in s.runs) for s in spans)


def test_spans_of_a_trace_end_where_its_bill_does() -> None:
    profile = Profile("p", 2.0, 4.0, expert_us=3.0, copy_latency_us=1.0)
    clock = ModelledClock(profile, Billing("b", 8, 1000, 2, 10))
    counts = np.array([2, 1]), np.array([3, 1]), np.array([0, 0])
    waits = np.array([[-1, -1, 2], [-1, -1, -1]])
    trace = ForwardTrace(4, False, *counts, waits)
    clock.start()
    clock.bill_forward(trace)
    assert clock.spans(trace)[-1].end == clock.lap()


def test_a_serial_machine_is_drawn_as_one_lane() -> None:
    """2 hits and 3 misses, then 1 miss: nothing is copied while an expert runs."""
    profile = Profile("p", 2.0, 4.0, expert_us=3.0, copy_latency_us=1.0, overlap=False)
    clock = ModelledClock(profile, Billing("b", 8, 1000, 2, 10))
    counts = np.array([2, 0]), np.array([3, 1]), np.array([0, 0])
    trace = ForwardTrace(4, False, *counts, np.full((2, 3), -1))
    clock.start()
    waits = clock.bill_forward(trace)
    spans = clock.spans(trace)
    base = (4_000_000 + 4 * 600_000) // 8
    assert spans[-1].end == clock.lap() == 4 * (2 * base + 6 * 3000 + 4 * 1500)
    assert waited(spans) == waits == 4 * 4 * 1500
    for span in spans:
        lane = sorted([*span.copies, *span.runs])
        assert all(a[1] <= b[0] for a, b in pairwise(lane))


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def traced(command: Command, runnable: Runnable, tmp_path: Path):  # type: ignore[no-untyped-def]
    """Run two requests and trace the second; returns (run folder, trace, stdout)."""

    def run(*overrides: str):  # type: ignore[no-untyped-def]
        settings = (f"results_dir={tmp_path}", "limit=2", "max_new_tokens=6", "cache_slots=4")
        chosen = ("trace=evaluation-1", "gpu.expert_us=20", *overrides)
        ended = command(*runnable.overrides, *settings, *chosen)
        assert ended.code == 0, ended.err
        (folder,) = (f for f in (tmp_path / "runs").iterdir() if f.is_dir())
        path = Path(ended.out.splitlines()[-1].removeprefix("trace: "))
        assert path.parent == folder / "traces"
        return folder, json.loads(path.read_text()), ended.out

    return run


def lane(trace: dict, name: str) -> list[dict]:  # type: ignore[type-arg]
    events = trace["traceEvents"]
    names = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    return [e for e in events if e["ph"] == "X" and e["tid"] == names[name]]


def nanoseconds(events: list[dict]) -> int:  # type: ignore[type-arg]
    return round(sum(e["dur"] for e in events) * 1000)


def test_a_trace_adds_up_to_the_rows(traced) -> None:  # type: ignore[no-untyped-def]
    folder, trace, _ = traced("selector=eagle3_cache")
    before = {p.name: p.read_bytes() for p in folder.glob("*.parquet")}
    rows = load_run(folder).cycles
    rows = rows[rows["request_id"] == "evaluation-1"]
    assert nanoseconds(lane(trace, "cycles")) == rows["cycle_ns"].sum()
    for phase in ("draft", "select", "verify", "commit"):
        drawn = [e for e in lane(trace, "phases") if e["name"] == phase]
        assert nanoseconds(drawn) == rows[f"{phase}_ns"].sum(), phase
    assert nanoseconds(lane(trace, "layers")) == rows["verify_ns"].sum()
    scale = 48 // 4
    assert len(lane(trace, "link")) == scale * rows["transferred_experts"].sum()
    experts = [e for e in lane(trace, "compute") if e["name"].startswith("expert")]
    assert len(experts) == scale * rows["demand_experts"].sum()
    assert trace["otherData"]["times"] == "modelled"
    _, again, out = traced("selector=eagle3_cache")  # the run is found finished
    assert "found finished" in out and again == trace
    assert before == {p.name: p.read_bytes() for p in folder.glob("*.parquet")}


def test_a_trace_on_the_wall_clock_has_phases_only(traced) -> None:  # type: ignore[no-untyped-def]
    folder, trace, _ = traced("selector=ar_cache", "gpu=local")
    named = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"]
    assert named == ["cycles", "phases"]
    assert trace["otherData"]["times"] == "measured"
    (cycles,) = {len(lane(trace, "cycles"))}
    assert cycles == load_run(folder).requests["cycles"][1]
