"""Outputs that say nothing about a method: loops, and answers cut at the cap."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from specfit.storage.rows import RunRows

LONGEST = 16
"""Tokens of the longest n-gram looked for."""


def is_loop(output_ids: Sequence[int]) -> bool:
    """Whether one n-gram (n up to LONGEST), repeated without a break, is over half of it."""
    ids = np.asarray(output_ids)
    for n in range(1, min(LONGEST, len(ids) // 2) + 1):
        same = np.concatenate([[False], ids[n:] == ids[:-n], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1]).reshape(-1, 2)
        longest = int((edges[:, 1] - edges[:, 0]).max(initial=0))
        if longest >= n and 2 * (longest + n) > len(ids):
            return True
    return False


def is_degenerate(output_ids: Sequence[int], stop_reason: str | None) -> bool:
    """A loop, or an output that reached its cap."""
    return stop_reason == "length" or is_loop(output_ids)


# -- of a run --------------------------------------------------------------------------------------


@lru_cache(maxsize=2048)
def loops_of(run: RunRows) -> frozenset[str]:
    """Request ids whose output is a loop; of a committed run without outputs, as was counted."""
    if run.sums is not None and not run.sums.empty:
        rows = run.sums
        return frozenset(rows.loc[rows["loops"].eq(True).fillna(False), "request_id"].astype(str))
    outputs = run.requests.set_index("request_id")["output_ids"]
    known = {name: outputs[name] for name in run.ok_ids}
    return frozenset(n for n, ids in known.items() if ids is not None and _loops(tuple(ids)))


@lru_cache(maxsize=4096)
def _loops(output_ids: tuple[int, ...]) -> bool:
    """Every system gives the same outputs."""
    return is_loop(output_ids)


@lru_cache(maxsize=2048)
def degenerate_of(run: RunRows) -> frozenset[str]:
    """Request ids whose output is degenerate, of those that did not fail."""
    return (loops_of(run) | capped_of(run)) & frozenset(run.ok_ids)


def capped_of(run: RunRows) -> frozenset[str]:
    """Request ids whose output reached its cap."""
    rows: pd.DataFrame = run.cycles if run.sums is None or run.sums.empty else run.sums
    return frozenset(rows.loc[rows["stop_reason"] == "length", "request_id"].astype(str))
