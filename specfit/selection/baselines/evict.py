"""A prefix of the tree by path score, as long as it pays by node count."""

from __future__ import annotations

import numpy as np

from specfit.base.interfaces import Selector
from specfit.base.types import PROBABILITY_ONE, DraftTree, Routes, Selection, SpecfitError
from specfit.selection.forced_trees import most_probable
from specfit.selection.mean_by_size import BySize


class Evict(Selector):
    """`evict`: the k most probable nodes, k = argmax E[tokens](k) / C(k).

    EVICT (arXiv 2605.00342) cuts the drafted tree, ordered by the drafter's scores, to the prefix
    whose expected gain per verification cost is largest. The cost is profiled offline by token
    count alone: in its setting all experts are on the device. No code was found.

    *Ours*: E[tokens](k) is 1, the target's own token, plus the sum of path probabilities as they
    are; C(k) is the mean time of the calibration probes that verified the k most probable nodes, so
    that this rule and `specfit` are calibrated on the same cycles; k is 0 to `selector.k`; ties:
    fewer nodes. C(k) holds the probes' selection time, which this rule, reading no routes, is not
    billed in a run. The whole pool is drafted; with `adaptive_depth`, which EVICT does not
    propose, drafting stops as for `specfit`, so that the two costs can be compared at like depth.
    """

    drafts = True
    reads_routes = False

    def __init__(
        self, sizes: BySize, k: int = 7, adaptive_depth: bool = False, name: str = "evict"
    ) -> None:
        if k > sizes.k:
            raise SpecfitError(
                f"selector.k is {k} but the calibration timed at most {sizes.k} nodes; calibrate "
                "again with this selector.k"
            )
        self.name = name
        self.k = k
        self.adaptive_depth = adaptive_depth
        self._times_ns = sizes.times_ns

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        most = min(self.k, len(tree))
        probs = np.sort(tree.path_probs)[::-1][:most].astype(np.int64)
        rewards = PROBABILITY_ONE + np.concatenate([[0], np.cumsum(probs)])
        size = int(np.argmax(rewards / self._times_ns[: most + 1]))
        return Selection(
            most_probable(tree, size),
            int(rewards[size]),
            round(float(self._times_ns[size])),
            searched_subtrees=most + 1,
        )
