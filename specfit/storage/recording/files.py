"""Recordings on disk: results/recordings/<recording_id>/, written whole, read whole or refused.

pools.parquet         one row per (request, position): the pool, its routes, what is accepted
prompts.parquet       one row per request: prompt, its routes, the greedy output
calibration.parquet   one row per calibration question, its pools nested
manifest.json         version, identity, geometry, resolved config, digests of the three files

numpy, pandas and pyarrow only: a recording made on a GPU is read anywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from specfit.base.published import PublishedShape
from specfit.base.types import SpecfitError
from specfit.storage import atomic
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.recording.tables import (
    ADDED,
    FILES,
    KIND,
    MOST_EXPERTS,
    VERSION,
    read_requests,
    tables_of,
)

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Shape:
    """The numbers of the recorded target that a replay needs."""

    layers: int
    experts: int
    top_k: int
    hidden: int
    intermediate: int
    vocabulary: int
    context: int
    expert_bytes: int
    expert_format: str | None = None  # as rows say it; recordings of old do not

    def __post_init__(self) -> None:
        if self.experts > MOST_EXPERTS:
            raise SpecfitError(
                f"a recording stores an expert id in one byte, up to {MOST_EXPERTS} experts a "
                f"layer, and this target has {self.experts}"
            )


@dataclass(frozen=True, eq=False)
class Recording:
    """`identity` holds what decides tokens and pools; `config` is the recorder's resolved one."""

    recording_id: str
    identity: Mapping[str, Any]
    config: Mapping[str, Any]
    shape: Shape
    stop_ids: tuple[int, ...]
    device: str
    requests: Sequence[RecordedRequest]
    calibration: Sequence[RecordedRequest]
    provenance: Sequence[Mapping[str, Any]] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)  # what was measured while recording
    folder: Path | None = None

    @property
    def positions(self) -> int:
        return sum(request.positions for request in self.requests)


def write_recording(folder: Path, recording: Recording) -> None:
    """Replaces what is there. The folder appears whole."""
    tables = tables_of(recording.requests, recording.calibration)

    def fill(temporary: Path) -> None:
        for name, table in tables.items():
            _write(table, temporary / name)
        document = {
            "kind": KIND,
            "version": VERSION,
            "recording_id": recording.recording_id,
            "identity": recording.identity,
            "config": recording.config,
            "shape": asdict(recording.shape),
            "stop_ids": list(recording.stop_ids),
            "device": recording.device,
            "requests": len(recording.requests),
            "positions": recording.positions,
            "provenance": list(recording.provenance),
            "notes": dict(recording.notes),
            "digests": {name: file_digest(temporary / name) for name in tables},
        }
        atomic.write_json(temporary / MANIFEST, document)

    folder.parent.mkdir(parents=True, exist_ok=True)
    atomic.remove_folder(folder)
    atomic.write_folder(folder, fill)


def read_recording(folder: Path) -> Recording:
    """Raises SpecfitError for a folder that is absent, foreign, of another version or damaged."""
    document = read_manifest(folder)
    tables = {name: _read(folder, name, document["digests"].get(name)) for name in FILES}
    try:
        shape = Shape(**document["shape"])
        requests, calibration = read_requests(tables, shape.layers, shape.experts, shape.top_k)
        return Recording(
            document["recording_id"],
            document["identity"],
            document["config"],
            shape,
            tuple(document["stop_ids"]),
            document["device"],
            requests,
            calibration,
            document["provenance"],
            document["notes"],
            folder,
        )
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        raise _damaged(folder, str(error) or type(error).__name__) from None


def read_once(folder: Path) -> Recording:
    """`read_recording`, but jobs of one process share what it reads and what they look up in it,
    until another manifest is in its place."""
    read_manifest(folder)  # refuses what is no recording
    return _read_once(folder.resolve(), (folder / MANIFEST).read_text(encoding="utf-8"))


