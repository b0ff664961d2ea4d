"""A cost per drafted level, for a selection whose T is to be of the cycle as it would end now.

The fit is of full-depth cycles (app. B): b_k holds the drafting of every level, whatever has been
drafted. With c per level, the T of a cycle that ends after d of D levels is

    T_d(S) = b_|S| - c (D - d) + beta F(S)

A constant for all selections of one pool, so it moves the optimum of R / T, towards fewer nodes
while the pool is shallow, and not that of R - lambda T. At d = D it is the paper's T.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from specfit.selection.cost import CostModel


@dataclass(frozen=True)
class LevelCost:
    ns: float
    levels: int  # of a full pool

    def spared(self, cost: CostModel, drafted: int) -> CostModel:
        """Of a cycle that ends after `drafted` levels; no intercept below 0."""
        left = max(self.levels - drafted, 0)
        return replace(cost, intercepts_ns=np.maximum(cost.intercepts_ns - left * self.ns, 0.0))
