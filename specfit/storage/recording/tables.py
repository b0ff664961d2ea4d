"""The three files of a recording: every column, its version; requests to tables and back.

Expert ids are single bytes, in the router's own order. A file may hold routes of further sources,
each in a column of its own named `routes_<source>` and laid out like `routes`. Nothing here loops
over nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from specfit.base.types import IntArray, Request
from specfit.storage.recording.requests import Bytes, Pools, RecordedRequest
from specfit.storage.tables import REQUEST_ID, Column, Layout

VERSION = 1
KIND = "specfit recording"
MOST_EXPERTS = 256  # an expert id is one byte

IDS, SMALL, BYTES = pa.list_(pa.int32()), pa.list_(pa.int16()), pa.large_binary()

POOLS = Layout(
    "One row per (request, position) at which a cycle can start.",
    (
        REQUEST_ID,
        Column("position", pa.int32(), "Index of the root in output_ids."),
        Column("tokens", IDS, "Drafted token ids [N], in level order, full depth."),
        Column("parents", SMALL, "Parent of each node [N]; -1 is the root."),
        Column("path_probs", IDS, "Path probability of each node [N], in units of 2**-20."),
        Column("accepted", BYTES, "Bit mask over nodes, low bit first: on the greedy path."),
        Column("routes", BYTES, "Expert ids [1 + N, L, k], one byte each; row 0 is the root."),
        Column(
            "features",
            BYTES,
            "Head's float16 [U, F] at the U distinct parents, root first.",
            True,
        ),
    ),
)

PROMPTS = Layout(
    "One row per request, in the order of the workload.",
    (
        Column("row", pa.int64(), "Place of the request among the workload's examples."),
        REQUEST_ID,
        Column("example_digest", pa.string(), "Identity of the example the prompt was made from."),
        Column("status", pa.string(), "ok, or why the request failed."),
        Column("prompt_ids", IDS, "Token ids of the prompt [P].", True),
        Column(
            "cut_tokens", pa.int64(), "Document tokens that the workload's limit removed.", True
        ),
        Column("max_new_tokens", pa.int64(), "Cap on the output.", True),
        Column("output_ids", IDS, "Greedy token ids, the stop token included.", True),
        Column("stop_reason", pa.string(), "eos or length.", True),
        Column("output_text", pa.string(), "The output as text.", True),
        Column("score", pa.float64(), "The workload's score of the output.", True),
        Column(
            "score_control", pa.float64(), "The same against another request's reference.", True
        ),
        Column("prompt_routes", BYTES, "Expert ids [P, L, k], one byte each.", True),
    ),
)


def _pool_lists() -> pa.DataType:
    inner = [column for column in POOLS.columns if column.name != REQUEST_ID.name]
    return pa.list_(pa.struct([pa.field(c.name, c.type, c.nullable) for c in inner]))


CALIBRATION = Layout(
    "One row per calibration question that was walked, in order.",
    (
        *PROMPTS.columns,
        Column("pools", _pool_lists(), "Rows of pools.parquet up to the last probed position."),
    ),
)

FILES: dict[str, Layout] = {
    "pools.parquet": POOLS,
    "prompts.parquet": PROMPTS,
    "calibration.parquet": CALIBRATION,
}

ADDED = frozenset({"score_control"})
"""Columns that recordings made before them lack: null there."""

Tables = dict[str, pa.Table]


def tables_of(
    requests: Sequence[RecordedRequest], calibration: Sequence[RecordedRequest]
) -> Tables:
    return {
        "pools.parquet": pa.concat_tables(
            [POOLS.schema.empty_table()] + [_pool_rows(r) for r in requests if r.pools is not None]
        ),
        "prompts.parquet": pa.table(_prompt_columns(requests), schema=PROMPTS.schema),
        "calibration.parquet": pa.table(
            _prompt_columns(calibration) | {"pools": _nested(calibration)},
            schema=CALIBRATION.schema,
        ),
    }


# -- to tables -----------------------------------------------------------------------------------


def _lists(starts: IntArray, flat: np.ndarray, kind: pa.DataType) -> pa.Array:
    values = pa.array(flat.astype(kind.value_type.to_pandas_dtype()))
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values).cast(kind)


def _blobs(arrays: Sequence[np.ndarray]) -> pa.Array:
    return pa.array([array.tobytes() for array in arrays], pa.large_binary())


def _pool_rows(request: RecordedRequest) -> pa.Table:
    pools = request.pools
    assert pools is not None
    positions = range(len(pools))
    types = {column.name: column.type for column in POOLS.columns}
    marks = [np.packbits(pools.accepted[pools.nodes(i)], bitorder="little") for i in positions]
    features = pools.features
    columns = {
        "request_id": pa.array([request.request_id] * len(pools)),
        "position": pa.array(np.arange(len(pools), dtype=np.int32)),
        "tokens": _lists(pools.starts, pools.tokens, types["tokens"]),
        "parents": _lists(pools.starts, pools.parents, types["parents"]),
        "path_probs": _lists(pools.starts, pools.path_probs, types["path_probs"]),
        "accepted": _blobs(marks),
        "routes": _blobs([pools.atlas(i) for i in positions]),
        "features": pa.nulls(len(pools), pa.large_binary())
        if features is None
        else _blobs(np.split(features, _feature_cuts(pools))),
    }
    return pa.table(columns, schema=POOLS.schema)


def _feature_cuts(pools: Pools) -> np.ndarray:
    return np.cumsum([len(pools.expanded(i)) for i in range(len(pools))])[:-1]


def _nested(calibration: Sequence[RecordedRequest]) -> pa.Array:
    kind = CALIBRATION.schema.field("pools").type
    tables = [_pool_rows(question).drop_columns(["request_id"]) for question in calibration]
    counts = np.cumsum([0] + [len(table) for table in tables])
    empty = POOLS.schema.empty_table().drop_columns(["request_id"])
    rows = pa.concat_tables([empty, *tables]).combine_chunks()
    struct = pa.StructArray.from_arrays(
        [rows.column(field.name).combine_chunks() for field in kind.value_type],
        fields=list(kind.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(counts, pa.int32()), struct).cast(kind)


def _prompt_columns(requests: Sequence[RecordedRequest]) -> dict[str, pa.Array]:
    rows = [_prompt_row(request) for request in requests]
    return {c.name: pa.array([row[c.name] for row in rows], c.type) for c in PROMPTS.columns}


def _prompt_row(recorded: RecordedRequest) -> dict[str, Any]:
    request, routes = recorded.request, recorded.prompt_routes
    return {
        "row": recorded.row,
        "request_id": recorded.request_id,
        "example_digest": recorded.example_digest,
        "status": recorded.status,
        "prompt_ids": None if request is None else [int(t) for t in request.prompt_ids],
        "cut_tokens": None if request is None else request.cut_tokens,
        "max_new_tokens": None if request is None else request.max_new_tokens,
        "output_ids": None
        if recorded.output_ids is None
        else [int(token) for token in recorded.output_ids],
        "stop_reason": recorded.stop_reason,
        "output_text": recorded.output_text,
        "score": recorded.score,
        "score_control": recorded.score_control,
        "prompt_routes": None if routes is None else routes.tobytes(),
    }


# -- and back ------------------------------------------------------------------------------------


def read_requests(
    tables: Mapping[str, pa.Table], layers: int, experts: int, top_k: int
) -> tuple[list[RecordedRequest], list[RecordedRequest]]:
    """(requests, calibration questions). AssertionError or ValueError where they disagree."""
    shape = layers, experts, top_k
    by_request = _rows_of_requests(tables["pools.parquet"])
    requests = [
        _request(row, by_request.pop(row["request_id"], None), shape)
        for row in tables["prompts.parquet"].to_pylist()
    ]
    assert not by_request, "pools of a request that has no prompt"
    questions = tables["calibration.parquet"]
    nested = questions.column("pools").combine_chunks()
    calibration = []
    for index, row in enumerate(questions.drop_columns(["pools"]).to_pylist()):
        pools = nested[index].values
        rows = pa.table({field.name: pools.field(field.name) for field in pools.type})
        calibration.append(_request(row, rows, shape))
    return requests, calibration


def _rows_of_requests(pools: pa.Table) -> dict[str, pa.Table]:
    """Rows of one request lie side by side, positions ascending from 0."""
    names = pools.column("request_id").to_numpy(zero_copy_only=False)
    borders = np.flatnonzero(names[1:] != names[:-1]) + 1
    spans = zip([0, *borders], [*borders, len(names)], strict=True)
    found = {names[a]: pools.slice(a, b - a) for a, b in spans if b > a}
    assert sum(map(len, found.values())) == len(pools), "a request's rows lie apart"
    return found


def _request(row: dict[str, Any], pools: pa.Table | None, shape: tuple[int, int, int]) -> Any:
    layers, experts, top_k = shape
    common = row["row"], row["request_id"], row["example_digest"], row["status"]
    if row["status"] != "ok":
        assert pools is None, "pools of a request that failed"
        return RecordedRequest(*common)
    prompt = np.asarray(row["prompt_ids"], dtype=np.int64)
    output = np.asarray(row["output_ids"], dtype=np.int64)
    request = Request(
        row["request_id"], prompt, row["max_new_tokens"], frozenset(), None, row["cut_tokens"]
    )
    routes = _routes(row["prompt_routes"], len(prompt), layers, experts, top_k)
    read = _pools(pools, layers, experts, top_k) if pools is not None and len(pools) else None
    assert (0 if read is None else len(read)) <= max(len(output) - 1, 0), "more pools than tokens"
    return RecordedRequest(
        *common,
        request,
        output,
        row["stop_reason"],
        row["output_text"],
        row["score"],
        routes,
        read,
        row["score_control"],
    )


def _routes(blob: bytes, rows: int, layers: int, experts: int, top_k: int) -> Bytes:
    assert len(blob) == rows * layers * top_k, "routes of another shape than the manifest's"
    routes = np.frombuffer(blob, dtype=np.uint8).reshape(rows, layers, top_k)
    assert rows == 0 or int(routes.max()) < experts, "a route names an expert that does not exist"
    return routes


def _flat(column: pa.ChunkedArray) -> tuple[IntArray, IntArray]:
    """(starts [n + 1], values) of a list column."""
    lists = column.combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.chunk(0)
    starts = lists.offsets.to_numpy().astype(np.int64)
    values = lists.values.to_numpy(zero_copy_only=False)[starts[0] : starts[-1]]
    return starts - starts[0], values


def _pools(table: pa.Table, layers: int, experts: int, top_k: int) -> Pools:
    positions = table.column("position").to_numpy()
    assert bool(np.all(positions == np.arange(len(positions)))), "a position is missing"
    starts, tokens = _flat(table.column("tokens"))
    parents, probs = (_like(table, name, starts) for name in ("parents", "path_probs"))
    sizes = np.diff(starts)
    blob = b"".join(one.as_py() for one in table.column("routes"))
    routes = _routes(blob, int(starts[-1]) + len(sizes), layers, experts, top_k)
    marks = [
        _bits(mark.as_py(), size)
        for mark, size in zip(table.column("accepted"), sizes, strict=True)
    ]
    pools = Pools(starts, tokens, parents, probs, np.concatenate(marks), routes)
    _ = pools.depths  # checks every pool
    return replace(pools, features=_features(table, pools))


def _like(table: pa.Table, name: str, starts: IntArray) -> IntArray:
    found, values = _flat(table.column(name))
    assert bool(np.array_equal(found, starts)), f"{name} and tokens are of unequal length"
    return values


def _bits(mark: bytes, size: int) -> np.ndarray:
    bits = np.unpackbits(np.frombuffer(mark, np.uint8), bitorder="little")
    assert size <= len(bits) < size + 8, "an accepted mask of another length than the pool"
    return bits[:size].astype(bool)


def _features(table: pa.Table, pools: Pools) -> np.ndarray | None:
    blobs = [blob.as_py() for blob in table.column("features")]
    if any(blob is None for blob in blobs):
        return None
    rows = [len(pools.expanded(i)) for i in range(len(pools))]
    pairs = zip(blobs, rows, strict=True)
    return np.concatenate([np.frombuffer(b, dtype=np.float16).reshape(n, -1) for b, n in pairs])
