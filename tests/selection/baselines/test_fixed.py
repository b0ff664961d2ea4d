"""Chains and the whole pool: rules that look at no cost."""

from __future__ import annotations

import numpy as np
import pytest

from specfit.base.types import ROOT, SpecfitError
from specfit.selection.baselines.fixed import ChainK, WholePool, best_chain
from tests.selection.baselines.making import tree_of
from tests.selection.pools import random_pool

# A 8/16 with A1 2, A2 1; B 6/16 with B1 5, B2 1
TREE = tree_of((ROOT, 8), (ROOT, 6), (0, 2), (0, 1), (1, 5), (1, 1))


def test_the_best_chain_by_hand() -> None:
    """A, A1 is expected to have 10/16 accepted, B, B1 11/16; of one node, A is the best."""
    assert best_chain(TREE, 1) == (0,)
    assert best_chain(TREE, 2) == (1, 4)
    assert best_chain(TREE, 5) == (1, 4), "no deeper than the pool"
    assert best_chain(TREE, 0) == ()


def test_of_equal_chains_the_lower_index() -> None:
    assert best_chain(tree_of((ROOT, 4), (ROOT, 4)), 1) == (0,)
    assert best_chain(tree_of((ROOT, 4), (ROOT, 6), (0, 4), (1, 2)), 2) == (0, 2)


def test_the_best_chain_is_the_best_of_all_paths() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        tree, length = random_pool(rng).tree, int(rng.integers(1, 5))
        length = min(length, tree.levels)
        ends = [node for node in range(len(tree)) if tree.depths[node] == length]
        worth = {node: sum(int(tree.path_probs[n]) for n in tree.path(node)) for node in ends}
        expected = tree.path(max(ends, key=lambda n: (worth[n], -n))) if ends else ()
        assert best_chain(tree, length) == expected


def test_a_chain_drafts_its_length_and_no_more() -> None:
    assert ChainK(3).draft_levels() == 3
    assert ChainK(2).select(TREE, None).nodes == (1, 4)


def test_the_whole_pool_is_whole() -> None:
    assert WholePool(18).select(TREE, None).nodes == (0, 1, 2, 3, 4, 5)
    assert WholePool(18).draft_levels() is None
    with pytest.raises(SpecfitError, match=r"selector\.k=6"):
        WholePool(5).select(TREE, None)
