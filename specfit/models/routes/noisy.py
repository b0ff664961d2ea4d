"""Routes that are right with a set probability per expert (the paper's simulated source, sec. 4.6).

A route id of the true set is kept with probability `accuracy`, else replaced by an expert outside
the true set; a row stays k distinct ids. Whether an id is kept depends on (seed, request, position,
node path, layer, id) and the replacements on (.., layer, rank), by counter-based hashing: neither
the order of calls nor the order of ids within a row matters, so that decoder and replay see the
same errors. Only selection reads these routes; what the target executes is never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.hashing import mix, unit
from specfit.base.interfaces import RouteSource
from specfit.base.types import DraftTree, IntArray, Request, Routes, SpecfitError

Keys = NDArray[np.uint64]


@njit(cache=True)
def _tree_keys(root_key: np.uint64, tokens: IntArray, parents: IntArray) -> Keys:
    """[1 + N] keys of the root and of every node: a node's is its parent's and its own token."""
    keys = np.empty(len(tokens) + 1, dtype=np.uint64)
    keys[0] = root_key
    for node in range(len(tokens)):
        keys[node + 1] = mix(mix(keys[parents[node] + 1], tokens[node]), 1)
    return keys


@njit(cache=True)
def _corrupt_rows(ids: IntArray, keys: Keys, accuracy: float, num_experts: int) -> IntArray:
    """ids [N, L, k], keys [N] -> noisy ids [N, L, k]; replacements take the dropped ids' places."""
    out = np.empty_like(ids)
    taken = np.zeros(num_experts, dtype=np.bool_)
    for node in range(ids.shape[0]):
        for layer in range(ids.shape[1]):
            key = mix(keys[node], layer)
            taken[:] = False
            for j in range(ids.shape[2]):
                taken[ids[node, layer, j]] = True
            draws = num_experts  # counters below it decide which ids are kept
            for j in range(ids.shape[2]):
                expert = ids[node, layer, j]
                if unit(mix(key, expert)) >= accuracy:
                    while taken[expert]:
                        high = mix(key, draws) >> np.uint64(32)
                        expert = np.int64((high * np.uint64(num_experts)) >> np.uint64(32))
                        draws += 1
                    taken[expert] = True
                out[node, layer, j] = expert
    return out


def _check(accuracy: float, num_experts: int, k: int) -> None:
    if not 0.0 <= accuracy <= 1.0:
        raise SpecfitError(f"routes.accuracy is {accuracy}; it is a probability, 0 to 1")
    if num_experts < 2 * k:
        raise SpecfitError(
            f"noisy routes replace up to {k} experts by others, which needs {2 * k} experts per "
            f"layer or more, and this target has {num_experts}; use routes=atlas"
        )


def _root_key(seed: int, request_id: str, position: int, root_token: int) -> np.uint64:
    """Stable across processes and machines, unlike Python's own hash."""
    text = f"{seed}|{position}|{root_token}|{request_id}"
    return np.uint64(int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little"))


def corrupt(
    routes_row: IntArray,
    accuracy: float,
    seed: int,
    request_id: str,
    position: int,
    node_path: Sequence[int],
    num_experts: int,
) -> IntArray:
    """Noisy ids [L, k] of one row; `node_path` is the token ids from the root to the node.

    `position` is the number of context tokens up to and including the root: the same tokens later
    in a text err anew. The rows `NoisyRoutes` gives are these, computed a level at a time.
    """
    _check(accuracy, num_experts, routes_row.shape[-1])
    root_key = _root_key(seed, request_id, position, node_path[0])
    tokens = np.array(node_path[1:], dtype=np.int64)
    keys = _tree_keys(root_key, tokens, np.arange(-1, len(tokens) - 1, dtype=np.int64))
    row = np.array(routes_row, dtype=np.int64, order="C")[None]
    noisy: IntArray = _corrupt_rows(row, keys[-1:], float(accuracy), num_experts)[0]
    return noisy


class NoisyRoutes(RouteSource):
    """A route source whose answers err, live and in replay alike: it wraps either's exact one."""

    def __init__(self, source: RouteSource, num_experts: int, accuracy: float, seed: int) -> None:
        _check(accuracy, num_experts, 1)
        self.source = source
        self.num_experts = num_experts
        self.accuracy = float(accuracy)
        self.seed = seed
        one = np.zeros((1, 1), dtype=np.int64)
        corrupt(one, 1.0, seed, "", 0, (0,), 2)  # compiles here rather than inside a request
        self._request_id = ""
        self._seen: Routes | None = None  # this cycle's rows so far

    @property
    def on_clock(self) -> bool:
        return self.source.on_clock

    def begin(self, request: Request) -> None:
        self.source.begin(request)
        self._request_id = request.request_id
        self._seen = None

    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        exact = self.source.read(root_token, tree, context_tokens)
        _check(self.accuracy, self.num_experts, exact.root.shape[-1])
        key = _root_key(self.seed, self._request_id, context_tokens, root_token)
        tokens = np.array(tree.tokens, dtype=np.int64)
        keys = _tree_keys(key, tokens, np.array(tree.parents, dtype=np.int64))
        rows = np.concatenate([exact.root[None], exact.nodes]).astype(np.int64)
        done = 0 if self._seen is None else 1 + len(self._seen)
        noisy = _corrupt_rows(rows[done:], keys[done:], self.accuracy, self.num_experts)
        if self._seen is None:
            self._seen = Routes(noisy[0], noisy[1:])
        else:
            self._seen = Routes(self._seen.root, np.concatenate([self._seen.nodes, noisy]))
        return self._seen

    def end_cycle(self) -> None:
        self._seen = None
        self.source.end_cycle()
