"""The ratio rule, node by node instead of exactly."""

from __future__ import annotations

from functools import cache

import numpy as np

from specfit.base.interfaces import Selector
from specfit.base.types import DraftTree, Routes, Selection, SpecfitError
from specfit.selection.bitmaps import AtlasBits, plain
from specfit.selection.cost import CostModel, Rule
from specfit.selection.greedy import greedy_subtree


class RatioGreedy(Selector):
    """`greedy`: from the root alone, add the node that leaves the highest R / T, up to K; keep the
    best subtree met.

    Nobody's method: what one would write instead of the exact search of SpecFit (arXiv
    2610.15417), with its cost, reward and depth rule, to show what exactness is worth. Where a node
    pays only together with a later one, it may have gone another way.
    """

    drafts = True
    reads_routes = True

    def __init__(
        self,
        cost: CostModel,
        num_experts: int,
        k: int = 7,
        adaptive_depth: bool = True,
        name: str = "greedy",
    ) -> None:
        if k > cost.k:
            raise SpecfitError(
                f"selector.k is {k} but the calibration prices at most {cost.k} nodes; "
                "calibrate again with this selector.k"
            )
        self.name = name
        self.k = k
        self.adaptive_depth = adaptive_depth
        self._cost = cost
        self._atlas = AtlasBits(num_experts)
        self._path = np.empty(k, dtype=np.int64)
        _warm_up()

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        assert routes is not None and len(routes) == len(tree), "one route per pool node"
        rows = self._atlas.load(routes)
        limit = min(self.k, len(tree))
        size, reward, demand, _ = greedy_subtree(
            Rule(True, 0.0, self._cost.intercepts_ns, self._cost.expert_ns),
            limit,
            plain(tree.parents, np.int64),
            plain(tree.path_probs, np.int64),
            rows,
            np.empty((limit + 1, rows.shape[1]), dtype=np.uint64),
            np.empty(len(tree) + 1, dtype=np.bool_),
            self._path,
        )
        nodes = tuple(sorted(self._path[:size].tolist()))
        return Selection(nodes, int(reward), round(self._cost.predict_ns(size, int(demand))))


@cache
def _warm_up() -> None:
    """Compile, or load from numba's cache: no timed request ever does."""
    one, rows = np.ones(1, dtype=np.int64), np.zeros((2, 1), dtype=np.uint64)
    rule = Rule(True, 0.0, np.ones(2), 1.0)
    member = np.empty(2, dtype=np.bool_)
    greedy_subtree(rule, 1, -one, one, rows, rows.copy(), member, one.copy())
