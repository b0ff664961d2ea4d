from __future__ import annotations

from fractions import Fraction

import numpy as np

from specfit.base.types import PROBABILITY_ONE, DraftTree, Routes
from specfit.selection.bitmaps import bitmaps
from specfit.selection.cost import CostModel
from specfit.selection.search import Found, SubtreeSearch
from tests.selection.pools import (
    Pool,
    brute_force,
    legal,
    plain_time,
    random_cost,
    random_pool,
    union_count,
)


def search(pool: Pool, searcher: SubtreeSearch) -> Found:
    return searcher.best(pool.tree, pool.rows())


def test_search_equals_brute_force() -> None:
    """2,500 pools: nodes, reward, demand and time to the bit; each legal subtree counted once."""
    rng = np.random.default_rng(0)
    tied = empty = 0
    for _ in range(2500):
        pool, k = random_pool(rng, most=8), int(rng.integers(0, 8))
        cost = random_cost(rng, k)
        found = search(pool, SubtreeSearch(cost, k, prune=False))
        nodes, reward, demand, count = brute_force(pool, cost, k)
        assert (found.nodes, found.reward, found.demand) == (nodes, reward, demand)
        assert found.predicted_ns == plain_time(cost, len(nodes), demand)
        assert found.searched_subtrees == count
        pruned = search(pool, SubtreeSearch(cost, k))
        assert pruned[:4] == found[:4] and 1 <= pruned.searched_subtrees <= count
        tied += len(set(pool.tree.path_probs.tolist())) < len(pool.tree)
        empty += not nodes
    assert tied > 500 and 100 < empty < 2400, "the pools exercise what they claim"


def test_paper_shape_equals_brute_force() -> None:
    """18 nodes in five levels, K = 7, one reused workspace."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        pool = random_pool(rng, most=18)
        cost = random_cost(rng, 7)
        searcher = SubtreeSearch(cost, 7, prune=False)
        for nodes in (18, 2, 10):
            part = pool.prefix(min(nodes, len(pool.tree)))
            best = brute_force(part, cost, 7)
            found = search(part, searcher)
            assert (found.nodes, found.reward, found.demand, found.searched_subtrees) == best


def test_pruning_changes_no_answer() -> None:
    """2,000 larger pools, a third of them flat: equal probabilities, routes and intercepts."""
    rng = np.random.default_rng(2)
    saved = total = 0
    for i in range(2000):
        pool, cost = random_pool(rng, most=22), random_cost(rng, 7)
        if i % 3 == 0:
            pool.tree.path_probs[:] = rng.choice([0, 1, 1 << 19, PROBABILITY_ONE])
            cost = CostModel(np.full(8, 50.0), float(rng.choice([0.0, 1.0])))
        rows = pool.rows()
        every = SubtreeSearch(cost, 7, prune=False).best(pool.tree, rows)
        some = SubtreeSearch(cost, 7).best(pool.tree, rows)
        assert some[:4] == every[:4]
        saved += every.searched_subtrees - some.searched_subtrees
        total += every.searched_subtrees
    assert saved > total / 2, "the bounds bite"


def test_all_ties_resolve_to_fewest_then_lowest() -> None:
    tree = DraftTree(
        np.arange(4), np.array([-1, -1, 0, 1]), np.array([1, 1, 2, 2]), np.full(4, 1 << 19)
    )
    ids = np.zeros((5, 1, 1), dtype=np.int64)
    rows = bitmaps(Routes(ids[0], ids[1:]), 4)
    for prune in (False, True):
        for intercepts, nodes in (
            ([1e3, 1e3, 1e3], (0, 1)),  # more reward is better: of pairs, the lowest
            ([2e3, 3e3, 1e4], ()),  # 1 / 2 = 1.5 / 3: fewest
            ([2e3, 2e3, 1e4], (0,)),
            ([2e3, 3e3, 4e3], ()),
        ):
            found = SubtreeSearch(CostModel(np.array(intercepts), 0.0), 2, prune).best(tree, rows)
            assert found.nodes == nodes


def test_ratio_ranks_like_exact_rationals_up_to_rounding() -> None:
    """The canonical float answer is within two roundings of the exact optimum."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        pool, cost = random_pool(rng), random_cost(rng, 7)
        intercepts = [Fraction(float(b)) for b in cost.intercepts_ns]

        def exact(nodes: tuple[int, ...], pool=pool, cost=cost, b=intercepts) -> Fraction:
            reward = PROBABILITY_ONE + sum(int(pool.tree.path_probs[n]) for n in nodes)
            demand = union_count(pool.routes, nodes)
            time = b[len(nodes)] + Fraction(cost.expert_ns) * demand
            return reward / max(time, Fraction(1))

        best = max(exact(nodes) for nodes in legal(pool.tree, 7))
        found = exact(search(pool, SubtreeSearch(cost, 7)).nodes)
        assert best * (1 - Fraction(1, 2**50)) <= found <= best


def test_nested_depth() -> None:
    """App. A.2: where the full-pool optimum lies within level d, the level-d search finds it, and
    no node of level d + 1 selected is the same event as an unchanged selection."""
    rng = np.random.default_rng(4)
    inside = 0
    for _ in range(600):
        pool, cost = random_pool(rng, most=14), random_cost(rng, 7)
        searcher = SubtreeSearch(cost, 7)
        full = search(pool, searcher).nodes
        before: tuple[int, ...] = ()
        for level in range(1, pool.tree.levels + 1):
            drafted = int((pool.tree.depths <= level).sum())
            newest = set(np.flatnonzero(pool.tree.depths == level).tolist())
            now = search(pool.prefix(drafted), searcher).nodes
            assert (not newest & set(now)) == (now == before)
            if all(node < drafted for node in full):
                assert now == full
                inside += level < pool.tree.levels
            before = now
    assert inside > 100


def test_pruning_identity() -> None:
    """Sec. 3.3: for S' inside S, the ratio rises iff the time saved is the larger fraction."""
    rng = np.random.default_rng(5)
    raised = 0
    for _ in range(500):
        reward, time = (Fraction(int(v)) for v in rng.integers(2, 1000, 2))
        less_reward, less_time = (
            Fraction(int(rng.integers(1, int(v) + 1))) for v in (reward, time)
        )
        rises = less_reward / less_time > reward / time
        assert rises == (1 - less_time / time > 1 - less_reward / reward)
        raised += rises
    assert 50 < raised < 450


def test_optimum_survives_no_pruning() -> None:
    """No legal subset of the selection saves a larger fraction of time than of reward."""
    rng = np.random.default_rng(6)
    for _ in range(300):
        pool, cost = random_pool(rng), random_cost(rng, 7)
        found = search(pool, SubtreeSearch(cost, 7))
        for nodes in legal(pool.tree, 7):
            if set(nodes) < set(found.nodes):
                reward = PROBABILITY_ONE + sum(int(pool.tree.path_probs[n]) for n in nodes)
                time = plain_time(cost, len(nodes), union_count(pool.routes, nodes))
                saved, lost = 1 - time / found.predicted_ns, 1 - reward / found.reward
                assert saved <= lost + 1e-12
