"""The pool as it is drafted, nothing left out."""

from __future__ import annotations

from specfit.base.interfaces import Selector
from specfit.base.types import DraftTree, Routes, Selection, SpecfitError


class WholePool(Selector):
    """`eagle3_full`: every drafted node is verified; what a tree costs without selection.

    EAGLE-3 (arXiv 2503.01840) keeps the nodes of highest path probability up to a token budget;
    this is that rule with a budget of the whole pool. K is the pool's size, as with `closure`.
    """

    drafts = True
    reads_routes = False
    adaptive_depth = False

    def __init__(self, k: int, name: str = "eagle3_full") -> None:
        self.name = name
        self.k = k

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        if len(tree) > self.k:
            raise SpecfitError(
                f"selector={self.name} verifies the whole pool, which has {len(tree)} nodes, and "
                f"selector.k is {self.k}; use selector.k={len(tree)}"
            )
        return Selection(tuple(range(len(tree))))
