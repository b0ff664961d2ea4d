"""A forest names every node by the text up to it, once; checked by spelling the texts out."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from specfit.base.types import ROOT, DraftTree
from specfit.workflows.recording.target_forest import Forest, pack

WORDS = 3  # so few that positions draft what the text says, and the same as their neighbours


@st.composite
def drawn(draw: st.DrawFn) -> tuple[np.ndarray, list[DraftTree]]:
    """A text and a pool, of up to three levels, at each of its last rows."""
    text = draw(st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=8))
    trees = []
    for _ in range(draw(st.integers(1, len(text)))):
        tree = DraftTree.empty()
        for _ in range(draw(st.integers(1, 3))):
            newest = [i for i, d in enumerate(tree.depths) if d == tree.levels] or [ROOT]
            pairs = [(node, word) for node in newest for word in range(WORDS)]
            chosen = sorted(draw(st.sets(st.sampled_from(pairs), min_size=1, max_size=4)))
            parents, tokens = (np.array(column) for column in zip(*chosen, strict=True))
            tree = tree.grown(tokens, parents, np.ones(len(chosen), dtype=np.int64))
        trees.append(tree)
    return np.array(text), trees


def spelled(forest: Forest, text: np.ndarray, place: int) -> tuple[int, ...]:
    """The tokens up to a place, root of the text first."""
    if place < len(text):
        return tuple(text[: place + 1].tolist())
    node = place - len(text)
    parent = int(forest.parents[node])
    above = int(forest.rows[node]) if parent == ROOT else len(text) + parent
    return (*spelled(forest, text, above), int(forest.tokens[node]))


@given(drawn())
@settings(max_examples=300, deadline=None)
def test_a_place_holds_the_text_up_to_its_node(case: tuple[np.ndarray, list[DraftTree]]) -> None:
    text, trees = case
    forest, first = pack(text, trees), len(text) - len(trees)
    for row, (tree, places) in enumerate(zip(trees, forest.places, strict=True), start=first):
        for node, place in enumerate(places.tolist()):
            path = tuple(int(tree.tokens[above]) for above in tree.path(node))
            assert spelled(forest, text, place) == (*text[: row + 1].tolist(), *path)
    places = range(len(text) + len(forest))
    assert len({spelled(forest, text, place) for place in places}) == len(places), "each once"
    used = {int(place) for own in forest.places for place in own}
    assert set(places) - used <= set(range(len(text))), "and none that was not drafted"


@given(drawn(), st.integers(1, 6))
@settings(max_examples=300, deadline=None)
def test_groups_hold_what_their_nodes_attend_to(
    case: tuple[np.ndarray, list[DraftTree]], most: int
) -> None:
    text, trees = case
    forest = pack(text, trees)
    groups = forest.groups(most)
    assert [i for group in groups for i in range(group.start, group.stop)] == [*range(len(forest))]
    for group in groups:
        rows = forest.rows[group]
        assert len(rows) <= most or len(set(rows.tolist())) == 1
        mask = forest.mask(group, len(text))
        for node, row in enumerate(mask, start=group.start):
            seen = [*np.flatnonzero(row[: len(text)]).tolist()]
            seen += [len(text) + group.start + j for j in np.flatnonzero(row[len(text) :])]
            assert sorted(len(spelled(forest, text, place)) for place in seen) == list(
                range(1, len(spelled(forest, text, len(text) + node)) + 1)
            ), "one place of each length: itself and all that is before it"
            own = spelled(forest, text, len(text) + node)
            assert all(
                spelled(forest, text, place) == own[: len(spelled(forest, text, place))]
                for place in seen
            )


def test_neighbours_share_and_the_text_is_not_drafted_again() -> None:
    """The example of the module: b drafts c, then d or x; c drafts d or x, then e."""
    text = np.array([0, 1, 2, 3, 4])  # a b c d e
    of_b = DraftTree.empty().grown(np.array([2]), np.array([ROOT]), np.array([9]))
    of_b = of_b.grown(np.array([3, 7]), np.array([0, 0]), np.array([8, 8]))
    of_c = DraftTree.empty().grown(np.array([3, 7]), np.array([ROOT, ROOT]), np.array([9, 9]))
    of_c = of_c.grown(np.array([4]), np.array([0]), np.array([8]))
    last = DraftTree.empty().grown(np.array([5]), np.array([ROOT]), np.array([9]))
    forest = pack(text, [of_b, of_c, last, last])
    assert [places.tolist() for places in forest.places] == [[2, 3, 5], [3, 5, 4], [6], [7]]
    assert forest.tokens.tolist() == [7, 5, 5] and forest.rows.tolist() == [2, 3, 4]
