"""The head at run time: its pool, and a cache that is what a fresh pass over the text leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree
from specfit.decoding.decoder import Decoder
from specfit.models.drafter.eagle import EagleDrafter
from specfit.models.drafter.expansion import best_children, quantise
from specfit.models.drafter.head import EagleHead
from specfit.selection.forced_trees import most_probable
from specfit.selection.selectors import TopProbability
from tests.fakes.tiny_model import CPU, DRAFT_VOCABULARY, VOCABULARY, Pair


def text(pair: Pair, length: int = 30) -> np.ndarray:
    return np.concatenate(pair.prompts)[:length]


def extended(pair: Pair, ids: Sequence[int], drafter: EagleDrafter | None = None) -> EagleDrafter:
    """Stable rows of a whole text x_0 .. x_n: features of all but the root x_n."""
    drafter = drafter or pair.drafter()
    features = pair.plain_features(ids)
    drafter.extend(np.asarray(ids[1:]), features[:-1])
    return drafter


def drafted(drafter: EagleDrafter) -> DraftTree:
    tree = DraftTree.empty()
    for _ in range(drafter.max_depth):
        tree = drafter.grow(tree)
    return tree


def same(ours: DraftTree, theirs: DraftTree, units: int = 0) -> bool:
    """Equal nodes; path probabilities within a few units of 2**-20."""
    return (
        np.array_equal(ours.tokens, theirs.tokens)
        and np.array_equal(ours.parents, theirs.parents)
        and int(np.abs(ours.path_probs - theirs.path_probs).max()) <= units
    )


# -- the pool --------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 3, 9, 30])
def test_two_children_and_five_levels_make_eighteen_nodes(pair: Pair, length: int) -> None:
    tree = drafted(extended(pair, text(pair, length)))
    assert len(tree) == 18
    assert np.bincount(tree.depths).tolist() == [0, 2, 4, 4, 4, 4]
    assert bool(np.all((tree.tokens >= 0) & (tree.tokens < VOCABULARY)))
    for parent in {-1, *tree.parents.tolist()}:
        children = tree.tokens[tree.parents == parent]
        assert len(set(children.tolist())) == len(children) == 2, "siblings are distinct"
    for depth in range(1, 5):  # the best two of each level were expanded, no other
        level = np.flatnonzero(tree.depths == depth)
        best = level[np.argsort(-tree.path_probs[level], kind="stable")[:2]]
        assert set(tree.parents[tree.depths == depth + 1].tolist()) == set(best.tolist())


def test_levels_drafted_one_by_one_only_append(pair: Pair) -> None:
    drafter, tree = extended(pair, text(pair)), DraftTree.empty()
    for level in range(1, 6):
        grown = drafter.grow(tree)
        n = len(tree)
        assert grown.levels == level
        assert np.array_equal(grown.tokens[:n], tree.tokens)
        assert np.array_equal(grown.path_probs[:n], tree.path_probs)
        tree = grown


@pytest.mark.parametrize("tied", [False, True])
def test_the_most_probable_nodes_of_any_number_are_closed_under_parents(
    pair: Pair, tied: bool
) -> None:
    tree = drafted(extended(pair, text(pair), pair.drafter() if not tied else tied_drafter(pair)))
    inner = tree.parents != ROOT
    assert bool(np.all(tree.path_probs[inner] <= tree.path_probs[tree.parents[inner]]))
    for size in range(len(tree) + 1):
        nodes = set(most_probable(tree, size))
        assert {int(tree.parents[n]) for n in nodes} <= nodes | {ROOT}


def changed(head: EagleHead, change: Callable[[EagleHead], None]) -> EagleHead:
    """A copy of the head that something was done to."""
    copy = EagleHead(head.config)
    copy.load_state_dict(head.state_dict())
    with torch.no_grad():
        change(copy)
    return copy.requires_grad_(False).eval()


def tied_drafter(pair: Pair) -> EagleDrafter:
    """A head to which every token is as likely as any other."""
    head = changed(pair.head, lambda head: head.lm_head.weight.zero_())
    return EagleDrafter(head, 5, 2, CPU)


def test_among_ties_the_lowest_ids_are_drafted_in_level_order(pair: Pair) -> None:
    tree = drafted(extended(pair, text(pair), tied_drafter(pair)))
    first = pair.head.target_ids(torch.arange(2)).tolist()
    assert tree.tokens.tolist() == first * 9
    assert tree.parents[tree.depths == 2].tolist() == [0, 0, 1, 1]
    assert tree.parents[tree.depths == 3].tolist() == [2, 2, 3, 3], "ties: the lower indices"


def test_path_probabilities_are_quantised_products(pair: Pair) -> None:
    """Against a plain chain run without a cache: softmax over the draft vocabulary, multiplied."""
    ids = text(pair, 12)
    tree = drafted(extended(pair, ids))
    head, fused = pair.head, pair.head.fuse(pair.plain_features(ids)[:-1])
    tokens, features = torch.as_tensor(ids[1:]), fused
    probability = 1.0
    for node in tree.path(int(np.flatnonzero(tree.depths == 5)[0])):
        after, logits = head(tokens, features, torch.arange(len(tokens)))
        draft_ids = head.target_ids(torch.arange(DRAFT_VOCABULARY))
        at = int((draft_ids == int(tree.tokens[node])).nonzero())
        probability *= float(logits[-1].softmax(-1)[at])
        assert abs(int(tree.path_probs[node]) - probability * PROBABILITY_ONE) < 3
        tokens = torch.cat([tokens, torch.tensor([int(tree.tokens[node])])])
        features = torch.cat([features, after[-1:]])  # the head's own feature, never fused


def test_quantising_rounds_to_units() -> None:
    assert quantise(np.array([1.0, 0.5, 2.0**-21 * 1.01, 0.0])).tolist() == [1 << 20, 1 << 19, 1, 0]


# -- the cache -------------------------------------------------------------------------------------


@pytest.mark.parametrize("oracle", [False, True])
def test_after_any_cycle_the_cache_is_that_of_a_fresh_pass(pair: Pair, oracle: bool) -> None:
    """Real cycles with real features; the oracle's paths make them accept several tokens."""
    guide = pair.oracle([2], 16) if oracle else None
    used = Guided(pair, guide)
    decoder = Decoder(pair.target(32), used, None, TopProbability(), pair.clock())
    committed = pair.prompts[2].tolist()
    lengths = set()
    for cycle in decoder.decode(replace(pair.request(2, 16), stop_ids=frozenset())):
        if cycle.record.cycle > 0:
            fresh = extended(pair, committed)
            assert used.length == fresh.length == len(committed) - 1
            n = used.length
            ours, theirs = used.inner._cache, fresh._cache
            assert torch.equal(ours.positions[:n], theirs.positions[:n])
            close(ours.keys[..., :n, :], theirs.keys[..., :n, :])
            close(ours.values[..., :n, :], theirs.values[..., :n, :])
            assert same(used.trees[-1], drafted(fresh), units=64)
            lengths.add(cycle.record.committed_tokens)
        committed += cycle.tokens
    assert not oracle or len(lengths) > 1, "the test needs cycles of several lengths"


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=5e-4, rtol=1e-4)


