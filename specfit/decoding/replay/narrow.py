"""The best N nodes of every recorded pool, as if no more had been drafted: for sweeps of width."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from specfit.base.types import ROOT, IntArray
from specfit.decoding.cycle import Drafted
from specfit.decoding.replay.parts import RecordedDrafter
from specfit.decoding.replay.playback import Playback
from specfit.storage.recording.requests import Pools, RecordedRequest


def narrowed(recorded: RecordedRequest, nodes: int) -> RecordedRequest:
    """Every pool without all but its `nodes` most probable; equal probabilities: lower index first.

    What is left is a tree: no child is more probable than its parent.
    """
    assert nodes >= 1, "a pool keeps a node"
    pools = recorded.pools
    return recorded if pools is None else replace(recorded, pools=_best(pools, nodes))


def _best(pools: Pools, nodes: int) -> Pools:
    kept, parents, starts = [], [], [0]
    for position in range(len(pools)):
        at = pools.nodes(position)
        order = np.argsort(-pools.path_probs[at], kind="stable")
        best = np.sort(order[:nodes])
        number = np.full(at.stop - at.start, ROOT, dtype=np.int64)
        number[best] = np.arange(len(best))
        above = pools.parents[at][best]
        parents.append(np.where(above == ROOT, ROOT, number[above]))
        kept.append(at.start + best)
        starts.append(starts[-1] + len(best))
    rows = np.concatenate(kept)
    owners = np.repeat(np.arange(len(pools)), np.diff(starts))
    roots = pools.starts[:-1] + np.arange(len(pools))
    routes = np.sort(np.concatenate([roots, rows + owners + 1]))  # a pool's root before its nodes
    return Pools(
        np.array(starts, dtype=np.int64),
        pools.tokens[rows],
        np.concatenate(parents),
        pools.path_probs[rows],
        pools.accepted[rows],
        pools.routes[routes],
    )


class NarrowDrafter(RecordedDrafter):
    """Uncovers narrowed pools, each to its own last level.

    That a deeper level would hold none of the best nodes is known only once it has been drafted;
    a comparison of widths adds the time of `unseen_levels`.
    """

    def __init__(self, playback: Playback, max_depth: int) -> None:
        super().__init__(playback, max_depth)
        self._full_depth = max_depth

    def extend(self, tokens: IntArray, features: Any) -> None:
        super().extend(tokens, features)
        if self.length >= self._playback.prompt_tokens:  # else the head's own prefill
            self._playback.seek(self.length - self._playback.prompt_tokens)
            self.max_depth = min(self._full_depth, len(self._playback.grown))


def unseen_levels(drafted: Drafted, full_depth: int, adaptive: bool) -> int:
    """Levels that a live run would draft in vain: one if the selection holds a node of the newest
    level, all that are left if every level is drafted anyway."""
    if adaptive and not drafted.takes_newest_level:
        return 0
    left = full_depth - drafted.tree.levels
    return min(left, 1) if adaptive else left
