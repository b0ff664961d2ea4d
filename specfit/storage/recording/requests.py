"""What a recording holds of one request, in memory: plain arrays, no table.

Shapes: n positions, N nodes of one position's pool (R = sum of N), L layers, k routed experts,
P prompt tokens, F width of the head's features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree, IntArray, Request, Routes

Bytes = NDArray[np.uint8]

NOWHERE = -1
"""What the target says after a node that it rejects: matches no token."""


@dataclass(frozen=True, eq=False)
class Pools:
    """The full-depth pool of every position 0 .. n-1 of one request, side by side."""

    starts: IntArray  # [n + 1], nodes of position i are starts[i] .. starts[i + 1]
    tokens: IntArray  # [R]
    parents: IntArray  # [R], index within the position's pool, -1 the root
    path_probs: IntArray  # [R], units of 2**-20
    accepted: NDArray[np.bool_]  # [R], the node's path is what the target continues with
    routes: Bytes  # [R + n, L, k]; position i begins with its root at starts[i] + i
    features: NDArray[np.float16] | None = None  # [sum of U, F], the head's at U distinct parents

    def __post_init__(self) -> None:
        for name in ("tokens", "parents", "path_probs"):
            object.__setattr__(self, name, getattr(self, name).astype(np.int64))
        nodes = int(self.starts[-1])
        flat = (self.tokens, self.parents, self.path_probs, self.accepted)
        assert all(len(array) == nodes for array in flat), "one entry per node"
        assert len(self.routes) == nodes + len(self), "one route per node and root"
        parents = (
            [len(self.expanded(i)) for i in range(len(self))] if self.features is not None else []
        )
        assert self.features is None or len(self.features) == sum(parents), "one row per parent"

    def __len__(self) -> int:
        return len(self.starts) - 1

    def nodes(self, position: int) -> slice:
        return slice(int(self.starts[position]), int(self.starts[position + 1]))

    def expanded(self, position: int) -> IntArray:
        """[U]: the distinct parents of the pool's nodes, root (-1) first; `features` has a row for
        each of them, position after position."""
        return np.unique(self.parents[self.nodes(position)])

    @cached_property
    def depths(self) -> IntArray:
        """[R], 1 for children of the root. The invariants of every pool are checked here, once."""
        where = np.repeat(self.starts[:-1], np.diff(self.starts))
        inner = np.flatnonzero(self.parents != ROOT)
        above = self.parents[inner] + where[inner]
        assert bool(np.all((self.parents >= ROOT) & (self.parents + where < np.arange(len(where)))))
        assert bool(np.all((self.path_probs >= 0) & (self.path_probs <= PROBABILITY_ONE)))
        assert bool(np.all(self.path_probs[inner] <= self.path_probs[above])), "a child exceeds"
        depths = np.ones(len(where), dtype=np.int64)
        for _ in range(int(np.diff(self.starts).max(initial=0))):
            before = depths.copy()
            depths[inner] = depths[above] + 1
            if bool(np.array_equal(depths, before)):
                break
        same = where[1:] == where[:-1]
        assert bool(np.all(np.diff(depths)[same] >= 0)), "nodes are in level order"
        return depths

    @cached_property
    def owners(self) -> IntArray:
        """[R], the position of each node."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @cached_property
    def _level_ends(self) -> list[list[int]]:
        """Nodes of each position up to the end of level 1, 2, .., as deep as the deepest pool."""
        levels = int(self.depths.max(initial=1))
        sizes = np.bincount(self.owners * levels + self.depths - 1, minlength=len(self) * levels)
        ends: list[list[int]] = np.cumsum(sizes.reshape(len(self), levels), axis=1).tolist()
        return ends

    @cached_property
    def _grown(self) -> dict[int, list[DraftTree]]:
        return {}

    def grown(self, position: int) -> list[DraftTree]:
        """The pool after level 1, 2, ..; the last is the whole. Made once and kept."""
        if position not in self._grown:
            at = self.nodes(position)
            columns = self.tokens[at], self.parents[at], self.depths[at], self.path_probs[at]
            ends = self._level_ends[position][: columns[2][-1]]
            trees = [DraftTree.checked(*(column[:end] for column in columns)) for end in ends]
            self._grown[position] = trees
        return self._grown[position]

    def tree(self, position: int) -> DraftTree:
        return self.grown(position)[-1]

    def with_routes(self, routes: Bytes) -> Pools:
        """The same trees, routed otherwise; what was derived of the trees is shared."""
        other = replace(self, routes=routes, features=None)
        for name in ("depths", "owners", "_level_ends", "_grown"):
            other.__dict__[name] = getattr(self, name)
        return other

    def rows(self, position: int) -> slice:
        """Of `routes`: the position's root, then its nodes."""
        at = self.nodes(position)
        return slice(at.start + position, at.stop + position + 1)

    def atlas(self, position: int) -> Bytes:
        """[1 + N, L, k] of the root and every node."""
        return self.routes[self.rows(position)]


