"""The exact search of eq. 5: argmax R(S) / T(S) over every legal subtree (sec. 3.3, app. A.3).

Depth-first. A legal subtree is its ascending sequence of node indices, and a parent's index is
below its child's, so each prefix of the sequence is legal too: adding only higher indices reaches
every legal subtree once, from its longest proper prefix, whose bitmap union is at hand. Subtrees
of equal size appear in lexicographic order (of two such sequences, the first difference decides
in which branch each lies, and lower branches come first), so the first of equals stays and no two
node lists are ever compared.

Pruning leaves out branches that `_may_improve` proves unable to hold the answer.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from specfit.core import PROBABILITY_ONE, DraftTree, IntArray, Routes
from specfit.selection.bitmaps import Bits, bitmaps, demand, plain, popcount
from specfit.selection.cost import CostModel, FloatArray, ratio


class Found(NamedTuple):
    """The best legal subtree of a pool."""

    nodes: tuple[int, ...]  # ascending
    reward: int  # units of 2**-20, the root's own 1 included
    demand: int  # F, root included
    predicted_ns: float
    searched_subtrees: int  # legal subtrees evaluated, the empty one included


@njit(cache=True, inline="always")
def _copy_root(union: Bits, rows: Bits) -> Any:
    """union[0] = the root's bitmap; returns its set bits."""
    total = np.uint64(0)
    for word in range(rows.shape[1]):
        union[0, word] = rows[0, word]
        total += popcount(rows[0, word])
    return np.int64(total)


@njit(cache=True, inline="always")
def _extend(union: Bits, depth: int, rows: Bits, node: int) -> Any:
    """union[depth + 1] = union[depth] | the node's bitmap; returns its set bits."""
    total = np.uint64(0)
    for word in range(rows.shape[1]):
        joined = union[depth, word] | rows[1 + node, word]
        union[depth + 1, word] = joined
        total += popcount(joined)
    return np.int64(total)


@njit(cache=True, inline="always")
def _next_child(parents: IntArray, member: Any, node: int, nodes: int) -> int:
    """First node >= `node` whose parent is selected, or `nodes`; member[0] is the root."""
    while node < nodes and not member[parents[node] + 1]:
        node += 1
    return node


@njit(cache=True, inline="always")
def _largest_sums(probs: IntArray, limit: int, sums: IntArray) -> None:
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
def _may_improve(
    depth: int,
    most: int,
    reward: int,
    demand: int,
    largest: IntArray,
    intercepts: FloatArray,
    expert_ns: float,
    top: float,
    size: int,
) -> bool:
    """Whether some extension of a subtree by 1..`most` higher nodes might replace the incumbent.

    Let S be the subtree (`depth` nodes), S' = S + X legal with |X| = m, all of X above S. Then
    R(S') <= R(S) + largest[m] in exact integers, and F(S') >= F(S) because F is monotone. Each
    rounded operation of `ratio` is monotone too, so ratio(S') <= the bound below, as floats.
    S' replaces the incumbent only if its ratio is above `top`, or equals it with fewer nodes than
    `size`; of equal ratio and size the incumbent, met first, is lexicographically lower. So where
    no m passes the test below, nothing in the branch can be the answer, ties included.
    """
    for m in range(1, most + 1):
        bound = ratio(reward + largest[m], intercepts[depth + m], expert_ns, demand)
        if bound > top or (bound == top and depth + m < size):
            return True
    return False


