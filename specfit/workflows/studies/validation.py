"""The simulator beside what others counted and measured: hit rates of an engine, a slot curve.

Counters: BigMoeOnEdge's engine keeps one memory for all layers; its own counts, and the curves that
its authors replayed by policy and memory, ship with their routes (`data/traces`). Slot curve:
tokens/s that vllm-expert-cache's authors measured for Qwen3-30B-A3B (W8A8, two MI210).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from specfit.base.paths import PACKAGE
from specfit.experts.pool_cache import cycle_bytes, pool_hits
from specfit.experts.routing_traces import policy_hits
from specfit.storage.foreign_traces import RoutingTrace, read_trace

TRACES = PACKAGE / "data" / "traces"
MIB = 1 << 20

COUNTED: Mapping[str, tuple[str, int, float]] = {
    "qwen": ("Qwen3-30B-A3B", 4000, 74.9),
    "gemma": ("gemma-4-26B-A4B-it", 4000, 76.8),
    "gptoss": ("gpt-oss-120b", 3000, 32.4),
}
"""Model, MiB of the engine's memory, and the hit rate it counted, percent."""

POLICIES: Mapping[str, tuple[str, bool]] = {
    "lru": ("lru", False),
    "lfu": ("lfu", False),
    "belady": ("belady", False),
    "layer": ("lru", True),
    "layerlfu": ("lfu", True),
}
"""The source's name -> ours, and whether every layer has an equal part to itself. Its `random`
cannot be drawn again."""

SLOT_CURVE: Mapping[int, float] = {128: 65.7, 64: 54.3, 48: 49.3, 32: 39.4, 0: 19.1}
"""Slots of each layer -> tokens/s, measured by others."""
FITTED_ON = (128, 0)


def study(models: float = len(COUNTED)) -> dict[str, Any]:
    """What `table_validation` shows, of so many of the models."""
    rows: list[dict[str, Any]] = []
    counted = []
    for name in list(COUNTED)[: int(models)]:
        trace = read_trace(TRACES / f"{name}.route.csv.xz")
        model, mib, percent = COUNTED[name]
        rows += curve(name, model, trace)
        own = next(
            row["ours"]
            for row in rows
            if (row["model"], row["mib"], row["policy"]) == (model, mib, "lru")
        )
        cycle = cycle_bytes(trace.expert_bytes, trace.top_k) / MIB  # type: ignore[arg-type]
        counted.append(
            {"model": model, "mib": mib, "engine": percent, "ours": own, "cycle_mib": cycle}
        )
    return {"counted": counted, "curve": rows, "slots": slot_curve()}


def curve(name: str, model: str, trace: RoutingTrace) -> list[dict[str, Any]]:
    """Every point of the source's curve whose policy we have, in percent."""
    published = pd.read_csv(TRACES / f"{name}.curve.csv")
    assert trace.expert_bytes is not None, "a route file has each layer's bytes"
    passes = trace.passes()
    rows = []
    for point in published.itertuples():
        if point.policy not in POLICIES:
            continue
        kind, per_layer = POLICIES[point.policy]
        hits, lookups, _ = pool_hits(
            passes, trace.expert_bytes, trace.experts, point.budget_mib * MIB, kind, per_layer
        )
        rows.append(
            {
                "model": model,
                "mib": int(point.budget_mib),
                "policy": point.policy,
                "source": float(point.hit_pct_cum),
                "ours": 100 * float(hits.sum() / lookups.sum()),
                "source_decode": float(point.hit_pct_decode),
                "ours_decode": 100 * float(hits[1:].sum() / lookups[1:].sum()),
            }
        )
    return rows


def slot_curve() -> dict[str, Any]:
    """A token takes a + b x misses; a and b from two points, the others predicted.

    Misses are those of least recently used over the shipped Qwen3-30B-A3B routes, one token a
    forward, slots of each layer's own, after the first of four prompts has filled them.
    """
    trace = read_trace(TRACES / "qwen3-30b-a3b.npz")
    misses = {slots: misses_per_token(trace, slots) for slots in SLOT_CURVE}
    a, b = fit_two(misses, FITTED_ON)
    points = []
    for slots, speed in SLOT_CURVE.items():
        predicted = 1 / (a + b * misses[slots])
        points.append(
            {
                "slots": slots,
                "misses": misses[slots],
                "measured": speed,
                "predicted": predicted,
                "error": predicted / speed - 1,
                "fitted": slots in FITTED_ON,
            }
        )
    worst = {pair: worst_error(misses, pair) for pair in combinations(SLOT_CURVE, 2)}
    best = min(worst, key=lambda pair: worst[pair])
    return {
        "points": points,
        "fixed_ms": 1e3 * a,
        "miss_ms": 1e3 * b,
        "best_pair": list(best),
        "best_pair_worst_error": worst[best],
    }


def misses_per_token(trace: RoutingTrace, slots: int) -> float:
    if slots == 0:
        return float(trace.layers * trace.top_k)
    first = policy_hits(trace.sequences[:1], 1, trace.experts, slots)
    every = policy_hits(trace.sequences, 1, trace.experts, slots)
    missed = (every.demand - every.hits) - (first.demand - first.hits)
    return missed / (trace.tokens - len(trace.sequences[0]))


def fit_two(misses: Mapping[int, float], pair: tuple[int, int]) -> tuple[float, float]:
    """(seconds of a token without a miss, seconds of a miss) through two points."""
    x = [misses[slots] for slots in pair]
    y = [1 / SLOT_CURVE[slots] for slots in pair]
    b = (y[1] - y[0]) / (x[1] - x[0])
    return y[0] - b * x[0], b


def worst_error(misses: Mapping[int, float], pair: tuple[int, int]) -> float:
    """The largest relative error of the predicted three, in size."""
    a, b = fit_two(misses, pair)
    others = [slots for slots in SLOT_CURVE if slots not in pair]
    errors = [abs(1 / (a + b * misses[s]) / SLOT_CURVE[s] - 1) for s in others]
    return float(np.max(errors))
