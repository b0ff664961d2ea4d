"""The expected union: exact search against brute force, and the union where routes are certain."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specfit.base.types import CHANCE_ONE, PROBABILITY_ONE, DraftTree, Routes, SpecfitError
from specfit.selection import expected_cost as expected_module
from specfit.selection.cost import CostModel
from specfit.selection.cost_forms import Union, pricing_named
from specfit.selection.expected_cost import EXPERT, ExpectedUnion, chances_of
from specfit.selection.selectors import SpecFit
from tests.selection.pools import Pool, legal, plain_time, random_cost, random_pool


def unsure(rng: np.random.Generator, pool: Pool) -> Routes:
    """The pool's routes with chances: anything, few values, or surely not."""
    shape = (1 + len(pool.tree), len(pool.routes.root), pool.experts)
    kind = rng.integers(3)
    if kind == 0:
        chances = rng.integers(0, CHANCE_ONE, shape)
    elif kind == 1:
        chances = rng.choice([0, 128, 255], shape)
    else:
        chances = np.zeros(shape)
    return replace(pool.routes, chances=chances.astype(np.uint8))


def plain_expected(chances: np.ndarray, nodes: tuple[int, ...]) -> int:
    """E[F] in units of 2**-20 by Python integers, rounded down once per row."""
    total = 0
    for column in chances[[0, *(n + 1 for n in nodes)]].T.tolist():
        left = EXPERT
        for chance in column:
            left = left * (CHANCE_ONE - chance) // CHANCE_ONE
        total += EXPERT - left
    return total


def brute_force(pool: Pool, routes: Routes, cost: CostModel, k: int) -> tuple[object, ...]:
    chances, per_unit = (
        chances_of(routes, pool.experts),
        replace(cost, expert_ns=cost.expert_ns / EXPERT),
    )
    ranked = []
    sets = legal(pool.tree, k)
    for nodes in sets:
        reward = PROBABILITY_ONE + sum(int(pool.tree.path_probs[n]) for n in nodes)
        demand = plain_expected(chances, nodes)
        ratio = reward / plain_time(per_unit, len(nodes), demand)
        ranked.append((-ratio, len(nodes), nodes, reward, demand))
    _, _, nodes, reward, demand = min(ranked)
    return nodes, reward, demand, len(sets)


def test_search_equals_brute_force() -> None:
    rng = np.random.default_rng(0)
    empty = 0
    for _ in range(250):
        pool, k = random_pool(rng, most=7), int(rng.integers(0, 6))
        cost, routes = random_cost(rng, k), unsure(rng, pool)
        every = ExpectedUnion(cost, pool.experts, k, prune=False).best(pool.tree, routes)
        nodes, reward, demand, count = brute_force(pool, routes, cost, k)
        assert every[:3] == (nodes, reward, demand) and every.searched_subtrees == count
        some = ExpectedUnion(cost, pool.experts, k).best(pool.tree, routes)
        assert some[:4] == every[:4] and 1 <= some.searched_subtrees <= count
        empty += not nodes
    assert 10 < empty < 240, "the pools exercise what they claim"


def test_certain_routes_give_the_union_to_the_bit() -> None:
    """Without chances, an id is certain: same nodes, reward, time and subtrees as cost=union."""
    rng = np.random.default_rng(1)
    for _ in range(400):
        pool, cost = random_pool(rng, most=18), random_cost(rng, 7)
        price = None if rng.random() < 0.7 else float(rng.uniform(0, 1e4))
        union = Union(cost, pool.experts, 7).best(pool.tree, pool.routes, price)
        found = ExpectedUnion(cost, pool.experts, 7).best(pool.tree, pool.routes, price)
        assert found.demand == union.demand * EXPERT
        assert found[:2] == union[:2] and found[3:] == union[3:]


