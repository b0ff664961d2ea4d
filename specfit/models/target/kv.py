"""The target's KV cache: rows after `length` are scratch until they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class KVCache:
    """Keys and values [L][1, kv_heads, capacity, head_dim]; a forward writes from `start` on.

    A forward over q rows writes columns start..start+q and attends to 0..start+q, so scratch rows
    of the atlas lie beyond `length` and are dropped by forgetting them.
    """

    def __init__(self, layers: int) -> None:
        self._keys: list[torch.Tensor | None] = [None] * layers
        self._values: list[torch.Tensor | None] = [None] * layers
        self.length = 0
        self.start = 0

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """transformers' interface: store [1, kv_heads, q, head_dim], return every column seen."""
        end = self.start + keys.shape[2]
        stored = []
        for buffers, new in ((self._keys, keys), (self._values, values)):
            buffer = self._grown(buffers[layer], new, end)
            buffer[:, :, self.start : end] = new
            buffers[layer] = buffer
            stored.append(buffer[:, :, :end])
        return stored[0], stored[1]

    def _grown(self, buffer: torch.Tensor | None, new: torch.Tensor, end: int) -> torch.Tensor:
        """Capacity doubles, so appending copies each row a constant number of times."""
        if buffer is not None and buffer.shape[2] >= end:
            return buffer
        capacity = max(256, 2 * end)
        larger = new.new_zeros(new.shape[0], new.shape[1], capacity, new.shape[3])
        if buffer is not None:
            larger[:, :, : buffer.shape[2]] = buffer
        return larger

    def keep(self, rows: Sequence[int]) -> None:
        """Of the rows written after `length`, keep these (ascending offsets), side by side."""
        index = torch.as_tensor(rows, dtype=torch.long) + self.length
        end = self.length + len(rows)
        for buffer in (*self._keys, *self._values):
            assert buffer is not None, "keep follows a forward"
            buffer[:, :, self.length : end] = buffer.index_select(2, index.to(buffer.device))
        self.length = self.start = end

    def first_not_finite(self, end: int) -> int | None:
        """The first layer with a key or value before column `end` that is no number."""
        for layer, pair in enumerate(zip(self._keys, self._values, strict=True)):
            for buffer in pair:
                if buffer is not None and not bool(buffer[:, :, :end].isfinite().all()):
                    return layer
        return None

    def truncate(self, length: int) -> None:
        assert length <= self.length, "a cache is never lengthened by truncation"
        self.length = self.start = length
