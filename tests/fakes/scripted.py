"""A target and a drafter that look everything up in tables: no floats, nothing to approximate.

A text is Markov: the target's next token and the routes depend on the last token alone, the head's
two guesses likewise. A feature is the token it was made from, so that wrong pairing shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from specfit.base.interfaces import Prefilled, Verified
from specfit.base.types import (
    PROBABILITY_ONE,
    ROOT,
    DraftTree,
    ForwardTrace,
    IntArray,
    Routes,
    Selection,
)
from specfit.experts.cache import ExpertCache

LAYERS, EXPERTS, TOP_K = 2, 16, 2
EXPERT_BYTES = 1000
NOWHERE = 99
"""What the target says after a token its table does not name."""
WRONG = (97, 98)
"""What the head drafts after a token its table does not name; the target never says them."""
SHARES = (5, 2)
"""Eighths of the parent's probability that the first and the second guess get."""

RouteTable = Mapping[int, Sequence[Sequence[int]]]  # token -> [L][k]


def chain(*tokens: int) -> dict[int, int]:
    """The target's table for one text."""
    assert len(set(tokens[:-1])) == len(tokens) - 1, "a token has one successor"
    return dict(pairwise(tokens))


def default_route(token: int) -> list[list[int]]:
    """Neighbours share one expert of layer 0; layer 1 tells even from odd."""
    return [[token % EXPERTS, (token + 1) % EXPERTS], [token % 2, 2 + token % 3]]


class ScriptedTarget:
    expert_bytes = EXPERT_BYTES

    def __init__(
        self,
        next_token: Mapping[int, int],
        slots: int = EXPERTS,
        routes: RouteTable | None = None,
        chunk: int | None = None,
    ) -> None:
        self._next, self._routes, self._chunk = next_token, routes or {}, chunk
        self.cache = ExpertCache(LAYERS, EXPERTS, slots)
        self.kv: list[int] = []
        self._scratch: list[int] = []
        self.observed: list[int] = []  # nodes asked for, call by call

    @property
    def length(self) -> int:
        return len(self.kv)

    def begin(self) -> None:
        self.truncate(0)

    def truncate(self, length: int) -> None:
        assert length <= len(self.kv)
        del self.kv[length:]
        self._scratch = []

    def residency(self) -> dict[str, np.ndarray]:
        return self.cache.state()

    def restore(self, residency: dict[str, np.ndarray]) -> None:
        self.cache.load_state(residency)

    def prefill(self, prompt_ids: IntArray) -> Prefilled:
        tokens = [int(token) for token in prompt_ids]
        step = self._chunk or len(tokens)
        traces = []
        for start in range(0, len(tokens), step):
            chunk = tokens[start : start + step]
            traces.append(self._forward(chunk, len(chunk), is_prefill=True))
            self.kv += chunk
        routes = self._rows(tokens)
        return Prefilled(self._after(tokens[-1]), np.array(tokens), routes, traces)

    def verify(self, root_token: int, tree: DraftTree, selection: Selection) -> Verified:
        tokens = [root_token, *tree.tokens[list(selection.nodes)].tolist()]
        trace = self._forward(tokens, len(selection.nodes), is_prefill=False)
        self._scratch = tokens
        after = np.array([self._after(token) for token in tokens])
        return Verified(after, np.array(tokens), self._rows(tokens), trace)

    def keep(self, rows: Sequence[int]) -> None:
        assert list(rows) == sorted(set(rows)), "ascending rows"
        self.kv += [self._scratch[row] for row in rows]
        self._scratch = []

    def observe(self, root_token: int, tree: DraftTree, seen: int) -> Routes:
        self.observed.append(len(tree) - seen)
        rows = self._rows([root_token, *tree.tokens.tolist()])
        return Routes(rows[0], rows[1 + seen :])

    def _after(self, token: int) -> int:
        return self._next.get(token, NOWHERE)

    def _rows(self, tokens: Sequence[int]) -> np.ndarray:
        """[T, L, k]"""
        rows = [self._routes.get(token) or default_route(token) for token in tokens]
        return np.array(rows, dtype=np.int64)

    def _forward(self, tokens: Sequence[int], billed: int, is_prefill: bool) -> ForwardTrace:
        return self.cache.replay(self._rows(tokens).swapaxes(0, 1), billed, is_prefill)


class ScriptedDrafter:
    """Two guesses after every one of the two likeliest nodes of the newest level."""

    def __init__(self, guesses: Mapping[int, tuple[int, int]], max_depth: int = 3) -> None:
        self._guesses, self.max_depth = guesses, max_depth
        self.begin()

    def begin(self) -> None:
        self.rows: list[tuple[int, int]] = []  # (x_{t+1}, feature of x_t)

    @property
    def length(self) -> int:
        return len(self.rows)

    def truncate(self, length: int) -> None:
        assert length <= len(self.rows)
        del self.rows[length:]

    def extend(self, tokens: IntArray, features: Any) -> None:
        self.rows += zip(np.asarray(tokens).tolist(), features.tolist(), strict=True)

    def grow(self, tree: DraftTree) -> DraftTree:
        tokens: list[int] = []
        parents: list[int] = []
        probs: list[int] = []
        for parent in self._beam(tree):
            at, above = self.rows[-1][0], PROBABILITY_ONE
            if parent != ROOT:
                at, above = int(tree.tokens[parent]), int(tree.path_probs[parent])
            tokens += self._guesses.get(at, WRONG)
            parents += [parent, parent]
            probs += [above * share // 8 for share in SHARES]
        return tree.grown(np.array(tokens), np.array(parents), np.array(probs))

    def _beam(self, tree: DraftTree) -> list[int]:
        if len(tree) == 0:
            return [ROOT]
        newest = np.flatnonzero(tree.depths == tree.levels)
        best = np.argsort(-tree.path_probs[newest], kind="stable")[:2]
        return sorted(newest[best].tolist())
