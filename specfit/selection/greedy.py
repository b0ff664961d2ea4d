"""The ratio greedy: a legal subtree to start the exact search from, and a rule of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from specfit.base.types import PROBABILITY_ONE, IntArray
from specfit.selection.bitmaps import Bits
from specfit.selection.cost import Rule, score
from specfit.selection.search_steps import copy_root, extend


@njit(cache=True, error_model="numpy")
def greedy_subtree(
    rule: Rule,
    limit: int,
    parents: IntArray,
    probs: IntArray,
    rows: Bits,
    union: Bits,
    member: Any,
    path: IntArray,  # [>= limit], filled with nodes in the order they were added
) -> tuple[Any, Any, Any, Any]:
    """Size, reward, demand and score of the best subtree met, the first `size` nodes of `path`.

    One after the other the node is added that scores best next, to the limit: the score may fall
    and rise again. Ties: the lower index, and of the subtrees met the smaller.
    """
    nodes = parents.shape[0]
    member[0], member[1 : nodes + 1] = True, False
    demand: Any = copy_root(union, rows)
    reward: Any = np.int64(PROBABILITY_ONE)
    best = score(rule, reward, 0, demand)
    best_size, best_reward, best_demand = 0, reward, demand
    for size in range(1, limit + 1):
        chosen, top = -1, -np.inf
        for node in range(nodes):
            if member[parents[node] + 1] and not member[node + 1]:
                value = score(rule, reward + probs[node], size, extend(union, size - 1, rows, node))
                if value > top:
                    chosen, top = node, value
        demand = extend(union, size - 1, rows, chosen)
        member[chosen + 1] = True
        path[size - 1] = chosen
        reward += probs[chosen]
        if top > best:
            best, best_size, best_reward, best_demand = top, size, reward, demand
    return best_size, best_reward, best_demand, best
