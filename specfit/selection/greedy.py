"""The ratio greedy: a score some legal subtree attains, to start the exact search from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from specfit.core import PROBABILITY_ONE, IntArray
from specfit.selection.bitmaps import Bits
from specfit.selection.cost import Rule, score
from specfit.selection.steps import copy_root, extend


@njit(cache=True, error_model="numpy")
def greedy_score(
    rule: Rule, limit: int, parents: IntArray, probs: IntArray, rows: Bits, union: Bits, member: Any
) -> float:
    """The best score met while adding, one after the other, the node that scores best next."""
    nodes = parents.shape[0]
    member[0], member[1 : nodes + 1] = True, False
    demand = copy_root(union, rows)
    reward: Any = np.int64(PROBABILITY_ONE)
    best = score(rule, reward, 0, demand)
    for size in range(1, limit + 1):
        chosen, top = -1, -np.inf
        for node in range(nodes):
            if member[parents[node] + 1] and not member[node + 1]:
                value = score(rule, reward + probs[node], size, extend(union, size - 1, rows, node))
                if value > top:
                    chosen, top = node, value
        extend(union, size - 1, rows, chosen)
        member[chosen + 1] = True
        reward += probs[chosen]
        best = max(best, top)
    return best
