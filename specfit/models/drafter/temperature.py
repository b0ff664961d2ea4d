"""`drafter.temperature`: path probabilities to the power 1 / T, for a head that is over- or unsure.

One number for all depths. Order, parents and the pool stay: the head goes on drafting from its own
probabilities, and only who selects sees the others. Rounded once, as all path probabilities are;
a child is still no more probable than its parent.
"""

from __future__ import annotations

import numpy as np

from specfit.base.interfaces import Drafter, Features
from specfit.base.types import PROBABILITY_ONE, DraftTree, IntArray, SpecfitError


class TemperedDrafter(Drafter):
    def __init__(self, drafter: Drafter, temperature: float) -> None:
        if not temperature > 0:
            raise SpecfitError(f"drafter.temperature is {temperature}; it must be above 0")
        self._drafter, self._temperature = drafter, temperature
        self.max_depth = drafter.max_depth
        self._own = DraftTree.empty()  # the pool so far, as the head sees it

    @property
    def length(self) -> int:
        return self._drafter.length

    def begin(self) -> None:
        self._drafter.begin()

    def truncate(self, length: int) -> None:
        self._drafter.truncate(length)

    def extend(self, tokens: IntArray, features: Features) -> None:
        self._drafter.extend(tokens, features)

    def grow(self, tree: DraftTree) -> DraftTree:
        self._own = self._drafter.grow(self._own if len(tree) else DraftTree.empty())
        own = self._own
        return DraftTree(
            own.tokens, own.parents, own.depths, tempered(own.path_probs, self._temperature)
        )


def tempered(path_probs: IntArray, temperature: float) -> IntArray:
    """In units of 2**-20."""
    shares = (path_probs / PROBABILITY_ONE) ** (1.0 / temperature)
    return np.rint(shares * PROBABILITY_ONE).astype(np.int64)
