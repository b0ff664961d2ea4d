"""The target's KV cache: rows after `length` are scratch until they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class KVCache:
    """Keys and values [L, 2, kv_heads, capacity, head_dim]; a forward writes from `start` on.

    A forward over q rows writes columns start..start+q and attends to 0..start+q, so scratch rows
    of the atlas lie beyond `length` and are dropped by forgetting them.
    """

    def __init__(self, layers: int) -> None:
        self._layers = layers
        self._stored: torch.Tensor | None = None  # one tensor, so that rows move in one call
        self.length = 0
        self.start = 0
        self.moves = 0  # how often it has come to lie elsewhere: addresses of before are wrong

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """transformers' interface: store [1, kv_heads, q, head_dim], return every column seen."""
        kv_heads, rows, head_dim = keys.shape[1:]
        end = self.start + rows
        stored = self.reserve(kv_heads, head_dim, end, keys)[layer]
        stored[0, :, self.start : end] = keys[0]
        stored[1, :, self.start : end] = values[0]
        return stored[:1, :, :end], stored[1:, :, :end]

    def reserve(self, kv_heads: int, head_dim: int, end: int, like: torch.Tensor) -> torch.Tensor:
        """The whole tensor, with room for columns up to `end`. Capacity doubles, so appending
        copies each row a constant number of times."""
        held = self._stored
        if held is not None and held.shape[3] >= end:
            return held
        larger = like.new_zeros(self._layers, 2, kv_heads, max(256, 2 * end), head_dim)
        if held is not None:
            larger[:, :, :, : held.shape[3]] = held
        self._stored = larger
        self.moves += 1
        return larger

    def clear(self, first: int, end: int) -> None:
        """What an earlier forward left in these columns: a masked score of it may be no number."""
        assert self._stored is not None, "room has been made"
        if first < end:
            self._stored[:, :, :, first:end].zero_()

    def keep(self, rows: Sequence[int]) -> None:
        """Of the rows written after `length`, keep these (ascending offsets), side by side.

        Rows 0 .. n-1 lie where they are to be; others move in one gather and one write.
        """
        assert self._stored is not None, "keep follows a forward"
        first = next((i for i, row in enumerate(rows) if row != i), len(rows))
        moved, end = list(rows)[first:], self.length + len(rows)
        if moved:
            index = torch.tensor(moved, dtype=torch.long) + self.length
            if self._stored.is_cuda:
                index = index.pin_memory().to(self._stored.device, non_blocking=True)
            kept = self._stored.index_select(3, index)
            self._stored[:, :, :, self.length + first : end] = kept
        self.length = self.start = end

    def first_not_finite(self, end: int) -> int | None:
        """The first layer with a key or value before column `end` that is no number."""
        if self._stored is None:
            return None
        for layer, held in enumerate(self._stored):
            if not bool(held[:, :, :end].isfinite().all()):
                return layer
        return None

    def truncate(self, length: int) -> None:
        assert length <= self.length, "a cache is never lengthened by truncation"
        self.length = self.start = length
