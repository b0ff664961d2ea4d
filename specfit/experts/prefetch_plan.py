"""Which experts a forward will probably need, and which of them to bring in first (pure, no torch).

A row's routes are predicted as chances q of every (layer, expert); row r takes part in the forward
with weight w. Taken as independent, an expert is needed with chance 1 - prod(1 - w q).

A copy that is not demanded yet has a deadline: its layer's routes. All copies take equally long, so
which to make is a textbook problem (unit jobs with deadlines and weights): sets that can all be on
time are the independent sets of a matroid, hence taking candidates by falling chance, each if the
set so far and it can still be on time, gives the largest expected number of copies saved.

Letters: T rows, L layers, E experts per layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import CHANCE_ONE, IntArray, Routes

FloatArray = NDArray[np.float64]


def needed(routes: Routes, weights: FloatArray, num_experts: int) -> FloatArray:
    """[L, E] chance that the forward needs each expert; `weights` [1 + N], the root's first."""
    rows = np.flatnonzero(weights)
    if routes.chances is not None:
        return _by_chances(routes.chances, rows, weights)
    ids = np.concatenate([routes.root[None], routes.nodes]).astype(np.int64)
    return _by_ids(ids, rows, weights, num_experts)


@njit(cache=True)
def _by_chances(chances: Any, rows: IntArray, weights: FloatArray) -> FloatArray:
    left = np.ones(chances.shape[1:])
    for row in rows:
        for layer in range(left.shape[0]):
            for expert in range(left.shape[1]):
                q = chances[row, layer, expert] / CHANCE_ONE
                left[layer, expert] *= 1.0 - weights[row] * q
    return 1.0 - left


@njit(cache=True)
def _by_ids(ids: IntArray, rows: IntArray, weights: FloatArray, num_experts: int) -> FloatArray:
    left = np.ones((ids.shape[1], num_experts))
    for row in rows:
        for layer in range(ids.shape[1]):
            for j in range(ids.shape[2]):
                left[layer, ids[row, layer, j]] *= 1.0 - weights[row]
    return 1.0 - left


@njit(cache=True)
def plan_copies(
    need: FloatArray,  # [L, E]
    wanted: Any,  # [L, E] bool: neither resident nor brought in already
    least: float,
    room: IntArray,  # [L] copies that can be made before each layer's routes are known, growing
) -> IntArray:
    """(layer, expert) [n, 2] in the order to copy: the set of highest total chance, by deadline and
    within a layer by falling chance; equal chances: lower id. Where no deadline is near, all
    candidates by falling chance.
    """
    layers = need.shape[0]
    where = np.flatnonzero(wanted.ravel() & (need.ravel() >= least))
    order = where[np.argsort(-need.ravel()[where], kind="mergesort")]
    taken = np.zeros(layers, np.int64)  # of each deadline
    chosen = np.empty((order.shape[0], 2), np.int64)
    n = 0
    for index in order:
        layer = index // need.shape[1]
        before, fits = 0, True
        for at in range(layers):
            before += taken[at] + (at == layer)
            if at >= layer and before > room[at]:
                fits = False
                break
        if fits:
            taken[layer] += 1
            chosen[n, 0], chosen[n, 1] = layer, index % need.shape[1]
            n += 1
    if n == order.shape[0] and room[0] >= n:
        return chosen[:n]
    return chosen[:n][np.argsort(chosen[:n, 0], kind="mergesort")]
