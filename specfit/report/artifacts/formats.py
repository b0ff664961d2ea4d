"""What a format of the experts does to speculation on one card, half-real. Drawn from what the
study of the same name leaves for each workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from specfit.report.artifact import Table
from specfit.report.artifacts.real_geometry import (
    HALF_REAL,
    LEADING,
    HalfReal,
    degenerate_line,
    ranged,
)
from specfit.report.footer import words_of
from specfit.report.reader import ResultsReader
from specfit.report.table_format import Cell, Entry, Sheet, exact

SUITE = "formats"
GB = 1e9


def documents(reader: ResultsReader) -> list[HalfReal]:
    found = reader.suites(SUITE)[0]
    labels = [cell.label for cell in found.suite.cells if cell.label.endswith("/study")]
    return [HalfReal.of(found.document(label)) for label in labels]


def formats_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """Speed of AR, and what drafting adds, format by format at the slots that fit."""
    columns = ["workload", "format", "MB an expert", "slots", "fixed cost, ms", "link, GB/s"]
    columns += ["AR + cache, tokens/s", "AR misses, %", "EAGLE-3 over AR", "SpecFit over AR"]
    columns += ["SpecFit over EAGLE-3"]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        sizes: Mapping[str, int] = half.document["expert_bytes"]
        for name, slots, changes in _settings(half):
            place = [exact(changes[key]) for key in ("gpu.fixed_ms", "gpu.link_gbps")]
            size = exact(sizes[name] / 1e6)
            cells = _cells(half, slots, changes)
            rows.append((half.workload.label, name, size, slots, *place, *cells))
    note = "One seed of each grafting; brackets: least and greatest over graftings."
    return Sheet("Formats at the slots that fit the card", tuple(columns), tuple(rows), note)


def _settings(half: HalfReal) -> list[tuple[str, int, Mapping[str, Any]]]:
    """(format, slots, changes) in the document's order."""
    found = {}
    for cell in half.document["cells"]:
        found[cell["format"], str(cell["changes"])] = cell["slots"], cell["changes"]
    return [(name, *value) for (name, _), value in found.items()]


def _cells(half: HalfReal, slots: int, changes: Mapping[str, Any]) -> list[Entry]:
    how: dict[str, Any] = {"study": SUITE, "changes": changes}
    tokens = int(half.committed[half.kept].sum())
    times = {
        graft: [int(half.ns(system, slots, graft, **how).sum()) for system in LEADING]
        for graft in half.graftings
    }
    totals = [half.cell(LEADING[0], slots, g, **how)["totals"] for g in half.graftings]
    return [
        _spread([1e9 * tokens / ar for ar, _, _ in times.values()]),
        _spread([100 * (1 - t["hit_experts"] / t["demand_experts"]) for t in totals]),
        ranged([ar / eagle for ar, eagle, _ in times.values()]),
        ranged([ar / ours for ar, _, ours in times.values()]),
        ranged([eagle / ours for _, eagle, ours in times.values()]),
    ]


def _spread(values: Sequence[float]) -> Cell:
    """The median with the least and the greatest."""
    middle, low, high = float(np.median(values)), min(values), max(values)
    text = f"{middle:.1f}" + (f" [{low:.1f}, {high:.1f}]" if low < high else "")
    return Cell(text, middle, low, high)


def table_formats(reader: ResultsReader) -> Table:
    """Half-real: bf16, FP8 and int4 experts at the slots that fit one card."""
    halves = documents(reader)
    rows = [m.rows for m in reader.members(SUITE, kind="replay")]
    sheets = {
        "": formats_sheet(halves),
        "without_degenerate": formats_sheet([half.without_degenerate() for half in halves]),
    }
    card = halves[0].document["memory_bytes"] / GB
    about = [
        HALF_REAL,
        f"Card: {card:.1f} GB; attention and head in bfloat16. Texts, trees and acceptances are "
        "the same in every format: what rounding does to them is not in here.",
        degenerate_line(halves),
    ]
    stamp = reader.stamp(rows, SUITE, extra=about)
    title = f"Half-real: speculation by format of the experts ({words_of(rows)})"
    return Table("table_formats", title, sheets, stamp)
