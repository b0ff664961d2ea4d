"""Greedy probability over marginal new experts."""

from __future__ import annotations

import numpy as np

from specfit.base.interfaces import Selector
from specfit.base.types import ROOT, DraftTree, Routes, Selection
from specfit.selection.bitmaps import AtlasBits

EPSILON_EXPERTS = 1
"""What a node costs beyond its new experts: a node that needs none is not free."""


class EcoSpec(Selector):
    """`ecospec`: node by node, the one of highest probability per newly needed expert.

    EcoSpec (arXiv 2607.12696) adds to a set S the token t of largest
    P(t) / (experts of t that S does not use + eps), from a top-2 tree and with a trained predictor
    of experts; its setting has every expert on the device. No code was public, and we know no more
    of the rule than this.

    *Ours*: P is the path probability; S starts as the root; only children of chosen nodes are
    candidates, since others cannot be accepted; eps is one expert; it stops at K nodes, for it has
    no estimate of time that could stop it earlier; ties fall to the lower index. Experts come from
    the run's route source, counted over all layers, resident or not. The whole pool is drafted.
    """

    drafts = True
    reads_routes = True
    adaptive_depth = False

    def __init__(self, num_experts: int, k: int = 7, name: str = "ecospec") -> None:
        self.name = name
        self.k = k
        self._atlas = AtlasBits(num_experts)

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        assert routes is not None and len(routes) == len(tree), "one route per pool node"
        rows = self._atlas.load(routes)
        parents, probs = tree.parents.tolist(), tree.path_probs.tolist()
        chosen, union = {ROOT}, rows[0].copy()
        for _ in range(min(self.k, len(tree))):
            open_nodes = [
                node
                for node, parent in enumerate(parents)
                if parent in chosen and node not in chosen
            ]
            fresh = rows[1 + np.array(open_nodes)] & ~union
            new = np.bitwise_count(fresh).sum(axis=1, dtype=np.int64).tolist()
            best = 0
            for i in range(1, len(open_nodes)):  # p / (new + eps) compared in integers
                left = probs[open_nodes[i]] * (new[best] + EPSILON_EXPERTS)
                if left > probs[open_nodes[best]] * (new[i] + EPSILON_EXPERTS):
                    best = i
            chosen.add(open_nodes[best])
            union |= rows[1 + open_nodes[best]]
        return Selection(tuple(sorted(chosen - {ROOT})))
