"""Calibration probe trees (app. B): the k most probable nodes, and the least expert union."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from specfit.base.types import ROOT, DraftTree, SpecfitError
from specfit.selection.bitmaps import Bits


def most_probable(tree: DraftTree, size: int) -> tuple[int, ...]:
    """The `size` most probable nodes, ascending; equal probabilities: lower index first.

    Ancestor-closed by construction: a child is no more probable than its parent and has a higher
    index, so no child enters before its parent.
    """
    order = np.argsort(-tree.path_probs, kind="stable")
    return tuple(sorted(order[:size].tolist()))


def legal_subtrees(tree: DraftTree, size: int) -> Iterator[tuple[int, ...]]:
    """Every ancestor-closed set of exactly `size` nodes once, in lexicographic order."""
    parents = tree.parents.tolist()

    def grow(chosen: tuple[int, ...], start: int) -> Iterator[tuple[int, ...]]:
        if len(chosen) == size:
            yield chosen
            return
        for node in range(start, len(parents)):
            if parents[node] == ROOT or parents[node] in chosen:
                yield from grow((*chosen, node), node + 1)

    return grow((), 0)


def minimum_union(tree: DraftTree, rows: Bits, size: int) -> tuple[int, ...]:
    """The legal tree of exactly `size` nodes with the least demand F.

    Ties: higher reward, then lexicographically lowest indices. `rows` [1 + N, M]. Off the clock,
    so plain numpy over the few hundred trees of a pool.
    """
    if size > len(tree):
        raise SpecfitError(
            f"a probe of {size} nodes needs a pool of {size}, and this one drafted {len(tree)}"
        )

    def rank(nodes: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        chosen = np.array(nodes, dtype=np.int64)
        union = np.bitwise_or.reduce(rows[[0, *(chosen + 1)]], axis=0)
        return int(np.bitwise_count(union).sum()), -int(tree.path_probs[chosen].sum()), nodes

    return min(map(rank, legal_subtrees(tree, size)))[2]
