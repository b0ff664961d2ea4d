from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specfit.base.types import CycleRecord, CycleTiming, RequestRecord
from specfit.storage.tables import (
    CYCLES,
    FILES,
    REQUESTS,
    TIMINGS,
    Column,
    MachineState,
    RequestFlags,
    columns_of,
    cycles_table,
    read_table,
    request_table,
    timings_table,
    to_frame,
    write_table,
)
from tests.fakes.rows import cycle, part

RECORDS = (
    (CYCLES, [CycleRecord]),
    (REQUESTS, [RequestRecord, RequestFlags, MachineState]),
    (TIMINGS, [CycleTiming]),
)


@pytest.mark.parametrize(("layout", "records"), RECORDS)
def test_columns_are_the_records_fields(layout, records) -> None:
    named = ["run_id"] + [f.name for record in records for f in fields(record)]
    assert layout.schema.names == named


def test_a_column_is_made_from_a_field() -> None:
    @dataclass
    class Record:
        name: Annotated[str, "A text."]
        ids: Annotated[Sequence[int] | None, "A list."]
        share: Annotated[float | None, "A number."] = None
        ready: Annotated[bool, "Yes or no."] = True

    assert columns_of(Record) == (
        Column("name", pa.string(), "A text."),
        Column("ids", pa.list_(pa.int64()), "A list.", nullable=True),
        Column("share", pa.float64(), "A number.", nullable=True),
        Column("ready", pa.bool_(), "Yes or no."),
    )


@pytest.mark.parametrize("layout", FILES.values())
def test_dictionary_opens_with_the_grain_and_skips_no_column(layout) -> None:
    described = layout.dictionary()
    assert list(described) == layout.schema.names
    assert next(iter(described.values())).startswith("One row per (run, request")
    assert all(text.endswith(".") for text in described.values())


def test_same_rows_same_bytes_however_they_were_collected(tmp_path: Path) -> None:
    rows = [cycle("q", i) for i in range(50)]
    whole = cycles_table("run", rows)
    pieces = pa.concat_tables([cycles_table("run", [row]) for row in rows])
    for name, table in (("a", whole), ("b", whole), ("c", pieces)):
        write_table(table, tmp_path / name)
    first, *others = [(tmp_path / name).read_bytes() for name in "abc"]
    assert others == [first, first]


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    one = part("q", (1, 4))
    tables = {
        "cycles.parquet": cycles_table("run", one.cycles),
        "requests.parquet": request_table("run", one.request, one.flags, one.machine),
        "timings.parquet": timings_table("run", one.timings),
    }
    for name, table in tables.items():
        write_table(table, tmp_path / name)
        assert pq.read_schema(tmp_path / name).equals(FILES[name].schema)
        assert read_table(tmp_path / name).to_pylist() == table.to_pylist()


def test_integers_stay_integers_beside_nulls() -> None:
    frame = to_frame(cycles_table("run", [cycle("q", 0), cycle("q", 1, predicted_ns=2**62 + 1)]))
    assert frame["predicted_ns"].isna().tolist() == [True, False]
    assert int(frame["predicted_ns"].iloc[1]) == 2**62 + 1


def test_a_failed_request_is_a_row_of_nulls() -> None:
    failed = part("q", status="prompt too long")
    row = request_table("run", failed.request, failed.flags, failed.machine).to_pylist()[0]
    assert row["status"] == "prompt too long"
    assert row["output_ids"] is None and row["decode_ns"] is None and row["score"] is None


def test_a_null_where_none_is_allowed_is_refused() -> None:
    bad = CycleTiming("q", 0, 1, None, 1)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="atlas_ns may not be null"):
        timings_table("run", [bad])


def test_a_file_from_before_a_column_reads_as_null(tmp_path: Path) -> None:
    table = timings_table("run", part("q").timings).drop_columns(["selection_ns"])
    pq.write_table(table, tmp_path / "timings.parquet")
    assert read_table(tmp_path / "timings.parquet")["selection_ns"].null_count == len(table)
