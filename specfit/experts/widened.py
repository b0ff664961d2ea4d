"""Arithmetic on quantised blocks: each expert is widened where it is computed, and not before.

The widened expert then goes through the same sums as one of a plain checkpoint, so outputs are
bit-identical to those of a model whose weights were widened up front.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from specfit.experts.arithmetic import Arithmetic, LayerWork
from specfit.experts.expert_format import ExpertFormat


class WidenedArithmetic:
    """One expert after the other: widened into memory of its own, run by `inner`."""

    def __init__(self, inner: Arithmetic, format: ExpertFormat) -> None:
        self._inner, self._format = inner, format
        self.compiles = inner.compiles

    def run(self, storage: torch.Tensor, first: int, last: int, work: LayerWork) -> None:
        alone = _at_block_zero(work)
        for item in range(first, last):
            block = self._format.widen(storage[work.blocks[item]])
            self._inner.run(block[None], item, item + 1, alone)

    def finish(self, work: LayerWork, weights: torch.Tensor) -> torch.Tensor:
        return self._inner.finish(work, weights)


def _at_block_zero(work: LayerWork) -> LayerWork:
    """The same work on a storage of one block."""
    table = work.table.clone()
    table[len(table) - len(work.blocks) :] = 0
    return replace(work, blocks=[0] * len(work.blocks), table=table)