@njit(cache=True, error_model="numpy")
def _search(
    limit: int,
    parents: IntArray,  # [N]
    probs: IntArray,  # [N]
    rows: Bits,  # [>= 1 + N, M]
    intercepts: FloatArray,
    expert_ns: float,
    union: Bits,  # [K + 1, M], union[d] = root and the first d nodes of the path
    member: Any,  # [> N] bool, the root's and every node's, root first
    state: IntArray,  # [4, K + 1]: best, path, cursor, rewards
    sums: IntArray,  # [> N, K + 1]
    prune: bool,
) -> tuple[Any, Any, Any, Any]:
    """Size, reward and demand of `best`, and the number of subtrees evaluated; see the module."""
    nodes = parents.shape[0]
    best, path, cursor, rewards = state[0], state[1], state[2], state[3]
    if prune:
        _largest_sums(probs, limit, sums)
    member[0], member[1 : nodes + 1] = True, False
    rewards[0], cursor[0] = PROBABILITY_ONE, 0
    demanded: Any = _copy_root(union, rows)
    size, reward, searched, depth = 0, PROBABILITY_ONE, 1, 0
    top = ratio(reward, intercepts[0], expert_ns, demanded)
    while True:
        node = nodes if depth == limit else _next_child(parents, member, cursor[depth], nodes)
        if node == nodes:
            if depth == 0:
                return size, reward, demanded, searched
            depth -= 1
            member[path[depth] + 1] = False
            continue
        cursor[depth] = node + 1
        here = _extend(union, depth, rows, node)
        gained = rewards[depth] + probs[node]
        path[depth] = node
        depth += 1
        searched += 1
        value = ratio(gained, intercepts[depth], expert_ns, here)
        if value > top or (value == top and depth < size):
            top, size, reward, demanded = value, depth, gained, here
            best[:depth] = path[:depth]
        most = min(limit - depth, nodes - node - 1)
        if prune and not _may_improve(
            depth, most, gained, here, sums[node + 1], intercepts, expert_ns, top, size
        ):
            depth -= 1
            continue
        rewards[depth], cursor[depth] = gained, node + 1
        member[node + 1] = True


class SubtreeSearch:
    """Workspace of the search: grows with the largest pool seen, else allocates nothing.

    `prune=False` evaluates every legal subtree, for tests and timings; the answer is the same.
    """

    def __init__(self, cost: CostModel, k: int, prune: bool = True) -> None:
        assert 0 <= k <= cost.k, "the cost model prices every selection size"
        self.cost = cost
        self.k = k
        self.prune = prune
        self._state = np.empty((4, k + 1), dtype=np.int64)
        self._reserve(31)
        self._union: Bits = np.empty((k + 1, 0), dtype=np.uint64)

    def _reserve(self, nodes: int) -> None:
        self._member = np.empty(nodes + 1, dtype=np.bool_)
        self._sums = np.empty((nodes + 1, self.k + 1), dtype=np.int64)

    def best(self, tree: DraftTree, rows: Bits) -> Found:
        """Best of all legal subtrees of at most min(K, N) nodes, the empty one included.

        `rows` [>= 1 + N, M] as `AtlasBits.load` gives them. Ties: higher ratio, fewer nodes,
        lexicographically lowest indices. `tree` may be the pool so far: since levels only append
        indices, the order of two subtrees never changes with depth (app. A.2).
        """
        nodes, width = len(tree), rows.shape[1]
        assert len(rows) > nodes, "one bitmap for the root and one per pool node"
        if nodes >= len(self._member):
            self._reserve(2 * nodes)
        if width != self._union.shape[1]:
            self._union = np.empty((self.k + 1, width), dtype=np.uint64)
        size, reward, demanded, searched = _search(
            min(self.k, nodes),
            plain(tree.parents, np.int64),
            plain(tree.path_probs, np.int64),
            rows,
            self.cost.intercepts_ns,
            self.cost.expert_ns,
            self._union,
            self._member,
            self._state,
            self._sums,
            self.prune,
        )
        chosen = tuple(self._state[0, :size].tolist())
        return Found(chosen, reward, demanded, self.cost.predict_ns(size, demanded), searched)


@cache
def warm_up() -> None:
    """Compile the kernels, or load them from numba's cache: no timed request ever does."""
    ids = np.zeros((2, 1, 1), dtype=np.int64)
    rows = bitmaps(Routes(ids[0], ids[1:]), 1)
    demand(rows, (0,))
    one = np.ones(1, dtype=np.int64)
    SubtreeSearch(CostModel(np.ones(2), 1.0), 1).best(DraftTree(one, -one, one, one), rows)
