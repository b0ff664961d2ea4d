"""Routes drawn from a Markov chain, for a model whose router was never trained.

A random router sends 8 rows to some 50 experts of 128 where real text needs 27, and a cache never
hits. Here each of a row's k experts stays that of the row before with a layer's *persistence*,
else it is drawn from the layer's popularity, rank r with weight (r + 1) ** -skew. Both are fitted
to real traces (`growth.py`). What a row draws depends on (seed, the tokens up to it, layer)
alone, so atlas and verify agree and a draft tree's siblings share their parent's experts as
tokens of a text do.

Letters: T rows, C columns (rows of the KV cache), L layers, E experts, k routed experts per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.hashing import mix, unit
from specfit.base.types import IntArray
from specfit.models.routes.union_growth import PERSISTENCE, SKEW


@njit(cache=True)
def _draw(
    parent: IntArray,
    key: np.uint64,
    persistence: float,
    ranks: NDArray[np.float64],
    ids: IntArray,
    out: IntArray,
    taken: NDArray[np.bool_],
) -> None:
    """One row of one layer: `parent[k]` (-1: none) -> `out[k]`; `ranks[E]` cumulative weights,
    `ids[E]` the expert at each rank, `taken[E]` scratch."""
    taken[:] = False
    k = parent.shape[0]
    for j in range(k):
        stays = parent[j] >= 0 and unit(mix(key, j)) < persistence
        out[j] = parent[j] if stays else -1
        if stays:
            taken[parent[j]] = True
    draws = k
    for j in range(k):
        while out[j] < 0:
            rank = np.searchsorted(ranks, unit(mix(key, draws)) * ranks[-1], side="right")
            draws += 1
            expert = ids[rank]
            if not taken[expert]:
                taken[expert] = True
                out[j] = expert


@njit(cache=True)
def advance(
    tokens: IntArray,
    parents: IntArray,
    start: int,
    seed: int,
    persistence: NDArray[np.float64],
    ranks: NDArray[np.float64],
    ids: IntArray,
    keys: NDArray[np.uint64],
    states: IntArray,
) -> None:
    """Fill columns start .. start + T - 1 of `keys[C]` and `states[C, L, k]`.

    `parents[T]` are columns (-1: the text begins), each before its row's own.
    """
    layers, k = states.shape[1], states.shape[2]
    taken = np.zeros(ids.shape[1], dtype=np.bool_)
    nothing = np.full(k, -1, dtype=states.dtype)
    for row in range(tokens.shape[0]):
        column, above = start + row, parents[row]
        before = np.uint64(seed) if above < 0 else keys[above]
        keys[column] = mix(mix(before, tokens[row]), 1)
        for layer in range(layers):
            parent = nothing if above < 0 else states[above, layer]
            _draw(
                parent,
                mix(keys[column], layer),
                persistence[layer],
                ranks[layer],
                ids[layer],
                states[column, layer],
                taken,
            )


class MarkovRoutes:
    """The chain's state for every column of a KV cache; columns are written, kept and overwritten
    as the cache's are."""

    def __init__(self, layers: int, experts: int, top_k: int, seed: int) -> None:
        own = np.arange(layers) % len(PERSISTENCE)
        self._seed = seed
        self._persistence = np.array(PERSISTENCE)[own]
        weights = np.arange(1, experts + 1)[None] ** -np.array(SKEW)[own, None]
        self._ranks = np.cumsum(weights, axis=1)
        rng = np.random.default_rng(seed)
        self._ids = np.stack([rng.permutation(experts) for _ in range(layers)])
        self._keys = np.zeros(0, dtype=np.uint64)
        self._states = np.zeros((0, layers, top_k), dtype=np.int64)
        self._rows = slice(0, 0)

    def begin_forward(self, start: int, tokens: IntArray, mask: Any | None) -> None:
        """tokens [T] written from column `start` on; mask [1, 1, T, C] bool, None = one row."""
        parents = np.array([start - 1]) if mask is None else parent_columns(start, mask)
        end = start + len(tokens)
        self._reserve(end)
        advance(
            np.asarray(tokens, dtype=np.int64),
            parents,
            start,
            self._seed,
            self._persistence,
            self._ranks,
            self._ids,
            self._keys,
            self._states,
        )
        self._rows = slice(start, end)

    def routes(self, layer: int) -> IntArray:
        """[T, k] of the forward that is going on."""
        return self._states[self._rows, layer].copy()

    def keep(self, length: int, rows: Sequence[int]) -> None:
        """Of the columns after `length`, keep these (ascending offsets), side by side."""
        kept, end = length + np.asarray(rows, dtype=np.int64), length + len(rows)
        self._keys[length:end] = self._keys[kept]
        self._states[length:end] = self._states[kept]

    def _reserve(self, columns: int) -> None:
        more = 2 * columns - len(self._keys)
        if columns > len(self._keys):
            self._keys = np.concatenate([self._keys, np.zeros(more, dtype=np.uint64)])
            room = np.zeros((more, *self._states.shape[1:]), dtype=np.int64)
            self._states = np.concatenate([self._states, room])


def parent_columns(start: int, mask: Any) -> IntArray:
    """[T]: the last column before its own that a row attends to, -1 where there is none.

    Columns are in an order that puts ancestors first, so that is the row's parent.
    """
    seen = np.asarray(mask)[0, 0]
    own = start + np.arange(len(seen))
    earlier = seen & (np.arange(seen.shape[1])[None] < own[:, None])
    last = seen.shape[1] - 1 - np.argmax(earlier[:, ::-1], axis=1)
    return np.where(earlier.any(axis=1), last, -1)
