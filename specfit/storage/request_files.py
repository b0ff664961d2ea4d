"""One finished request on disk: its rows and the residency it leaves behind, whole or not there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from specfit.base.types import CycleRecord, CycleTiming, RequestRecord
from specfit.storage.atomic import write_folder
from specfit.storage.tables import (
    FILES,
    MachineState,
    RequestFlags,
    cycles_table,
    read_table,
    request_table,
    timings_table,
    write_table,
)

Residency = Mapping[str, NDArray[Any]]
"""Named arrays: which experts are resident after a request, and how recently each was used."""

RESIDENCY = "residency.npz"


@dataclass(frozen=True)
class Part:
    """What one finished request leaves. A failed one may leave no cycles."""

    request: RequestRecord
    cycles: Sequence[CycleRecord]
    timings: Sequence[CycleTiming]
    residency: Residency
    flags: RequestFlags = field(default_factory=RequestFlags)
    machine: MachineState = field(default_factory=MachineState)

    def __post_init__(self) -> None:
        named = [c.request_id for c in self.cycles] + [t.request_id for t in self.timings]
        assert set(named) <= {self.request.request_id}, "one request only"
        assert [c.cycle for c in self.cycles] == list(range(len(self.cycles))), "cycles in order"
        assert not any(np.asarray(a).dtype.hasobject for a in self.residency.values())


def part_name(position: int, request_id: str) -> str:
    """A folder name for any request id: its position, a readable piece, and a hash of it all."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", request_id)[:40]
    return f"{position:06d}-{readable}-{hashlib.sha256(request_id.encode()).hexdigest()[:8]}"


def part_tables(run_id: str, part: Part) -> dict[str, pa.Table]:
    """The part's rows of each row file."""
    return {
        "cycles.parquet": cycles_table(run_id, part.cycles),
        "requests.parquet": request_table(run_id, part.request, part.flags, part.machine),
        "timings.parquet": timings_table(run_id, part.timings),
    }


def write_part(path: Path, run_id: str, part: Part) -> None:
    def fill(folder: Path) -> None:
        for name, table in part_tables(run_id, part).items():
            write_table(table, folder / name)
        arrays: dict[str, Any] = dict(part.residency)
        np.savez(folder / RESIDENCY, **arrays)

    write_folder(path, fill)


def read_residency(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path / RESIDENCY, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def joined(paths: Sequence[Path], name: str) -> pa.Table:
    """The rows of one file over parts, in the order given."""
    schema = FILES[name].schema
    tables = [read_table(path / name).cast(schema) for path in paths]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def parts_of(tables: Mapping[str, pa.Table]) -> Iterator[Part]:
    """Finished requests from the rows of each row file, in their order; residency is not kept."""
    cycles = _by_request(tables["cycles.parquet"])
    timings = _by_request(tables["timings.parquet"])
    for row in tables["requests.parquet"].to_pylist():
        name = row["request_id"]
        yield Part(
            _made(RequestRecord, row),
            [_made(CycleRecord, one) for one in cycles.get(name, ())],
            [_made(CycleTiming, one) for one in timings.get(name, ())],
            {},
            _made(RequestFlags, row),
            _made(MachineState, row),
        )


def _by_request(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(row["request_id"], []).append(row)
    return found


def _made(record: type[Any], row: Mapping[str, Any]) -> Any:
    return record(**{item.name: row[item.name] for item in fields(record)})


def drop_rows(path: Path) -> None:
    """Once the run's files hold the rows, a part keeps only the residency, for a trace to start."""
    for name in FILES:
        (path / name).unlink(missing_ok=True)