@lru_cache(maxsize=2)  # sweeps go from workload to workload, and a 30B recording is large
def _read_once(folder: Path, manifest: str) -> Recording:
    return read_recording(folder)


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecfitError(
            f"{folder} holds no recording; make one with `python -m specfit.record`"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError, OSError) as error:
        raise _damaged(folder, f"{MANIFEST} cannot be read: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise SpecfitError(f"{folder} holds something else than a recording; name one of those")
    if document.get("version") != VERSION:
        raise SpecfitError(
            f"{folder} is a recording of version {document.get('version')}, this specfit reads "
            f"version {VERSION}; record again"
        )
    if not isinstance(document.get("digests"), dict):
        raise _damaged(folder, f"{MANIFEST} has no digests")
    return document


def find_recording(named: str, results_dir: Path) -> Path:
    """A folder, or the id of one below results/recordings."""
    for folder in (Path(named), results_dir / "recordings" / named):
        if (folder / MANIFEST).is_file():
            return folder
    raise SpecfitError(
        f"recording={named} is neither a recording's folder nor an id in "
        f"{results_dir / 'recordings'}; make one with `python -m specfit.record`"
    )


def find_longer(results_dir: Path, identity: Mapping[str, Any]) -> Path | None:
    """A recording of more requests than `identity` names, that begins with those."""
    wanted = json.loads(json.dumps(identity))
    count = len(wanted["rows"])
    for path in sorted((results_dir / "recordings").glob(f"[!.]*/{MANIFEST}")):
        known = read_manifest(path.parent)["identity"]
        if known | {"rows": known["rows"][:count]} == wanted:
            return path.parent
    return None


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(folder: Path, why: str) -> SpecfitError:
    return SpecfitError(f"the recording in {folder} is damaged ({why}); record again")


def _write(table: pa.Table, path: Path) -> None:
    """Deterministic, as all row files are; blobs are compressed and never made dictionaries."""
    pq.write_table(
        table.replace_schema_metadata(None).combine_chunks(),
        path,
        version="2.6",
        compression="zstd",
        compression_level=9,
        row_group_size=4096,
        use_dictionary=False,
        write_statistics=False,
        store_schema=True,
    )


def _read(folder: Path, name: str, digest: str | None) -> pa.Table:
    path = folder / name
    if not path.is_file():
        raise _damaged(folder, f"{name} is missing")
    if file_digest(path) != digest:
        raise _damaged(folder, f"{name} is not the file its manifest describes")
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(folder, f"{name} cannot be read: {error}") from None
    for column in FILES[name].columns:
        if column.name not in table.column_names and column.name in ADDED:
            table = table.append_column(column.name, pa.nulls(len(table), column.type))
        elif column.name not in table.column_names:
            raise _damaged(folder, f"{name} lacks the column {column.name}")
        if table.schema.field(column.name).type != column.type:
            raise _damaged(folder, f"{name} has another type in the column {column.name}")
    return table


# -- size ----------------------------------------------------------------------------------------


def bytes_per_1000_tokens(folder: Path) -> float:
    """Bytes on disk of pools and prompts for every 1,000 recorded positions."""
    positions = read_manifest(folder)["positions"]
    size = sum((folder / name).stat().st_size for name in ("pools.parquet", "prompts.parquet"))
    return 1000 * size / max(positions, 1)


def plain_bytes_per_1000_tokens(layers: int, top_k: int, nodes: int) -> int:
    """Before compression: one byte per routed expert of the root and every node, ten per node."""
    return 1000 * ((1 + nodes) * layers * top_k + 10 * nodes)


ROUTE_COMPRESSION = 0.75
"""zstd on real routes: rows of the public Qwen3-30B-A3B-Instruct-2507 trace laid out as pools, two
of 18 nodes on the true path (which recur as later roots), the others rows of other texts."""

POOL_NODES = 18  # of the paper's pool: two children a node, five levels


def published_bytes_per_1000_tokens(shape: PublishedShape) -> tuple[int, int]:
    """Bytes per 1,000 output tokens with the paper's pool: before compression, and on disk."""
    plain = plain_bytes_per_1000_tokens(shape.layers, shape.top_k, POOL_NODES)
    return plain, round(ROUTE_COMPRESSION * plain)


def merged(recordings: Sequence[Recording], named: Callable[[Mapping[str, Any]], str]) -> Recording:
    """Recordings of different requests of one workload as one, in the workload's order.

    `named` gives the id of an identity. Raises SpecfitError where they are not of one workload, or
    hold a request twice.
    """
    from specfit.storage import identity

    first = recordings[0]
    for other in recordings[1:]:
        a = {key: value for key, value in first.identity.items() if key != "rows"}
        b = {key: value for key, value in other.identity.items() if key != "rows"}
        differs = identity.first_difference(a, b)
        if differs is not None:
            raise SpecfitError(
                f"recordings {first.recording_id} and {other.recording_id} differ in {differs}; "
                "only recordings of one workload merge"
            )
    requests = sorted((r for one in recordings for r in one.requests), key=lambda r: r.row)
    rows = [request.row for request in requests]
    if len(set(rows)) != len(rows):
        raise SpecfitError("the recordings share a request; merge recordings of different requests")
    who = dict(first.identity) | {"rows": [request.example_digest for request in requests]}
    notes = {"merged": [one.recording_id for one in recordings]}
    return Recording(
        named(who),
        who,
        first.config,
        first.shape,
        first.stop_ids,
        first.device,
        requests,
        first.calibration,
        [entry for one in recordings for entry in one.provenance],
        notes,
    )
