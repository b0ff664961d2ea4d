"""A cost per drafted level: what T is, which trees it moves, and who refuses it."""

from __future__ import annotations

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE, DraftTree, Routes, SpecfitError
from specfit.selection.cost import CostModel, LevelCost
from specfit.selection.objective import LambdaRule
from specfit.selection.registry import SELECTORS, SelectorArgs
from specfit.selection.selectors import SpecFit

COST = CostModel(np.array([100.0, 110.0, 120.0]), 1.0)
EXPERTS, LAYERS, TOP = 8, 1, 2


def pool(levels: int, chance: float) -> tuple[DraftTree, Routes]:
    """A chain whose nodes each use two experts that no other node uses; the root two more."""
    tree = DraftTree.empty()
    for level in range(levels):
        path = int(PROBABILITY_ONE * chance ** (level + 1))
        tree = tree.grown(np.array([level]), np.array([level - 1]), np.array([path]))
    nodes = np.array([[[2 * i + 2, 2 * i + 3]] for i in range(levels)]).reshape(-1, LAYERS, TOP)
    return tree, Routes(np.array([[0, 1]]), nodes)


def test_t_is_of_the_cycle_that_ends_here() -> None:
    level = LevelCost(10.0, 3)
    assert level.spared(COST, 3).intercepts_ns.tolist() == [100, 110, 120]
    assert level.spared(COST, 1).intercepts_ns.tolist() == [80, 90, 100]
    assert level.spared(COST, 9).intercepts_ns.tolist() == [100, 110, 120]
    assert LevelCost(60.0, 3).spared(COST, 1).intercepts_ns.tolist() == [0, 0, 0]


def test_a_shallow_pool_is_cheaper_and_a_tree_must_earn_more() -> None:
    tree, routes = pool(1, 0.14)  # adds .14 tokens and 12 ns to 102
    plain, priced = (SpecFit(COST, EXPERTS, 2, level=level) for level in (None, LevelCost(10.0, 3)))
    without, with_level = plain.select(tree, routes), priced.select(tree, routes)
    assert (without.nodes, with_level.nodes) == ((0,), ())
    assert (without.predicted_ns, with_level.predicted_ns) == (114, 82)


def test_a_full_pool_is_the_papers() -> None:
    tree, routes = pool(3, 0.5)
    found = [SpecFit(COST, EXPERTS, 2, level=level) for level in (None, LevelCost(10.0, 3))]
    a, b = (selector.select(tree, routes) for selector in found)
    assert (a.nodes, a.predicted_ns) == (b.nodes, b.predicted_ns)


def test_a_price_of_time_asks_for_the_same_tree_at_every_level() -> None:
    """A constant does not move the optimum of R - lambda T."""
    tree, routes = pool(1, 0.14)
    for tokens_per_s in (1e5, 1e6, 5e6, 1e7, 2e7):
        rules = [LambdaRule(tokens_per_s) for _ in range(2)]
        a, b = (
            SpecFit(COST, EXPERTS, 2, rule=rule, level=level).select(tree, routes)
            for rule, level in zip(rules, (None, LevelCost(10.0, 3)), strict=True)
        )
        assert a.nodes == b.nodes


@pytest.mark.parametrize("name", ["greedy", "closure"])
def test_a_rule_of_full_depth_cycles_refuses_it(name: str) -> None:
    args = SelectorArgs(name, 2, True, EXPERTS, COST, level=LevelCost(10.0, 3))
    with pytest.raises(SpecfitError, match="use level_cost_ms=0"):
        SELECTORS[name].make(args)
