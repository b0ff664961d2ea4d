"""The routed experts of a forward in one compiled loop over slots, for a CPU.

A loop of torch calls costs some 20 microseconds of Python an expert, which for small experts is
most of a token. Here one call runs all items of a batch. Every output is one dot product after the
other in a fixed order that neither the other rows nor the block's place can change, so a forward
is bit-identical for every residency, and a row's result does not depend on the rows beside it.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import IntArray
from specfit.experts.arithmetic import LayerWork, LoopArithmetic

MAX_ROWS = 32
"""More rows share a weight often enough for a matrix product to win."""

FloatArray = NDArray[np.float32]

_ORDER_FREE = {"reassoc", "contract", "nsz"}
"""Lets a sum run in vector lanes; the order is fixed when the loop is compiled."""


@njit(cache=True, nogil=True, fastmath=_ORDER_FREE, error_model="numpy")
def dot(left: FloatArray, at: int, right: FloatArray, to: int, count: int) -> np.float32:
    """Of left [at : at + count] and right [to : to + count], flat arrays: a slice would cost more
    than the sum. Unsigned, for a signed index may count from the end, which no vector lane can."""
    total: np.float32 = np.float32(0.0)
    first, second = np.uint64(at), np.uint64(to)
    for i in range(np.uint64(count)):
        total += left[first + i] * right[second + i]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _run_items(
    storage: FloatArray,
    hidden: FloatArray,
    outputs: FloatArray,
    table: IntArray,
    top_k: int,
    size: int,
    first: int,
    last: int,
) -> None:
    """storage [B * 3*I*H], hidden [T * H], outputs [T * k, H], table as in `LayerWork`."""
    n_places, width = outputs.shape
    n_items = (len(table) - n_places - 1) // 2
    inner = np.empty(size, dtype=np.float32)
    for item in range(first, last):
        begin, end = table[n_places + item], table[n_places + item + 1]
        block = table[n_places + n_items + 1 + item] * 3 * size * width
        for at in range(begin, end):
            place = table[at]
            row = place // top_k * width
            for i in range(size):
                gate = dot(storage, block + i * width, hidden, row, width)
                up = dot(storage, block + (size + i) * width, hidden, row, width)
                inner[i] = gate / (np.float32(1.0) + np.float32(math.exp(-gate))) * up
            down = block + 2 * width * size
            for j in range(width):
                outputs[place, j] = dot(storage, down + j * size, inner, 0, size)


@njit(cache=True, nogil=True, error_model="numpy")
def _combine(outputs: FloatArray, weights: FloatArray, total: FloatArray) -> None:
    """outputs [T * k, H] weighted by [T, k] and added for k = 0, 1, ... -> total [T, H]."""
    rows, top_k = weights.shape
    for row in range(rows):
        for j in range(total.shape[1]):
            value = outputs[row * top_k, j] * weights[row, 0]
            for choice in range(1, top_k):
                value += outputs[row * top_k + choice, j] * weights[row, choice]
            total[row, j] = value


class CompiledArithmetic:
    """Compiled for up to 32 float32 rows, the torch loop for more: the rows alone decide."""

    compiles = True

    def __init__(self, loop: LoopArithmetic) -> None:
        self._loop = loop

    def run(self, storage: torch.Tensor, first: int, last: int, work: LayerWork) -> None:
        if len(work.hidden) > MAX_ROWS:
            self._loop.run(storage, first, last, work)
        elif first < last:
            _run_items(
                storage.view(-1).numpy(),
                work.hidden.reshape(-1).numpy(),
                work.outputs.numpy(),
                work.table.numpy(),
                work.top_k,
                work.inner_size,
                first,
                last,
            )

    def finish(self, work: LayerWork, weights: torch.Tensor) -> torch.Tensor:
        if len(work.hidden) > MAX_ROWS:
            return self._loop.finish(work, weights)
        total = torch.empty_like(work.hidden)
        _combine(work.outputs.numpy(), weights.numpy(), total.numpy())
        return total
