"""Row files: their columns, made from the fields of the records; records to rows and back.

A text column is utf-8; a count is a plain int64; times are integer nanoseconds of the run's clock
(modelled or wall, as the manifest says), so that sums stay exact. The same rows give
the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from specfit.base.types import CycleRecord, CycleTiming, RequestId, RequestRecord

ROW_GROUP = 1 << 16
TYPES = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    Sequence[int]: pa.list_(pa.int64()),
}


@dataclass(frozen=True)
class Column:
    name: str
    type: pa.DataType
    text: str  # meaning, and unit where the name does not say it
    nullable: bool = False


@dataclass(frozen=True)
class Layout:
    """One file of rows: its grain (what one row is) and its columns in order."""

    grain: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(c.name, c.type, c.nullable) for c in self.columns])

    @cached_property
    def nullable(self) -> pa.Schema:
        """The same columns, each of which may be null."""
        return pa.schema([pa.field(c.name, c.type) for c in self.columns])

    def dictionary(self) -> dict[str, str]:
        """Column -> description; the first entry's first sentence is the row's grain."""
        null = " Null where unknown."
        texts = {c.name: c.text + (null if c.nullable else "") for c in self.columns}
        first = self.columns[0].name
        return texts | {first: f"{self.grain} {texts[first]}"}


def columns_of(record: type) -> tuple[Column, ...]:
    """A column for each field of a dataclass: `name: Annotated[int | None, "What it means."]`."""
    return tuple(
        _column(name, *get_args(hint))
        for name, hint in get_type_hints(record, include_extras=True).items()
    )


def _column(name: str, kind: Any, text: str) -> Column:
    alternatives = [one for one in get_args(kind) if one is not NoneType]
    nullable = NoneType in get_args(kind)
    return Column(name, TYPES[alternatives[0] if nullable else kind], text, nullable)


RUN_ID = Column("run_id", pa.string(), "Identity of the run: 12 hex digits.")
REQUEST_ID = Column("request_id", pa.string(), get_args(RequestId)[1])


@dataclass(frozen=True)
class RequestFlags:
    """What marks a request's row; None where unknown."""

    fits: Annotated[bool | None, "Whether the setting fits the profile's device memory."] = None
    routing: Annotated[str | None, "Where routes come from: the router, or a stand-in."] = None
    drafter_forced: Annotated[
        bool | None, "Whether committed ids are a script's, whatever the target said."
    ] = None
    link_gbps_cap: Annotated[float | None, "Cap put on the link, GB/s; null without one."] = None
    locked_share: Annotated[float | None, "Page-locked share of the experts; null on a CPU."] = None
    disk_reads: Annotated[
        str | None,
        "How misses are read: direct, or dropped (from the page cache after each read); null with "
        "experts in host memory.",
    ] = None
    expert_format: Annotated[
        str | None,
        "How experts are stored and copied, such as fp8-128x128; null where that is model.dtype.",
    ] = None
    route_fallbacks: Annotated[
        int | None, "Cycles whose pool the recording did not hold; null without routes=recording."
    ] = None


@dataclass(frozen=True)
class MachineState:
    """The machine over one request on the wall clock; None where unknown."""

    pcie_generation: Annotated[int | None, "PCIe generation under load."] = None
    pcie_width: Annotated[int | None, "PCIe lanes under load."] = None
    sm_clock_mhz: Annotated[float | None, "SM clock, MHz."] = None
    temperature_c: Annotated[float | None, "Device temperature, degrees Celsius."] = None
    throttle_reasons: Annotated[int | None, "Bits as the driver reports them; 0 is none."] = None
    power_limit_w: Annotated[float | None, "Power limit, W."] = None
    achieved_h2d_gbps: Annotated[
        float | None, "Bandwidth reached to the device's memory, GB/s; reads from disk count."
    ] = None
    cpu_clock_mhz: Annotated[float | None, "Mean clock of the process's cores, MHz."] = None
    cpu_throttles: Annotated[int | None, "Times that heat slowed one of these cores down."] = None
    cpu_steal_share: Annotated[
        float | None, "Core time that the hypervisor gave to others, of all there is."
    ] = None


CYCLES = Layout("One row per (run, request, cycle).", (RUN_ID, *columns_of(CycleRecord)))
REQUESTS = Layout(
    "One row per (run, request).",
    (
        RUN_ID,
        *columns_of(RequestRecord),
        *columns_of(RequestFlags),
        *columns_of(MachineState),
    ),
)
TIMINGS = Layout(
    "One row per (run, request, cycle), measured beside the clock; no two runs agree on it.",
    (RUN_ID, *columns_of(CycleTiming)),
)

NOT_SUMMED = ("cycle", "context_tokens", "peak_layer_demand")
"""Counts of a cycle that mean nothing added up."""
SUMMED = tuple(
    column
    for column in columns_of(CycleRecord)
    if column.type == pa.int64() and column.name not in NOT_SUMMED
)
SUMS = Layout(
    "One row per (run, request, prefill or decode), in the place of cycles: of committed runs that "
    "are no headline.",
    (
        RUN_ID,
        REQUEST_ID,
        Column("prefill", pa.bool_(), "Cycle 0; else the sum of the later cycles."),
        Column("cycles", pa.int64(), "Cycles added up."),
        Column("stop_reason", pa.string(), "Of the last cycle: eos, length, or null.", True),
        Column("loops", pa.bool_(), "Whether one n-gram is over half of the output.", True),
        *SUMMED,
    ),
)

# Row file of a run -> what its rows and columns mean.
FILES: dict[str, Layout] = {
    "cycles.parquet": CYCLES,
    "requests.parquet": REQUESTS,
    "timings.parquet": TIMINGS,
}
KEPT_FILES: dict[str, Layout] = FILES | {"sums.parquet": SUMS}
"""With what only a pack of committed rows holds."""


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
    nullable = KEPT_FILES[name].nullable
    for field in nullable:
        if table.schema.get_field_index(field.name) < 0:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    table = table.select(nullable.names)
    if table.schema.types != nullable.types:
        return table.cast(nullable)
    return pa.Table.from_arrays(table.columns, schema=nullable)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Integers stay integers beside nulls (pandas' Int64, boolean)."""
    kinds = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=kinds.get)
