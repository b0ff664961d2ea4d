"""Costs by residency: exactly searched, and what they are fitted to."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from specfit.base.types import DraftTree, Routes, SpecfitError
from specfit.selection.cost import CostModel
from specfit.selection.cost_forms import Union, pricing_named
from specfit.selection.miss_cost_fit import SHARES, WEIGHTS, best_prices, candidates, fit_misses
from specfit.selection.residency_cost import HitMiss, Miss, Weighted, resident_bits
from tests.selection.pools import random_tree

EXPERTS = 70  # more than one word of a bitmap
COST = CostModel(1e6 + 3e5 * np.arange(5), 2e5)


def random_pool(rng: np.random.Generator) -> tuple[DraftTree, Routes]:
    """A small pool whose rows share many of a layer's experts."""
    tree = random_tree(rng, [2, int(rng.integers(1, 5))])
    ids = [[rng.choice(EXPERTS, 6, replace=False) for _ in range(2)] for _ in range(1 + len(tree))]
    atlas = np.array(ids)
    shared = rng.random(len(atlas)) < 0.5
    atlas[shared, 0] = atlas[0, 0]
    return tree, Routes(atlas[0], atlas[1:])


def brute(tree, routes, resident, miss, hit, price):  # type: ignore[no-untyped-def]
    """Best ratio of all legal subtrees by exact fractions: value, then fewer nodes, then lowest."""
    best = None
    for size in range(5):
        for nodes in combinations(range(len(tree)), size):
            if any(tree.parents[n] >= 0 and tree.parents[n] not in nodes for n in nodes):
                continue
            ids = np.concatenate([routes.root[None], routes.nodes[list(nodes)]])
            units = 0
            for layer in range(ids.shape[1]):
                for expert in set(ids[:, layer].reshape(-1).tolist()):
                    units += hit if resident[layer, expert] else miss
            reward = (1 << 20) + int(tree.path_probs[list(nodes)].sum())
            time = Fraction(float(COST.intercepts_ns[size])) + Fraction(price) / miss * units
            key = (-Fraction(reward) / time, size, nodes)
            best = key if best is None or key < best else best
    return best[2]  # type: ignore[index]


@pytest.mark.parametrize(("miss", "hit"), [(1, 0), (4, 1), (2, 1), (1, 1), (3, 2)])
def test_the_search_is_exact_at_every_pair_of_weights(miss: int, hit: int) -> None:
    rng = np.random.default_rng(miss * 10 + hit)
    changed = 0
    for _ in range(40):
        tree, routes = random_pool(rng)
        resident = rng.random((len(routes.root), EXPERTS)) < 0.6
        pricing = Weighted(COST, EXPERTS, 4, miss, hit)
        pricing.watch(lambda: resident)  # noqa: B023
        found = pricing.best(tree, routes)
        assert found.nodes == brute(tree, routes, resident, miss, hit, COST.expert_ns)
        changed += found.nodes != Union(COST, EXPERTS, 4).best(tree, routes).nodes
    assert changed or (miss, hit) == (1, 1), "residency decides something, or nothing is shown"


def test_equal_prices_are_the_union() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        tree, routes = random_pool(rng)
        resident = rng.random((len(routes.root), EXPERTS)) < 0.5
        pricing = HitMiss(COST, EXPERTS, 4)
        pricing.watch(lambda: resident)  # noqa: B023
        assert pricing.best(tree, routes) == Union(COST, EXPERTS, 4).best(tree, routes)


def test_an_empty_cache_makes_misses_the_union() -> None:
    rng = np.random.default_rng(6)
    tree, routes = random_pool(rng)
    pricing = pricing_named("miss")(COST, EXPERTS, 4)
    assert isinstance(pricing, Miss)
    pricing.watch(lambda: np.zeros((len(routes.root), EXPERTS), dtype=np.bool_))
    assert pricing.best(tree, routes) == Union(COST, EXPERTS, 4).best(tree, routes)
    full = Miss(COST, EXPERTS, 4)
    full.watch(lambda: np.ones((len(routes.root), EXPERTS), dtype=np.bool_))
    assert full.best(tree, routes).demand == 0


def test_bits_of_residents() -> None:
    resident = np.zeros((2, EXPERTS), dtype=np.bool_)
    resident[0, 3] = resident[1, 69] = True
    assert resident_bits(resident, EXPERTS).tolist() == [1 << 3, 0, 0, 1 << 5]


def test_a_miss_is_fitted_and_weights_are_kept() -> None:
    sizes, missing = [0, 0, 1, 1, 2, 2], [3, 5, 4, 9, 0, 6]
    times = [100 + 10 * s + 7 * m for s, m in zip(sizes, missing, strict=True)]
    fitted = fit_misses(sizes, missing, times, 2)
    assert fitted.intercepts_ns.tolist() == pytest.approx([100, 110, 120])
    assert fitted.expert_ns == pytest.approx(7)
    again = CostModel.from_dict(CostModel(fitted.intercepts_ns, 7.0, (4, 1)).to_dict())
    assert again.weights == (4, 1)
    assert "weights" not in fitted.to_dict(), "files of the other costs keep their bytes"
    with pytest.raises(SpecfitError, match="no calibration probe missed"):
        fit_misses([0, 1], [0, 0], [5, 6], 1)


def test_prices_are_those_of_most_throughput() -> None:
    fitted = CostModel(np.ones(3), 10.0)
    assert len(list(candidates(fitted))) == len(SHARES) * len(WEIGHTS)
    best, tried = best_prices(fitted, lambda c: -abs(c.expert_ns - 5.5) - c.weights[1])
    assert best.expert_ns == pytest.approx(5.5) and best.weights == (1, 0)
    assert [share for share, _, _ in tried] == [*SHARES] * len(WEIGHTS)


def test_a_miss_that_costs_nothing_has_prices_too() -> None:
    fitted = CostModel(np.ones(3), 0.0)
    best, tried = best_prices(fitted, lambda cost: 1.0)
    assert best.expert_ns == 0 and len(tried) == len(SHARES) * len(WEIGHTS)
