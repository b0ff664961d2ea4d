"""`mxfp4` of gpt-oss: a layer's experts in two fused tensors of blocks, of scales and of biases.

gate_up_proj_blocks u8 [E, 2I, H / 32, 16] with rows of gate and up in turn, gate first;
down_proj_blocks u8 [E, H, I / 32, 16]; `_scales` without the last size; `_bias` [E, rows].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import torch
from pydantic import Field

from specfit.base.types import SpecfitError
from specfit.experts.expert_format import ExpertFormat
from specfit.experts.layouts.mxfp4 import GROUP, Mxfp4Layout
from specfit.models.schema import File, by_model
from specfit.models.target.family import Family, Geometry
from specfit.models.target.schemes.fused import DOWN, GATE_UP
from specfit.models.target.schemes.scheme import KINDS, NAMES, Headers, Scheme, Stored
from specfit.models.target.shards import FLOATS


class _Config(File):
    quant_method: Literal["mxfp4"]
    modules_to_not_convert: list[str] = Field(default_factory=list)


class Mxfp4(Scheme):
    method = "mxfp4"
    bias = torch.bfloat16

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        super().__init__(where)
        by_model(_Config, config, f"quantization_config of {where}")

    def nominal(self) -> Mxfp4Layout:
        return Mxfp4Layout()

    def expert_format(
        self, family: Family, geometry: Geometry, dtype: torch.dtype, headers: Headers
    ) -> ExpertFormat:
        sizes = geometry.hidden, geometry.intermediate
        if any(size % GROUP for size in sizes):
            raise SpecfitError(
                f"the experts of {self._where} are {sizes[0]} x {sizes[1]}, no multiples of the "
                f"{GROUP} columns of an {self.method} block"
            )
        name = f"model.layers.0.{family.block}.experts.{GATE_UP}_bias"
        entry = headers(name)
        if entry is None:
            raise SpecfitError(f"{self._where} lacks tensor {name} ({self.method})")
        if entry.dtype not in FLOATS:
            raise self.refuse(name, f"is stored as {entry.dtype}; expected a bias")
        return ExpertFormat(*sizes, dtype, Mxfp4Layout(), KINDS[entry.dtype])

    def expert(
        self, family: Family, format: ExpertFormat, headers: Headers, layer: int, expert: int
    ) -> Iterator[Stored]:
        prefix = f"model.layers.{layer}.{family.block}.experts."
        wide, narrow = format.hidden, format.intermediate
        entry = headers(f"{prefix}{GATE_UP}_blocks")
        count = entry.shape[0] if entry is not None and entry.shape else 0
        assert format.bias is not None
        floats = (NAMES[format.bias],)

        def part(
            name: str, width: tuple[int, ...], half: int | None, kinds: tuple[str, ...]
        ) -> Stored:
            rows = wide if half is None else 2 * narrow
            turn = None if half is None else lambda tensor: tensor[half::2]
            return Stored(
                prefix + name, (count, rows, *width), kinds, rows=(expert, 0, rows), convert=turn
            )

        for name, columns, half in ((GATE_UP, wide, 0), (GATE_UP, wide, 1), (DOWN, narrow, None)):
            yield part(f"{name}_blocks", (columns // GROUP, GROUP // 2), half, ("U8",))
            yield part(f"{name}_scales", (columns // GROUP,), half, ("U8",))
        for name, half in ((GATE_UP, 0), (GATE_UP, 1), (DOWN, None)):
            yield part(f"{name}_bias", (), half, floats)

    def expert_names(self, family: Family, layer: int, expert: int) -> Iterator[str]:
        yield from ()


def fused_tensors(
    gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor, biases: tuple[torch.Tensor, ...]
) -> dict[str, torch.Tensor]:
    """A layer's tensors by the end of their names, of gate and up [E, I, H], down [E, H, I] and
    their biases [E, ..]."""
    layout, found = Mxfp4Layout(), {}
    gate_up = torch.stack([gate, up], dim=2).flatten(1, 2)
    for name, matrices in ((GATE_UP, gate_up), (DOWN, down)):
        parts = [layout.quantise(matrix) for matrix in matrices]
        for end, part in zip(("_blocks", "_scales"), zip(*parts, strict=True), strict=True):
            found[name + end] = torch.stack(part)
    found[f"{GATE_UP}_bias"] = torch.stack(biases[:2], dim=2).flatten(1, 2)
    return found | {f"{DOWN}_bias": biases[2]}
