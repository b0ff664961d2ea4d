"""Members of a suite made by hand: what a manifest says, and rows that add up in the head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specfit.report.suite_runs import SuiteRun
from specfit.report.table_format import Sheet
from specfit.storage.manifest import Manifest
from specfit.storage.request_files import Part
from tests.fakes.rows import info, part, rows_of

NOWHERE = Path("nowhere")


def member(
    selector: str,
    slots: int,
    parts: Sequence[Part] | None = None,
    config: dict[str, Any] | None = None,
    digests: dict[str, str] | None = None,
    **changes: Any,
) -> SuiteRun:
    """`changes` go to the run's info."""
    said = {"selector": selector, "cache_slots": slots, "dataset": "embedded_news"} | changes
    name = said.pop("run_id", f"{selector}{slots}"[:12].ljust(12, "0"))
    rows = rows_of(list(parts or [part("a"), part("b")]), name, **said)
    identity = {"config": config or {}, "digests": digests or {}}
    manifest = Manifest(info(name, **said), identity, rows.request_ids, [], True)
    return SuiteRun(manifest, rows, NOWHERE)


def decoding(committed: int, ms: float, **changes: Any) -> list[Part]:
    """Two requests alike: two cycles that commit so much in so many milliseconds each."""
    verify = round(ms * 1e6) - 1_000_000
    wait = min(2_000_000, verify)
    changes = {"verify_ns": verify, "transfer_wait_ns": wait} | changes
    return [part(name, (1, committed, committed), **changes) for name in "ab"]


def texts(sheet: Sheet, column: str) -> list[str]:
    """A column as a person reads it."""
    at = sheet.columns.index(column)
    return [row[at].text for row in sheet.cells()]
