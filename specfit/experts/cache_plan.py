"""The rule of the expert cache: what loads, in which order, and at whose cost (pure, no torch).

Letters: L layers, E experts per layer, S slots per layer, T rows of a forward, k experts per row.
Everything is int64. This module is the only statement of load order and victims; decoder,
CUDA engine and replay all call it. Sequential semantics, so nothing here depends on timing or on
the number of copies in flight: the hits of a forward run first, in ascending id; at the j-th load
all hits and all earlier misses count as having run.

Callers that compile with numba's `cache=True` and inline these functions must know that numba
watches the caller's file only: delete its `__pycache__` after an edit here.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import IntArray

Int64Array = NDArray[np.int64]

NONE = -1
"""No slot (staging), no expert (free slot), no row (not demanded), nothing to wait for."""

LATER = np.iinfo(np.int64).max
"""After every forward."""

MAX_ROWS = 1 << 20
"""Rows one forward may have; an age then fits int64 for 2**34 forwards at 512 experts."""


@njit(cache=True)
def mark_rows(topk: IntArray, first_row: Int64Array, last_row: Int64Array) -> None:
    """`topk[T, k]` -> first and last row that needs each expert, `NONE` where none does."""
    first_row[:] = NONE
    last_row[:] = NONE
    n_rows = topk.shape[0]
    assert n_rows <= MAX_ROWS, "more rows than one forward may have"
    for row in range(n_rows):
        for j in range(topk.shape[1]):
            expert = topk[row, j]
            assert 0 <= expert < first_row.shape[0], "a route names an expert that does not exist"
            last_row[expert] = row
    for row in range(n_rows - 1, -1, -1):  # the lowest row is written last
        for j in range(topk.shape[1]):
            first_row[topk[row, j]] = row


@njit(cache=True)
def _order_items(
    first_row: Int64Array, slot_of: Int64Array, order: Int64Array, absent: Int64Array
) -> tuple[int, int]:
    """Fill `order`: hits by id, then misses by first row, then id; returns (hits, misses).

    `absent[E]` is scratch. Branch-free where the data are random: this is the replay's inner loop.
    """
    n_hits = 0
    n_misses = 0
    for expert in range(first_row.shape[0]):
        demanded = first_row[expert] != NONE
        resident = slot_of[expert] != NONE
        order[n_hits] = expert
        absent[n_misses] = expert
        n_hits += demanded & resident
        n_misses += demanded & (not resident)
    for j in range(n_misses):
        expert = absent[j]
        at = n_hits + j
        while at > n_hits and first_row[order[at - 1]] > first_row[expert]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = expert
    return n_hits, n_misses


@njit(cache=True)
def _slot_to_fill(
    expert_in: Int64Array, last_forward: Int64Array, last_row_there: Int64Array
) -> int:
    """The lowest free slot, else the victim's: oldest forward, lowest last row there, lowest id."""
    best = NONE
    oldest = LATER
    for slot in range(expert_in.shape[0]):
        expert = expert_in[slot]
        if expert == NONE:
            return slot
        use = last_forward[expert] * MAX_ROWS + last_row_there[expert]
        age = use * last_forward.shape[0] + expert  # lexicographic in one number: no branches
        best = slot if age < oldest else best
        oldest = min(age, oldest)
    return best


@njit(cache=True)
def _item_of(order: Int64Array, expert: int, n: int) -> int:
    """Place of `expert` among the first `n` items; only a wave asks, so a scan will do."""
    for item in range(n):
        if order[item] == expert:
            return item
    return NONE


