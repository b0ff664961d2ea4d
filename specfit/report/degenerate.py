"""Outputs that say nothing about a method: loops, and answers cut at the cap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
