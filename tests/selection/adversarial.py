"""Pools made to break an exact search: families by name, each from a random generator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specfit.base.types import PROBABILITY_ONE, DraftTree, Routes
from specfit.selection.cost import CostModel
from tests.selection.pools import Pool, random_cost, random_pool, random_tree

Case = tuple[Pool, CostModel]
K = 7
MOST = 14  # nodes; plain enumeration of a star of 14 at K = 7 looks at 9,908 subtrees


def routes_of(rng: np.random.Generator, nodes: int, layers: int, experts: int, k: int) -> Routes:
    order = np.argsort(rng.random((1 + nodes, layers, experts)), axis=-1)
    ids = np.ascontiguousarray(order[..., :k])
    return Routes(ids[0], ids[1:])


def anything(rng: np.random.Generator) -> Case:
    return random_pool(rng, most=MOST), random_cost(rng, K)


def equal_probabilities(rng: np.random.Generator) -> Case:
    pool = random_pool(rng, most=MOST)
    pool.tree.path_probs[:] = rng.choice([0, 1, PROBABILITY_ONE // 3, PROBABILITY_ONE])
    return pool, random_cost(rng, K)


def identical_routes(rng: np.random.Generator) -> Case:
    """Everywhere, or in two groups of nodes."""
    pool = random_pool(rng, most=MOST)
    groups = rng.integers(0, rng.integers(1, 3), len(pool.tree))
    pool.routes.nodes[:] = pool.routes.nodes[np.minimum(groups, len(pool.tree) - 1)]
    return pool, random_cost(rng, K)


def free_experts(rng: np.random.Generator) -> Case:
    pool, cost = anything(rng)
    return pool, CostModel(cost.intercepts_ns, 0.0)


def falling_intercepts(rng: np.random.Generator) -> Case:
    pool, cost = anything(rng)
    return pool, CostModel(np.sort(cost.intercepts_ns)[::-1], cost.expert_ns)


def one_layer(rng: np.random.Generator) -> Case:
    """Few experts, integer costs: ties of ratio between different sizes and demands."""
    tree = random_tree(rng, [int(rng.integers(1, 4)) for _ in range(4)], few=True)
    experts = int(rng.integers(2, 9))
    routes = routes_of(rng, len(tree), 1, experts, int(rng.integers(1, min(experts, 4) + 1)))
    intercepts = rng.integers(0, 4, K + 1).astype(np.float64)
    return Pool(tree, routes, experts), CostModel(intercepts, float(rng.integers(0, 3)))


def thousand_layers(rng: np.random.Generator) -> Case:
    tree = random_tree(rng, [2, 3, 2], few=rng.random() < 0.5)
    return Pool(tree, routes_of(rng, len(tree), 1000, 8, 2), 8), random_cost(rng, K)


def star(rng: np.random.Generator) -> Case:
    """Depth one, every node alike but for its routes: everything ties, or nearly."""
    nodes = int(rng.integers(1, 13))
    probs = np.full(nodes, PROBABILITY_ONE // nodes)
    if rng.random() < 0.5:
        probs += rng.integers(0, 2, nodes)
    ones = np.ones(nodes, dtype=np.int64)
    tree = DraftTree(ones, -ones, ones, np.minimum(probs, PROBABILITY_ONE))
    if rng.random() < 0.5:  # pairwise disjoint
        ids = np.arange(2 * (nodes + 1)).reshape(nodes + 1, 1, 2)
        return Pool(tree, Routes(ids[0], ids[1:]), 2 * (nodes + 1)), _line(rng)
    return Pool(tree, routes_of(rng, nodes, 2, 6, 2), 6), _line(rng)


def chain(rng: np.random.Generator) -> Case:
    tree = random_tree(rng, [1] * int(rng.integers(1, MOST)), few=rng.random() < 0.5)
    return Pool(tree, routes_of(rng, len(tree), 3, 16, 4), 16), random_cost(rng, K)


def _line(rng: np.random.Generator) -> CostModel:
    base, node, expert = rng.integers(0, 5, 3).tolist()
    return CostModel(5.0 + base + node * np.arange(K + 1.0), float(expert))


FAMILIES: dict[str, Callable[[np.random.Generator], Case]] = {
    "anything": anything,
    "equal probabilities": equal_probabilities,
    "identical routes": identical_routes,
    "zero beta": free_experts,
    "decreasing b_k": falling_intercepts,
    "one layer": one_layer,
    "1,000 layers": thousand_layers,
    "star": star,
    "chain": chain,
}
