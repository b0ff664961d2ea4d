"""The rules of app. A.1 on recorded pools, by brute force and by the bounds of theory.md."""

from __future__ import annotations

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE, Routes
from specfit.selection.bitmaps import bitmaps
from specfit.selection.search import SubtreeSearch
from specfit.selection.theory.bounds import throughput
from specfit.selection.theory.study import Pools, State, compare, outcome
from specfit.selection.theory.subtrees import legal_columns
from tests.selection.pools import legal, random_cost, random_tree, union_count

EXPERTS, K, PASSES = 24, 4, 40


def state(rng: np.random.Generator) -> State:
    tree = random_tree(rng, [2, 3, 2])
    ids = np.argsort(rng.random((1 + len(tree), 2, EXPERTS)), axis=-1)[..., :4]
    ids = np.ascontiguousarray(ids)
    accepted = np.zeros(len(tree), dtype=np.bool_)
    accepted[list(tree.path(len(tree) - 1))] = True
    return State(tree, Routes(ids[0], ids[1:]), accepted)


@pytest.mark.parametrize("seed", range(20))
def test_every_legal_subtree_is_listed_once(seed: int) -> None:
    one = state(np.random.default_rng(seed))
    rows = bitmaps(one.routes, EXPERTS)
    found = legal_columns(one.tree, rows, one.accepted, K)
    sets = sorted(legal(one.tree, K))
    assert len(found.reward) == len(sets)
    expected = [
        (
            PROBABILITY_ONE + sum(int(one.tree.path_probs[n]) for n in nodes),
            union_count(one.routes, nodes),
            len(nodes),
            sum(bool(one.accepted[n]) for n in nodes),
            max([int(one.tree.depths[n]) for n in nodes], default=0),
        )
        for nodes in sets
    ]
    columns = zip(
        *(getattr(found, c).tolist() for c in ("reward", "demand", "size", "accepted", "depth")),
        strict=True,
    )
    assert sorted(columns) == sorted(expected)


@pytest.mark.parametrize("seed", range(PASSES))
def test_bounds_and_order_of_the_two_rules(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    states = [state(rng) for _ in range(12)]
    cost = random_cost(rng, K)
    pools = Pools(states, EXPERTS, K)
    weights = rng.integers(0, 3, 12).astype(float) + (np.arange(12) == 0)
    found = compare(pools, cost, weights)
    eps = 1e-9 * found.best_throughput
    assert found.ratio_throughput <= found.best_throughput + eps
    assert found.best_throughput - found.ratio_throughput <= found.bound + eps
    for other in (0.0, found.ratio_throughput / 2, found.best_throughput * 2):
        taken = outcome(pools.lambda_rule(cost, other))
        assert throughput(taken, weights) <= found.best_throughput + eps
    assert 0 <= found.different <= 1 and 1 <= found.levels <= 3
    assert found.early_stops >= 0 and found.lost_by_stop <= found.early_stops


@pytest.mark.parametrize("seed", range(20))
def test_the_ratio_rule_is_the_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, cost = state(rng), random_cost(rng, K)
    (choice,) = Pools([one], EXPERTS, K).ratio_rule(cost)
    found = SubtreeSearch(cost, K).best(one.tree, bitmaps(one.routes, EXPERTS))
    assert (choice.size, choice.demand) == (len(found.nodes), found.demand)
    assert choice.reward == found.reward / PROBABILITY_ONE
