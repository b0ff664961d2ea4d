"""FP8: e4m3 numbers times a scale for each tile of the matrix.

A tile is 128 x 128 in Qwen's own checkpoints, a row or the whole matrix in others. Tiles at the
lower and right border are cut off by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from specfit.experts.expert_format import Part

LARGEST = 448.0
"""The largest e4m3 number."""


@dataclass(frozen=True)
class Fp8Layout:
    """[N, K] e4m3, then scales [ceil(N / tile rows), ceil(K / tile columns)]; 0 = all of them."""

    tile: tuple[int, int]
    scale_dtype: torch.dtype

    @property
    def name(self) -> str:
        words = {(1, 0): "fp8-channel", (0, 0): "fp8-tensor"}
        return words.get(self.tile, f"fp8-{self.tile[0]}x{self.tile[1]}")

    def tile_of(self, rows: int, columns: int) -> tuple[int, int]:
        return self.tile[0] or rows, self.tile[1] or columns

    def parts(self, rows: int, columns: int) -> tuple[Part, ...]:
        tall, wide = self.tile_of(rows, columns)
        grid = -(-rows // tall), -(-columns // wide)
        return Part((rows, columns), torch.float8_e4m3fn), Part(grid, self.scale_dtype)

    def widen(self, parts: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
        weight, scale = parts
        return weight.float().mul_(self._spread(scale.float(), *weight.shape)).to(dtype)

    def _spread(self, scale: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
        """Each tile's scale for its rows and columns; broadcast where a tile has all of one."""
        tall, wide = self.tile_of(rows, columns)
        if scale.shape[0] > 1:
            scale = scale.repeat_interleave(tall, 0)[:rows]
        return scale.repeat_interleave(wide, 1)[:, :columns] if scale.shape[1] > 1 else scale

    def quantise(self, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows, columns = weight.shape
        tall, wide = self.tile_of(rows, columns)
        down, across = self.parts(rows, columns)[1].shape
        padded = weight.new_zeros(down * tall, across * wide, dtype=torch.float32)
        padded[:rows, :columns] = weight
        peaks = padded.view(down, tall, across, wide).abs().amax(dim=(1, 3))
        scale = (peaks / LARGEST).clamp(min=2.0**-100).to(self.scale_dtype)
        ratio = weight.float() / self._spread(scale.float(), rows, columns)
        return ratio.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn), scale
