"""The draft head's own keys and values: stable entries of true features, then draft entries."""

from __future__ import annotations

import torch
from torch import Tensor


class HeadCache:
    """Keys and values of one sequence, owned by the caller.

    Index = order of insertion. The buffer doubles, so a draft step copies its own rows only.
    """

    def __init__(self) -> None:
        self.length = 0
        self._keys: Tensor | None = None  # [..., KV, capacity, D]
        self._values: Tensor | None = None
        self._positions: Tensor | None = None  # [capacity] int64

    def __len__(self) -> int:
        return self.length

    @property
    def keys(self) -> Tensor:
        """[..., KV, S, D], a view."""
        assert self._keys is not None, "the cache is empty"
        return self._keys[..., : self.length, :]

    @property
    def values(self) -> Tensor:
        """[..., KV, S, D], a view."""
        assert self._values is not None, "the cache is empty"
        return self._values[..., : self.length, :]

    @property
    def positions(self) -> Tensor:
        """[S] RoPE positions of the keys."""
        assert self._positions is not None, "the cache is empty"
        return self._positions[: self.length]

    def crop(self, length: int) -> None:
        """Forget everything from index `length` on: how draft entries are dropped."""
        assert 0 <= length <= self.length, f"cannot crop {self.length} entries to {length}"
        self.length = length

    def append(self, keys: Tensor, values: Tensor, positions: Tensor) -> None:
        """Add T entries: keys and values [..., KV, T, D], positions [T]."""
        end = self.length + keys.shape[-2]
        self._reserve(end, keys)
        assert self._keys is not None and self._values is not None
        assert self._positions is not None
        self._keys[..., self.length : end, :] = keys
        self._values[..., self.length : end, :] = values
        self._positions[self.length : end] = positions
        self.length = end

    def _reserve(self, needed: int, like: Tensor) -> None:
        capacity = 0 if self._keys is None else self._keys.shape[-2]
        if needed <= capacity:
            return
        capacity = max(needed, 2 * capacity, 64)
        shape = (*like.shape[:-2], capacity, like.shape[-1])
        keys, values = like.new_empty(shape), like.new_empty(shape)
        positions = torch.zeros(capacity, dtype=torch.int64, device=like.device)
        if self._keys is not None:
            keys[..., : self.length, :] = self.keys
            values[..., : self.length, :] = self.values
            positions[: self.length] = self.positions
        self._keys, self._values, self._positions = keys, values, positions
