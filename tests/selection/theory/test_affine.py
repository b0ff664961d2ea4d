"""Free intercepts, a line, and no size limit on the same pools, against plain enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE
from specfit.selection.cost import CostModel
from specfit.selection.theory.affine import compare_line
from specfit.selection.theory.study import Pools, State, compare, recorded_sums
from tests.selection.pools import legal, random_cost, union_count
from tests.selection.theory.test_study import EXPERTS, K, state

Priced = tuple[float, float, tuple[int, ...]]


def best(one: State, cost: CostModel, k: int) -> Priced:
    """(reward, time, nodes) of the largest ratio; fewer nodes, then lower ones win a tie."""
    priced = []
    for nodes in legal(one.tree, k):
        reward = PROBABILITY_ONE + sum(int(one.tree.path_probs[n]) for n in nodes)
        time = cost.predict_ns(len(nodes), union_count(one.routes, nodes))
        priced.append((-reward / time, len(nodes), tuple(nodes), reward, time))
    _, _, nodes, reward, time = min(priced)
    return reward, time, nodes


def retimed(one: State, nodes: tuple[int, ...], cost: CostModel) -> float:
    return cost.predict_ns(len(nodes), union_count(one.routes, nodes))


@pytest.mark.parametrize("seed", range(12))
def test_against_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = [state(rng) for _ in range(8)]
    size = len(states[0].tree)
    free = random_cost(rng, K)
    line = CostModel(np.linspace(*sorted(rng.uniform(0, 60, 2)), size + 1), free.expert_ns + 0.5)
    weights = rng.integers(0, 3, 8).astype(float) + (np.arange(8) == 0)
    found = compare_line(Pools(states, EXPERTS, K), free, line, weights)

    plain = [best(one, free, K) for one in states]
    straight = [best(one, line, K) for one in states]
    whole = [best(one, line, size) for one in states]
    again = [retimed(s, nodes, free) for s, (_, _, nodes) in zip(states, straight, strict=True)]

    def mean(values: list[float]) -> float:
        return float(weights @ np.array(values) / weights.sum())

    both = list(zip(plain, straight, again, strict=True))
    assert found.cycles == weights.sum()
    assert found.different == pytest.approx(mean([a[2] != b[2] for a, b, _ in both]))
    losses = [1 - (b[0] / time) / (a[0] / a[1]) for a, b, time in both]
    assert found.loss == pytest.approx(mean(losses), abs=1e-12) and found.loss > -1e-12
    limits = [1 - (b[0] / b[1]) / (w[0] / w[1]) for b, w in zip(straight, whole, strict=True)]
    assert found.limit_loss == pytest.approx(mean(limits), abs=1e-12)
    assert found.above_limit == pytest.approx(mean([len(w[2]) > K for w in whole]))
    assert found.largest == max(len(w[2]) for w, n in zip(whole, weights, strict=True) if n)
    rates = [
        (weights @ [r[0] for r in rule]) / (weights @ np.array(times))
        for rule, times in ((straight, again), (plain, [a[1] for a in plain]))
    ]
    assert found.gain == pytest.approx(rates[0] / rates[1] - 1, abs=1e-12)


def test_a_fit_on_a_line_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    states = [state(rng) for _ in range(10)]
    line = CostModel(20.0 + 3.0 * np.arange(len(states[0].tree) + 1), 2.0)
    free = CostModel(line.intercepts_ns[: K + 1], line.expert_ns)
    found = compare_line(Pools(states, EXPERTS, K), free, line)
    assert (found.different, found.loss, found.gain, found.realised_gain) == (0, 0, 0, 0)


@pytest.mark.parametrize("seed", range(5))
def test_recorded_sums_are_what_the_gain_is_made_of(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pools, cost = Pools([state(rng) for _ in range(10)], EXPERTS, K), random_cost(rng, K)
    found = compare(pools, cost)
    tokens_best, ns_best, tokens, ns = recorded_sums(pools, cost, found.best_throughput).sum(axis=0)
    expected = (tokens_best / ns_best) / (tokens / ns) - 1
    assert found.realised_gain == pytest.approx(expected, abs=1e-12)
    assert -1e-12 <= found.stop_loss < 1
