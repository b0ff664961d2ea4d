"""Grouped experts in Triton: gate, up, silu and down of many experts in two launches, from slots.

For forwards of 1 to 32 rows and 1 to 128 experts, which read far more weights than activations.
A program computes one tile of up to 16 places of one item for some output columns; products are
summed in float32 in one fixed order, so neither the grouping nor the block's place changes a bit.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from specfit.experts.arithmetic import LayerWork, LoopArithmetic

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
    storage,  # [B, 3*I*H]
    inner,  # [T * k, I] out
    places,
    starts,
    blocks,
    first,
    tiles,
    top_k,
    width: tl.constexpr,  # H
    size: tl.constexpr,  # I
    TILE: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    place, alive, row, offset = _tile(
        places, starts, blocks, first, top_k, 3 * size * width, tiles, TILE
    )
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    gate = tl.zeros((TILE, COLUMNS), dtype=tl.float32)
    up = tl.zeros((TILE, COLUMNS), dtype=tl.float32)
    for begin in range(0, width, DEPTH):
        deep = begin + tl.arange(0, DEPTH)
        seen = alive[:, None] & (deep < width)[None, :]
        x = tl.load(hidden + row[:, None] * width + deep[None, :], mask=seen, other=0.0)
        there = (deep < width)[:, None] & (column < size)[None, :]
        at = storage + offset + column[None, :] * width + deep[:, None]
        gate = tl.dot(x, tl.load(at, mask=there, other=0.0), gate, input_precision="ieee")
        at += size * width
        up = tl.dot(x, tl.load(at, mask=there, other=0.0), up, input_precision="ieee")
    value = gate * tl.sigmoid(gate) * up
    to = inner + place[:, None] * size + column[None, :]
    tl.store(to, value.to(inner.dtype.element_ty), mask=alive[:, None] & (column < size)[None, :])


@triton.jit
def down_kernel(
    inner,  # [T * k, I]
    storage,  # [B, 3*I*H]
    outputs,  # [T * k, H] out
    places,
    starts,
    blocks,
    first,
    tiles,
    top_k,
    width: tl.constexpr,  # H
    size: tl.constexpr,  # I
    TILE: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    place, alive, _row, offset = _tile(
        places, starts, blocks, first, top_k, 3 * size * width, tiles, TILE
    )
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((TILE, COLUMNS), dtype=tl.float32)
    for begin in range(0, size, DEPTH):
        deep = begin + tl.arange(0, DEPTH)
        seen = alive[:, None] & (deep < size)[None, :]
        x = tl.load(inner + place[:, None] * size + deep[None, :], mask=seen, other=0.0)
        there = (deep < size)[:, None] & (column < width)[None, :]
        at = storage + offset + 2 * size * width + column[None, :] * size + deep[:, None]
        total = tl.dot(x, tl.load(at, mask=there, other=0.0), total, input_precision="ieee")
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
    """Kernels for up to 32 rows, the loop for more; which of the two depends on the rows alone."""

    compiles = False

    def __init__(self, loop: LoopArithmetic) -> None:
        self._loop = loop

    def run(self, storage: torch.Tensor, first: int, last: int, work: LayerWork) -> None:
        if len(work.hidden) > MAX_ROWS:
            self._loop.run(storage, first, last, work)
        elif first < last:
            _launch(storage, first, last, work)

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


def _launch(storage: torch.Tensor, first: int, last: int, work: LayerWork) -> None:
    width, size = work.hidden.shape[1], work.inner_size
    most = max(work.starts[item + 1] - work.starts[item] for item in range(first, last))
    tiles = triton.cdiv(most, TILE)
    places, items = len(work.outputs), len(work.blocks)
    table = work.table
    starts, blocks = table[places : places + items + 1], table[places + items + 1 :]
    inner = work.hidden.new_empty(places, size)
    depth = 32 if work.hidden.dtype == torch.float32 else 128
    shared = (table, starts, blocks, first, tiles, work.top_k, width, size)
    programs = (last - first) * tiles
    gate_up_kernel[(programs, triton.cdiv(size, 32))](
        work.hidden, storage, inner, *shared, TILE=TILE, COLUMNS=32, DEPTH=depth, num_warps=4
    )
    down_kernel[(programs, triton.cdiv(width, 32))](
        inner, storage, work.outputs, *shared, TILE=TILE, COLUMNS=32, DEPTH=depth, num_warps=4
    )
