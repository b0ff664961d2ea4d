"""Cycles to what each request adds up to: what is committed of runs that are no headline."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from specfit.storage.tables import SUMMED, SUMS, to_frame

COUNTERS = [column.name for column in SUMMED]


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
    sums = groups[COUNTERS].sum(min_count=1)
    sums["cycles"] = groups.size()
    sums["stop_reason"] = groups["stop_reason"].last()
    sums.index.names = list(keys)
    sums = sums.reset_index()
    sums["prefill"] = sums["prefill"].astype(bool)
    sums["loops"] = [loops.get(name) for name in sums["request_id"]]
    return pa.Table.from_pandas(sums[SUMS.schema.names], SUMS.schema, preserve_index=False)
