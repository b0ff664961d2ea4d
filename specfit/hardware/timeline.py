"""The modelled timeline: how long a forward's copies and experts take (pure, integer nanoseconds).

Layer by layer: routes are known at 0; misses queue in load order; hits
compute meanwhile; missed experts compute in load order as they arrive; the layer ends when both
lanes are done. The link serves one copy's bytes at a time at full bandwidth, so a second copy in
flight hides latency and nothing else. Whatever is rounded (`copy_ns` once per copy, the layer's
base once per layer) is rounded by the caller; here all is int64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from specfit.base.types import IntArray


@njit(cache=True)
def _layer(
    n_hits: int,
    n_misses: int,
    wait_for: IntArray,
    copy_ns: int,
    latency_ns: int,
    expert_ns: int,
    missed_ns: int,
    in_flight: int,
    copy_end: IntArray,
    run_end: IntArray,
) -> tuple[int, int]:
    """`layer_ns` with scratch `copy_end[>= M]` and `run_end[>= M]`, entry j of the j-th miss."""
    link_free = 0
    compute_free = n_hits * expert_ns
    idle = 0
    for j in range(n_misses):
        issue = 0
        if j >= in_flight:
            issue = copy_end[j - in_flight]
        item = wait_for[j]
        if item >= n_hits:
            issue = max(issue, run_end[item - n_hits])
        elif item >= 0:
            issue = max(issue, (item + 1) * expert_ns)
        link_free = max(issue + latency_ns, link_free) + copy_ns
        copy_end[j] = link_free
        if link_free > compute_free:
            idle += link_free - compute_free
            compute_free = link_free
        compute_free += missed_ns
        run_end[j] = compute_free
    return compute_free, idle


@njit(cache=True)
def layer_ns(
    n_hits: int,
    n_misses: int,
    wait_for: IntArray,
    copy_ns: int,
    latency_ns: int,
    expert_ns: int,
    missed_ns: int,
    in_flight: int,
) -> tuple[int, int]:
    """(layer_ns, wait_ns) of one layer, counted from the moment its routes are known.

    A hit computes for `expert_ns`, a miss for `missed_ns`. Copy j of `n_misses` is issued when copy
    j - `in_flight` has arrived and item `wait_for[j]` of the compute order (hits, then misses) has
    run (-1: nothing to wait for); `latency_ns` later its bytes queue for the link. wait_ns is the
    time the compute lane stood idle for a copy.
    """
    scratch = np.empty((2, max(n_misses, 1)), np.int64)
    return _layer(
        n_hits,
        n_misses,
        wait_for,
        copy_ns,
        latency_ns,
        expert_ns,
        missed_ns,
        in_flight,
        scratch[0],
        scratch[1],
    )


@njit(cache=True)
def forward_ns(
    hits: IntArray,
    misses: IntArray,
    wait_for: IntArray,
    base_ns: int,
    copy_ns: int,
    latency_ns: int,
    expert_ns: int,
    missed_ns: int,
    in_flight: int,
    layer_scale: int,
) -> tuple[int, int]:
    """(total_ns, wait_ns) of a forward: `hits[L]`, `misses[L]`, `wait_for[L, M]`.

    `base_ns` is one billed layer's share of the fixed and per-row cost; it runs before the layer's
    routes are known and so hides no on-demand copy. Each own layer stands for `layer_scale` billed
    layers that behave like it.
    """
    scratch = np.empty((2, max(wait_for.shape[1], 1)), np.int64)
    total = 0
    idle = 0
    for layer in range(hits.shape[0]):
        layer_total, layer_idle = _layer(
            hits[layer],
            misses[layer],
            wait_for[layer],
            copy_ns,
            latency_ns,
            expert_ns,
            missed_ns,
            in_flight,
            scratch[0],
            scratch[1],
        )
        total += base_ns + layer_total
        idle += layer_idle
    return total * layer_scale, idle * layer_scale


class LayerSpans(NamedTuple):
    """When what happened in one billed layer; (start, end) in nanoseconds from the forward's start.

    A copy's span is its bytes on the link, without the latency before them. Experts run in compute
    order: the hits, then the misses.
    """

    own_layer: int
    begin: int
    routes_known: int
    end: int
    copies: list[tuple[int, int]]
    runs: list[tuple[int, int]]


def forward_spans(
    hits: IntArray,
    misses: IntArray,
    wait_for: IntArray,
    base_ns: int,
    copy_ns: int,
    latency_ns: int,
    expert_ns: int,
    missed_ns: int,
    in_flight: int,
    layer_scale: int,
) -> list[LayerSpans]:
    """`forward_ns` item by item: `hits.size * layer_scale` layers, the last one's end its total."""
    copy_end, run_end = np.empty((2, max(wait_for.shape[1], 1)), np.int64)
    spans: list[LayerSpans] = []
    begin = 0
    for layer, (n_hits, n_misses) in enumerate(zip(hits.tolist(), misses.tolist(), strict=True)):
        costs = copy_ns, latency_ns, expert_ns, missed_ns, in_flight
        total, _ = _layer(n_hits, n_misses, wait_for[layer], *costs, copy_end, run_end)
        ran = [((i + 1) * expert_ns, expert_ns) for i in range(n_hits)]
        ran += [(end, missed_ns) for end in run_end[:n_misses].tolist()]
        for _ in range(layer_scale):
            known = begin + base_ns
            copies = [(known + e - copy_ns, known + e) for e in copy_end[:n_misses].tolist()]
            runs = [(known + end - took, known + end) for end, took in ran]
            spans.append(LayerSpans(layer, begin, known, known + total, copies, runs))
            begin = known + total
    return spans
