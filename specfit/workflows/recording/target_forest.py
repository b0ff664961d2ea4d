"""The pools of a known text as one forest: what two positions draft alike is routed once.

A node's routes depend on the tokens up to it alone. A node that drafts what the text says is a row
of the text, and nodes of neighbouring positions that end the same text are one node:

    text    a b c d e              row     0 1 2 3 4
    pool of b: c, then d or x      place   2, 3 and the forest's first
    pool of c: d or x, then e      place   3, that same first, and 4

Places 0 .. T-1 are rows of the text; place T + j is node j of the forest, which is also its column
in a KV cache that holds the text. Letters: T rows of text, U nodes of the forest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from specfit.base.types import ROOT, DraftTree, IntArray


@dataclass(frozen=True, eq=False)
class Forest:
    """Nodes lie side by side by the row they hang from, each behind its parent."""

    tokens: IntArray  # [U]
    parents: IntArray  # [U], ROOT where the node's parent is the row it hangs from
    rows: IntArray  # [U], the last row of the text on the node's path; ascending
    depths: IntArray  # [U], 1 for children of that row
    places: list[IntArray]  # of each pool's nodes [N]

    def __len__(self) -> int:
        return len(self.tokens)

    def groups(self, most: int) -> list[slice]:
        """Neighbouring rows whose nodes together are `most` at most (or one row)."""
        borders = [0, *(np.flatnonzero(np.diff(self.rows)) + 1).tolist(), len(self)]
        result, begin = [], 0
        for border, after in pairwise(borders):
            if after - begin > most and border > begin:
                result.append(slice(begin, border))
                begin = border
        return [*result, slice(begin, len(self))] if len(self) else []

    def mask(self, group: slice, length: int) -> NDArray[np.bool_]:
        """[G, length + G]: a node sees the text up to its row, its ancestors and itself."""
        own = np.eye(group.stop - group.start, dtype=np.bool_)
        for node, parent in enumerate(self.parents[group].tolist()):
            if parent != ROOT:
                own[node] |= own[parent - group.start]
        text = np.arange(length) <= self.rows[group, None]
        return np.concatenate([text, own], axis=1)


def pack(text: IntArray, trees: Sequence[DraftTree]) -> Forest:
    """`trees` are the pools of the last rows of `text` [T], one a row."""
    said, length = text.tolist(), len(text)
    seen: dict[tuple[int, int], int] = {}  # (place above, token) -> place
    places: list[IntArray] = []
    for row, tree in enumerate(trees, start=length - len(trees)):
        own: list[int] = []
        for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
            above = row if parent == ROOT else own[parent]
            if above + 1 < length and said[above + 1] == token:
                own.append(above + 1)
            else:
                own.append(seen.setdefault((above, token), length + len(seen)))
        places.append(np.array(own, dtype=np.int64))
    return _in_order(length, list(seen), places)


def _in_order(length: int, nodes: list[tuple[int, int]], places: list[IntArray]) -> Forest:
    """Nodes (place above, token) in the order they were met: by row instead, and renamed so."""
    rows: list[int] = []
    depths: list[int] = []
    for above, _ in nodes:
        hangs = above < length
        rows.append(above if hangs else rows[above - length])
        depths.append(1 if hangs else depths[above - length] + 1)
    order = np.argsort(np.array(rows, dtype=np.int64), kind="stable")
    renamed = np.empty(length + len(order), dtype=np.int64)
    renamed[:length], renamed[length + order] = np.arange(length), length + np.arange(len(order))
    above, tokens = np.array(nodes, dtype=np.int64).reshape(-1, 2)[order].T
    parents = np.where(above < length, ROOT, renamed[above] - length)
    in_rows, in_depths = (np.array(column, dtype=np.int64)[order] for column in (rows, depths))
    return Forest(tokens, parents, in_rows, in_depths, [renamed[place] for place in places])
