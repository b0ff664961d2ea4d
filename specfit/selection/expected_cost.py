"""`cost=expected_union`: b_k + beta E[F] under predicted chances, searched exactly.

A route source may say of every row, layer and expert how likely the row is to use it if no row
above it in the tree does (q; nothing is above the root). Over the root and a path below it the
product of 1 - q is then, by the chain rule, the chance that no row uses an expert. Over an
ancestor-closed S it is that where branches are independent once nothing above them has used it:

    E[F] = sum over layers and experts of 1 - prod over rows of S and the root of (1 - q),

which is F where every q is 0 or 1, and like F monotone and submodular in S: a further row lowers
each product by a share of what is left of it. Plain chances in their place would count twice what a
node shares with its parent: a text's experts come back.

Integers throughout, as for path probabilities: q in units of 2**-8, products and E[F] in units of
2**-20 experts, every product rounded down once per row, in ascending order of nodes. Rounded
products still never grow with a row, which is all that the bound of the search needs; its order
and its ties are those of `search.py`. beta is divided by 2**20, which changes no bit of it: under
certain routes this search gives what the union's gives, to the last digit.

Letters: N nodes, M = layers x experts, K nodes at most.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import (
    CHANCE_ONE,
    PROBABILITY_ONE,
    DraftTree,
    IntArray,
    Routes,
    SpecfitError,
)
from specfit.selection.bitmaps import plain
from specfit.selection.cost import CostModel, FloatArray, Rule, score
from specfit.selection.search import Found
from specfit.selection.search_steps import largest_sums, may_improve, next_child

EXPERT = 1 << 20
"""Units of E[F] in one expert that is surely used."""

_CHANCE_BITS = np.uint32(CHANCE_ONE.bit_length() - 1)

Chances = NDArray[np.uint16]  # [1 + N, M], units of 2**-8, row 0 the root's
Products = NDArray[np.uint32]  # [1 + K, M], what is left of prod(1 - q), units of 2**-20


@njit(cache=True, inline="always")
def _join(before: Products, chances: Chances, after: Products) -> Any:
    """after[M] = before[M] x (1 - chances[M]); returns E[F] of the rows joined so far."""
    left = np.uint64(0)
    for i in range(before.shape[0]):
        product = np.uint32(before[i] * np.uint32(CHANCE_ONE - chances[i])) >> _CHANCE_BITS
        after[i] = product
        left += np.uint64(product)
    return np.int64(before.shape[0]) * EXPERT - np.int64(left)


@njit(cache=True, error_model="numpy")
def _search(
    by_ratio: bool,
    price: float,
    intercepts: FloatArray,
    unit_ns: float,  # of 2**-20 experts
    limit: int,
    parents: IntArray,  # [N]
    probs: IntArray,  # [N]
    chances: Chances,
    products: Products,
    member: Any,  # [1 + N] bool, the root's and every node's, root first
    state: IntArray,  # [4, K + 1]: best, path, cursor, rewards
    sums: IntArray,  # [1 + N, K + 1]
    prune: bool,
) -> tuple[Any, Any, Any, Any]:
    """Size, reward and E[F] of `best`, and the subtrees evaluated; the walk of `search.py`."""
    rule = Rule(by_ratio, price, intercepts, unit_ns)
    nodes = parents.shape[0]
    best, path, cursor, rewards = state[0], state[1], state[2], state[3]
    largest_sums(probs, limit, sums)
    member[0], member[1 : nodes + 1] = True, False
    rewards[0], cursor[0] = PROBABILITY_ONE, 0
    products[0, :] = EXPERT
    expected = _join(products[0], chances[0], products[0])
    size, reward, searched, depth = 0, PROBABILITY_ONE, 1, 0
    top = score(rule, reward, 0, expected)
    while True:
        node = nodes if depth == limit else next_child(parents, member, cursor[depth], nodes)
        if node == nodes:
            if depth == 0:
                return size, reward, expected, searched
            depth -= 1
            member[path[depth] + 1] = False
            continue
        cursor[depth] = node + 1
        here = _join(products[depth], chances[1 + node], products[depth + 1])
        gained = rewards[depth] + probs[node]
        path[depth] = node
        depth += 1
        searched += 1
        value = score(rule, gained, depth, here)
        if value > top or (value == top and depth < size):
            top, size, reward, expected = value, depth, gained, here
            best[:depth] = path[:depth]
        most = min(limit - depth, nodes - node - 1)
        if prune and not may_improve(rule, depth, most, gained, here, sums[node + 1], top, size):
            depth -= 1
            continue
        rewards[depth], cursor[depth] = gained, node + 1
        member[node + 1] = True


class ExpectedUnion:
    """Buffers grow with the largest pool seen. `prune=False` evaluates every legal subtree."""

    def __init__(self, cost: CostModel, num_experts: int, k: int, prune: bool = True) -> None:
        assert 0 <= k <= cost.k, "the cost model prices every selection size"
        self._per_unit = replace(cost, expert_ns=cost.expert_ns / EXPERT)
        self._experts, self._k, self._prune = num_experts, k, prune
        self._state = np.empty((4, k + 1), dtype=np.int64)
        self._products: Products = np.empty((k + 1, 0), dtype=np.uint32)
        _warm_up()

    def best(self, tree: DraftTree, routes: Routes, price: float | None = None) -> Found:
        """As `SubtreeSearch.best`; `demand` is E[F] in units of 2**-20 experts."""
        nodes, cost = len(tree), self._per_unit
        assert price is None or price >= 0 or not self._prune, "bounds need a price that is no gain"
        chances = chances_of(routes, self._experts)
        if chances.shape[1] != self._products.shape[1]:
            self._products = np.empty((self._k + 1, chances.shape[1]), dtype=np.uint32)
        size, reward, expected, searched = _search(
            price is None,
            0.0 if price is None else price,
            cost.intercepts_ns,
            cost.expert_ns,
            min(self._k, nodes),
            plain(tree.parents, np.int64),
            plain(tree.path_probs, np.int64),
            chances,
            self._products,
            np.empty(nodes + 1, dtype=np.bool_),
            self._state,
            np.empty((nodes + 1, self._k + 1), dtype=np.int64),
            self._prune,
        )
        chosen = tuple(self._state[0, :size].tolist())
        return Found(chosen, reward, expected, cost.predict_ns(size, expected), searched)


def chances_of(routes: Routes, num_experts: int) -> Chances:
    """[1 + N, M]: the source's own chances, or certainty for the ids of one that has none."""
    if routes.chances is not None:
        if routes.chances.shape[-1] != num_experts:
            raise SpecfitError(
                f"the route source has {routes.chances.shape[-1]} experts a layer, and the "
                f"target has {num_experts}; use one that was made for this target"
            )
        return routes.chances.reshape(len(routes.chances), -1).astype(np.uint16)
    ids = np.concatenate([routes.root[None], routes.nodes])
    assert ids.min() >= 0 and ids.max() < num_experts, "expert ids lie in the layer"
    certain = np.zeros((*ids.shape[:2], num_experts), dtype=np.uint16)
    np.put_along_axis(certain, ids, CHANCE_ONE, axis=-1)
    return certain.reshape(len(ids), -1)


@cache
def _warm_up() -> None:
    """Compile, or load from numba's cache: no timed request ever does."""
    one, two = np.ones(1, dtype=np.int64), np.zeros((2, 2), dtype=np.int64)
    chances, products = np.zeros((2, 1), dtype=np.uint16), np.zeros((2, 1), dtype=np.uint32)
    state, member = np.zeros((4, 2), dtype=np.int64), np.zeros(2, dtype=np.bool_)
    _search(
        True,
        0.0,
        np.ones(2),
        1.0,
        1,
        -one,
        one,
        chances,
        products,
        member,
        state,
        two,
        True,
    )
