"""The closure equals enumeration wherever enumeration can go, and refuses what it cannot do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE, DraftTree, Routes, SpecfitError
from specfit.selection.cost import CostModel
from specfit.selection.min_cut import Closure, Network, Pairs, Whole, affine, best_closure
from specfit.selection.registry import SelectorArgs, selector_spec
from specfit.selection.search import SubtreeSearch
from tests.selection.pools import Pool, legal, masks, random_pool, random_tree, union_count

NODES = 11


def affine_cost(rng: np.random.Generator, k: int) -> CostModel:
    """A third with small whole coefficients, so that ratios tie; zeros among them."""
    if rng.random() < 0.33:
        base, node, expert = (int(v) for v in rng.integers(0, 4, 3))
        return CostModel(1.0 + base + node * np.arange(k + 1.0), float(expert))
    base, node, expert = rng.uniform(0, [90, 30, 9]) * (rng.random(3) < 0.85)
    return CostModel(1.0 + base + node * np.arange(k + 1), float(expert))


def test_equal_to_enumeration() -> None:
    """600 pools, the ties of small whole numbers in a third: nodes, reward, demand and time."""
    rng = np.random.default_rng(0)
    sizes, cuts = [], []
    for _ in range(600):
        pool = random_pool(rng, most=NODES)
        cost = affine_cost(rng, NODES)
        found = best_closure(pool.tree, pool.routes, cost, pool.experts)
        best = SubtreeSearch(cost, NODES, prune=False).best(pool.tree, pool.rows())
        assert found[:4] == best[:4]
        sizes.append(len(found.nodes))
        cuts.append(found.cuts)
    assert 50 < np.count_nonzero(sizes) < 550 and max(sizes) > 7 and 2 <= max(cuts) <= NODES + 2


def test_it_is_the_fewest_node_maximiser_in_rationals() -> None:
    """300 pools, whole coefficients: of all exact maximisers, the one inside every other."""
    rng = np.random.default_rng(1)
    tied = 0
    for _ in range(300):
        pool = random_pool(rng, most=9)
        pool.tree.path_probs[:] = pool.tree.path_probs >> 17 << 17  # eighths
        base, node, expert = (int(v) for v in rng.integers(0, 4, 3))
        cost = CostModel(2.0 + base + node * np.arange(10.0), float(expert))
        known = masks(pool.routes)
        ratios = {
            nodes: Fraction(
                PROBABILITY_ONE + sum(int(pool.tree.path_probs[n]) for n in nodes),
                2 + base + node * len(nodes) + expert * union_count(pool.routes, nodes, known),
            )
            for nodes in legal(pool.tree, 9)
        }
        best = [set(nodes) for nodes, ratio in ratios.items() if ratio == max(ratios.values())]
        found = set(best_closure(pool.tree, pool.routes, cost, pool.experts).nodes)
        assert found in best and all(found <= other for other in best)
        tied += len(best) > 1
    assert tied > 20


def test_cuts_are_nested_and_maximise_the_price_of_time() -> None:
    """200 pools: rising prices, exact maxima of R - l T by enumeration, shrinking selections."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        pool = random_pool(rng, most=8)
        if not len(pool.tree):
            continue
        cost = Whole(*(int(v) for v in rng.integers(1, 9, 3)))
        pairs = Pairs.of(pool.routes, pool.experts)
        network = Network(pool.tree, pairs, cost, pool.tree.path_probs)
        known = masks(pool.routes)
        before = set(range(len(pool.tree)))
        for reward in sorted(rng.integers(0, 1 << 20, 4).tolist()):
            time = int(rng.integers(30, 40)) if reward == 0 else 40
            rate = Fraction(reward, time)

            def value(nodes: tuple[int, ...], rate=rate, pool=pool, cost=cost, known=known):
                demand = union_count(pool.routes, nodes, known)
                gained = sum(int(pool.tree.path_probs[n]) for n in nodes)
                return gained - rate * cost.time(len(nodes), demand)

            best = max(value(nodes) for nodes in legal(pool.tree, 8))
            chosen = tuple(np.flatnonzero(network.cut(reward, time)).tolist())
            assert value(chosen) == best
            assert set(chosen) <= before
            before = set(chosen)


