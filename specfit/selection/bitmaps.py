"""Atlas conversion: expert ids to bitmaps, and the popcounts that turn bitmaps into demand.

Shapes: N pool nodes, L layers, k routed experts per row, W = ceil(E / 64) words per layer.
Bit `id % 64` of word `id // 64` of a layer says that the layer's expert `id` is used. Bitmaps of a
cycle are *rows* [1 + N, M], M = L x W: row 0 is the root, row 1 + i is node i.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from specfit.base.types import IntArray, Routes

Bits = NDArray[np.uint64]


def _popcount(_context: Any, _word: Any) -> Any:
    """Set bits of a uint64: LLVM's `ctpop`, the hardware instruction where there is one."""

    def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


popcount: Any = intrinsic(_popcount)  # Any: compiled code calls it with the word alone


def words_per_layer(num_experts: int) -> int:
    return (num_experts + 63) // 64


@njit(cache=True)
def _in_range(ids: IntArray, num_experts: int) -> Any:
    """No branch in the loop: `id | (E - 1 - id)` is negative iff id is not in 0..E-1."""
    signs = np.int64(0)
    for expert in ids.flat:
        signs |= expert | (num_experts - 1 - expert)
    return signs >= 0


@njit(cache=True)
def _convert(ids: IntArray, rows: Bits) -> None:
    """ids [R, L, k] -> rows [R, M].

    Gathers each word from all k ids instead of scattering each id: no store waits for another,
    and no branch depends on an id.
    """
    layers = ids.shape[1]
    words = rows.shape[1] // layers
    for row in range(ids.shape[0]):
        for layer in range(layers):
            for word in range(words):
                gathered = np.uint64(0)
                for j in range(ids.shape[2]):
                    offset = np.uint64(ids[row, layer, j] - (word << 6))
                    if offset < np.uint64(64):
                        gathered |= np.uint64(1) << (offset & np.uint64(63))
                rows[row, layer * words + word] = gathered


@njit(cache=True)
def _load(root: IntArray, nodes: IntArray, rows: Bits, num_experts: int, first: int) -> bool:
    """root [L, k], nodes [N, L, k] -> rows [>= 1 + N, M] from node `first` on (0: root as well)."""
    if not (_in_range(root, num_experts) and _in_range(nodes[first:], num_experts)):
        return False
    if first == 0:
        _convert(root.reshape((1,) + root.shape), rows[:1])
    _convert(nodes[first:], rows[1 + first : 1 + nodes.shape[0]])
    return True


@njit(cache=True)
def _demand(rows: Bits, nodes: IntArray) -> Any:
    total = np.int64(0)
    for word in range(rows.shape[1]):
        union = rows[0, word]
        for node in nodes:
            union |= rows[1 + node, word]
        total += np.int64(popcount(union))
    return total


def plain(array: NDArray[Any], dtype: type) -> NDArray[Any]:
    """The array itself if it is a writable C-contiguous one of `dtype`, else such a copy.

    Compiled kernels then see one type only: no layout can make a timed request pay a compilation.
    """
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.writeable:
        return array
    return np.array(array, dtype=dtype, order="C")


class AtlasBits:
    """Bitmaps of one cycle's root and pool, in a buffer kept from call to call."""

    def __init__(self, num_experts: int) -> None:
        self.num_experts = num_experts
        self._layers = 0
        self._rows: Bits = np.empty((0, 0), dtype=np.uint64)

    def load(self, routes: Routes, first: int = 0) -> Bits:
        """Convert nodes `first`.. and, when `first` is 0, the root; returns the buffer.

        The buffer [>= 1 + N, M] is overwritten by the next load. Its rows below `first` must be
        this cycle's earlier levels, loaded by the calls before.
        """
        layers, needed = len(routes.root), 1 + len(routes)
        if layers != self._layers or needed > len(self._rows):
            words = words_per_layer(self.num_experts)
            self._rows = np.empty((max(32, 2 * needed), layers * words), dtype=np.uint64)
            self._layers, first = layers, 0
        root, nodes = plain(routes.root, np.int64), plain(routes.nodes, np.int64)
        known = _load(root, nodes, self._rows, self.num_experts, first)
        assert known, f"expert ids lie in 0..{self.num_experts - 1}"
        return self._rows


def bitmaps(routes: Routes, num_experts: int) -> Bits:
    """Rows [1 + N, M] of root and pool, in a new array."""
    return AtlasBits(num_experts).load(routes)[: 1 + len(routes)]


def demand(rows: Bits, nodes: Sequence[int]) -> int:
    """F (sec. 3.2): distinct experts of the root and `nodes`, summed over layers."""
    chosen = np.array(nodes, dtype=np.int64)
    assert chosen.size == 0 or (chosen.min() >= 0 and chosen.max() + 1 < len(rows))
    return int(_demand(plain(rows, np.uint64), chosen))
