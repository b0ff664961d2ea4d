"""What can be said of expert routes without running any decoder: balance, sharing, reuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

EXPERTS = 128
SPANS = (1, 2, 4, 8)  # consecutive tokens
SLOTS = (12, 24, 48)
# Real Qwen3-30B-A3B-Instruct-2507, four 1,024-token ShareGPT prompts
# (qwen3_30b_a3b_instruct2507_prefill_topk.npz, `seqs`), through the functions below.
REAL_DISTINCT = {1: 8.0, 2: 12.4, 4: 18.8, 8: 27.2}
REAL_HITS = {12: 0.553, 24: 0.753, 48: 0.930}


@dataclass(frozen=True)
class RouteStatistics:
    """Per layer, over routes of held-out text."""

    effective: np.ndarray  # [L] exp of the entropy of the expert counts, 1..128
    starved: np.ndarray  # [L] share of experts below 1/20 of their fair share
    busiest: np.ndarray  # [L] largest count over the fair share
    distinct: dict[int, np.ndarray]  # span -> [L] mean distinct experts of that many tokens
    hits: dict[int, np.ndarray]  # slots -> [L] LRU hit rate, token by token


def route_statistics(texts: Sequence[np.ndarray]) -> RouteStatistics:
    """texts: integer [T, L, K] of each, its consecutive tokens."""
    routes = np.concatenate(list(texts)).astype(np.int64)
    layers = range(routes.shape[1])
    counts = np.stack([np.bincount(routes[:, i].ravel(), minlength=EXPERTS) for i in layers])
    share = counts / counts.sum(axis=1, keepdims=True)
    entropy = -(share * np.log(np.maximum(share, 1e-30))).sum(axis=1)
    return RouteStatistics(
        effective=np.exp(entropy),
        starved=(share < 0.05 / EXPERTS).mean(axis=1),
        busiest=share.max(axis=1) * EXPERTS,
        distinct={span: distinct_experts(texts, span) for span in SPANS},
        hits={slots: lru_hit_rates(routes, slots) for slots in SLOTS},
    )


def distinct_experts(texts: Sequence[np.ndarray], span: int) -> np.ndarray:
    """Mean number of distinct experts that `span` consecutive tokens of a text use, [L]."""
    total, windows = np.zeros(texts[0].shape[1]), 0
    for text in texts:
        used = np.zeros((*text.shape[:2], EXPERTS), dtype=bool)
        np.put_along_axis(used, text.astype(np.int64), True, axis=2)
        count = max(0, len(text) - span + 1)
        union = used[:count].copy()
        for offset in range(1, span):
            union |= used[offset : offset + count]
        total += union.sum(axis=(0, 2))
        windows += count
    return total / windows


def lru_hit_rates(routes: np.ndarray, slots: int) -> np.ndarray:
    """Hit rate of one LRU cache per layer over routes [T, L, K], token by token, [L]."""
    tokens, layers, k = routes.shape
    columns = [np.ascontiguousarray(routes[:, i]) for i in range(layers)]
    return np.array([_lru_hits(column, slots) / (tokens * k) for column in columns])


@njit(cache=False)
def _lru_hits(routes: np.ndarray, slots: int) -> int:
    """routes [T, K]; an expert of the running token is never the victim."""
    last = np.full(EXPERTS, -1, dtype=np.int64)  # -1: not resident
    resident, hits = 0, 0
    for t in range(routes.shape[0]):
        for k in range(routes.shape[1]):
            if last[routes[t, k]] >= 0:
                hits += 1
                last[routes[t, k]] = t + 1
        for k in range(routes.shape[1]):
            expert = routes[t, k]
            if last[expert] >= 0:
                continue
            if resident == slots:
                victim = -1
                for e in range(EXPERTS):
                    if last[e] >= 0 and (victim < 0 or last[e] < last[victim]):
                        victim = e
                last[victim] = -1
            else:
                resident += 1
            last[expert] = t + 1
    return hits


def shares_outside(statistics: RouteStatistics) -> list[str]:
    """What breaks the requirement on held-out text, in words; empty when all holds."""
    complaints = []
    low, high = statistics.effective.min(), statistics.effective.max()
    if low < 64 or high > 110:
        complaints.append(f"effective experts {low:.1f}..{high:.1f}, wanted 64..110")
    if statistics.starved.max() > 0.15:
        complaints.append(f"starved experts {statistics.starved.max():.3f}, wanted at most 0.15")
    if statistics.busiest.max() > 12:
        complaints.append(f"busiest expert {statistics.busiest.max():.1f}x, wanted at most 12x")
    real = [(f"distinct at {s}", statistics.distinct[s].mean(), REAL_DISTINCT[s]) for s in SPANS]
    real += [(f"hits at {s}", statistics.hits[s].mean(), REAL_HITS[s]) for s in SLOTS]
    for name, ours, theirs in real:
        if not 0.75 * theirs <= ours <= 1.25 * theirs:
            complaints.append(f"{name}: {ours:.2f}, real {theirs:.2f}")
    return complaints
