"""Random pools, and answers by brute force over every subset of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree, Routes
from specfit.selection.bitmaps import bitmaps
from specfit.selection.cost import CostModel


@dataclass(frozen=True)
class Pool:
    tree: DraftTree
    routes: Routes
    experts: int

    def prefix(self, nodes: int) -> Pool:
        """The pool as it was when `nodes` were drafted."""
        t = self.tree
        tree = DraftTree(
            t.tokens[:nodes], t.parents[:nodes], t.depths[:nodes], t.path_probs[:nodes]
        )
        return Pool(tree, Routes(self.routes.root, self.routes.nodes[:nodes]), self.experts)

    def rows(self) -> np.ndarray:
        """Bitmaps [1 + N, M], as the search reads them."""
        return bitmaps(self.routes, self.experts)


def random_tree(rng: np.random.Generator, sizes: list[int], few: bool = False) -> DraftTree:
    """Levels of the given sizes; `few` draws shares from three values, so ties abound."""
    tree = DraftTree.empty()
    above = np.array([ROOT])
    for size in sizes:
        parents = np.sort(rng.choice(above, size))
        cap = np.where(
            parents == ROOT, PROBABILITY_ONE, tree.path_probs[parents] if len(tree) else 0
        )
        share = rng.choice([0.0, 0.5, 1.0], size) if few else rng.random(size)
        first = len(tree)
        tree = tree.grown(rng.integers(0, 99, size), parents, (cap * share).astype(np.int64))
        above = np.arange(first, len(tree))
    return tree


def random_pool(rng: np.random.Generator, most: int = 10) -> Pool:
    """A small pool of any shape; half of them degenerate (ties, equal routes, one layer)."""
    sizes: list[int] = []
    while sum(sizes) < most and rng.random() < 0.8:
        sizes.append(int(rng.integers(1, min(4, most - sum(sizes)) + 1)))
    tree = random_tree(rng, sizes, few=rng.random() < 0.5)
    layers = int(rng.integers(1, 4))
    experts = int(rng.choice([4, 8, 65, 130]))
    k = int(rng.integers(1, min(experts, 8) + 1))
    order = np.argsort(rng.random((1 + len(tree), layers, experts)), axis=-1)
    ids = np.ascontiguousarray(order[..., :k])
    if rng.random() < 0.25:
        ids[:] = ids[0]  # identical routes
    return Pool(tree, Routes(ids[0], ids[1:]), experts)


def random_cost(rng: np.random.Generator, k: int) -> CostModel:
    intercepts = rng.uniform(0, 100, k + 1)
    kind = rng.integers(5)
    if kind == 0:
        intercepts = np.sort(intercepts)[::-1]  # decreasing
    elif kind == 1:
        intercepts[:] = intercepts[0]
    elif kind == 2:
        intercepts = 50 + 10.0 * np.arange(k + 1)
    beta = 0.0 if rng.random() < 0.2 else float(rng.uniform(0, 10))
    return CostModel(intercepts if rng.random() < 0.95 else np.zeros(k + 1), beta)


def legal(tree: DraftTree, limit: int) -> list[tuple[int, ...]]:
    """Every ancestor-closed subset of at most `limit` nodes, by looking at all subsets."""
    parents = tree.parents.tolist()
    return [
        nodes
        for size in range(min(limit, len(tree)) + 1)
        for nodes in combinations(range(len(tree)), size)
        if {ROOT, *nodes}.issuperset([parents[n] for n in nodes])
    ]


def masks(routes: Routes) -> list[int]:
    """One Python integer per row, root first: bit `layer * 1000 + expert`."""
    rows = [routes.root, *routes.nodes]
    return [
        sum(1 << (1000 * layer + e) for layer, ids in enumerate(row.tolist()) for e in set(ids))
        for row in rows
    ]


def union_count(routes: Routes, nodes: tuple[int, ...], known: list[int] | None = None) -> int:
    """F by Python integers; `known` are the masks, where they were made before."""
    known = masks(routes) if known is None else known
    union = known[0]
    for node in nodes:
        union |= known[1 + node]
    return union.bit_count()


def plain_time(cost: CostModel, size: int, demand: int) -> float:
    return max(float(cost.intercepts_ns[size]) + cost.expert_ns * demand, 1.0)


def brute_force(pool: Pool, cost: CostModel, k: int) -> tuple[tuple[int, ...], int, int, int]:
    """Nodes, reward, demand and number of legal subtrees of the best, by the stated total order."""
    ranked = []
    sets, known = legal(pool.tree, k), masks(pool.routes)
    for nodes in sets:
        reward = PROBABILITY_ONE + sum(int(pool.tree.path_probs[n]) for n in nodes)
        demand = union_count(pool.routes, nodes, known)
        ratio = reward / plain_time(cost, len(nodes), demand)
        ranked.append((-ratio, len(nodes), nodes, reward, demand))
    _, _, nodes, reward, demand = min(ranked)
    return nodes, reward, demand, len(sets)
