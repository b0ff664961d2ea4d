"""The host store: one contiguous block per (layer, expert), written once and never again."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from specfit.core import SpecfitError


class ExpertStore:
    """Host memory [L][E, 3*I*H]: gate [I, H], up [I, H], down [H, I] of one expert side by side.

    One block is one copy to the device. Blocks are read-only once `freeze` was called.
    """

    def __init__(
        self, layers: int, experts: int, hidden: int, intermediate: int, dtype: torch.dtype
    ) -> None:
        self.layers, self.experts = layers, experts
        self.hidden, self.intermediate, self.dtype = hidden, intermediate, dtype
        shape = (experts, 3 * intermediate * hidden)
        try:
            self._blocks = [torch.empty(shape, dtype=dtype) for _ in range(layers)]
        except RuntimeError as error:
            gigabytes = layers * experts * self.block_bytes / 1e9
            raise SpecfitError(
                f"the host store needs {gigabytes:.1f} GB of memory and did not get it ({error}); "
                "free memory or lower model.num_layers"
            ) from None
        self._written = torch.zeros(layers, experts, dtype=torch.bool)
        self._frozen = False

    @property
    def block_bytes(self) -> int:
        return 3 * self.intermediate * self.hidden * self.dtype.itemsize

    def write(self, layer: int, expert: int, parts: Iterable[torch.Tensor]) -> None:
        """Fill one block from gate [I, H], up [I, H], down [H, I]."""
        assert not self._frozen, "the store is immutable once loaded"
        block = self._blocks[layer][expert]
        start = 0
        for part in parts:
            block[start : start + part.numel()].copy_(part.reshape(-1))
            start += part.numel()
        assert start == block.numel(), "gate, up and down fill a block exactly"
        self._written[layer, expert] = True

    def freeze(self) -> None:
        assert bool(self._written.all()), "every expert is written before the store is used"
        self._frozen = True

    def block(self, layer: int, expert: int) -> torch.Tensor:
        """[3*I*H], to be copied from, never written."""
        return self._blocks[layer][expert]
