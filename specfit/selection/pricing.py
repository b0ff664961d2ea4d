"""The seam between a selection rule and a form of cost."""

from __future__ import annotations

from typing import Protocol

from specfit.base.types import DraftTree, Routes
from specfit.selection.search import Found


class Pricing(Protocol):
    """One form of T(S), and the exact search under it. Not safe for two threads at once."""

    def best(self, tree: DraftTree, routes: Routes, price: float | None = None) -> Found:
        """The legal subtree of highest R / T; with a price, of highest R - price x T."""
        ...
