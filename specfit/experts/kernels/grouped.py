"""Grouped experts in Triton: gate, up, silu and down of many experts in two launches, from slots.

For forwards of 1 to 32 rows and 1 to 128 experts, which read far more weights than activations;
quantised experts are widened tile by tile on the way.
A program computes one tile of up to 16 places of one item for some output columns; products are
summed in float32 in one fixed order, so neither the grouping nor the block's place changes a bit.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from specfit.experts.arithmetic import Arithmetic, LayerWork
from specfit.experts.expert_format import plain_format
from specfit.experts.kernels.packed import PackedShape, packed_shape, weight_tile

MAX_ROWS = 32
TILE = 16
"""Rows of a tile: the least `tl.dot` takes."""


@triton.jit
def _tile(places, starts, blocks, first, top_k, block_size, tiles, TILE: tl.constexpr):
    """(place [TILE], alive [TILE], row [TILE], offset of the block) of this program's tile."""
    item = first + tl.program_id(0) // tiles
    lane = tl.load(starts + item) + (tl.program_id(0) % tiles) * TILE + tl.arange(0, TILE)
    alive = lane < tl.load(starts + item + 1)
    place = tl.load(places + lane, mask=alive, other=0)
    return place, alive, place // top_k, tl.load(blocks + item) * block_size


