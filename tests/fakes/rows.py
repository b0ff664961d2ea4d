"""Rows written by hand: small, consistent, and easy to add up in the head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from specfit.base.types import CycleRecord, CycleTiming, RequestRecord
from specfit.storage.manifest import Manifest, RunInfo, run_info
from specfit.storage.request_files import Part
from specfit.storage.rows import RunRows
from specfit.storage.run_folder import RunStore
from specfit.storage.tables import (
    MachineState,
    RequestFlags,
    cycles_table,
    request_table,
    timings_table,
    to_frame,
)

EXPERT_BYTES = 100


def cycle(request_id: str, number: int, committed: int = 1, **changes: Any) -> CycleRecord:
    """By default: 4 ms, 10 experts demanded, 6 of them hit, 4 copied."""
    row: dict[str, Any] = {
        "request_id": request_id,
        "cycle": number,
        "context_tokens": 10 + number,
        "drafted_levels": 0 if number == 0 else 2,
        "pool_nodes": 0 if number == 0 else 6,
        "verified_nodes": committed - 1,
        "accepted_tokens": committed - 1,
        "committed_tokens": committed,
        "stop_reason": None,
        "demand_experts": 10,
        "hit_experts": 6,
        "transferred_experts": 4,
        "prefetched_experts": 0,
        "host_experts": 0,
        "transferred_bytes": 4 * EXPERT_BYTES,
        "billed_bytes": 6 * 4 * EXPERT_BYTES,
        "evicted_experts": 0,
        "peak_layer_demand": 3,
        "route_mismatches": None,
        "draft_ns": 1_000_000,
        "route_ns": 0,
        "select_ns": 0,
        "verify_ns": 3_000_000,
        "transfer_wait_ns": 2_000_000,
        "commit_ns": 0,
        "predicted_reward": None,
        "predicted_ns": None,
        "searched_subtrees": None,
    }
    row |= changes
    phases = ("draft_ns", "route_ns", "select_ns", "verify_ns", "commit_ns")
    return CycleRecord(**row, cycle_ns=sum(row[name] for name in phases))


def part(request_id: str, committed: Sequence[int] = (1, 2, 3), **changes: Any) -> Part:
    """A request whose cycle i commits committed[i]; cycle 0 is prefill. `changes` go to the later
    cycles; `status`, `flags`, `machine`, `output_ids`, `scores` to the request."""
    status = changes.pop("status", "ok")
    flags = changes.pop("flags", RequestFlags(fits=True, routing="router", drafter_forced=False))
    machine = changes.pop("machine", MachineState())
    output = changes.pop("output_ids", list(range(sum(committed))))
    scores = {"score": 1.0} | changes.pop("scores", {})
    if status != "ok":
        nulls = RequestRecord(request_id, 10, 0, None, None, None, None, None, None, status)
        return Part(nulls, [], [], {"ids": np.arange(3)}, flags, machine)
    rows = [cycle(request_id, 0, 1)]
    rows += [cycle(request_id, i, n, **changes) for i, n in enumerate(committed) if i > 0]
    timings = [
        CycleTiming(request_id, row.cycle, 2 * row.cycle_ns, row.cycle_ns, 7) for row in rows
    ]
    record = RequestRecord(
        request_id=request_id,
        prompt_tokens=10,
        cut_tokens=0,
        output_ids=output,
        output_text="words",
        **scores,
        prefill_ns=rows[0].cycle_ns,
        decode_ns=sum(row.cycle_ns for row in rows[1:]),
        cycles=len(rows),
        status="ok",
    )
    residency = {"ids": np.arange(sum(committed)), "used": np.arange(6).reshape(2, 3)}
    return Part(record, rows, timings, residency, flags, machine)


def info(run_id: str = "a" * 12, **changes: Any) -> RunInfo:
    said: dict[str, Any] = {
        "run_id": run_id,
        "model": "embedded",
        "dataset": "embedded_gsm8k",
        "selector": "specfit",
        "cache_slots": 12,
        "profile": "paper_main",
        "clock": "modelled",
        "device": "a processor",
        "requests_digest": "r1",
        "target_digest": "t1",
        "profile_digest": "p1",
        "dtype": "float32",
        "threads": 2,
    }
    return run_info(said | changes)


def manifest(request_ids: Sequence[str], run_id: str = "a" * 12, **changes: Any) -> Manifest:
    return Manifest(
        info(run_id, **changes), {"config": {"seed": 0}}, list(request_ids), [{"argv": []}]
    )


def rows_of(parts: Sequence[Part], run_id: str = "a" * 12, **changes: Any) -> RunRows:
    """The run in memory, without a folder."""
    cycles = pa.concat_tables([cycles_table(run_id, p.cycles) for p in parts])
    requests = pa.concat_tables(
        [request_table(run_id, p.request, p.flags, p.machine) for p in parts]
    )
    timings = pa.concat_tables([timings_table(run_id, p.timings) for p in parts])
    frames = (to_frame(table) for table in (cycles, requests, timings))
    return RunRows(info(run_id, **changes), *frames)


def store_run(runs: Path, parts: Sequence[Part], run_id: str = "a" * 12, **changes: Any) -> Path:
    """A finished run on disk."""
    store = RunStore(runs, run_id)
    with store.locked():
        store.begin(manifest([p.request.request_id for p in parts], run_id, **changes), "seed: 0\n")
        for one in parts:
            store.add(one)
        store.finish()
    return store.folder
