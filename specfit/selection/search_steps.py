"""Steps that both searches take: from one legal subtree to the next, and the cheap bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from specfit.base.types import IntArray
from specfit.selection.bitmaps import Bits, popcount
from specfit.selection.cost import Rule, score


@njit(cache=True, inline="always")
def copy_root(union: Bits, rows: Bits) -> Any:
    """union[0] = the root's bitmap; returns its set bits."""
    total = np.uint64(0)
    for word in range(rows.shape[1]):
        union[0, word] = rows[0, word]
        total += popcount(rows[0, word])
    return np.int64(total)


@njit(cache=True, inline="always")
def extend(union: Bits, depth: int, rows: Bits, node: int) -> Any:
    """union[depth + 1] = union[depth] | the node's bitmap; returns its set bits."""
    total = np.uint64(0)
    for word in range(rows.shape[1]):
        joined = union[depth, word] | rows[1 + node, word]
        union[depth + 1, word] = joined
        total += popcount(joined)
    return np.int64(total)


@njit(cache=True, inline="always")
def next_child(parents: IntArray, member: Any, node: int, nodes: int) -> int:
    """First node >= `node` whose parent is selected, or `nodes`; member[0] is the root."""
    while node < nodes and not member[parents[node] + 1]:
        node += 1
    return node


@njit(cache=True, inline="always")
def largest_sums(probs: IntArray, limit: int, sums: IntArray) -> None:
    """sums[i, m] = the sum of the m largest of probs[i:], m = 0..limit; missing ones count 0."""
    nodes = probs.shape[0]
    for m in range(limit + 1):
        sums[nodes, m] = 0
    for node in range(nodes - 1, -1, -1):
        sums[node, 0] = 0
        carried = probs[node]  # inserted into the descending list whose prefix sums are the row
        for m in range(1, limit + 1):
            value = sums[node + 1, m] - sums[node + 1, m - 1]
            sums[node, m] = sums[node, m - 1] + max(value, carried)
            carried = min(value, carried)


@njit(cache=True, inline="always", error_model="numpy")
def may_improve(
    rule: Rule,
    depth: int,
    most: int,
    reward: int,
    demand: int,
    largest: IntArray,  # [> most]
    top: float,
    size: int,
) -> bool:
    """Whether some extension of a subtree by 1..`most` higher nodes might replace the incumbent.

    Let S be the subtree (`depth` nodes), S' = S + X legal with |X| = m, all of X above S. Then
    R(S') <= R(S) + largest[m] in exact integers, and F(S') >= F(S) because F is monotone. Each
    rounded operation of `score` is monotone too, so score(S') <= the bound below, as floats.
    S' replaces the incumbent only if its score is above `top`, or equals it with fewer nodes than
    `size`; of equal score and size the incumbent, met first, is lexicographically lower. So where
    no m passes the test below, nothing in the branch can be the answer, ties included.
    """
    for m in range(1, most + 1):
        bound = score(rule, reward + largest[m], depth + m, demand)
        if bound > top or (bound == top and depth + m < size):
            return True
    return False
