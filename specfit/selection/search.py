"""The exact search of eq. 5: argmax R(S) / T(S) over every legal subtree (sec. 3.3, app. A.3).

Depth-first. A legal subtree is its ascending sequence of node indices, and a parent's index is
below its child's, so each prefix of the sequence is legal too: adding only higher indices reaches
every legal subtree once, from its longest proper prefix, whose bitmap union is at hand. Subtrees
of equal size appear in lexicographic order (of two such sequences, the first difference decides
in which branch each lies, and lower branches come first), so the first of equals stays and no two
node lists are ever compared.

Pruning leaves out branches that `may_improve` proves unable to hold the answer. That bound costs
less than evaluating one subtree and is all a pool of 18 nodes needs. A search that is not done
after `BUDGET` subtrees starts again in `coverage`, with a bound that costs hundreds of times as
much and leaves a thousandth of the subtrees.

The same search maximises R - price x T: it only ever uses that the score rises with reward and
falls with demand. No recursion, whatever K; buffers grow with the pool and are then reused.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from specfit.base.types import PROBABILITY_ONE, DraftTree, IntArray, Routes
from specfit.selection.bitmaps import Bits, bitmaps, demand, plain
from specfit.selection.cost import CostModel, FloatArray, Rule, score
from specfit.selection.coverage import Scratch, search_covered
from specfit.selection.search_steps import copy_root, extend, largest_sums, may_improve, next_child

BUDGET = 1 << 16
"""Subtrees after which the coverage bound takes over: about 3 ms.

A pool of 18 nodes has at most 63,004 at K = 7 whatever its shape, so it never comes to that.
"""

UNLIMITED = np.iinfo(np.int64).max


class Found(NamedTuple):
    """The best legal subtree of a pool."""

    nodes: tuple[int, ...]  # ascending
    reward: int  # units of 2**-20, the root's own 1 included
    demand: int  # F, root included
    predicted_ns: float
    searched_subtrees: int  # legal subtrees evaluated, twice where the search started again


@njit(cache=True, error_model="numpy")
def _search(
    by_ratio: bool,
    price: float,
    intercepts: FloatArray,
    expert_ns: float,
    limit: int,
    parents: IntArray,  # [N]
    probs: IntArray,  # [N]
    rows: Bits,  # [>= 1 + N, M]
    union: Bits,  # [K + 1, M], union[d] = root and the first d nodes of the path
    member: Any,  # [> N] bool, the root's and every node's, root first
    state: IntArray,  # [4, K + 1]: best, path, cursor, rewards
    sums: IntArray,  # [> N, K + 1]
    prune: bool,
    budget: int,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Size, reward, demand and score of `best`, subtrees evaluated, whether it is the answer."""
    rule = Rule(by_ratio, price, intercepts, expert_ns)
    nodes = parents.shape[0]
    best, path, cursor, rewards = state[0], state[1], state[2], state[3]
    if prune:
        largest_sums(probs, limit, sums)
    member[0], member[1 : nodes + 1] = True, False
    rewards[0], cursor[0] = PROBABILITY_ONE, 0
    demanded: Any = copy_root(union, rows)
    size, reward, searched, depth = 0, PROBABILITY_ONE, 1, 0
    top = score(rule, reward, 0, demanded)
    while searched < budget:
        node = nodes if depth == limit else next_child(parents, member, cursor[depth], nodes)
        if node == nodes:
            if depth == 0:
                return size, reward, demanded, top, searched, True
            depth -= 1
            member[path[depth] + 1] = False
            continue
        cursor[depth] = node + 1
        here = extend(union, depth, rows, node)
        gained = rewards[depth] + probs[node]
        path[depth] = node
        depth += 1
        searched += 1
        value = score(rule, gained, depth, here)
        if value > top or (value == top and depth < size):
            top, size, reward, demanded = value, depth, gained, here
            best[:depth] = path[:depth]
        most = min(limit - depth, nodes - node - 1)
        if prune and not may_improve(rule, depth, most, gained, here, sums[node + 1], top, size):
            depth -= 1
            continue
        rewards[depth], cursor[depth] = gained, node + 1
        member[node + 1] = True
    return size, reward, demanded, top, searched, False


class SubtreeSearch:
    """Workspace of the search: grows with the largest pool seen, else allocates nothing.

    `prune=False` evaluates every legal subtree, for tests and timings; the answer is the same.
    `budget` likewise: 0 starts with the coverage bound at once.
    """

    def __init__(
        self, cost: CostModel, k: int, prune: bool = True, budget: int | None = BUDGET
    ) -> None:
        assert 0 <= k <= cost.k, "the cost model prices every selection size"
        self.cost = cost
        self.k = k
        self.prune = prune
        self._budget = UNLIMITED if budget is None or not prune else budget
        self._state = np.empty((4, k + 1), dtype=np.int64)
        self._reserve(31, 0)

    def _reserve(self, nodes: int, width: int) -> None:
        self._nodes, self._width = nodes, width
        self._union: Bits = np.empty((self.k + 1, width), dtype=np.uint64)
        self._member = np.empty(nodes + 1, dtype=np.bool_)
        self._sums = np.empty((nodes + 1, self.k + 1), dtype=np.int64)
        self._scratch = Scratch.reserve(self.k, nodes, width)

    def best(self, tree: DraftTree, rows: Bits, price: float | None = None) -> Found:
        """Best of all legal subtrees of at most min(K, N) nodes, the empty one included.

        `rows` [>= 1 + N, M] as `AtlasBits.load` gives them. Without a price the ratio R / T is
        maximised, with one R - price x T (units of 2**-20 per ns). Ties: higher value, fewer
        nodes, lexicographically lowest indices. `tree` may be the pool so far: since levels only
        append indices, the order of two subtrees never changes with depth (app. A.2).
        """
        nodes, width = len(tree), rows.shape[1]
        assert len(rows) > nodes, "one bitmap for the root and one per pool node"
        assert price is None or price >= 0 or not self.prune, "bounds need a price that is no gain"
        if nodes > self._nodes or width != self._width:
            self._reserve(self._nodes if nodes <= self._nodes else 2 * nodes, width)
        problem = (
            price is None,
            0.0 if price is None else price,
            self.cost.intercepts_ns,
            self.cost.expert_ns,
            min(self.k, nodes),
            plain(tree.parents, np.int64),
            plain(tree.path_probs, np.int64),
            rows,
            self._union,
            self._member,
            self._state,
        )
        size, reward, demanded, top, searched, done = _search(
            *problem, self._sums, self.prune, self._budget
        )
        if not done:
            size, reward, demanded, more = search_covered(*problem, *self._scratch, top)
            searched += more
        chosen = tuple(self._state[0, :size].tolist())
        return Found(chosen, reward, demanded, self.cost.predict_ns(size, demanded), searched)


@cache
def warm_up() -> None:
    """Compile the kernels, or load them from numba's cache: no timed request ever does."""
    ids = np.zeros((2, 1, 1), dtype=np.int64)
    rows = bitmaps(Routes(ids[0], ids[1:]), 1)
    demand(rows, (0,))
    one = np.ones(1, dtype=np.int64)
    tree, cost = DraftTree(one, -one, one, one), CostModel(np.ones(2), 1.0)
    for budget in (BUDGET, 0):
        SubtreeSearch(cost, 1, budget=budget).best(tree, rows)