@njit(cache=True)
def plan_layer(
    first_row: Int64Array,
    last_row: Int64Array,
    slot_of: Int64Array,
    expert_in: Int64Array,
    last_forward: Int64Array,
    last_row_there: Int64Array,
    forward: int,
    staging_blocks: int,
    order: Int64Array,
    slot: Int64Array,
    evicted: Int64Array,
    wait_for: Int64Array,
    bypass: bool = False,
) -> tuple[int, int]:
    """Plan one layer of forward number `forward`; returns (n_hits, n_misses).

    In: `first_row[E]`, `last_row[E]` of `mark_rows`. In place: residency `slot_of[E]`,
    `expert_in[S]`, `last_forward[E]`, `last_row_there[E]` (both `NONE` for absent experts). Out,
    one entry per item of the compute order (hits, then misses; nothing of meaning behind them):
    `order` expert id; `slot`, `NONE` = staging block item % staging_blocks; `evicted` expert id or
    `NONE`; `wait_for` the item that must have run before this item's copy may start, or `NONE`:
    set where the victim belongs to this forward (a wave), and without slots where the staging
    block is still taken. With `bypass` there are no waves: a miss whose only victims are of this
    forward passes through staging, as every later one then does.
    """
    n_hits, n_misses = _order_items(first_row, slot_of, order, slot)
    n_items = n_hits + n_misses
    for item in range(n_hits):
        expert = order[item]
        slot[item] = slot_of[expert]
        evicted[item] = NONE
        wait_for[item] = NONE
        last_forward[expert] = forward
        last_row_there[expert] = last_row[expert]
    for item in range(n_hits, n_items):
        expert = order[item]
        evicted[item] = NONE
        wait_for[item] = NONE
        if expert_in.shape[0] == 0:
            slot[item] = NONE
            wait_for[item] = max(item - staging_blocks, NONE)
            continue
        to = _slot_to_fill(expert_in, last_forward, last_row_there)
        victim = expert_in[to]
        if bypass and victim != NONE and last_forward[victim] == forward:
            slot[item] = NONE
            before = item - staging_blocks  # in the same block, if it passed through as well
            wait_for[item] = before if before >= n_hits and slot[before] == NONE else NONE
            continue
        if victim != NONE:
            if last_forward[victim] == forward:
                wait_for[item] = _item_of(order, victim, item)
            evicted[item] = victim
            slot_of[victim] = NONE
            last_forward[victim] = NONE
            last_row_there[victim] = NONE
        slot[item] = to
        slot_of[expert] = to
        expert_in[to] = expert
        last_forward[expert] = forward
        last_row_there[expert] = last_row[expert]
    return n_hits, n_misses


@njit(cache=True)
def plan_forward(
    routes: IntArray,
    slot_of: Int64Array,
    expert_in: Int64Array,
    last_forward: Int64Array,
    last_row_there: Int64Array,
    forward: int,
    staging_blocks: int,
    hits: Int64Array,
    misses: Int64Array,
    evictions: Int64Array,
    wait_for: Int64Array,
) -> int:
    """`plan_layer` over all layers of `routes[L, T, k]` in one call, for replay.

    Residency arrays are `[L, E]` and `[L, S]`, changed in place. Out: `hits`, `misses`,
    `evictions` `[L]`, and `wait_for[L, E]` per *miss* (`NONE` behind the last one), as in
    `ForwardTrace`. Returns the peak demand of a layer.
    """
    n_experts = slot_of.shape[1]
    scratch = np.empty((6, n_experts), np.int64)
    first_row, last_row = scratch[0], scratch[1]
    order, slot, evicted, wait = scratch[2], scratch[3], scratch[4], scratch[5]
    peak = 0
    for layer in range(routes.shape[0]):
        mark_rows(routes[layer], first_row, last_row)
        n_hits, n_misses = plan_layer(
            first_row,
            last_row,
            slot_of[layer],
            expert_in[layer],
            last_forward[layer],
            last_row_there[layer],
            forward,
            staging_blocks,
            order,
            slot,
            evicted,
            wait,
        )
        hits[layer] = n_hits
        misses[layer] = n_misses
        evictions[layer] = 0
        wait_for[layer] = NONE
        for j in range(n_misses):
            wait_for[layer, j] = wait[n_hits + j]
            if evicted[n_hits + j] != NONE:
                evictions[layer] += 1
        peak = max(peak, n_hits + n_misses)
    return peak
