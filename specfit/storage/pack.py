"""Many finished runs in a few files: the committed reference rows.

<folder>/runs.parquet        a run a row: kind, id, manifest and run.yaml as text, what it took
<folder>/cycles.parquet      the cycles of all runs, sorted by kind and run
<folder>/requests.parquet    likewise
<folder>/calibrations.jsonl  a fit a line
<folder>/studies.parquet     what studies left, a JSON document a row

A packed run has the path that its folder would have (`<folder>/runs/<id>`), so a reader need not
know which of the two it is. A run may be packed without its cycles. Measured times beside the
clock (`timings.parquet`), which no two runs share, are not kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property, lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from specfit.base.types import SpecfitError
from specfit.storage import atomic
from specfit.storage.tables import KEPT_FILES, SUMMED, SUMS, as_now, to_frame

RUNS, CALIBRATIONS, STUDIES = "runs.parquet", "calibrations.jsonl", "studies.parquet"
KIND = "kind"  # the folder that a run would lie in: runs or replays
RUNS_PER_GROUP = 32


@dataclass(frozen=True)
class PackedRun:
    """One row of runs.parquet. `manifest` is the text of manifest.json."""

    kind: str
    run_id: str
    manifest: str
    run_yaml: str
    elapsed_ns: int  # what a person waited for its cycles
    size_bytes: int  # of its folder


@dataclass(frozen=True)
class Span:
    """Where the rows of one run lie in a packed table: all in one row group."""

    group: int
    offset: int
    length: int


class Pack:
    """Read access to a pack; `rows` reads the one row group that holds the run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def runs(self) -> Mapping[tuple[str, str], PackedRun]:
        """By (kind, run id), in that order. Raises SpecfitError for a damaged file."""
        rows = [PackedRun(**row) for row in self._read(RUNS).read().to_pylist()]
        return {(row.kind, row.run_id): row for row in rows}

    @cached_property
    def calibrations(self) -> Mapping[str, Mapping[str, Any]]:
        path = self.folder / CALIBRATIONS
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
            return {fit["calibration_id"]: fit for fit in map(json.loads, lines)}
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise damaged(path, error) from None

    def rows(self, kind: str, run_id: str, name: str) -> pa.Table:
        """The rows of one run in `name` (cycles.parquet), without the column `kind`; none where
        the pack keeps no such file."""
        if name not in self._tables:
            return pa.table({})
        file, spans = self._tables[name]
        span = spans.get((kind, run_id))
        if span is None:
            return file.schema_arrow.empty_table().drop_columns([KIND])
        rows = _read_group(self, name, span.group).slice(span.offset, span.length)
        return rows.drop_columns([KIND])

    def frame(self, kind: str, run_id: str, name: str) -> pd.DataFrame:
        """Those rows with the columns of today. A row group is converted once for all its runs:
        that takes a frame of forty columns milliseconds, however few its rows."""
        span = self._tables[name][1].get((kind, run_id)) if name in self._tables else None
        if span is None:
            return _no_rows(name).copy(deep=False)
        rows = _group_frame(self, name, span.group).iloc[span.offset : span.offset + span.length]
        return rows.reset_index(drop=True)

    @cached_property
    def _tables(self) -> dict[str, tuple[pq.ParquetFile, dict[tuple[str, str], Span]]]:
        tables = {}
        for path in sorted(self.folder.glob("*.parquet")):
            if path.name not in (RUNS, STUDIES):
                file = self._read(path.name)
                tables[path.name] = file, dict(_spans(file, path))
        return tables

    def _read(self, name: str) -> pq.ParquetFile:
        path = self.folder / name
        try:
            return pq.ParquetFile(path)
        except (OSError, pa.ArrowException) as error:
            raise damaged(path, error) from None


@lru_cache(maxsize=64)
def _read_group(pack: Pack, name: str, group: int) -> pa.Table:
    file, _ = pack._tables[name]
    try:
        return file.read_row_group(group)
    except (OSError, pa.ArrowException) as error:
        raise damaged(pack.folder / name, error) from None


@lru_cache(maxsize=64)
def _group_frame(pack: Pack, name: str, group: int) -> pd.DataFrame:
    return to_frame(as_now(_read_group(pack, name, group), name))


@cache
def _no_rows(name: str) -> pd.DataFrame:
    return to_frame(KEPT_FILES[name].schema.empty_table())


def _spans(file: pq.ParquetFile, path: Path) -> Iterator[tuple[tuple[str, str], Span]]:
    if not {KIND, "run_id"} <= set(file.schema_arrow.names):
        raise damaged(path, "it lacks the columns kind and run_id")
    for group in range(file.num_row_groups):
        names = file.read_row_group(group, columns=[KIND, "run_id"])
        pairs = zip(names[KIND].to_pylist(), names["run_id"].to_pylist(), strict=True)
        offset = 0
        for key, rows in groupby(pairs):
            length = sum(1 for _ in rows)
            yield key, Span(group, offset, length)
            offset += length


def damaged(path: Path, error: object) -> SpecfitError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return SpecfitError(f"{path} is damaged ({reason}); take it from the repository again")


