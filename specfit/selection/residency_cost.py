"""`cost=miss`, `cost=hit_miss`: what is on the device already is cheap (pure, exact).

    T(S) = b_|S| + m x (experts of the root and S that are not resident) + h x (those that are)

`miss` has h = 0 and m as fitted. `hit_miss` has two prices, fitted for throughput: see `prices.py`.
Both are weighted coverage, so monotone and submodular as the union is. The exact search counts set
bits, so a weight is a whole number of copies of a bitmap: absent experts `MISS` times, resident
ones `HIT` times, beside each other in one row.

Residency is that of the moment the selection is made. With prefetching some of the absent ones will
have come before they are demanded; what that saves is in m, since probes are timed with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import DraftTree, Routes
from specfit.selection.bitmaps import AtlasBits, Bits, words_per_layer
from specfit.selection.cost import CostModel
from specfit.selection.search import Found, SubtreeSearch, warm_up

Resident = Callable[[], NDArray[np.bool_]]
"""Asks the expert cache which experts have slots now, [L, E]; reading changes nothing."""


class Weighted:
    """Bitmaps of a cycle with absent experts `miss` times and resident ones `hit` times."""

    def __init__(self, cost: CostModel, num_experts: int, k: int, miss: int, hit: int) -> None:
        """`cost.expert_ns` is the price of an absent expert."""
        assert miss >= 1 and hit >= 0, "an absent expert is no gift"
        self._atlas, self._experts = AtlasBits(num_experts), num_experts
        self._miss, self._hit = miss, hit
        self._search = SubtreeSearch(replace(cost, expert_ns=cost.expert_ns / miss), k)
        self._resident: Resident | None = None
        warm_up()

    def watch(self, resident: Resident) -> None:
        self._resident = resident

    def best(self, tree: DraftTree, routes: Routes, price: float | None = None) -> Found:
        """`demand` is in units of an absent expert's price over `miss`."""
        assert self._resident is not None, "a cost by residency needs a source of it"
        there = resident_bits(self._resident(), self._experts)
        rows = self._atlas.load(routes)
        weighted = np.empty((len(rows), there.size * (self._miss + self._hit)), dtype=np.uint64)
        _weigh(rows, there, 1 + len(tree), self._miss, weighted)
        return self._search.best(tree, weighted, price)


@njit(cache=True)
def _weigh(rows: Bits, there: Bits, n: int, miss: int, weighted: Bits) -> None:
    """rows [>= n, M], there [M] -> weighted [>= n, (miss + hit) M]."""
    width = there.shape[0]
    for row in range(n):
        for part in range(weighted.shape[1] // width):
            for word in range(width):
                kept = ~there[word] if part < miss else there[word]
                weighted[row, part * width + word] = rows[row, word] & kept


def resident_bits(resident: NDArray[np.bool_], num_experts: int) -> Bits:
    """[L, E] -> [L x W], bit `id % 64` of word `id // 64` of a layer."""
    words = words_per_layer(num_experts)
    wide = np.zeros((len(resident), words * 64), dtype=np.uint8)
    wide[:, :num_experts] = resident
    packed: Any = np.packbits(wide, axis=1, bitorder="little")
    return packed.view(np.uint64).reshape(-1).copy()


class Miss(Weighted):
    """`cost=miss`: experts that are on the device are free."""

    def __init__(self, cost: CostModel, num_experts: int, k: int) -> None:
        super().__init__(cost, num_experts, k, 1, 0)


class HitMiss(Weighted):
    """`cost=hit_miss`: two prices; the ratio between them comes with the coefficients."""

    def __init__(self, cost: CostModel, num_experts: int, k: int) -> None:
        super().__init__(cost, num_experts, k, *cost.weights)
