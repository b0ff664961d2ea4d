"""A cache policy from outside: what a config's `policy=package.module:name` points at."""

from __future__ import annotations

import numpy as np


def newest_first(
    forward: int,
    expert_in: np.ndarray,
    last_forward: np.ndarray,
    last_row: np.ndarray,
    memory: np.ndarray,
    known: np.ndarray,
    rank: np.ndarray,
) -> None:
    """The most recently used goes."""
    residents = expert_in[expert_in >= 0]
    order = residents[np.argsort(-last_forward[residents], kind="stable")]
    rank[order] = np.arange(len(order))
