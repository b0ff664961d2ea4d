"""Greedy acceptance and stopping: pure functions on token ids."""

from __future__ import annotations

import numpy as np

from specfit.core import ROOT, DraftTree, IntArray, Routes, Selection


def accepted_rows(tree: DraftTree, selection: Selection, next_tokens: IntArray) -> list[int]:
    """Rows of the longest verified path the target agrees with, root row 0 first.

    `next_tokens[row]` is the target's argmax after the row (0 = root, i = selection.nodes[i - 1]).
    The tokens committed are `next_tokens[rows]`: the accepted drafts, then the bonus.
    """
    row_of = {node: row for row, node in enumerate(selection.nodes, start=1)}
    rows, at = [0], ROOT
    while True:
        wanted = int(next_tokens[rows[-1]])
        match = [
            node
            for node in selection.nodes
            if int(tree.parents[node]) == at and int(tree.tokens[node]) == wanted
        ]
        if not match:
            return rows
        assert len(match) == 1, "children of one parent are distinct tokens"
        at = match[0]
        rows.append(row_of[at])


def cut_at_stop(
    tokens: list[int], stop_ids: frozenset[int], room: int
) -> tuple[list[int], str | None]:
    """The tokens that are kept and why decoding stops; the stop token itself is kept."""
    for count, token in enumerate(tokens[:room], start=1):
        if token in stop_ids:
            return tokens[:count], "eos"
    return (tokens[:room], "length") if len(tokens) >= room else (tokens, None)


def count_mismatches(routes: Routes, selection: Selection, routed: np.ndarray) -> int:
    """Experts the forward routed to, over rows and layers, that the atlas had not named.

    `routed` is [1 + |S|, L, k]. Differences are near-ties: the atlas is another forward.
    """
    told = np.concatenate([routes.root[None], routes.nodes[list(selection.nodes)]])
    if np.array_equal(told, routed):  # nearly always, and quick to see
        return 0
    named = (routed[..., :, None] == told[..., None, :]).any(axis=-1)
    return int(named.size - named.sum())
