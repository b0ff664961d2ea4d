"""The KV cache: what is kept, and how many calls a device is asked for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from specfit.models.target.kv import KVCache

LAYERS, HEADS, WIDTH = 5, 2, 4


class Calls(TorchDispatchMode):
    """Names of the operations that reach the dispatcher."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def filled(rows: int, seed: int = 0) -> tuple[KVCache, list[tuple[torch.Tensor, torch.Tensor]]]:
    cache = KVCache(LAYERS)
    generator = torch.Generator().manual_seed(seed)
    written = []
    for layer in range(LAYERS):
        pair = tuple(torch.randn(1, HEADS, rows, WIDTH, generator=generator) for _ in range(2))
        cache.update(*pair, layer)
        written.append(pair)
    return cache, written  # type: ignore[return-value]


def test_rows_that_lie_where_they_are_kept_are_not_touched() -> None:
    cache, _ = filled(6)
    with Calls() as calls:
        cache.keep(range(4))
    assert calls.names == [] and cache.length == 4


def test_rows_that_move_take_one_index_one_gather_and_one_write() -> None:
    cache, written = filled(8)
    with Calls() as calls:
        cache.keep([0, 1, 3, 6])
    assert calls.names.count("index_select") == 1 and calls.names.count("copy_") <= 1
    assert len([n for n in calls.names if n not in ("slice", "alias", "lift_fresh")]) <= 4
    cache.start = cache.length
    for layer, (keys, values) in enumerate(written):
        new = torch.zeros(1, HEADS, 1, WIDTH)
        seen = cache.update(new, new, layer)
        for stored, original in zip(seen, (keys, values), strict=True):
            assert torch.equal(stored[:, :, :4], original[:, :, [0, 1, 3, 6]])


@pytest.mark.parametrize("seed", range(4))
def test_any_story_of_growing_keeping_and_truncating_is_the_plain_one(seed: int) -> None:
    """Against lists of rows; capacity is passed twice."""
    rng = np.random.default_rng(seed)
    cache, plain = KVCache(LAYERS), torch.zeros(LAYERS, 2, HEADS, 0, WIDTH)
    for _ in range(60):
        rows = int(rng.integers(1, 40))
        new = torch.from_numpy(rng.standard_normal((LAYERS, 2, HEADS, rows, WIDTH), np.float32))
        for layer in range(LAYERS):
            seen = cache.update(new[layer, :1], new[layer, 1:], layer)
            whole = torch.cat([plain[layer], new[layer]], dim=2)
            assert torch.equal(torch.cat(seen), whole)
        kept = np.flatnonzero(rng.random(rows) < 0.6).tolist()
        cache.keep(kept)
        plain = torch.cat([plain, new[:, :, :, kept]], dim=3)
        if rng.random() < 0.1:
            length = int(rng.integers(0, cache.length + 1))
            cache.truncate(length)
            plain = plain[:, :, :, :length]
