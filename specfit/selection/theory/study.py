"""The ratio rule beside the throughput-optimal one on recorded pools (app. A.1, A.2, A.4).

With E read as the mean over the cycles given, everything here is exact. Symbols as in the paper:
S^ the per-cycle ratio maximiser, rho its ratio, S_l the maximiser of R - l T, lambda* the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specfit.base.types import PROBABILITY_ONE, DraftTree, Routes
from specfit.selection.bitmaps import bitmaps
from specfit.selection.cost import CostModel
from specfit.selection.search import SubtreeSearch
from specfit.selection.theory.bounds import Outcome, bound_1, lambda_star, throughput
from specfit.selection.theory.subtrees import Legal, legal_columns

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """One recorded cycle: its full pool, its routes, what of it the target accepts."""

    tree: DraftTree
    routes: Routes
    accepted: NDArray[np.bool_]


@dataclass(frozen=True)
class Choice:
    """What a rule takes of one pool, priced."""

    index: int  # among the pool's legal subtrees
    reward: float  # tokens
    time_ns: float
    demand: int
    size: int
    tokens: int  # committed with the recorded acceptances


@dataclass(frozen=True)
class Comparison:
    """Numbers of one workload, one cost, one weighting; ratios only, n beside them."""

    cycles: int
    ratio_throughput: float  # lambda^, predicted tokens per ns
    best_throughput: float  # lambda*
    bound: float  # on best - ratio throughput
    different: float  # share of cycles whose two trees differ
    realised_gain: float  # recorded tokens per predicted time, S* over S^, minus one
    early_stops: float  # share of cycles that stop before the last level
    lost_by_stop: float  # share whose full-pool optimum lies below the stop
    stop_loss: float  # of the cycle's own ratio, mean over all cycles
    stop_gain: float  # predicted tokens per time of the stopped trees over the full pools', - 1
    levels: float  # drafted, mean
    nodes_per_token: float
    demand_per_token: float
    nodes_per_token_double: float  # selected at twice beta
    demand_per_token_double: float

    @property
    def gap(self) -> float:
        return 1 - self.ratio_throughput / self.best_throughput

    @property
    def relative_bound(self) -> float:
        return self.bound / self.best_throughput


class Pools:
    """Legal subtrees of every state, reduced once to the few that any rule of a cost can take."""

    def __init__(self, states: Sequence[State], experts: int, k: int) -> None:
        self.states, self.experts, self.k = states, experts, k
        self.legal = [
            legal_columns(s.tree, bitmaps(s.routes, experts), s.accepted, k) for s in states
        ]

    def ratio_rule(self, cost: CostModel) -> list[Choice]:
        return [_best(legal, cost, None) for legal in self.legal]

    def lambda_rule(self, cost: CostModel, rate: float) -> list[Choice]:
        """argmax R - rate T; R in tokens, rate in tokens per ns."""
        return [_best(legal, cost, rate) for legal in self.legal]


def _best(legal: Legal, cost: CostModel, rate: float | None) -> Choice:
    """Ties: fewer nodes, then the first met, which is lexicographically lowest."""
    time = legal.time_ns(cost)
    value = legal.reward / time if rate is None else legal.reward / PROBABILITY_ONE - rate * time
    top = np.flatnonzero(value == value.max())
    index = int(top[np.argmin(legal.size[top])])
    return Choice(
        index,
        float(legal.reward[index] / PROBABILITY_ONE),
        float(time[index]),
        int(legal.demand[index]),
        int(legal.size[index]),
        1 + int(legal.accepted[index]),
    )


def outcome(choices: Sequence[Choice]) -> Outcome:
    return Outcome(_column(choices, "reward"), _column(choices, "time_ns"))


def compare(pools: Pools, cost: CostModel, weights: Floats | None = None) -> Comparison:
    """`weights` counts how often each state is met; None: every recorded position once."""
    n = len(pools.states)
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    ratio = pools.ratio_rule(cost)
    low = throughput(outcome(ratio), weights)
    found = lambda_star(low, lambda rate: outcome(pools.lambda_rule(cost, rate)), weights)
    high, best = found.rate, pools.lambda_rule(cost, found.rate)
    double = pools.ratio_rule(CostModel(cost.intercepts_ns, 2 * cost.expert_ns))
    stops = [_stop(state, cost, pools) for state in pools.states]
    full = [len(state.tree) and state.tree.levels for state in pools.states]
    levels = [stop.levels for stop in stops]
    stopped = Outcome(_column(stops, "reward"), _column(stops, "time_ns"))

    def share(marks: Sequence[bool]) -> float:
        return float(weights @ np.array(marks, dtype=np.float64) / weights.sum())

    def per_token(choices: Sequence[Choice], name: str) -> float:
        return float(weights @ _column(choices, name) / (weights @ _column(choices, "tokens")))

    def realised(choices: Sequence[Choice]) -> float:
        return float(weights @ _column(choices, "tokens") / (weights @ _column(choices, "time_ns")))

    return Comparison(
        cycles=int(weights.sum()),
        ratio_throughput=float(low),
        best_throughput=float(high),
        bound=float(bound_1(outcome(ratio), outcome(best), high, weights)),
        different=share([a.index != b.index for a, b in zip(ratio, best, strict=True)]),
        realised_gain=realised(best) / realised(ratio) - 1,
        early_stops=share([here < most for here, most in zip(levels, full, strict=True)]),
        lost_by_stop=share([stop.lost for stop in stops]),
        stop_loss=mean_loss(stopped, outcome(ratio), weights),
        stop_gain=float(throughput(stopped, weights) / low - 1),
        levels=float(weights @ np.array(levels) / weights.sum()),
        nodes_per_token=per_token(ratio, "size"),
        demand_per_token=per_token(ratio, "demand"),
        nodes_per_token_double=per_token(double, "size"),
        demand_per_token_double=per_token(double, "demand"),
    )


def recorded_sums(pools: Pools, cost: CostModel, rate: float) -> Floats:
    """[n, 4]: recorded tokens and predicted ns of every state under S*, then under S^."""
    rules = pools.lambda_rule(cost, rate), pools.ratio_rule(cost)
    names = ("tokens", "time_ns")
    return np.stack([_column(choices, name) for choices in rules for name in names], axis=1)


def mean_loss(taken: Outcome, best: Outcome, weights: Floats) -> float:
    """Mean share of the cycle's largest ratio that the trees taken do not reach."""
    ratios = (taken.rewards / taken.times) / (best.rewards / best.times)
    return float(1 - weights @ ratios / weights.sum())


def _column(choices: Sequence[Choice] | Sequence[Stop], name: str) -> Floats:
    return np.array([getattr(choice, name) for choice in choices], dtype=np.float64)


@dataclass(frozen=True)
class Stop:
    """Where drafting ends in one state, and what is then verified."""

    levels: int
    reward: float  # tokens
    time_ns: float
    lost: bool  # the full pool's optimum holds a node that was not drafted


def _stop(state: State, cost: CostModel, pools: Pools) -> Stop:
    """Level by level, until the search takes no node of the newest (app. A.2)."""
    search, rows = SubtreeSearch(cost, pools.k), bitmaps(state.routes, pools.experts)
    for levels in range(1, state.tree.levels + 1):
        part = state.tree.upto(levels)
        found = search.best(part, rows)
        if not any(int(part.depths[node]) == levels for node in found.nodes):
            break
    lost = search.best(state.tree, rows).nodes != found.nodes
    return Stop(levels, found.reward / PROBABILITY_ONE, found.predicted_ns, lost)