@dataclass(frozen=True, eq=False)
class RecordedRequest:
    """Everything a replay of one request needs; a failed one has a status and nothing else."""

    row: int
    request_id: str
    example_digest: str
    status: str
    request: Request | None = None
    output_ids: IntArray | None = None
    stop_reason: str | None = None
    output_text: str | None = None
    score: float | None = None
    prompt_routes: Bytes | None = None  # [P, L, k]
    pools: Pools | None = None
    score_control: float | None = None

    def __post_init__(self) -> None:
        assert (self.status == "ok") == (self.request is not None), "a failed request has nothing"

    @property
    def positions(self) -> int:
        return 0 if self.pools is None else len(self.pools)

    @cached_property
    def next_tokens(self) -> IntArray:
        """[R + n], row by row of the routes: the target's token after each root and accepted node.

        A position's accepted nodes are a path, one node a level. NOWHERE after other nodes, and
        behind the end of the output.
        """
        pools, output_ids = self.pools, self.output_ids
        assert pools is not None and output_ids is not None, "a failed request says nothing"
        text = np.append(output_ids, NOWHERE)
        said = np.full(len(pools.routes), NOWHERE, dtype=np.int64)
        positions, nodes = np.arange(len(pools)), np.flatnonzero(pools.accepted)
        said[pools.starts[:-1] + positions] = text[positions + 1]
        owners = pools.owners[nodes]
        after = np.minimum(owners + pools.depths[nodes] + 1, len(output_ids))
        said[nodes + owners + 1] = text[after]
        return said


def accepted_nodes(tree: DraftTree, continuation: Sequence[int]) -> NDArray[np.bool_]:
    """[N]: the nodes whose path is a prefix of `continuation`, what the target says after the root.

    Verified whole, the pool would commit exactly these; of a selection, those that it contains.
    """
    accepted = np.zeros(len(tree), dtype=np.bool_)
    at = ROOT
    for token in continuation:
        match = np.flatnonzero((tree.parents == at) & (tree.tokens == token))
        if len(match) == 0:
            break
        at = int(match[0])
        accepted[at] = True
    return accepted


def pools_of(
    trees: Sequence[DraftTree],
    routes: Sequence[Routes],
    output_ids: Sequence[int],
    features: Sequence[NDArray[Any]] | None = None,
) -> Pools:
    """Positions 0, 1, .. of a request whose greedy output is `output_ids`; features [U, F] each."""
    assert len(trees) == len(routes) > 0
    marks = [
        accepted_nodes(tree, output_ids[position + 1 :]) for position, tree in enumerate(trees)
    ]
    rows = [part for atlas in routes for part in (atlas.root[None], atlas.nodes)]
    joined = np.concatenate(rows)
    assert joined.min() >= 0 and joined.max() < 256, "an expert id is one byte"
    return Pools(
        np.concatenate([[0], np.cumsum([len(tree) for tree in trees])]).astype(np.int64),
        np.concatenate([tree.tokens for tree in trees]),
        np.concatenate([tree.parents for tree in trees]),
        np.concatenate([tree.path_probs for tree in trees]),
        np.concatenate(marks),
        joined.astype(np.uint8),
        None if features is None else np.concatenate(features).astype(np.float16),
    )