@settings(deadline=None)  # of a busy machine it says nothing about the code
@given(st.integers(0, 2**32), st.integers(1, 9))
def test_monotone_and_submodular(seed: int, rows: int) -> None:
    """A further row never lowers E[F], and adds no more to a larger set, rounding included where
    both sets meet the row last."""
    rng = np.random.default_rng(seed)
    chances = rng.integers(0, CHANCE_ONE + 1, (rows + 2, 40)).astype(np.uint16)
    small = tuple(i for i in range(rows) if rng.random() < 0.4)
    large = tuple(sorted({*small, *(i for i in range(rows) if rng.random() < 0.6)}))
    last = rows  # the highest node
    gain = [
        plain_expected(chances, (*nodes, last)) - plain_expected(chances, nodes)
        for nodes in (small, large)
    ]
    assert gain[1] >= 0
    # products of other orders differ by one unit a row and column at most
    assert gain[0] >= gain[1] - 40 * rows
    assert plain_expected(chances, large) >= plain_expected(chances, small) - 40 * rows


def test_the_plain_demand_is_the_product_rule() -> None:
    """Within rounding of 1 - prod(1 - q) in rationals."""
    rng = np.random.default_rng(2)
    chances = rng.integers(0, CHANCE_ONE + 1, (6, 30)).astype(np.uint16)
    exact = Fraction(0)
    for column in chances[[0, 2, 4, 5]].T.tolist():
        left = Fraction(1)
        for chance in column:
            left *= 1 - Fraction(chance, CHANCE_ONE)
        exact += 1 - left
    difference = Fraction(plain_expected(chances, (1, 3, 4)), EXPERT) - exact
    assert 0 <= difference <= Fraction(30 * 4, EXPERT)


def test_a_doubtful_expert_costs_less_than_a_sure_one() -> None:
    """Two children of equal reward: the one whose new experts are unlikely is verified."""
    tree = DraftTree(*(np.array(v) for v in ([1, 2], [-1, -1], [1, 1], [1 << 19, 1 << 19])))
    ids = np.zeros((3, 1, 1), dtype=np.int64)
    chances = np.zeros((3, 1, 4), dtype=np.uint8)
    chances[1, 0, 1], chances[2, 0, 2] = 200, 20
    routes = Routes(ids[0], ids[1:], chances)
    cost = CostModel(np.array([10.0, 10.0]), 2.0)
    assert ExpectedUnion(cost, 4, 1).best(tree, routes).nodes == (1,)
    hard = Routes(ids[0], ids[1:])
    assert Union(cost, 4, 1).best(tree, hard).nodes == (0,)


def test_the_selector_takes_the_form_it_is_told() -> None:
    rng = np.random.default_rng(3)
    pool = random_pool(rng, most=8)
    cost, routes = random_cost(rng, 7), unsure(rng, pool)
    chosen = SpecFit(cost, pool.experts, pricing=pricing_named("expected_union"))
    assert chosen.select(pool.tree, routes).nodes == brute_force(pool, routes, cost, 7)[0]
    with pytest.raises(SpecfitError, match="use one of union, expected_union"):
        pricing_named("guess")


def test_chances_of_another_target_are_refused() -> None:
    routes = Routes(
        np.zeros((1, 1), dtype=np.int64),
        np.zeros((0, 1, 1), dtype=np.int64),
        np.zeros((1, 1, 8), dtype=np.uint8),
    )
    with pytest.raises(SpecfitError, match="has 8 experts a layer, and the target has 16"):
        chances_of(routes, 16)


def test_compiled_before_the_first_selection_and_never_again() -> None:
    priced = ExpectedUnion(CostModel(np.full(8, 50.0), 1.0), 128, 7)
    before = len(expected_module._search.signatures)
    tree = DraftTree(*(np.array(v, dtype=np.int32) for v in ([5, 6], [-1, -1], [1, 1], [9, 8])))
    for dtype in (np.uint8, np.int64):
        ids = np.asfortranarray(np.arange(24, dtype=dtype).reshape(3, 2, 4))
        priced.best(tree, Routes(ids[0], ids[1:]))
        priced.best(tree, Routes(ids[0], ids[1:], np.full((3, 2, 128), 9, dtype=np.uint8)))
    assert len(expected_module._search.signatures) == before
