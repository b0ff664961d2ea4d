from __future__ import annotations

import numpy as np
import pytest

from specfit.base.types import SpecfitError
from specfit.selection.forced_trees import legal_subtrees, minimum_union, most_probable
from tests.selection.pools import legal, masks, random_pool, random_tree, union_count


def test_legal_subtrees_are_each_there_once_in_order() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        tree = random_pool(rng).tree
        for size in range(len(tree) + 2):
            expected = [nodes for nodes in legal(tree, size) if len(nodes) == size]
            assert list(legal_subtrees(tree, size)) == expected


def test_minimum_union_equals_brute_force() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        pool = random_pool(rng)
        rows, known = pool.rows(), masks(pool.routes)
        for size in range(len(pool.tree) + 1):
            expected = min(
                (union_count(pool.routes, s, known), -int(pool.tree.path_probs[list(s)].sum()), s)
                for s in legal(pool.tree, size)
                if len(s) == size
            )[2]
            assert minimum_union(pool.tree, rows, size) == expected


def test_a_probe_larger_than_the_pool_is_refused() -> None:
    pool = random_pool(np.random.default_rng(2))
    with pytest.raises(SpecfitError, match="needs a pool"):
        minimum_union(pool.tree, pool.rows(), len(pool.tree) + 1)


@pytest.mark.parametrize("nodes", range(1, 19))
def test_most_probable_is_ancestor_closed_under_ties(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    for _ in range(40):
        sizes = [1] * nodes if rng.random() < 0.2 else []
        while sum(sizes) < nodes:
            sizes.append(int(rng.integers(1, min(4, nodes - sum(sizes)) + 1)))
        tree = random_tree(rng, sizes, few=True)
        for size in range(nodes + 1):
            chosen = most_probable(tree, size)
            assert len(chosen) == size and list(chosen) == sorted(chosen)
            assert all(p == -1 or p in chosen for p in tree.parents[list(chosen)].tolist())
            kept, left = tree.path_probs[list(chosen)], np.delete(tree.path_probs, list(chosen))
            assert not len(kept) or not len(left) or kept.min() >= left.max()