def test_pairs_of_the_root_are_free() -> None:
    pool = random_pool(np.random.default_rng(3), most=6)
    same = Routes(pool.routes.root, np.repeat(pool.routes.root[None], len(pool.tree), 0))
    pairs = Pairs.of(same, pool.experts)
    assert pairs.count == 0 and pairs.root_demand == pool.routes.root.size


def real_pool(rng: np.random.Generator, levels: list[int]) -> Pool:
    tree = random_tree(rng, levels)
    common = 1.5 * rng.standard_normal((1, 48, 128))
    scores = common + rng.standard_normal((1 + len(tree), 48, 128))
    ids = np.argpartition(-scores, 8, axis=-1)[..., :8].astype(np.int64)
    return Pool(tree, Routes(ids[0], ids[1:]), 128)


@pytest.mark.parametrize("node_ns", [0.6e6, 0.6e6 + 1 / 3])
def test_the_paper_s_geometry(node_ns: float) -> None:
    """18 nodes, 48 layers x 128 experts, coefficients in nanoseconds, not all of them whole."""
    rng = np.random.default_rng(4)
    cost = CostModel(85e6 + node_ns * np.arange(19), 37_760.123)
    for _ in range(5):
        pool = real_pool(rng, [2, 4, 4, 4, 4])
        found = best_closure(pool.tree, pool.routes, cost, 128)
        assert found[:4] == SubtreeSearch(cost, 18).best(pool.tree, pool.rows())[:4]
        assert found.nodes


@pytest.mark.slow
def test_a_thousand_nodes() -> None:
    pool = real_pool(np.random.default_rng(5), [100] * 10)
    cost = CostModel(85e6 + 0.6e6 * np.arange(1001), 3776.0)
    found = best_closure(pool.tree, pool.routes, cost, 128)
    assert len(found.nodes) > 7 and found.cuts <= 1002
    some = SubtreeSearch(CostModel(cost.intercepts_ns[:3], 3776.0), 2).best(pool.tree, pool.rows())
    assert found.reward / found.predicted_ns >= some.reward / some.predicted_ns


@pytest.mark.parametrize(
    "intercepts, expert_ns, sentence",
    [
        ([5.0, 6.0, 8.0], 1.0, "b_1 is"),
        ([5e6, 6e6, 7e6 - 100], 1.0, "line"),
        ([5.0, 4.0, 3.0], 1.0, "do not fall"),
        ([0.0, 1.0, 2.0], 0.5, "at least 1 ns"),
    ],
)
def test_what_is_no_line_or_falls_is_refused(
    intercepts: list[float], expert_ns: float, sentence: str
) -> None:
    with pytest.raises(SpecfitError, match=sentence):
        affine(CostModel(np.array(intercepts), expert_ns))


def closure(k: int, cost_k: int) -> Closure:
    cost = CostModel(50 + 1.0 * np.arange(cost_k + 1), 1.0)
    made = selector_spec("closure").make(SelectorArgs("closure", k, True, 128, cost))
    assert isinstance(made, Closure)
    return made


def test_the_selector_takes_the_whole_pool_or_says_that_k_is_too_small() -> None:
    pool = random_pool(np.random.default_rng(6), most=9)
    assert 3 < len(pool.tree) <= 9
    cost = CostModel(50 + 1.0 * np.arange(10), 1.0)
    selector = Closure(cost, pool.experts, 9)
    selection = selector.select(pool.tree, pool.routes)
    selection.check(pool.tree, 9)
    best = SubtreeSearch(cost, 9).best(pool.tree, pool.rows())
    assert (selection.nodes, selection.predicted_reward) == (best.nodes, best.reward)
    assert selector.select(DraftTree.empty(), Routes(pool.routes.root, pool.routes.nodes[:0]))
    with pytest.raises(SpecfitError, match="pool's size"):
        Closure(CostModel(np.full(4, 50.0), 1.0), pool.experts, 3).select(pool.tree, pool.routes)
    with pytest.raises(SpecfitError, match="prices at most 5"):
        closure(9, 5)
    assert closure(18, 18).k == 18