@lru_cache(maxsize=8)
def _opened(folder: Path, changed_ns: int) -> Pack:
    return Pack(folder)


def open_pack(folder: Path) -> Pack | None:
    """The pack of this folder; None where there is none. A file that changed is read anew."""
    path = folder / RUNS
    try:
        return _opened(folder, path.stat().st_mtime_ns)
    except OSError:
        return None


def packed_run(path: Path) -> tuple[Pack, PackedRun] | None:
    """The pack and the row of a run by the path that its folder would have; None where not."""
    pack = open_pack(path.parent.parent)
    row = None if pack is None else pack.runs.get((path.parent.name, path.name))
    return None if pack is None or row is None else (pack, row)


def study_text(path: Path) -> str | None:
    """A study's document by the path that its file has or would have, `<folder>/bench/<id>.json`;
    None where it lies neither there nor in the folder's pack."""
    if path.is_file():
        return path.read_text(encoding="utf-8")
    packed = path.parent.parent / STUDIES
    try:
        return _studies(packed, packed.stat().st_mtime_ns).get(path.stem)
    except OSError:
        return None


@lru_cache(maxsize=8)
def _studies(path: Path, changed_ns: int) -> Mapping[str, str]:
    try:
        table = pq.read_table(path, columns=["id", "document"])
    except pa.ArrowException as error:
        raise damaged(path, error) from None
    return dict(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def write_studies(folder: Path, documents: Mapping[str, str]) -> None:
    """Replace what is packed of studies; by id."""
    named = dict(sorted(documents.items()))
    table = pa.table({"id": list(named), "document": list(named.values())})
    write = partial(pq.write_table, table, compression="zstd", compression_level=19)
    atomic.write_file(folder / STUDIES, write)


def packed_below(runs: Path) -> list[PackedRun]:
    """The packed runs that would lie below this folder, by id."""
    pack = open_pack(runs.parent)
    return [] if pack is None else [row for row in pack.runs.values() if row.kind == runs.name]


def write_pack(
    folder: Path,
    runs: Sequence[tuple[PackedRun, Mapping[str, pa.Table]]],
    calibrations: Mapping[str, Mapping[str, Any]],
) -> None:
    """Replaces the pack of `folder`. Each run brings its tables by file name (cycles.parquet)."""
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(runs, key=lambda item: (item[0].kind, item[0].run_id))
    for name in dict.fromkeys(name for _, tables in ordered for name in tables):
        atomic.write_file(folder / name, partial(_write_rows, name, ordered))
    schema = pa.schema(
        [
            pa.field(f.name, pa.int64() if f.type == "int" else pa.string())
            for f in fields(PackedRun)
        ]
    )
    table = pa.Table.from_pylist([asdict(row) for row, _ in ordered], schema=schema)
    lines = [json.dumps(calibrations[key], sort_keys=True) for key in sorted(calibrations)]
    atomic.write_text(folder / CALIBRATIONS, "".join(f"{line}\n" for line in lines))
    atomic.write_file(folder / RUNS, lambda path: pq.write_table(table, path, compression="zstd"))


def _write_rows(name: str, ordered: Sequence[tuple[PackedRun, Any]], path: Path) -> None:
    """A row group holds whole runs, so that one run is read from one group."""
    having = [(row, tables[name]) for row, tables in ordered if name in tables]
    writer = None
    for start in range(0, len(having), RUNS_PER_GROUP):
        parts = []
        for row, rows in having[start : start + RUNS_PER_GROUP]:
            kind = pa.array([row.kind] * len(rows), pa.string())
            part = rows.add_column(0, pa.field(KIND, pa.string()), kind)
            # rows that were packed before may hold nulls where fresh ones cannot
            parts.append(part.cast(pa.schema([pa.field(f.name, f.type) for f in part.schema])))
        group = pa.concat_tables(parts).combine_chunks().replace_schema_metadata(None)
        if writer is None:
            writer = pq.ParquetWriter(
                path, group.schema, version="2.6", compression="zstd", compression_level=12
            )
        writer.write_table(group, row_group_size=max(1, len(group)))
    if writer is not None:
        writer.close()


def request_sums(cycles: pa.Table, loops: Mapping[str, bool]) -> pa.Table:
    """Rows of sums.parquet of one run, prefill before decode. `loops` says of a request whether its
    output is a loop; a counter that every cycle leaves null stays null."""
    frame = to_frame(cycles)
    keys = {
        "run_id": frame["run_id"].astype(str),
        "request_id": frame["request_id"].astype(str),
        "prefill": frame["cycle"] == 0,
    }
    groups = frame.groupby(list(keys.values()), sort=False)
    sums = groups[[column.name for column in SUMMED]].sum(min_count=1)
    sums["cycles"] = groups.size()
    sums["stop_reason"] = groups["stop_reason"].last()
    sums.index.names = list(keys)
    sums = sums.reset_index()
    sums["prefill"] = sums["prefill"].astype(bool)
    sums["loops"] = [loops.get(name) for name in sums["request_id"]]
    return pa.Table.from_pandas(sums[SUMS.schema.names], SUMS.schema, preserve_index=False)
