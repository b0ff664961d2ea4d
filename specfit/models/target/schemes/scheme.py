"""How a checkpoint stores its matrices: a tensor each, in floating point. Schemes say what differs.

Which matrices are quantised is read from the shards' headers: what a config says of modules by
patterns differs between the libraries that wrote it, and the tensors say it without doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

from specfit.base.types import SpecfitError
from specfit.experts.expert_format import ExpertFormat, Layout, PlainLayout, plain_format
from specfit.models.target.family import Family, Geometry
from specfit.models.target.shards import FLOATS, Entry

Headers = Callable[[str], Entry | None]
"""What the shards' headers say of a tensor; None where no shard has it."""

NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "I32"}
NAMES |= {torch.uint8: "U8", torch.float8_e4m3fn: "F8_E4M3"}
"""Of the dtypes that parts have, as shards spell them."""

KINDS = {name: dtype for dtype, name in NAMES.items()}


@dataclass(frozen=True)
class Stored:
    """The tensor that a part of a matrix is read from."""

    name: str
    shape: tuple[int, ...]  # of the whole tensor
    dtypes: tuple[str, ...] = FLOATS  # that it may be stored in
    rows: tuple[int, int, int] | None = None  # (index, first, end): tensor[index, first:end] alone
    convert: Callable[[torch.Tensor], torch.Tensor] | None = None  # None: it is the part


class Scheme:
    """Matrices in floating point; the base of every scheme."""

    method = "none"
    """`quant_method` of the config."""
    bias: torch.dtype | None = None
    """Of the experts' biases, where a checkpoint of this scheme has them."""

    def __init__(self, where: str) -> None:
        self._where = where

    def family(self, family: Family) -> Family:
        """The family as this scheme names its tensors."""
        return family

    # -- one matrix ------------------------------------------------------------------------------

    def layout(self, weight: str, shape: tuple[int, ...], headers: Headers) -> Layout | None:
        """Of the matrix that a plain checkpoint calls `weight`; None where it is stored so.

        Raises SpecfitError naming the tensor that contradicts the config.
        """
        return None

    def stored(
        self, weight: str, shape: tuple[int, ...], layout: Layout, headers: Headers
    ) -> tuple[Stored, ...]:
        """Where each part of a quantised matrix lies, in the layout's order. Asked only of
        a scheme whose `layout` gives one, which this base's does not."""
        raise NotImplementedError

    def beside(self, weight: str) -> tuple[str, ...]:
        """Tensors of a quantised matrix that may be there and that no part is read from."""
        return ()

    def check_beside(self, tensors: Mapping[str, torch.Tensor], shape: tuple[int, ...]) -> None:
        """`tensors`: those of `beside` that are there. Raises SpecfitError for what they ask."""

    def refuse(self, tensor: str, why: str) -> SpecfitError:
        return SpecfitError(f"tensor {tensor} of {self._where} {why} ({self.method})")

    # -- experts ---------------------------------------------------------------------------------

    def nominal(self) -> Layout | None:
        """Of the experts, by the config alone."""
        return None

    def nominal_format(self, geometry: Geometry, dtype: torch.dtype) -> ExpertFormat:
        """What the config alone says; a scale's dtype, which it does not say, is the usual one."""
        layout = self.nominal() or PlainLayout(dtype)
        return ExpertFormat(geometry.hidden, geometry.intermediate, dtype, layout, self.bias)

    def expert_format(
        self, family: Family, geometry: Geometry, dtype: torch.dtype, headers: Headers
    ) -> ExpertFormat:
        """By the first expert; others are held to it when they are read."""
        first = family.expert_parts(0, 0)[0]
        layout = self.layout(first, (geometry.intermediate, geometry.hidden), headers)
        if layout is None:
            return plain_format(geometry.hidden, geometry.intermediate, dtype)
        return ExpertFormat(geometry.hidden, geometry.intermediate, dtype, layout)

    def expert(
        self, family: Family, format: ExpertFormat, headers: Headers, layer: int, expert: int
    ) -> Iterator[Stored]:
        """Where the parts of a block lie, in the format's order."""
        inward = format.intermediate, format.hidden
        shapes = inward, inward, inward[::-1]
        for weight, shape in zip(family.expert_parts(layer, expert), shapes, strict=True):
            if format.is_plain:
                yield Stored(weight, shape)
            else:
                yield from self.stored(weight, shape, format.layout, headers)

    def expert_names(self, family: Family, layer: int, expert: int) -> Iterator[str]:
        """Plain names of the matrices that `beside` is to be asked of."""
        yield from family.expert_parts(layer, expert)

    # -- writing ---------------------------------------------------------------------------------

    def written(self, weight: str, matrix: torch.Tensor, layout: Layout) -> dict[str, torch.Tensor]:
        """The tensors that stand for a matrix in a checkpoint of this scheme; for schemes
        that the package writes."""
        raise NotImplementedError
