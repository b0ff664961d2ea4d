"""A results folder from which table 2 and figure 2 can be drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from specfit.storage.request_files import Part
from specfit.storage.suite import Cell, Suite
from tests.fakes.rows import store_run
from tests.report.artifacts.members import decoding

# Milliseconds of a cycle and tokens it commits.
SYSTEMS = {
    "ar": (8, 1),
    "ar_cache": (5, 1),
    "eagle3": (30, 3),
    "eagle3_cache": (12, 3),
    "specfit": (6, 2),
}


def made(
    results: Path, size: str = "full", leave_out: str = "", renamed: str = "", **changes: Any
) -> Path:
    """Suite table_2 with a run per system, of two requests. `changes` go to every run's info;
    `renamed` is the first request's id, and SpecFit's answer to it is then another."""
    cells = []
    for number, (selector, (ms, tokens)) in enumerate(SYSTEMS.items()):
        run_id = str(number) * 12
        slots = 0 if selector in ("ar", "eagle3") else 48
        if selector != leave_out:
            parts = decoding(tokens, ms, output_ids=[int(selector == "specfit" and bool(renamed))])
            if renamed:
                parts[0] = named(parts[0], renamed)
            said = {"selector": selector, "cache_slots": slots, "dataset": "embedded_news"}
            store_run(results / "runs", parts, run_id, **said | changes)
        cells.append(Cell(f"news/{selector}", "run", f"selector={selector}", run_id))
    Suite("table_2", size, (), tuple(cells)).write(results)
    return results


def named(part: Part, request_id: str) -> Part:
    return replace(
        part,
        request=replace(part.request, request_id=request_id),
        cycles=[replace(row, request_id=request_id) for row in part.cycles],
        timings=[replace(row, request_id=request_id) for row in part.timings],
    )
