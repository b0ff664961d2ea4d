"""Greedy acceptance and stopping: pure functions on token ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specfit.base.types import (
    NOT_A_TOKEN,
    ROOT,
    DraftTree,
    IntArray,
    RequestError,
    Routes,
    Selection,
)


def accepted_rows(tree: DraftTree, selection: Selection, next_tokens: IntArray) -> list[int]:
    """Rows of the longest verified path the target agrees with, root row 0 first.

    `next_tokens[row]` is the target's argmax after the row (0 = root, i = selection.nodes[i - 1]).
    The tokens committed are `next_tokens[rows]`: the accepted drafts, then the bonus.
    """
    parents, tokens, said = tree.parents.tolist(), tree.tokens.tolist(), next_tokens.tolist()
    row_of = {
        (parents[node], tokens[node]): row for row, node in enumerate(selection.nodes, start=1)
    }
    assert len(row_of) == len(selection.nodes), "children of one parent are distinct tokens"
    rows, at = [0], ROOT
    while (row := row_of.get((at, said[rows[-1]]))) is not None:
        rows.append(row)
        at = selection.nodes[row - 1]
    return rows


def refuse_no_token(tokens: Sequence[int], fault: str | None) -> None:
    """Raises RequestError where the target's logits gave no token that is to be committed."""
    if fault is not None and NOT_A_TOKEN in tokens:
        raise RequestError(fault)


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
    told = np.concatenate([routes.root[None], routes.nodes.take(selection.nodes, axis=0)])
    if bool((told == routed).all()):  # nearly always, and quick to see
        return 0
    named = (routed[..., :, None] == told[..., None, :]).any(axis=-1)
    return int(named.size - named.sum())
