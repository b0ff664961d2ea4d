"""The data dictionary of a recording: every column of its three files, and its version.

Expert ids are single bytes, in the router's own order. A file may hold routes of further sources,
each in a column of its own named `routes_<source>` and laid out like `routes`.
"""

from __future__ import annotations

import pyarrow as pa

from specfit.storage.columns import INT, REQUEST_ID, TEXT, Column, Layout

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
        Column("row", INT, "Place of the request among the workload's examples."),
        REQUEST_ID,
        Column("example_digest", TEXT, "Identity of the example the prompt was made from."),
        Column("status", TEXT, "ok, or why the request failed."),
        Column("prompt_ids", IDS, "Token ids of the prompt [P].", True),
        Column("cut_tokens", INT, "Document tokens that the workload's limit removed.", True),
        Column("max_new_tokens", INT, "Cap on the output.", True),
        Column("output_ids", IDS, "Greedy token ids, the stop token included.", True),
        Column("stop_reason", TEXT, "eos or length.", True),
        Column("output_text", TEXT, "The output as text.", True),
        Column("score", pa.float64(), "The workload's score of the output.", True),
        Column("prompt_routes", BYTES, "Expert ids [P, L, k], one byte each.", True),
    ),
)


def _nested() -> pa.DataType:
    inner = [column for column in POOLS.columns if column.name != REQUEST_ID.name]
    return pa.list_(pa.struct([pa.field(c.name, c.type, c.nullable) for c in inner]))


CALIBRATION = Layout(
    "One row per calibration question that was walked, in order.",
    (
        *PROMPTS.columns,
        Column("pools", _nested(), "Rows of pools.parquet up to the last probed position."),
    ),
)

FILES: dict[str, Layout] = {
    "pools.parquet": POOLS,
    "prompts.parquet": PROMPTS,
    "calibration.parquet": CALIBRATION,
}
