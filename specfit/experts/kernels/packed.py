"""A tile of a weight matrix as the kernels read it: as it lies, or widened from e4m3 or int4.

Bits are taken apart by integer arithmetic, which every GPU has and which is exact; a value is
computed in float32 and rounded once, as the layouts' `widen` does, so both give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from specfit.experts.expert_format import ExpertFormat
from specfit.experts.layouts.fp8 import Fp8Layout
from specfit.experts.layouts.int4 import Int4Layout

PLAIN, FP8, INT4, INT4_ZEROS = range(4)
SCALES = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}


@triton.jit
def weight_tile(
    storage,  # of blocks: numbers, or bytes of packed ones
    block,  # where the block begins
    column,  # [C] rows of the matrix [N, K]
    deep,  # [D] columns of it
    there,  # [D, C] whether both are within
    K: tl.constexpr,
    at: tl.constexpr,  # from the block's begin to the numbers, to the scales, to the zeros
    scales_at: tl.constexpr,
    zeros_at: tl.constexpr,
    KIND: tl.constexpr,
    TALL: tl.constexpr,  # rows and columns that a scale stands for
    WIDE: tl.constexpr,
    SCALE: tl.constexpr,
    dtype: tl.constexpr,  # of the result
):
    """[D, C] of the transposed matrix, zero outside."""
    begin = storage + block
    place = column[None, :] * K + deep[:, None]
    if KIND == 0:
        tile = tl.load(begin + at + place, mask=there, other=0.0)
    else:
        group = column[None, :] // TALL * ((K + WIDE - 1) // WIDE) + deep[:, None] // WIDE
        scales = (begin + scales_at).to(tl.pointer_type(SCALE))
        scale = tl.load(scales + group, mask=there, other=0.0).to(tl.float32)
        if KIND == 1:
            code = tl.load(begin + at + place, mask=there, other=0).to(tl.int32)
            exponent = (code >> 3) & 15
            normal = (((code & 127) << 20) + (120 << 23)).to(tl.float32, bitcast=True)
            small = (code & 7).to(tl.float32) * 0.001953125  # 2**-9
            size = tl.where(exponent == 0, small, normal)
            size = tl.where((code & 127) == 127, float("nan"), size)
            value = tl.where(code > 127, -size, size)
        else:
            pair = tl.load(begin + at + place // 2, mask=there, other=0).to(tl.int32)
            number = (pair >> (place % 2 * 4)) & 15
            if KIND == 3:
                zeros = tl.load(begin + zeros_at + group // 2, mask=there, other=0).to(tl.int32)
                value = (number - ((zeros >> (group % 2 * 4)) & 15)).to(tl.float32)
            else:
                value = (number - 8).to(tl.float32)
        tile = (value * scale).to(dtype)
    return tile


@dataclass(frozen=True)
class PackedShape:
    """What the kernels are told of a format; offsets in elements of its storage."""

    kind: int
    stride: int  # from one block to the next
    offsets: tuple[tuple[int, int, int], ...]  # of gate, up and down: numbers, scales, zeros
    tiles: tuple[tuple[int, int], ...]  # of gate and up, of down: rows, columns of a scale
    scale: Any

    def of(self, matrix: int) -> dict[str, Any]:
        """Named constants of gate (0) and up (1), or of down (2)."""
        tall, wide = self.tiles[matrix // 2]
        return {"KIND": self.kind, "TALL": tall, "WIDE": wide, "SCALE": self.scale}


def packed_shape(format: ExpertFormat) -> PackedShape | None:
    """None for a layout that the kernels do not read."""
    layout, each = format.layout, format.parts_per_matrix
    if format.bias is not None:
        return None
    item = format.storage.itemsize
    at = [offset // item for offset in format.offsets]
    firsts = (0, each, 2 * each)
    offsets = tuple(
        (at[i], at[i + 1] if each > 1 else 0, at[i + 2] if each > 2 else 0) for i in firsts
    )
    wide, narrow = format.hidden, format.intermediate
    tiles: tuple[tuple[int, int], ...] = ((1, 1), (1, 1))
    kind, scale = PLAIN, torch.float32
    if isinstance(layout, Fp8Layout):
        kind, scale = FP8, layout.scale_dtype
        tiles = layout.tile_of(narrow, wide), layout.tile_of(wide, narrow)
    elif isinstance(layout, Int4Layout):
        kind, scale = INT4_ZEROS if layout.zeros else INT4, layout.scale_dtype
        tiles = (1, layout.group), (1, layout.group)
    elif not format.is_plain:
        return None
    return PackedShape(kind, format.elements, offsets, tiles, SCALES[scale])
