"""What an expert's block is: so many bytes, what lies where in them, and how they are widened.

Stores, slots, staging, copies and packs move blocks as they are stored; only the arithmetic looks
inside. A block holds three matrices, gate [I, H], up [I, H] and down [H, I], each in the parts of
one layout (weights, then scales), and where experts have them three biases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch

PADDING = 48
"""Bytes that the size of a quantised block is a multiple of: three equal pieces of 16."""

ALIGNED = 16
"""Bytes: where parts of a quantised block begin."""


@dataclass(frozen=True)
class Part:
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class Layout(Protocol):
    """How one weight matrix [N, K] is stored."""

    @property
    def name(self) -> str: ...

    def parts(self, rows: int, columns: int) -> tuple[Part, ...]:
        """Of a matrix of that shape, weights first."""
        ...

    def widen(self, parts: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
        """[N, K] in `dtype`: each value is computed in float32 and rounded once."""
        ...

    def quantise(self, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The parts that stand for `weight` [N, K], by rounding to the nearest."""
        ...


@dataclass(frozen=True)
class PlainLayout:
    """Floating-point numbers, row by row."""

    dtype: torch.dtype

    @property
    def name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def parts(self, rows: int, columns: int) -> tuple[Part, ...]:
        return (Part((rows, columns), self.dtype),)

    def widen(self, parts: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
        return parts[0].to(dtype)

    def quantise(self, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (weight.to(self.dtype),)


@dataclass(frozen=True)
class ExpertFormat:
    """Blocks of one model's experts. `dtype` is what they are computed in."""

    hidden: int
    intermediate: int
    dtype: torch.dtype
    layout: Layout
    bias: torch.dtype | None = None  # of three biases, as they are stored

    @property
    def name(self) -> str:
        """As rows and packs say it."""
        return self.layout.name

    @property
    def is_plain(self) -> bool:
        return isinstance(self.layout, PlainLayout)

    @property
    def storage(self) -> torch.dtype:
        """Element of a block as it is moved."""
        return self.dtype if self.is_plain else torch.uint8

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Of gate, of up, of down, then the three biases."""
        wide, narrow = self.hidden, self.intermediate
        inward = self.layout.parts(narrow, wide)
        found = (*inward, *inward, *self.layout.parts(wide, narrow))
        if self.bias is not None:
            found += tuple(Part((size,), self.bias) for size in (narrow, narrow, wide))
        return found

    @property
    def parts_per_matrix(self) -> int:
        return len(self.layout.parts(self.intermediate, self.hidden))

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Bytes from the block's begin to each part, then to the end of the last."""
        aligned = 1 if self.is_plain else ALIGNED
        at, found = 0, []
        for part in self.parts:
            at = -(-at // aligned) * aligned
            found.append(at)
            at += part.size_bytes
        return (*found, at)

    @property
    def block_bytes(self) -> int:
        used = self.offsets[-1]
        return used if self.is_plain else -(-used // PADDING) * PADDING

    @property
    def elements(self) -> int:
        """Of `storage`, in a block."""
        return self.block_bytes // self.storage.itemsize

    @property
    def widened_elements(self) -> int:
        """Of `dtype`: gate, up and down side by side, then the biases."""
        biases = 2 * self.intermediate + self.hidden if self.bias is not None else 0
        return 3 * self.hidden * self.intermediate + biases

    def views(self, block: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Each part of a block [elements] where it lies."""
        content = block.view(torch.uint8)
        return tuple(
            content[at : at + part.size_bytes].view(part.dtype).view(part.shape)
            for part, at in zip(self.parts, self.offsets, strict=False)
        )

    def widen(self, block: torch.Tensor) -> torch.Tensor:
        """A block [elements] -> [widened_elements] in `dtype`."""
        if self.is_plain:
            return block
        views, each = self.views(block), self.parts_per_matrix
        widened = block.new_empty(self.widened_elements, dtype=self.dtype)
        at = 0
        for matrix in range(3):
            made = self.layout.widen(views[matrix * each : (matrix + 1) * each], self.dtype)
            widened[at : at + made.numel()] = made.view(-1)
            at += made.numel()
        for bias in views[3 * each :]:
            widened[at : at + len(bias)] = bias
            at += len(bias)
        return widened


def plain_format(hidden: int, intermediate: int, dtype: torch.dtype) -> ExpertFormat:
    """Blocks that are computed with as they lie."""
    return ExpertFormat(hidden, intermediate, dtype, PlainLayout(dtype))
