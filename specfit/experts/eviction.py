"""Cache policies: what each remembers of an expert, in which order residents go (pure, no torch).

`cache_plan.plan_layer` has the one victim rule: the resident of the oldest forward goes, those of
this forward last. A policy here only gives residents another *rank* instead of their forward:

    lru          the newest forward that used it (the default; the paper names no rule)
    lfu          how often it was used since the run began, also while it was away
    lfru         uses over forwards since the last one, a frequency per recency
    decayed_lfu  uses, each halved every HALF_LIFE forwards
    least_stale  stale ones (not used by the newest forward) before fresh, each in order of arrival
    static       the S experts most used in calibration text never go, others pass through
    belady       the one whose next use is farthest ahead goes (replays only: it needs the future)

Beside them stands `policy=pool` (`pool_cache.py`, replays only): one memory for all layers.

Equal ranks: oldest use, lowest last row, lowest id. `lfru` and `decayed_lfu` follow what is said of
them in neighbours' papers; no code was public, so fraction and half-life are ours. Least-Stale
(SpecMD, arXiv 2602.03921) shares one cache between all layers and drops what this pass has not used
first, in layer order; with slots of each layer's own we read it as above.

Letters: E experts of one layer, S slots. Everything is int64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit

from specfit.experts.cache_plan import NONE, Int64Array, plan_layer

LRU, LFU, LFRU, DECAYED_LFU, LEAST_STALE, STATIC, BELADY = range(7)

HALF_LIFE = 32
ONE_USE = 1 << 30
"""A use in units of `heat`; halved away after 30 half-lives."""

NEVER = np.iinfo(np.int32).max
"""Next use of an expert that is not used again."""

USES, HEAT, USED, ARRIVED = range(4)
"""Rows of `memory[4, E]`, kept of absent experts too: how often used, decayed uses, the forwards of
the last use and of the last arrival."""


@njit(cache=True)
def decayed(heat: int, forwards: int) -> int:
    """`heat` after so many forwards: halved every HALF_LIFE, linear between (integers only)."""
    halvings = forwards // HALF_LIFE
    if halvings > 40:
        return 0
    whole = heat >> halvings
    return whole - (whole * (forwards % HALF_LIFE)) // (2 * HALF_LIFE)


@njit(cache=True)
def worth(
    kind: int,
    expert: int,
    forward: int,
    last_forward: Int64Array,
    memory: Int64Array,  # [4, E]
    known: Int64Array,  # [E] static: calibration uses; belady: the next forward that uses it
) -> int:
    """What keeps a resident: the least goes first."""
    if kind == LFU:
        return memory[USES, expert]
    if kind == LFRU:
        return (memory[USES, expert] << 20) // max(forward - last_forward[expert], 1)
    if kind == DECAYED_LFU:
        return decayed(memory[HEAT, expert], forward - memory[USED, expert])
    if kind == LEAST_STALE:
        fresh = np.int64(last_forward[expert] >= forward - 1)
        return (fresh << 40) + memory[ARRIVED, expert]
    if kind == STATIC:
        return known[expert]
    if kind == BELADY:
        return -known[expert]
    return last_forward[expert]


@njit(cache=True)
def rank_residents(
    kind: int,
    forward: int,
    expert_in: Int64Array,  # [S]
    last_forward: Int64Array,
    last_row: Int64Array,
    memory: Int64Array,
    known: Int64Array,
    rank: Int64Array,  # [E], out: of residents, the lowest goes first; E for one that stays
) -> None:
    """Of all residents by (worth, last forward, last row, id): total, so ranks are distinct."""
    n = 0
    order = np.empty(expert_in.shape[0], np.int64)
    value = np.empty(expert_in.shape[0], np.int64)
    for slot in range(expert_in.shape[0]):
        expert = expert_in[slot]
        if expert == NONE:
            continue
        here = worth(kind, expert, forward, last_forward, memory, known)
        at = n
        while at > 0 and _goes_before(
            here, expert, value[at - 1], order[at - 1], last_forward, last_row
        ):
            order[at], value[at] = order[at - 1], value[at - 1]
            at -= 1
        order[at], value[at] = expert, here
        n += 1
    for at in range(n):
        rank[order[at]] = at
        if kind == STATIC and _is_pinned(order[at], expert_in.shape[0], known):
            rank[order[at]] = rank.shape[0]


@njit(cache=True)
def _goes_before(
    a_worth: int, a: int, b_worth: int, b: int, last_forward: Int64Array, last_row: Int64Array
) -> bool:
    if a_worth != b_worth:
        return a_worth < b_worth
    if last_forward[a] != last_forward[b]:
        return last_forward[a] < last_forward[b]
    if last_row[a] != last_row[b]:
        return last_row[a] < last_row[b]
    return a < b


@njit(cache=True)
def remember(first_row: Int64Array, forward: int, memory: Int64Array) -> None:
    """Count this forward's demand, before it is planned: its experts are in use, whatever rank."""
    for expert in range(first_row.shape[0]):
        if first_row[expert] != NONE:
            memory[USES, expert] += 1
            heat = decayed(memory[HEAT, expert], forward - memory[USED, expert])
            memory[HEAT, expert] = heat + ONE_USE
            memory[USED, expert] = forward


@njit(cache=True)
def _is_pinned(expert: int, slots: int, uses: Int64Array) -> bool:
    """Among the `slots` most used; equal uses: lowest id."""
    before = 0
    for other in range(uses.shape[0]):
        more = uses[other] > uses[expert]
        before += more or (uses[other] == uses[expert] and other < expert)
    return before < slots


@njit(cache=True)
def plan_ranked(
    rank: Int64Array,  # [E], of residents; experts.shape[0] and above: in use or pinned
    bypass: bool,
    forward: int,
    first_row: Int64Array,
    last_row: Int64Array,
    slot_of: Int64Array,
    expert_in: Int64Array,
    last_forward: Int64Array,
    last_row_there: Int64Array,
    memory: Int64Array,
    staging_blocks: int,
    order: Int64Array,
    slot: Int64Array,
    evicted: Int64Array,
    wait_for: Int64Array,
) -> tuple[int, int]:
    """`plan_layer` with `rank` in the place of forwards; other arguments and the result as there.

    With `bypass` a miss that could only take the slot of an expert in use, or of a pinned one,
    passes through staging.
    """
    experts = slot_of.shape[0]
    n_hits, n_misses = plan_layer(
        first_row,
        last_row,
        slot_of,
        expert_in,
        rank,
        last_row_there,
        experts,
        staging_blocks,
        order,
        slot,
        evicted,
        wait_for,
        bypass,
    )
    for item in range(n_hits, n_hits + n_misses):
        memory[ARRIVED, order[item]] = forward
    for expert in range(experts):
        if slot_of[expert] == NONE:
            last_forward[expert] = NONE
        elif first_row[expert] != NONE:
            last_forward[expert] = forward
    return n_hits, n_misses


# -- by name -------------------------------------------------------------------------------------

Rank = Callable[[int, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array], None]
"""(forward, expert_in, last_forward, last_row, memory, known, rank): fills `rank` of residents."""


def _ranking(kind: int) -> Rank:
    return partial(rank_residents, kind)


POLICIES: dict[str, Rank] = {
    "lru": _ranking(LRU),
    "lfu": _ranking(LFU),
    "lfru": _ranking(LFRU),
    "decayed_lfu": _ranking(DECAYED_LFU),
    "least_stale": _ranking(LEAST_STALE),
    "static": _ranking(STATIC),
    "belady": _ranking(BELADY),
}
