"""`ecospec` and `greedy`: node by node, against plain re-implementations on sets."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE, ROOT
from specfit.selection.baselines.ecospec import EcoSpec
from specfit.selection.baselines.ratio_greedy import RatioGreedy
from specfit.selection.cost import CostModel
from specfit.selection.selectors import SpecFit
from tests.selection.baselines.making import routes_of, tree_of
from tests.selection.pools import Pool, plain_time, random_cost, random_pool, union_count


def open_nodes(pool: Pool, chosen: set[int]) -> list[int]:
    parents = pool.tree.parents.tolist()
    return [n for n, parent in enumerate(parents) if parent in chosen and n not in chosen]


# -- ecospec ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        # new experts + 1: A 3, B 1, C 4; p per that: 8/3, 6, 7/4
        (1, (1,)),
        # B's child D needs {2}: 5/2 < 8/3, so A comes second
        (2, (0, 1)),
        # then D needs nothing new: 5/1
        (3, (0, 1, 3)),
        (4, (0, 1, 2, 3)),
        (7, (0, 1, 2, 3)),
    ],
)
def test_ecospec_by_hand(k: int, expected: tuple[int, ...]) -> None:
    tree = tree_of((ROOT, 8), (ROOT, 6), (ROOT, 7), (1, 5))
    routes = routes_of({0, 1}, {2, 3}, {0, 1}, {4, 5, 6}, {2})
    assert EcoSpec(8, k).select(tree, routes).nodes == expected


def test_ecospec_is_its_definition() -> None:
    rng = np.random.default_rng(11)
    for _ in range(200):
        pool = random_pool(rng)
        chosen = {ROOT}
        for _ in range(min(5, len(pool.tree))):
            taken = tuple(sorted(chosen - {ROOT}))
            before = union_count(pool.routes, taken)

            worth = {
                node: Fraction(
                    int(pool.tree.path_probs[node]),
                    union_count(pool.routes, (*taken, node)) - before + 1,
                )
                for node in open_nodes(pool, chosen)
            }
            best = max(worth.values())
            chosen.add(min(node for node, value in worth.items() if value == best))
        selection = EcoSpec(pool.experts, 5).select(pool.tree, pool.routes)
        assert selection.nodes == tuple(sorted(chosen - {ROOT}))


# -- greedy ----------------------------------------------------------------------------------------


def test_greedy_misses_two_siblings_that_share_experts() -> None:
    """T = 10 + F, at most two nodes. A: 1.5/15 = .1 beats B or C alone, 1.375/14 = .098; then
    A, B: 1.875/18 = .104. The exact answer is B, C: 1.75/14 = .125.
    """
    tree = tree_of((ROOT, 8), (ROOT, 6), (ROOT, 6))
    routes = routes_of({0}, {1, 2, 3, 4}, {5, 6, 7}, {5, 6, 7})
    cost = CostModel(np.full(3, 10.0), 1.0)
    greedy = RatioGreedy(cost, 8, 2).select(tree, routes)
    exact = SpecFit(cost, 8, 2).select(tree, routes)
    assert greedy.nodes == (0, 1) and exact.nodes == (1, 2)
    assert greedy.predicted_reward == PROBABILITY_ONE * 15 // 8 and greedy.predicted_ns == 18


def test_greedy_is_its_definition_and_never_beats_the_exact_search() -> None:
    rng = np.random.default_rng(12)
    for _ in range(300):
        pool, cost = random_pool(rng), random_cost(rng, 5)

        def ratio(nodes: tuple[int, ...], pool: Pool = pool, cost: CostModel = cost) -> float:
            reward = PROBABILITY_ONE + sum(int(pool.tree.path_probs[n]) for n in nodes)
            return reward / plain_time(cost, len(nodes), union_count(pool.routes, nodes))

        chosen: tuple[int, ...] = ()
        met = [chosen]
        for _ in range(min(5, len(pool.tree))):
            open_now = open_nodes(pool, {ROOT, *chosen})
            best = max(open_now, key=lambda n: (ratio((*chosen, n)), -n))
            chosen = (*chosen, best)
            met.append(chosen)
        expected = max(met, key=lambda nodes: (ratio(nodes), -len(nodes)))
        selection = RatioGreedy(cost, pool.experts, 5).select(pool.tree, pool.routes)
        assert selection.nodes == tuple(sorted(expected))
        exact = SpecFit(cost, pool.experts, 5).select(pool.tree, pool.routes)
        assert ratio(selection.nodes) <= ratio(exact.nodes)
