"""Recalibrated path probabilities: what selectors see, and what the head goes on drafting from."""

from __future__ import annotations

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE, DraftTree
from specfit.models.drafter.temperature import TemperedDrafter, tempered
from specfit.selection.forced_trees import most_probable
from tests.fakes.table_model import ScriptedDrafter


def drafted(temperature: float) -> tuple[DraftTree, DraftTree]:
    guesses = {1: (2, 3), 2: (4, 5), 3: (6, 7), 4: (8, 9)}
    pools = []
    for make in (lambda d: d, lambda d: TemperedDrafter(d, temperature)):
        drafter = make(ScriptedDrafter(guesses))  # type: ignore[no-untyped-call]
        drafter.begin()
        drafter.extend(np.array([1]), np.array([0]))
        for _ in range(2):  # a second cycle starts from an empty pool again
            tree = DraftTree.empty()
            for _ in range(drafter.max_depth):
                tree = drafter.grow(tree)
        pools.append(tree)
    return pools[0], pools[1]


@pytest.mark.parametrize("temperature", [0.5, 1.15, 3.0])
def test_the_pool_is_the_heads_and_only_the_chances_change(temperature: float) -> None:
    own, seen = drafted(temperature)
    for name in ("tokens", "parents", "depths"):
        assert np.array_equal(getattr(own, name), getattr(seen, name))
    expected = (own.path_probs / PROBABILITY_ONE) ** (1 / temperature)
    assert seen.path_probs / PROBABILITY_ONE == pytest.approx(expected, abs=1e-6)
    assert not np.array_equal(own.path_probs, seen.path_probs)
    assert most_probable(own, 5) == most_probable(seen, 5)


def test_one_changes_nothing() -> None:
    probs = np.array([0, 1, 7, PROBABILITY_ONE // 3, PROBABILITY_ONE])
    assert tempered(probs, 1.0).tolist() == probs.tolist()
    assert tempered(probs, 2.0)[-1] == PROBABILITY_ONE and tempered(probs, 2.0)[0] == 0
