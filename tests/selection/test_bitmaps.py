from __future__ import annotations

import numpy as np
import pytest

from specfit.base.types import Routes
from specfit.selection.bitmaps import AtlasBits, bitmaps, demand, words_per_layer
from tests.selection.pools import random_pool, union_count


def routes_of(ids: np.ndarray) -> Routes:
    return Routes(ids[0], ids[1:])


@pytest.mark.parametrize("experts, words", [(1, 1), (64, 1), (65, 2), (128, 2), (129, 3)])
def test_every_expert_has_its_own_bit(experts: int, words: int) -> None:
    assert words_per_layer(experts) == words
    rows = bitmaps(routes_of(np.arange(experts).reshape(experts, 1, 1)), experts)
    assert rows.shape == (experts, words)
    values = [sum(int(w) << (64 * i) for i, w in enumerate(row)) for row in rows]
    assert values == [1 << expert for expert in range(experts)]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint64])
def test_any_dtype_layout_and_read_only_ids(dtype: type) -> None:
    ids = np.array([[[3, 64], [0, 1]], [[127, 5], [9, 63]]], dtype=dtype)
    expected = bitmaps(routes_of(ids.astype(np.int64)), 128)
    frozen = np.asfortranarray(ids)
    frozen.flags.writeable = False
    assert np.array_equal(bitmaps(routes_of(frozen), 128), expected)


@pytest.mark.parametrize("wrong", [-1, 128, 1 << 40, -(1 << 63)])
@pytest.mark.parametrize("row", [0, 1])
def test_an_id_that_is_no_expert_is_refused(wrong: int, row: int) -> None:
    ids = np.arange(8).reshape(2, 1, 4)
    ids[row, 0, 2] = wrong
    with pytest.raises(AssertionError, match=r"0\.\.127"):
        bitmaps(routes_of(ids), 128)


def test_demand_is_the_union_of_sets() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        pool = random_pool(rng)
        chosen = tuple(n for n in range(len(pool.tree)) if rng.random() < 0.4)
        assert demand(pool.rows(), chosen) == union_count(pool.routes, chosen)


def test_atlas_bits_grow_level_by_level_and_forget_the_last_cycle() -> None:
    rng = np.random.default_rng(2)
    atlas = AtlasBits(128)
    for layers in (3, 3, 5):
        ids = np.array([rng.permutation(128)[:8] for _ in range(41 * layers)])
        ids = ids.reshape(41, layers, 8)
        seen = 0
        for upto in (2, 6, 18, 40):
            rows = atlas.load(routes_of(ids[: upto + 1]), first=seen)
            seen = upto
            assert np.array_equal(rows[: upto + 1], bitmaps(routes_of(ids[: upto + 1]), 128))
