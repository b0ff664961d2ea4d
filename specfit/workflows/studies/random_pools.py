"""Random pools shaped like drafted ones, at any width, with experts shared as on real text."""

from __future__ import annotations

import numpy as np

from specfit.base.published import QWEN3_30B_A3B
from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree, Routes
from specfit.selection.cost import CostModel

LAYERS, EXPERTS, TOP = QWEN3_30B_A3B.layers, QWEN3_30B_A3B.experts, QWEN3_30B_A3B.top_k
LEVELS = 5
SHARED = 1.5  # spread of a cycle's common router scores, in units of a row's own


def cost(k: int, cheaper: int = 1) -> CostModel:
    """paper_main with 9.44 MB experts, up to `k` nodes; or experts so many times cheaper."""
    return CostModel(((85 + 0.6 * np.arange(k + 1)) * 1e6).astype(np.float64), 377_600.0 / cheaper)


def drafted(rng: np.random.Generator, width: int) -> DraftTree:
    """Five top-`width` levels: the `width` best nodes of each get `width` children each.

    A node's candidates share what probability is left: the first takes a Beta(2, 1) part, each
    later one a uniform part of the rest.
    """
    tree = DraftTree.empty()
    for _ in range(LEVELS):
        parents = np.array([ROOT])
        if len(tree):
            newest = np.flatnonzero(tree.depths == tree.levels)
            order = np.argsort(-tree.path_probs[newest], kind="stable")
            parents = np.sort(newest[order[:width]])
        part = rng.random((len(parents), width))
        part[:, 0] = rng.beta(2, 1, len(parents))
        left = np.cumprod(np.column_stack([np.ones(len(parents)), 1 - part[:, :-1]]), axis=1)
        above = tree.path_probs[parents] if len(tree) else np.array([PROBABILITY_ONE])
        probs = np.floor(above[:, None] * left * part).astype(np.int64).reshape(-1)
        tokens = rng.integers(0, 32000, len(probs))
        tree = tree.grown(tokens, np.repeat(parents, width), probs)
    return tree


def best_nodes(tree: DraftTree, count: int) -> DraftTree:
    """The `count` most probable nodes as a pool: they hold their ancestors."""
    if count >= len(tree):
        return tree
    best = np.sort(np.argsort(-tree.path_probs, kind="stable")[:count])
    place = np.full(len(tree) + 1, ROOT)
    place[best] = np.arange(count)
    parents = place[tree.parents[best]]
    return DraftTree(tree.tokens[best], parents, tree.depths[best], tree.path_probs[best])


def routes(rng: np.random.Generator, nodes: int) -> Routes:
    """Top-8 of scores that the rows of one cycle partly share."""
    common = SHARED * rng.standard_normal((1, LAYERS, EXPERTS), dtype=np.float32)
    scores = common + rng.standard_normal((1 + nodes, LAYERS, EXPERTS), dtype=np.float32)
    ids = np.argpartition(scores, EXPERTS - TOP, axis=-1)[..., -TOP:].astype(np.int64)
    return Routes(ids[0].copy(), ids[1:].copy())


def pool(rng: np.random.Generator, width: int, nodes: int) -> tuple[DraftTree, Routes]:
    """The best `nodes` of five top-`width` levels."""
    tree = best_nodes(drafted(rng, width), nodes)
    return tree, routes(rng, len(tree))


def level_views(tree: DraftTree, atlas: Routes) -> list[tuple[DraftTree, Routes]]:
    """The pool and atlas as they stand after each level."""
    views = []
    for level in range(1, tree.levels + 1):
        n = int((tree.depths <= level).sum())
        part = DraftTree(tree.tokens[:n], tree.parents[:n], tree.depths[:n], tree.path_probs[:n])
        views.append((part, Routes(atlas.root, atlas.nodes[:n])))
    return views
