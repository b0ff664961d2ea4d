"""What a line b_k = a + c k changes against free intercepts, and what the size limit costs (A.3).

The closure needs a line. Both fits come from the same probes, so on recorded pools three rules can
be told apart: free intercepts with at most K nodes (the paper's), the line with at most K nodes,
and the line without a limit. Times are predicted by the fit that a sentence names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specfit.selection.bitmaps import bitmaps
from specfit.selection.cost import CostModel
from specfit.selection.min_cut import best_closure
from specfit.selection.search import Found, SubtreeSearch
from specfit.selection.theory.bounds import Outcome, throughput
from specfit.selection.theory.study import Choice, Floats, Pools, State, mean_loss, outcome


@dataclass(frozen=True)
class Straightened:
    """Shares are of cycles, weighted. A loss is of a cycle's own ratio, mean over cycles, and never
    negative; a gain is of a ratio of sums, and can be: the ratio rule is not throughput-optimal."""

    cycles: int
    different: float  # line and free intercepts take different trees of at most K nodes
    loss: float  # of the line's trees, timed by the free fit
    gain: float  # predicted tokens per time of the free fit, line over free, minus one
    realised_gain: float  # the same with recorded tokens
    above_limit: float  # without a limit, more than K nodes are taken
    different_unlimited: float  # trees differ between the line with and without the limit
    limit_loss: float  # of the trees within the limit, timed by the line
    limit_gain: float  # predicted tokens per time of the line, with over without the limit, - 1
    largest: int  # nodes of the largest tree taken without a limit


def compare_line(
    pools: Pools, free: CostModel, line: CostModel, weights: Floats | None = None
) -> Straightened:
    """`line` is affine and prices whole pools; `weights` as in `study.compare`."""
    n = len(pools.states)
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    plain, straight = pools.ratio_rule(free), pools.ratio_rule(line)
    best = outcome(plain)
    retimed = _outcome([(c.reward, free.predict_ns(c.size, c.demand)) for c in straight])
    limited = [_limited(state, line, pools) for state in pools.states]
    unlimited = [best_closure(s.tree, s.routes, line, pools.experts) for s in pools.states]
    within = _outcome([(found.reward, found.predicted_ns) for found in limited])
    beyond = _outcome([(found.reward, found.predicted_ns) for found in unlimited])
    both = list(zip(limited, unlimited, strict=True))

    def share(marks: list[bool]) -> float:
        return float(weights @ np.array(marks, dtype=np.float64) / weights.sum())

    def realised(choices: list[Choice], timed: Outcome) -> float:
        tokens = np.array([choice.tokens for choice in choices], dtype=np.float64)
        return float(weights @ tokens / (weights @ timed.times))

    return Straightened(
        cycles=int(weights.sum()),
        different=share([a.index != b.index for a, b in zip(plain, straight, strict=True)]),
        loss=mean_loss(retimed, best, weights),
        gain=float(throughput(retimed, weights) / throughput(best, weights) - 1),
        realised_gain=realised(straight, retimed) / realised(plain, best) - 1,
        above_limit=share([len(found.nodes) > pools.k for found in unlimited]),
        different_unlimited=share([a.nodes != b.nodes for a, b in both]),
        limit_loss=mean_loss(within, beyond, weights),
        limit_gain=float(throughput(within, weights) / throughput(beyond, weights) - 1),
        largest=max(len(f.nodes) for f, w in zip(unlimited, weights, strict=True) if w > 0),
    )


def _outcome(pairs: list[tuple[float, float]]) -> Outcome:
    """From (reward, time) of every cycle."""
    rewards, times = np.array(pairs, dtype=np.float64).T
    return Outcome(rewards, times)


def _limited(state: State, cost: CostModel, pools: Pools) -> Found:
    """The best legal subtree of at most K nodes."""
    return SubtreeSearch(cost, pools.k).best(state.tree, bitmaps(state.routes, pools.experts))
