"""A recording made on another machine: ties fall the other way there, and are followed."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from specfit.base.types import DraftTree
from specfit.models.drafter.head import EagleHead
from specfit.workflows.recording.drafter_teacher import TeacherDrafter
from tests.fakes.tiny_model import CPU, Pair

POSITIONS = 12


def levels_of(tree: DraftTree) -> list[DraftTree]:
    columns = tree.tokens, tree.parents, tree.depths, tree.path_probs
    ends = [int((tree.depths <= depth).sum()) for depth in range(1, tree.levels + 1)]
    return [DraftTree.checked(*(column[:end] for column in columns)) for end in ends]


@pytest.fixture(scope="module")
def text(pair: Pair) -> tuple[np.ndarray, torch.Tensor]:
    ids = np.array([*pair.prompts[2], *pair.greedy(2, POSITIONS)])
    return ids, pair.plain_features(ids)


def twins(head: EagleHead, first: int, second: int, shift: float = 0.0) -> EagleHead:
    """The head with two draft tokens as probable as each other, but for `shift` of a weight."""
    changed = copy.deepcopy(head)
    with torch.no_grad():
        changed.lm_head.weight[second] = changed.lm_head.weight[first] * (1.0 + shift)
    return changed


def test_the_same_head_follows_its_own_pools_without_a_tie(pair: Pair, text) -> None:  # type: ignore[no-untyped-def]
    drafter = TeacherDrafter(pair.head, 5, 2, CPU)
    trees, features = drafter.pools(*text, POSITIONS)
    again, counts = drafter.follow(*text, [levels_of(tree) for tree in trees])
    assert counts.sum() == 0
    for one, other in zip(features, again, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_perturbed_last_bit_flips_ties_that_are_counted_and_followed(pair: Pair, text) -> None:  # type: ignore[no-untyped-def]
    trees, _ = TeacherDrafter(pair.head, 5, 2, CPU).pools(*text, POSITIONS)
    best = int(trees[0].tokens[1])
    draft = pair.head.target_ids(torch.arange(pair.head.config.draft_vocab_size)).tolist()
    first = draft.index(best)
    second = (first + 1) % len(draft)  # a higher index loses a tie, a last bit decides it
    eps = 2.0**-22
    here, there = (twins(pair.head, first, second, shift) for shift in (-eps, eps))
    recorded, _ = TeacherDrafter(here, 5, 2, CPU).pools(*text, POSITIONS)
    now, _ = TeacherDrafter(there, 5, 2, CPU).pools(*text, POSITIONS)
    flipped = sum(
        not np.array_equal(a.tokens, b.tokens) for a, b in zip(recorded, now, strict=True)
    )
    assert flipped > 0, "the perturbation matters"
    known = [levels_of(tree) for tree in recorded]
    features, counts = TeacherDrafter(there, 5, 2, CPU).follow(*text, known)
    assert counts[:, 0].sum() > 0 and counts[:, 1].sum() == 0
    for tree, rows in zip(recorded, features, strict=True):
        assert len(rows) == len(np.unique(tree.parents)), "one row for each recorded parent"


def test_another_heads_pools_are_no_tie(pair: Pair, text) -> None:  # type: ignore[no-untyped-def]
    trees, _ = TeacherDrafter(pair.head, 5, 2, CPU).pools(*text, POSITIONS)
    other = copy.deepcopy(pair.head)
    with torch.no_grad():
        other.lm_head.weight.copy_(1.5 * other.lm_head.weight.roll(7, dims=0))
    _, counts = TeacherDrafter(other, 5, 2, CPU).follow(*text, [levels_of(t) for t in trees])
    assert counts[:, 1].sum() > 0
