"""Selections that no number decides: a chain of fixed length, the pool as it is drafted."""

from __future__ import annotations

from specfit.base.interfaces import Selector
from specfit.base.types import ROOT, DraftTree, Routes, Selection, SpecfitError


def best_chain(tree: DraftTree, length: int) -> tuple[int, ...]:
    """The path of `length` nodes (or of all levels, where fewer were drafted) of most reward.

    Reward: the sum of its path probabilities, which is what the path is expected to have accepted.
    Ties: the lowest last node. Every level has a node and every node a parent, so there is one.
    """
    length = min(length, tree.levels)
    if length == 0:
        return ()
    parents, depths = tree.parents.tolist(), tree.depths.tolist()
    reward: list[int] = []
    best, last = -1, ROOT
    for node, prob in enumerate(tree.path_probs.tolist()):
        above = parents[node]
        reward.append(prob + (0 if above == ROOT else reward[above]))
        if depths[node] == length and reward[node] > best:
            best, last = reward[node], node
    return tree.path(last)


class ChainK(Selector):
    """`chain_k`: the best chain of K nodes, K fixed, as plain speculative decoding verifies it.

    What a user of an EAGLE-3 head runs without a tree (one candidate per level; EAGLE-3 is arXiv
    2503.01840). *Ours*: the head still drafts top-2 levels, because all selectors share one pool;
    a level is billed the same whatever its width. So the chain is the best of the pool's, where a
    head without a tree follows its first guess at each level. The two part where a less likely step
    has the likelier continuation; the pool, which goes on from two nodes a level, may then not hold
    the other chain to its end. K levels are drafted and no more.
    """

    drafts = True
    reads_routes = False
    adaptive_depth = False

    def __init__(self, k: int, name: str = "chain_k") -> None:
        self.name = name
        self.k = k

    def draft_levels(self) -> int:
        return self.k

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        return Selection(best_chain(tree, self.k))


class WholePool(Selector):
    """`eagle3_full`: every drafted node is verified; what a tree costs without selection.

    EAGLE-3 (arXiv 2503.01840) keeps the nodes of highest path probability up to a token budget;
    this is that rule with a budget of the whole pool. K is the pool's size, as with `closure`.
    """

    drafts = True
    reads_routes = False
    adaptive_depth = False

    def __init__(self, k: int, name: str = "eagle3_full") -> None:
        self.name = name
        self.k = k

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        if len(tree) > self.k:
            raise SpecfitError(
                f"selector={self.name} verifies the whole pool, which has {len(tree)} nodes, and "
                f"selector.k is {self.k}; use selector.k={len(tree)}"
            )
        return Selection(tuple(range(len(tree))))
