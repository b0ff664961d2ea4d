"""Every legal subtree of a pool with its reward, time and what of it is accepted: for studies.

The search answers one question without looking at most of them; here all of them are priced, so
that the rules of app. A.1 can be compared on one pool for any lambda.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import PROBABILITY_ONE, DraftTree, IntArray
from specfit.selection.bitmaps import Bits, plain, popcount
from specfit.selection.cost import CostModel


@dataclass(frozen=True, eq=False)
class Legal:
    """Columns over the legal subtrees of one pool, the empty one first, depth first."""

    reward: IntArray  # units of 2**-20
    demand: IntArray
    size: IntArray
    accepted: IntArray  # nodes of it on the greedy path
    depth: IntArray  # deepest node's

    def time_ns(self, cost: CostModel) -> NDArray[np.float64]:
        return np.maximum(cost.intercepts_ns[self.size] + cost.expert_ns * self.demand, 1.0)


@njit(cache=True)
def _walk(
    limit: int,
    parents: IntArray,
    probs: IntArray,
    depths: IntArray,
    accepted: IntArray,
    rows: Bits,
    out: IntArray,
) -> Any:
    """Fills out[5, :] as far as it reaches; returns the number of subtrees."""
    nodes, width = parents.shape[0], rows.shape[1]
    union = np.zeros((limit + 1, width), dtype=np.uint64)
    member = np.zeros(nodes + 1, dtype=np.bool_)
    member[0] = True
    path = np.zeros(limit + 1, dtype=np.int64)
    cursor = np.zeros(limit + 1, dtype=np.int64)
    state = np.zeros((limit + 1, 4), dtype=np.int64)  # reward, demand, accepted, depth
    state[0, 0] = PROBABILITY_ONE
    for word in range(width):
        union[0, word] = rows[0, word]
        state[0, 1] += np.int64(popcount(rows[0, word]))
    found, level = 0, 0
    fresh = True
    while True:
        if fresh:
            if found < out.shape[1]:
                out[0, found], out[1, found] = state[level, 0], state[level, 1]
                out[2, found], out[3, found] = level, state[level, 2]
                out[4, found] = state[level, 3]
            found += 1
            fresh = False
        node = cursor[level]
        while node < nodes and not member[parents[node] + 1]:
            node += 1
        if level == limit or node >= nodes:
            if level == 0:
                return found
            level -= 1
            member[path[level] + 1] = False
            continue
        cursor[level] = node + 1
        path[level] = node
        member[node + 1] = True
        total = np.int64(0)
        for word in range(width):
            union[level + 1, word] = union[level, word] | rows[1 + node, word]
            total += np.int64(popcount(union[level + 1, word]))
        state[level + 1, 0] = state[level, 0] + probs[node]
        state[level + 1, 1] = total
        state[level + 1, 2] = state[level, 2] + accepted[node]
        state[level + 1, 3] = max(state[level, 3], depths[node])
        level += 1
        cursor[level] = node + 1
        fresh = True


def legal_columns(tree: DraftTree, rows: Bits, accepted: NDArray[np.bool_], k: int) -> Legal:
    """`rows` [1 + N, M] bitmaps, `accepted` [N] as recorded."""
    arguments = (
        min(k, len(tree)),
        plain(tree.parents, np.int64),
        plain(tree.path_probs, np.int64),
        plain(tree.depths, np.int64),
        plain(accepted, np.int64),
        plain(rows[: 1 + len(tree)], np.uint64),
    )
    out = np.empty((5, 1 << 14), dtype=np.int64)
    found = int(_walk(*arguments, out))
    if found > out.shape[1]:
        out = np.empty((5, found), dtype=np.int64)
        _walk(*arguments, out)
    return Legal(*out[:, :found])
