"""`trace=<request>`: one request decoded again, as a Chrome trace (chrome://tracing, Perfetto).

Lanes, top to bottom: cycles and phases on the run's clock; on the modelled clock also the layers of
every forward, the link with each copy, and the compute lane. A record holds each phase's sum, so a
phase is one block although drafting and selection take turns level by level.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from specfit.base.types import CycleRecord, SpecfitError
from specfit.decoding.cycle import Cycle
from specfit.decoding.resolve import LiveRunSpec
from specfit.hardware.clock import ModelledClock
from specfit.hardware.timeline import LayerSpans
from specfit.storage import atomic
from specfit.storage.request_files import Part, part_name
from specfit.storage.rows import RunRows, load_run
from specfit.storage.run_folder import RunStore
from specfit.workflows.execute import Job, Outcome, Watcher
from specfit.workflows.waiting import build_runtime

Event = dict[str, Any]

LANES = ("cycles", "phases", "layers", "link", "compute")
PHASES = ("draft", "route", "select", "verify", "commit")
PREFILL_PHASES = ("verify", "draft", "commit")  # the head is filled after the target
COUNTS = (
    *("pool_nodes", "verified_nodes", "accepted_tokens", "committed_tokens"),
    *("demand_experts", "hit_experts", "transferred_experts", "evicted_experts"),
)


def check_request(spec: LiveRunSpec) -> None:
    """Raises SpecfitError where `trace` names no request of the run, before anything has run."""
    ids = list(spec.workload.ids) if spec.config.trace is not None else []
    if spec.config.trace is not None and spec.config.trace not in ids:
        some = ", ".join(ids[:3]) + (f" .. {ids[-1]}" if len(ids) > 3 else "")
        raise SpecfitError(
            f"trace={spec.config.trace} names no request of this run; its {len(ids)} are {some}"
        )


def write_trace(spec: LiveRunSpec, outcome: Outcome) -> Path:
    """Decode `spec.config.trace` again from the residency it started with; no row is touched."""
    request_id = spec.config.trace
    assert request_id is not None, "a trace is of one request"
    store = RunStore(outcome.folder.parent, outcome.folder.name)
    job, seen = Job(spec, build_runtime, outcome.calibration), Collector()
    part = job.replay_one(request_id, store, seen)
    if part.request.status != "ok":
        raise SpecfitError(f"request {request_id} failed ({part.request.status}): no timeline")
    rows = load_run(outcome.folder)
    check_same(rows, part)
    clock = job.decoder.clock
    modelled = clock if isinstance(clock, ModelledClock) else None
    position = rows.request_ids.index(request_id)
    path = outcome.folder / "traces" / f"{part_name(position, request_id)}.json"
    path.parent.mkdir(exist_ok=True)
    document = chrome_trace(rows, request_id, seen.cycles, modelled)
    atomic.write_text(path, json.dumps(document, separators=(",", ":")) + "\n")
    return path


class Collector(Watcher):
    """Keeps the cycles."""

    def __init__(self) -> None:
        self.cycles: list[Cycle] = []

    def sees_cycle(self, cycle: Cycle) -> None:
        self.cycles.append(cycle)


def check_same(rows: RunRows, part: Part) -> None:
    """The run said the same: ids always, and on the modelled clock every nanosecond."""
    stored = rows.requests.set_index("request_id").loc[part.request.request_id]
    assert part.request.output_ids is not None
    assert list(stored["output_ids"]) == list(part.request.output_ids), "a trace repeats the ids"
    if rows.info.clock == "modelled":
        took = (part.request.prefill_ns, part.request.decode_ns)
        assert (stored["prefill_ns"], stored["decode_ns"]) == took, "a trace repeats the times"


# -- events ----------------------------------------------------------------------------------------


def chrome_trace(
    rows: RunRows, request_id: str, cycles: Sequence[Cycle], clock: ModelledClock | None
) -> dict[str, Any]:
    """`clock` is None on the wall clock, where nothing inside a phase is known."""
    info = rows.info
    lanes = LANES if clock is not None else LANES[:2]
    title = f"{info.selector}, request {request_id}, times are {info.timed}"
    events = [_name("process_name", title, 0)]
    events += [_name("thread_name", lane, tid) for tid, lane in enumerate(lanes)]
    begin = 0
    for cycle in cycles:
        events += _cycle_events(cycle, begin, clock)
        begin += cycle.record.cycle_ns
    said = {
        "run_id": info.run_id,
        "request_id": request_id,
        "clock": info.clock,
        "times": info.timed,
        "profile": info.profile,
        "billed": info.billed,
        "device": info.device,
    }
    return {"displayTimeUnit": "ms", "otherData": said, "traceEvents": events}


def _cycle_events(cycle: Cycle, begin: int, clock: ModelledClock | None) -> Iterator[Event]:
    record = cycle.record
    name = f"cycle {record.cycle}" if record.cycle else "prefill"
    yield _span("cycles", name, begin, begin + record.cycle_ns, _counts(record))
    for phase in PHASES if record.cycle else PREFILL_PHASES:
        end = begin + getattr(record, f"{phase}_ns")
        if end > begin:
            yield _span("phases", phase, begin, end)
        if phase == "verify" and clock is not None:
            reached = begin
            for trace in cycle.traces:
                spans = clock.spans(trace)
                yield from _forward_events(spans, reached)
                reached += spans[-1].end
            assert reached == end, "the timeline is what verify was billed"
        begin = end


def _forward_events(spans: Sequence[LayerSpans], begin: int) -> Iterator[Event]:
    """Layers are numbered as the billed model's; `own` is the layer of the run's target."""
    for number, layer in enumerate(spans):
        said = {"own": layer.own_layer, "copies": len(layer.copies), "experts": len(layer.runs)}
        yield _span("layers", f"layer {number}", begin + layer.begin, begin + layer.end, said)
        yield _span("compute", "dense", begin + layer.begin, begin + layer.routes_known)
        for lane, what, items in (
            ("link", "copy", layer.copies),
            ("compute", "expert", layer.runs),
        ):
            for i, (start, end) in enumerate(items):
                if end > start:  # a profile may bill nothing for an expert
                    yield _span(lane, f"{what} {i} of layer {number}", begin + start, begin + end)


def _counts(record: CycleRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in COUNTS}


def _span(lane: str, name: str, start: int, end: int, said: dict[str, Any] | None = None) -> Event:
    """Chrome counts in microseconds; three decimals keep the nanoseconds."""
    event = {"ph": "X", "pid": 0, "tid": LANES.index(lane), "name": name}
    event |= {"ts": start / 1e3, "dur": (end - start) / 1e3}
    return event | ({"args": said} if said else {})


def _name(what: str, name: str, tid: int) -> Event:
    return {"ph": "M", "pid": 0, "tid": tid, "name": what, "args": {"name": name}}
