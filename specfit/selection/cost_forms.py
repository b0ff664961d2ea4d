"""What `cost` names: how T(S) is formed, and the exact search under it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from specfit.base.plugins import named
from specfit.base.types import DraftTree, Routes
from specfit.selection.bitmaps import AtlasBits
from specfit.selection.cost import CostModel
from specfit.selection.expected_cost import ExpectedUnion
from specfit.selection.residency_cost import HitMiss, Miss
from specfit.selection.search import Found, SubtreeSearch, warm_up


class Pricing(Protocol):
    """One form of T(S), and the exact search under it. Not safe for two threads at once."""

    def best(self, tree: DraftTree, routes: Routes, price: float | None = None) -> Found:
        """The legal subtree of highest R / T; with a price, of highest R - price x T."""
        ...


class Union:
    """`cost=union`: b_k + beta F, F the distinct experts of the selection and the root (sec. 3.2).

    Every call converts the whole atlas: within a cycle the answer depends on the arguments alone,
    and finding out safely which rows are new would read as much as converting them does.
    """

    def __init__(self, cost: CostModel, num_experts: int, k: int) -> None:
        self._atlas = AtlasBits(num_experts)
        self._search = SubtreeSearch(cost, k)
        warm_up()

    def best(self, tree: DraftTree, routes: Routes, price: float | None = None) -> Found:
        return self._search.best(tree, self._atlas.load(routes), price)


MakePricing = Callable[[CostModel, int, int], Pricing]

COSTS: dict[str, MakePricing] = {
    "union": Union,
    "expected_union": ExpectedUnion,
    "miss": Miss,
    "hit_miss": HitMiss,
}
"""Name in a config -> (coefficients, experts per layer, K) -> pricing."""

BY_RESIDENCY = ("miss", "hit_miss")
"""Forms with coefficients of their own, fitted on what forced trees missed."""


def pricing_named(name: str) -> MakePricing:
    """Ours, or package.module:name of a plug-in."""
    what = "a function (cost model, experts per layer, K) -> Pricing"
    return named("cost", name, COSTS, callable, what)
