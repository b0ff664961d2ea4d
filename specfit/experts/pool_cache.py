"""One cache for all layers: a pool of bytes instead of slots of each layer's own.

Engines for small devices keep one budget in bytes and let every layer use what it needs of it. A
layer's batch looks each of its experts up once; what is absent is loaded; after the batch others
go until the budget holds. Of a batch, the expert that its tokens name last is the most recent.
`table_validation` holds these counts against what such an engine counted.

Below the bytes that one token needs through all layers, least recently used hits next to nothing:
an expert is gone before its layer comes round again (`cycle_bytes`, `cliff_warning`).

Letters: L layers, E experts of a layer, G = L * E experts of all layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import ForwardTrace, SpecfitError
from specfit.experts.cache import ExpertCache, LayerPlan, collect_trace
from specfit.experts.cache_plan import NONE, Int64Array

LRU, LFU, BELADY = range(3)


@njit(cache=True)
def touch_order(topk: Int64Array, order: Int64Array) -> int:
    """topk [T, k], NONE where a row did not reach the layer -> the distinct experts in `order`, the
    one that the rows name last at the end; returns how many there are."""
    n = 0
    for row in range(topk.shape[0] - 1, -1, -1):
        for j in range(topk.shape[1] - 1, -1, -1):
            known = topk[row, j] == NONE
            for i in range(n):
                known = known or order[i] == topk[row, j]
            if not known:
                order[n] = topk[row, j]
                n += 1
    order[:n] = order[:n][::-1].copy()
    return n


@njit(cache=True)
def use_batch(
    batch: Int64Array,  # [D] places in the pool, distinct, the most recent last
    sizes: Int64Array,  # [G] bytes
    worth: Int64Array,  # [G] what keeps an expert: of the others the least goes first
    touched: Int64Array,  # [G] the last touch, NONE = absent
    new_worth: Int64Array,  # [D]
    stamp: int,
    used: int,
    budget: int,
    strict: bool,
    hit: NDArray[np.bool_],  # [D], out
) -> tuple[int, int, int]:
    """One lookup of each expert, loads, then evictions; returns (bytes used, evictions, stamp).

    `strict`: a batch larger than the budget gives up its own oldest too, so that the budget always
    holds; else it stays until the next batch.
    """
    first = stamp
    for i in range(batch.shape[0]):
        place = batch[i]
        hit[i] = touched[place] != NONE
        if not hit[i]:
            used += sizes[place]
        touched[place] = stamp
        worth[place] = new_worth[i]
        stamp += 1
    evictions = 0
    while used > budget:
        victim = NONE
        for place in range(touched.shape[0]):
            if touched[place] == NONE or touched[place] >= first:
                continue
            if (
                victim == NONE
                or worth[place] < worth[victim]
                or (worth[place] == worth[victim] and touched[place] < touched[victim])
            ):
                victim = place
        if victim == NONE:
            if not strict:
                break
            for i in range(batch.shape[0]):
                if victim == NONE and touched[batch[i]] != NONE:
                    victim = batch[i]
        used -= sizes[victim]
        touched[victim] = NONE
        evictions += 1
    return used, evictions, stamp


# -- counting over a trace -------------------------------------------------------------------------


def pool_hits(
    passes: Sequence[NDArray[np.integer]],
    expert_bytes: Int64Array,
    experts: int,
    budget: int,
    kind: str = "lru",
    per_layer: bool = False,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """(hits, lookups, bytes read) of every pass [T, L, k], from an empty cache.

    `expert_bytes` [L]; `per_layer` gives every layer an equal part of the budget to itself.
    """
    layers = passes[0].shape[1]
    sizes = np.repeat(np.asarray(expert_bytes, dtype=np.int64), experts)
    batches = [_batches(one) for one in passes]
    ahead = _next_uses(batches, experts) if kind == "belady" else None
    pools = layers if per_layer else 1
    worth = np.zeros(len(sizes), dtype=np.int64)
    uses = np.zeros(len(sizes), dtype=np.int64)
    touched = np.full(len(sizes), NONE, dtype=np.int64)
    used = [0] * pools
    stamp = 0
    hits, lookups, read = np.zeros((3, len(passes)), dtype=np.int64)
    for at, one in enumerate(batches):
        for layer, ids in enumerate(one):
            own = slice(layer * experts, (layer + 1) * experts) if per_layer else slice(None)
            batch = ids if per_layer else ids + layer * experts
            uses[own][batch] += 1
            if kind == "lfu":
                new = uses[own][batch]
            elif kind == "belady":
                assert ahead is not None
                new = -ahead[at][layer]
            else:
                new = np.arange(stamp, stamp + len(batch))
            hit = np.zeros(len(batch), dtype=np.bool_)
            pool = layer if per_layer else 0
            used[pool], _, stamp = use_batch(
                batch,
                sizes[own],
                worth[own],
                touched[own],
                np.asarray(new, dtype=np.int64),
                stamp,
                used[pool],
                budget // pools,
                False,
                hit,
            )
            hits[at] += int(hit.sum())
            lookups[at] += len(batch)
            read[at] += int(sizes[own][batch][~hit].sum())
    return hits, lookups, read


def _batches(one: NDArray[np.integer]) -> list[Int64Array]:
    """[T, L, k] -> the distinct experts of each layer, the most recent last."""
    order = np.empty(one.shape[0] * one.shape[2], dtype=np.int64)
    ids = one.astype(np.int64)
    found = []
    for layer in range(one.shape[1]):
        n = touch_order(np.ascontiguousarray(ids[:, layer]), order)
        found.append(order[:n].copy())
    return found


def _next_uses(batches: Sequence[Sequence[Int64Array]], experts: int) -> list[list[Int64Array]]:
    """For each lookup, the number of the pass that uses the expert next (a large one: none)."""
    never = len(batches)
    ahead = np.full((len(batches[0]), experts), never, dtype=np.int64)
    found: list[list[Int64Array]] = []
    for at in range(len(batches) - 1, -1, -1):
        one = []
        for layer, ids in enumerate(batches[at]):
            # Within one pass an earlier layer comes first, so the time is (pass, layer).
            one.append(ahead[layer, ids] * len(batches[0]) + layer)
            ahead[layer, ids] = at
        found.append(one)
    return found[::-1]


def cycle_bytes(expert_bytes: NDArray[np.integer], top_k: int) -> int:
    """What one token needs through all layers; `expert_bytes` [L]."""
    return int(np.asarray(expert_bytes, dtype=np.int64).sum()) * top_k


def cliff_warning(budget_bytes: int, one_token_bytes: int) -> str | None:
    """A sentence where a cache holds less than one token's experts through all layers."""
    if budget_bytes >= one_token_bytes:
        return None
    return (
        f"an expert cache of {budget_bytes / 1e9:.2f} GB holds less than the "
        f"{one_token_bytes / 1e9:.2f} GB of experts that one token uses through all layers: as one "
        "pool least recently used hits next to nothing there, with slots of each layer's own little"
    )


