"""Records to row files and back. The same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from specfit.base.types import CycleRecord, CycleTiming, RequestRecord
from specfit.storage.columns import CYCLES, REQUESTS, TIMINGS, Layout

# Row file -> what its rows and columns mean.
FILES: dict[str, Layout] = {
    "cycles.parquet": CYCLES,
    "requests.parquet": REQUESTS,
    "timings.parquet": TIMINGS,
}
ROW_GROUP = 1 << 16


@dataclass(frozen=True)
class RequestFlags:
    """What marks a request's row; None where unknown."""

    fits: bool | None = None
    routing: str | None = None
    drafter_forced: bool | None = None
    link_gbps_cap: float | None = None
    locked_share: float | None = None
    route_fallbacks: int | None = None


@dataclass(frozen=True)
class MachineState:
    """The machine over one request on the wall clock; None where unknown."""

    pcie_generation: int | None = None
    pcie_width: int | None = None
    sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    throttle_reasons: int | None = None
    power_limit_w: float | None = None
    achieved_h2d_gbps: float | None = None


def table_of(layout: Layout, rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Rows with exactly the layout's columns; a null in a column that allows none is refused."""
    listed = list(rows)
    names = [column.name for column in layout.columns]
    for row in listed:
        assert set(row) == set(names), f"columns differ: {sorted(set(row) ^ set(names))}"
    for column in layout.columns:
        missing = not column.nullable and any(row[column.name] is None for row in listed)
        assert not missing, f"{column.name} may not be null"
    return pa.Table.from_pylist(listed, schema=layout.schema)


def cycles_table(run_id: str, cycles: Sequence[CycleRecord]) -> pa.Table:
    return table_of(CYCLES, ({"run_id": run_id} | vars(cycle) for cycle in cycles))


def timings_table(run_id: str, timings: Sequence[CycleTiming]) -> pa.Table:
    return table_of(TIMINGS, ({"run_id": run_id} | vars(timing) for timing in timings))


def request_table(
    run_id: str, request: RequestRecord, flags: RequestFlags, machine: MachineState
) -> pa.Table:
    row = {"run_id": run_id} | asdict(request) | asdict(flags) | asdict(machine)
    if request.output_ids is not None:
        row["output_ids"] = [int(token) for token in request.output_ids]
    return table_of(REQUESTS, [row])


def write_table(table: pa.Table, path: Path) -> None:
    """Deterministic: one compression, one row-group size, no timestamp, no index of pandas.

    Chunks are joined first: how the rows were collected must not show in the pages.
    """
    pq.write_table(
        table.replace_schema_metadata(None).combine_chunks(),
        path,
        version="2.6",
        compression="zstd",
        compression_level=3,
        row_group_size=ROW_GROUP,
        use_dictionary=True,
        write_statistics=True,
        store_schema=True,
    )


def read_table(path: Path) -> pa.Table:
    """Rows of a file that may be older: columns added since are null."""
    return as_now(pq.read_table(path), path.name)


def as_now(table: pa.Table, name: str) -> pa.Table:
    """Rows of a file called `name` with the columns it has today."""
    layout = FILES[name]
    for column in layout.columns:
        if column.name not in table.column_names:
            table = table.append_column(column.name, pa.nulls(len(table), column.type))
    nullable = pa.schema([pa.field(c.name, c.type) for c in layout.columns])
    return table.select(nullable.names).cast(nullable)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Integers stay integers beside nulls (pandas' Int64, boolean)."""
    kinds = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=kinds.get)
