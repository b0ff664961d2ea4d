"""`cost=union`: b_k + beta F, F the distinct experts of the selection and the root (sec. 3.2)."""

from __future__ import annotations

from specfit.base.types import DraftTree, Routes
from specfit.selection.bitmaps import AtlasBits
from specfit.selection.cost import CostModel
from specfit.selection.search import Found, SubtreeSearch, warm_up


class Union:
    """Bitmaps, and the branch and bound over them. Every call converts the whole atlas: within a
    cycle the answer depends on the arguments alone, and finding out safely which rows are new would
    read as much as converting them does."""

    def __init__(self, cost: CostModel, num_experts: int, k: int) -> None:
        self._atlas = AtlasBits(num_experts)
        self._search = SubtreeSearch(cost, k)
        warm_up()

    def best(self, tree: DraftTree, routes: Routes, price: float | None = None) -> Found:
        return self._search.best(tree, self._atlas.load(routes), price)