@triton.jit
def gate_up_kernel(
    hidden,  # [T, H]
    storage,  # [B, block]
    inner,  # [T * k, I] out
    places,
    starts,
    blocks,
    first,
    tiles,
    top_k,
    width: tl.constexpr,  # H
    size: tl.constexpr,  # I
    stride: tl.constexpr,
    gate_at: tl.constexpr,
    gate_scales: tl.constexpr,
    gate_zeros: tl.constexpr,
    up_at: tl.constexpr,
    up_scales: tl.constexpr,
    up_zeros: tl.constexpr,
    KIND: tl.constexpr,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    SCALE: tl.constexpr,
    TILE: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    place, alive, row, block = _tile(places, starts, blocks, first, top_k, stride, tiles, TILE)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    gate = tl.zeros((TILE, COLUMNS), dtype=tl.float32)
    up = tl.zeros((TILE, COLUMNS), dtype=tl.float32)
    for begin in range(0, width, DEPTH):
        deep = begin + tl.arange(0, DEPTH)
        seen = alive[:, None] & (deep < width)[None, :]
        x = tl.load(hidden + row[:, None] * width + deep[None, :], mask=seen, other=0.0)
        there = (deep < width)[:, None] & (column < size)[None, :]
        weights = weight_tile(
            storage, block, column, deep, there, width,
            gate_at, gate_scales, gate_zeros, KIND, TALL, WIDE, SCALE, x.dtype,
        )  # fmt: skip
        gate = tl.dot(x, weights, gate, input_precision="ieee")
        weights = weight_tile(
            storage, block, column, deep, there, width,
            up_at, up_scales, up_zeros, KIND, TALL, WIDE, SCALE, x.dtype,
        )  # fmt: skip
        up = tl.dot(x, weights, up, input_precision="ieee")
    value = gate * tl.sigmoid(gate) * up
    to = inner + place[:, None] * size + column[None, :]
    tl.store(to, value.to(inner.dtype.element_ty), mask=alive[:, None] & (column < size)[None, :])


@triton.jit
def down_kernel(
    inner,  # [T * k, I]
    storage,  # [B, block]
    outputs,  # [T * k, H] out
    places,
    starts,
    blocks,
    first,
    tiles,
    top_k,
    width: tl.constexpr,  # H
    size: tl.constexpr,  # I
    stride: tl.constexpr,
    down_at: tl.constexpr,
    down_scales: tl.constexpr,
    down_zeros: tl.constexpr,
    KIND: tl.constexpr,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    SCALE: tl.constexpr,
    TILE: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    place, alive, _row, block = _tile(places, starts, blocks, first, top_k, stride, tiles, TILE)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((TILE, COLUMNS), dtype=tl.float32)
    for begin in range(0, size, DEPTH):
        deep = begin + tl.arange(0, DEPTH)
        seen = alive[:, None] & (deep < size)[None, :]
        x = tl.load(inner + place[:, None] * size + deep[None, :], mask=seen, other=0.0)
        there = (deep < size)[:, None] & (column < width)[None, :]
        weights = weight_tile(
            storage, block, column, deep, there, size,
            down_at, down_scales, down_zeros, KIND, TALL, WIDE, SCALE, x.dtype,
        )  # fmt: skip
        total = tl.dot(x, weights, total, input_precision="ieee")
    to = outputs + place[:, None] * width + column[None, :]
    tl.store(
        to, total.to(outputs.dtype.element_ty), mask=alive[:, None] & (column < width)[None, :]
    )


@triton.jit
def combine_kernel(
    outputs,  # [T, k, H]
    weights,  # [T, k]
    total,  # [T, H] out
    top_k: tl.constexpr,
    width: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.zeros((COLUMNS,), dtype=tl.float32)
    for choice in range(0, top_k):
        weight = tl.load(weights + row * top_k + choice).to(tl.float32)
        at = outputs + (row * top_k + choice) * width + column
        value += weight * tl.load(at, mask=column < width, other=0.0).to(tl.float32)
    at = total + row * width + column
    tl.store(at, value.to(total.dtype.element_ty), mask=column < width)


class GroupedArithmetic:
    """Kernels for up to 32 rows, the loop for more; which of the two depends on the rows alone.

    `shape`: of blocks that are no plain numbers of the rows' dtype; `loop` then widens them.
    """

    compiles = False

    def __init__(self, loop: Arithmetic, shape: PackedShape | None = None) -> None:
        self._loop, self._shape = loop, shape

    def run(self, storage: torch.Tensor, first: int, last: int, work: LayerWork) -> None:
        if len(work.hidden) > MAX_ROWS:
            self._loop.run(storage, first, last, work)
        elif first < last:
            _launch(storage, first, last, work, self._shape or _plain(work))

    def finish(self, work: LayerWork, weights: torch.Tensor) -> torch.Tensor:
        rows, width = work.hidden.shape
        if rows > MAX_ROWS:
            return self._loop.finish(work, weights)
        total = torch.empty_like(work.hidden)
        grid = (rows, triton.cdiv(width, 256))
        combine_kernel[grid](
            work.outputs, weights.contiguous(), total, work.top_k, width, COLUMNS=256
        )
        return total


def _plain(work: LayerWork) -> PackedShape:
    format = plain_format(work.hidden.shape[1], work.inner_size, torch.float32)
    shape = packed_shape(format)
    assert shape is not None, "plain blocks have a shape"
    return shape


def _launch(
    storage: torch.Tensor, first: int, last: int, work: LayerWork, shape: PackedShape
) -> None:
    width, size = work.hidden.shape[1], work.inner_size
    most = max(work.starts[item + 1] - work.starts[item] for item in range(first, last))
    tiles = triton.cdiv(most, TILE)
    places, items = len(work.outputs), len(work.blocks)
    table = work.table
    starts, blocks = table[places : places + items + 1], table[places + items + 1 :]
    inner = work.hidden.new_empty(places, size)
    depth = 32 if work.hidden.dtype == torch.float32 else 128
    shared = (table, starts, blocks, first, tiles, work.top_k, width, size, shape.stride)
    gate, up, down = shape.offsets
    programs = (last - first) * tiles
    gate_up_kernel[(programs, triton.cdiv(size, 32))](
        work.hidden, storage, inner, *shared, *gate, *up, **shape.of(0),
        TILE=TILE, COLUMNS=32, DEPTH=depth, num_warps=4,
    )  # fmt: skip
    down_kernel[(programs, triton.cdiv(width, 32))](
        inner, storage, work.outputs, *shared, *down, **shape.of(2),
        TILE=TILE, COLUMNS=32, DEPTH=depth, num_warps=4,
    )  # fmt: skip
