"""How long a planned cell may take, and how much disk: from finished runs like it, or unknown.

What a person waited for those runs, per request, whoever's machine it was. Loading and calibrations
come on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from specfit.storage.find import finished_runs
from specfit.storage.manifest import Manifest
from specfit.storage.pack import packed_run
from specfit.storage.suite import REFERENCE
from specfit.workflows.suites.planning import Planned, Work

FOLDERS = {"run": "runs", "replay": "replays"}


@dataclass(frozen=True)
class Finished:
    """A finished run, per request. `kind` is run or replay."""

    kind: str
    model: str
    dataset: str
    selector: str
    cache_slots: int
    max_new_tokens: int
    seconds: float
    size_bytes: float


@dataclass(frozen=True)
class Estimate:
    minutes: float
    size_bytes: float


def finished_below(results: Path) -> list[Finished]:
    """Live ones, and reference rows: a fresh clone can tell what awaits it."""
    found = []
    for place in (results, results / REFERENCE):
        for kind, folder in FOLDERS.items():
            found += [_read(kind, *run) for run in finished_runs(place / folder)]
    return found


def _read(kind: str, folder: Path, manifest: Manifest) -> Finished:
    info, requests = manifest.info, max(1, len(manifest.request_ids))
    packed = packed_run(folder)
    if packed is None:
        elapsed = pq.read_table(folder / "timings.parquet", columns=["elapsed_ns"])["elapsed_ns"]
        elapsed_ns, size_bytes = pc.sum(elapsed).as_py() or 0, folder_bytes(folder)
    else:
        elapsed_ns, size_bytes = packed[1].elapsed_ns, packed[1].size_bytes
    return Finished(
        kind,
        info.model,
        info.dataset,
        info.selector,
        info.cache_slots,
        int(manifest.identity.get("config", {}).get("max_new_tokens", 0)),
        elapsed_ns / 1e9 / requests,
        size_bytes / requests,
    )


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def estimate(one: Planned, finished: Sequence[Finished]) -> Estimate | None:
    """From the finished runs that are most like it; None where none is."""
    if one.work is None or one.cell.kind not in FOLDERS:
        return None
    alike = closest(one.work, [f for f in finished if f.kind == one.cell.kind])
    if not alike:
        return None
    per_request = [sum(column) / len(alike) for column in zip(*map(_costs, alike), strict=True)]
    seconds, size_bytes = (one.work.requests * value for value in per_request)
    return Estimate(seconds / 60, size_bytes)


def _costs(finished: Finished) -> tuple[float, float]:
    return finished.seconds, finished.size_bytes


def closest(work: Work, finished: Iterable[Finished]) -> list[Finished]:
    """Of the same model and output limit, those that agree on most of what sets the time: the
    workload first, then the selector, then the slots."""

    def likeness(other: Finished) -> tuple[bool, bool, bool]:
        return (
            other.dataset == config.dataset.name,
            other.selector == config.selector.name,
            other.cache_slots == work.cache_slots,
        )

    config = work.config
    wanted = config.model.name, config.new_tokens
    same = [other for other in finished if (other.model, other.max_new_tokens) == wanted]
    best = max(map(likeness, same), default=None)
    return [other for other in same if likeness(other) == best]