def slots_cliff(slots: int, layers: int, top_k: int, expert_bytes: int) -> str | None:
    """The same of `slots` experts a layer; without a cache there is nothing to warn of."""
    if slots == 0:
        return None
    return cliff_warning(slots * layers * expert_bytes, top_k * layers * expert_bytes)


# -- the cache of a replay -------------------------------------------------------------------------


class PoolCache(ExpertCache):
    """policy=pool: the memory of `n_slots` experts of every layer, shared by all of them.

    For replays: the engine's slots belong to layers. Experts are of one size, so that the budget is
    n_layers * n_slots experts, and it always holds: what one batch has beyond it passes through
    staging.
    """

    def __init__(
        self, n_layers: int, n_experts: int, n_slots: int, staging_blocks: int = 3
    ) -> None:
        """Raises SpecfitError for more slots than a layer has experts."""
        self._sizes = np.ones(n_layers * n_experts, dtype=np.int64)
        self._touched = np.full(n_layers * n_experts, NONE, dtype=np.int64)
        self._worth = np.zeros(n_layers * n_experts, dtype=np.int64)
        self._scratch = np.empty(1 << 16, dtype=np.int64)
        self._used = self._stamp = 0
        super().__init__(n_layers, n_experts, n_slots, staging_blocks)

    @property
    def budget(self) -> int:
        """In experts."""
        return self.n_layers * self.n_slots

    def clear(self) -> None:
        super().clear()
        self._touched.fill(NONE)
        self._used = self._stamp = 0

    def plan(self, layer: int, topk: NDArray[np.integer]) -> LayerPlan:
        assert self.forward > 0, "begin_forward comes first"
        rows = np.ascontiguousarray(topk, dtype=np.int64)
        if rows.size > len(self._scratch):
            self._scratch = np.empty(2 * rows.size, dtype=np.int64)
        n = touch_order(rows, self._scratch)
        experts = self._scratch[:n]
        batch = experts + layer * self.n_experts
        hit = np.empty(n, dtype=np.bool_)
        free_of_others = self.budget - int(np.count_nonzero(self._touched[batch] != NONE))
        stamps = np.arange(self._stamp, self._stamp + n, dtype=np.int64)
        self._used, evictions, self._stamp = use_batch(
            batch,
            self._sizes,
            self._worth,
            self._touched,
            stamps,
            self._stamp,
            self._used,
            self.budget,
            True,
            hit,
        )
        return self._as_plan(experts, hit, evictions, free_of_others)

    def _as_plan(
        self, experts: Int64Array, hit: NDArray[np.bool_], evictions: int, room: int
    ) -> LayerPlan:
        """A miss waits where its place still holds an expert of this batch: beyond the `room` that
        hits leave, as in staging."""
        hits, misses = np.sort(experts[hit]), experts[~hit]
        count = np.arange(len(misses))
        behind = len(hits) + count - max(room, self.staging_blocks)
        wait_for = np.where(count < room, NONE, np.maximum(behind, NONE))
        evicted = np.where(count < evictions, 0, NONE)  # only how many is told
        order = np.concatenate([hits, misses])
        return LayerPlan(len(hits), order, np.full(len(order), NONE), evicted, wait_for)

    def replay(
        self, routes: NDArray[np.integer], billed_rows: int, is_prefill: bool
    ) -> ForwardTrace:
        self.begin_forward()
        plans = [self.plan(layer, topk) for layer, topk in enumerate(routes)]
        return collect_trace(plans, billed_rows, is_prefill, 0, self.end_forward())

    # -- what is read of it ------------------------------------------------------------------------

    def slot_of(self, layer: int, expert: int) -> int:
        """0 where it is resident: a pool has no numbered slots."""
        return NONE if self._touched[layer * self.n_experts + expert] == NONE else 0

    def resident_mask(self) -> NDArray[np.bool_]:
        return (self._touched != NONE).reshape(self.n_layers, self.n_experts)

    def resident(self, layer: int) -> Int64Array:
        return np.flatnonzero(self.resident_mask()[layer])

    def check(self) -> None:
        assert self._used == np.count_nonzero(self._touched != NONE) <= self.budget, "bytes used"

    def state(self) -> dict[str, Int64Array]:
        return {
            "touched": self._touched.copy(),
            "stamp": np.array(self._stamp, dtype=np.int64),
            "forward": np.array(self.forward, dtype=np.int64),
        }

    def load_state(self, state: dict[str, Int64Array]) -> Int64Array:
        if "touched" not in state or state["touched"].shape != self._touched.shape:
            raise SpecfitError(
                "stored residency is not that of one pool; start the run anew with force=true"
            )
        self.forward, self._stamp = int(state["forward"]), int(state["stamp"])
        self._touched[:] = state["touched"]
        self._worth[:] = self._touched  # of least recently used, the same number
        self._used = int(np.count_nonzero(self._touched != NONE))
        return np.empty((0, 3), dtype=np.int64)
