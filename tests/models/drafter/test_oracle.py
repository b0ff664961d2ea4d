"""The oracle is right as often as it says, and says the same whatever is asked in between."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from specfit.base.types import ROOT, DraftTree, Selection, SpecfitError
from specfit.decoding.acceptance import accepted_rows
from specfit.models.drafter.oracle import OracleDrafter

PROMPT = (4, 8, 15, 16, 23)
SCRIPT = np.random.default_rng(0).integers(0, 500, 1500).tolist()
HITS = [0.8, 0.6, 0.5]


def oracle(seed: int = 0, depth: int = 3) -> OracleDrafter:
    made = OracleDrafter({PROMPT: SCRIPT}, HITS, depth, 2, 500, seed)
    made.extend(np.array(PROMPT[1:]), None)
    return made


def pool(drafter: OracleDrafter) -> DraftTree:
    tree = DraftTree.empty()
    while tree.levels < drafter.max_depth:
        tree = drafter.grow(tree)
    return tree


def at(position: int, seed: int = 0) -> DraftTree:
    """The pool whose root is SCRIPT[position]."""
    drafter = oracle(seed)
    drafter.extend(np.array(SCRIPT[: position + 1]), None)
    return pool(drafter)


def on_script(tree: DraftTree, node: int, position: int) -> bool:
    said = [int(tree.tokens[i]) for i in tree.path(node)]
    return said == SCRIPT[position + 1 : position + 1 + len(said)]


def test_the_pool_has_eagles_shape_and_distinct_siblings() -> None:
    tree = at(0)
    assert np.bincount(tree.depths).tolist() == [0, 2, 4, 4]
    for parent in {*tree.parents.tolist()}:
        children = np.flatnonzero(tree.parents == parent)
        assert len({*tree.tokens[children].tolist()}) == len(children)


def test_it_is_right_as_often_as_its_probabilities_say() -> None:
    positions = range(0, 1400, 4)
    pools = {position: at(position) for position in positions}
    nodes = [
        (int(tree.path_probs[n]) / 2**20, on_script(tree, n, p))
        for p, tree in pools.items()
        for n in range(len(tree))
    ]
    said, true = np.array(nodes).T
    for low, high in ((0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.01)):
        held = (said >= low) & (said < high)
        assert held.sum() > 60
        assert abs(said[held].mean() - true[held].mean()) < 0.07, (low, high)
    first = [float(tree.path_probs[0]) / 2**20 for tree in pools.values()]
    assert abs(np.mean(first) - HITS[0]) < 0.03 and np.std(first) > 0.05, "it strays around hits"


def test_the_path_the_target_agrees_with_is_found_by_the_decoders_own_rule() -> None:
    for position in range(60):  # the first at which two levels were right
        tree = at(position)
        right = [n for n in range(len(tree)) if on_script(tree, n, position)]
        if len(right) == 2:
            break
    everything = Selection(tuple(range(len(tree))))
    target = [-1] * (1 + len(tree))
    for node in (ROOT, *right):
        depth = 0 if node == ROOT else int(tree.depths[node])
        target[node + 1] = SCRIPT[position + 1 + depth]
    rows = accepted_rows(tree, everything, np.array(target))
    assert [everything.nodes[row - 1] for row in rows[1:]] == right


def test_draws_depend_on_the_position_and_not_on_what_was_asked() -> None:
    drafter = oracle()
    drafter.extend(np.array(SCRIPT[:11]), None)
    first = pool(drafter)
    drafter.extend(np.array(SCRIPT[11:30]), None)
    pool(drafter)
    drafter.truncate(len(PROMPT) - 1 + 11)
    again = pool(drafter)
    assert np.array_equal(first.tokens, again.tokens)
    assert np.array_equal(first.path_probs, again.path_probs)
    assert not np.array_equal(first.tokens, at(10, seed=1).tokens)
    assert np.array_equal(first.tokens, at(10).tokens)


def test_an_unknown_prompt_and_the_end_of_a_text_are_drafted_at_random() -> None:
    stranger = OracleDrafter({PROMPT: SCRIPT}, HITS, 2, 2, 500, 0)
    stranger.extend(np.array([1, 2, 3]), None)
    assert len(pool(stranger)) == 6
    assert len(at(len(SCRIPT) - 1)) == 10


def test_an_oracle_without_chances_is_refused() -> None:
    with pytest.raises(SpecfitError, match=r"drafter\.hits"):
        OracleDrafter({}, [], 5, 2, 100, 0)


def test_wrong_tokens_are_as_plausible_as_right_ones() -> None:
    """A rule that prices experts must not know a wrong token by the rare experts of a random id."""
    words = np.random.default_rng(1).integers(0, 40, 1500).tolist()  # 40 of 500 ids are used
    follows = {*pairwise(words)}
    drafter = OracleDrafter({PROMPT: words}, HITS, 3, 2, 500, 0)
    wrong = elsewhere = 0
    for position in range(0, 1400, 20):
        drafter.begin()
        drafter.extend(np.array(PROMPT[1:]), None)
        drafter.extend(np.array(words[: position + 1]), None)
        tree = pool(drafter)
        for node in range(len(tree)):
            path = [words[position], *(int(tree.tokens[i]) for i in tree.path(node))]
            if path[1:] != words[position + 1 : position + len(path)]:
                wrong += 1
                elsewhere += (path[-2], path[-1]) in follows
    assert wrong > 300 and elsewhere > 0.95 * wrong
