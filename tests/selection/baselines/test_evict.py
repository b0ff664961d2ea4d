from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE, ROOT, SpecfitError
from specfit.selection.baselines.evict import Evict
from specfit.selection.mean_by_size import BySize, by_size
from tests.selection.baselines.making import tree_of
from tests.selection.pools import random_pool

# By path score: A 12/16, its child 8/16, B 4/16, a child of B 2/16.
TREE = tree_of((ROOT, 12), (ROOT, 4), (0, 8), (1, 2))


def times(*values: float) -> BySize:
    return BySize(np.array(values), np.ones(len(values)))


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        # tokens 1, 1.75, 2.25, 2.5, 2.625
        ((100, 190, 260, 300, 400), ()),  # per 100: 1, .92, .87, .83, .66
        ((100, 150, 200, 300, 400), (0,)),  # 1, 1.17, 1.13, .83, .66
        ((100, 180, 180, 400, 400), (0, 2)),  # 1, .97, 1.25, .63, .66: past a dip
        ((100, 110, 120, 121, 400), (0, 1, 2)),  # 1, 1.59, 1.88, 2.07, .66
        ((100, 100, 100, 100, 100), (0, 1, 2, 3)),
        ((100, 175, 225, 250, 300), ()),  # all 1: fewer nodes
    ],
)
def test_the_prefix_by_hand(costs: tuple[float, ...], expected: tuple[int, ...]) -> None:
    selection = Evict(times(*costs), k=4).select(TREE, None)
    assert selection.nodes == expected
    assert selection.predicted_ns == costs[len(expected)]
    gained = sum(int(TREE.path_probs[node]) for node in expected)
    assert selection.predicted_reward == PROBABILITY_ONE + gained


def test_k_ends_the_prefix_before_the_cost_does() -> None:
    assert Evict(times(100, 100, 100, 100, 100), k=2).select(TREE, None).nodes == (0, 2)


def test_the_depth_rule_is_asked_for() -> None:
    assert not Evict(times(1, 1), 1).adaptive_depth
    assert Evict(times(1, 1), 1, adaptive_depth=True).adaptive_depth


def test_it_is_the_best_of_all_prefixes() -> None:
    rng = np.random.default_rng(8)
    for _ in range(300):
        tree = random_pool(rng).tree
        costs = rng.integers(1, 50, 8)
        chosen = Evict(times(*costs), k=7).select(tree, None)
        order = sorted(range(len(tree)), key=lambda n: (-int(tree.path_probs[n]), n))
        rewards = [
            PROBABILITY_ONE + sum(int(tree.path_probs[n]) for n in order[:size])
            for size in range(min(7, len(tree)) + 1)
        ]
        values = [Fraction(r, int(c)) for r, c in zip(rewards, costs, strict=False)]
        assert chosen.nodes == tuple(sorted(order[: values.index(max(values))]))


def test_costs_by_node_count_are_means_of_the_probability_family() -> None:
    families = ["probability", "union"] * 4
    sizes = [0, 0, 1, 1, 0, 0, 1, 1]
    found = by_size(families, sizes, [8, 8, 12, 9, 10, 10, 14, 9], [5, 9, 7, 9, 7, 9, 8, 9], 1)
    assert found.times_ns.tolist() == [6.0, 7.5] and found.demands.tolist() == [9.0, 13.0]
    with pytest.raises(SpecfitError, match="the 2 most probable"):
        by_size(families, sizes, sizes, sizes, 2)