class Guided:
    """The real head drafts and keeps its cache; the decoder's pool may be an oracle's."""

    max_depth = 5

    def __init__(self, pair: Pair, oracle: object | None) -> None:
        self.inner, self._oracle = pair.drafter(), oracle
        self.trees: list[DraftTree] = []

    @property
    def length(self) -> int:
        return self.inner.length

    def begin(self) -> None:
        self.inner.begin()
        if self._oracle:
            self._oracle.begin()

    def truncate(self, length: int) -> None:
        self.inner.truncate(length)

    def extend(self, tokens: np.ndarray, features: torch.Tensor) -> None:
        self.inner.extend(tokens, features)
        if self._oracle:
            self._oracle.extend(tokens, features)

    def grow(self, tree: DraftTree) -> DraftTree:
        if len(tree) == 0:
            self.trees.append(DraftTree.empty())
        self.trees[-1] = self.inner.grow(self.trees[-1])
        return self._oracle.grow(tree) if self._oracle else self.trees[-1]


def test_drafted_entries_are_dropped_by_the_next_extension(pair: Pair) -> None:
    ids = text(pair, 20)
    features = pair.plain_features(ids)
    drafter = pair.drafter()
    drafter.extend(ids[1:12], features[:11])
    drafted(drafter)
    assert len(drafter._cache) == 11 + 4 * 2, "two beam nodes of four levels were run"
    drafter.extend(ids[12:15], features[11:14])
    assert len(drafter._cache) == drafter.length == 14
    stale = pair.drafter()
    stale.extend(ids[1:15], features[:14])
    assert same(drafted(drafter), drafted(stale), units=4)


def test_drafting_twice_from_one_state_gives_one_tree(pair: Pair) -> None:
    drafter = extended(pair, text(pair, 20))
    first = drafted(drafter)
    drafter.truncate(drafter.length - 3)
    ids = text(pair, 20)
    drafter.extend(ids[-3:], pair.plain_features(ids)[-4:-1])
    assert same(drafted(drafter), first, units=4)


def test_truncating_to_nothing_and_beginning_forget_alike(pair: Pair) -> None:
    ids, drafter = text(pair, 15), extended(pair, text(pair, 25))
    first = drafted(extended(pair, ids))
    drafter.truncate(0)
    assert same(drafted(extended(pair, ids, drafter)), first)
    drafter.begin()
    assert drafter.length == 0
    assert same(drafted(extended(pair, ids, drafter)), first)


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_extending_in_pieces_gives_the_tree_of_one_extension(pair: Pair, pieces: int) -> None:
    ids = text(pair, 30)
    features, drafter = pair.plain_features(ids), pair.drafter()
    for rows in np.array_split(np.arange(29), pieces):
        drafter.extend(ids[1:][rows], features[:-1][rows])
        drafted(drafter)
    assert same(drafted_again(drafter, ids, features), drafted(extended(pair, ids)), units=4)


def drafted_again(drafter: EagleDrafter, ids: np.ndarray, features: torch.Tensor) -> DraftTree:
    """A pool is grown once per extension; the last row is brought again."""
    drafter.truncate(drafter.length - 1)
    drafter.extend(ids[-1:], features[-2:-1])
    return drafted(drafter)


# -- wiring that only shows as a low acceptance ----------------------------------------------------


def test_a_row_pairs_the_next_token_with_the_feature(pair: Pair) -> None:
    """Embedding x_t beside the feature of x_t, the classic slip, is another drafter."""
    ids, features = text(pair, 20), pair.plain_features(text(pair, 20))
    slipped = pair.drafter()
    slipped.extend(ids[:-1], features[:-1])
    assert not same(drafted(slipped), drafted(extended(pair, ids)), units=1000)


def test_true_features_are_fused_and_all_of_them_count(pair: Pair) -> None:
    ids = text(pair, 20)
    features, first = pair.plain_features(ids), drafted(extended(pair, ids))
    for part in range(3):
        without = features.clone()
        without[:, 64 * part : 64 * (part + 1)] = 0
        drafter = pair.drafter()
        drafter.extend(ids[1:], without[:-1])
        assert not same(drafted(drafter), first, units=1000)


def test_the_residual_norm_and_the_rope_base_are_the_heads_own(pair: Pair) -> None:
    ids, config = text(pair, 20), pair.head.config
    first = drafted(extended(pair, ids))
    for other in (
        replace(config, norm_before_residual=not config.norm_before_residual),
        replace(config, rope_theta=1e6),
    ):
        head = EagleHead(other)
        head.load_state_dict(pair.head.state_dict())
        drafter = EagleDrafter(head.eval(), 5, 2, CPU)
        assert not same(drafted(extended(pair, ids, drafter)), first, units=50)


def test_drafted_tokens_are_target_ids(pair: Pair) -> None:
    """Through d2t: draft ids taken as they are would name other tokens."""
    spoken = set(pair.head.t2d.nonzero().flatten().tolist())
    for length in (5, 10, 20, 30):
        tree = drafted(extended(pair, text(pair, length)))
        assert set(tree.tokens.tolist()) <= spoken


@pytest.mark.parametrize("top_k", [1, 2, 5, 6])
def test_the_best_children_are_those_of_a_stable_sort(top_k: int) -> None:
    """With ties inside, across and behind the border, and as many asked for as there are."""
    torch.manual_seed(0)
    logits = torch.randint(0, 3, (400, 6)).float()
    logits[::2] += torch.rand(200, 6)
    ids, log_probs = best_children(logits, top_k)
    best, order = torch.sort(torch.log_softmax(logits, -1), dim=-1, descending=True, stable=True)
    assert torch.equal(ids, order[:, :top_k])
    assert np.array_equal(log_probs, best[:, :top_k].double().numpy())
    for row in (0, 1):  # one that has no ties, one that has, each alone
        assert torch.equal(best_children(logits[row : row + 1], top_k)[0][0], order[row, :top_k])
