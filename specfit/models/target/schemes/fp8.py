"""`fp8`: Qwen's own checkpoints, tiles of 128 x 128. X.weight e4m3 [N, K] is multiplied by
X.weight_scale_inv [ceil(N / 128), ceil(K / 128)], whatever that name says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from pydantic import Field

from specfit.experts.expert_format import Layout
from specfit.experts.layouts.fp8 import Fp8Layout
from specfit.models.schema import File, by_model
from specfit.models.target.schemes.scheme import KINDS, NAMES, Headers, Scheme, Stored
from specfit.models.target.shards import FLOATS

SCALE = "_scale_inv"


class _Config(File):
    quant_method: Literal["fp8"]
    weight_block_size: list[int] = Field(min_length=2, max_length=2)
    fmt: Literal["e4m3"] = "e4m3"
    activation_scheme: Literal["dynamic"] = "dynamic"  # of engines that multiply in FP8
    modules_to_not_convert: list[str] = Field(default_factory=list)
    ignored_layers: list[str] = Field(default_factory=list)
    dequantize: bool = False


class Fp8(Scheme):
    method = "fp8"

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        super().__init__(where)
        read = by_model(_Config, config, f"quantization_config of {where}")
        self._tile = read.weight_block_size[0], read.weight_block_size[1]

    def nominal(self) -> Fp8Layout:
        return Fp8Layout(self._tile, torch.bfloat16)

    def layout(self, weight: str, shape: tuple[int, ...], headers: Headers) -> Layout | None:
        entry = headers(weight)
        if entry is None or entry.dtype != "F8_E4M3":
            return None
        scale = headers(weight + SCALE)
        if scale is None:
            raise self.refuse(weight, f"is stored as F8_E4M3 and has no scale {weight}{SCALE}")
        if scale.dtype not in FLOATS:
            raise self.refuse(scale.name, f"is stored as {scale.dtype}; expected a scale")
        return Fp8Layout(self._tile, KINDS[scale.dtype])

    def stored(
        self, weight: str, shape: tuple[int, ...], layout: Layout, headers: Headers
    ) -> tuple[Stored, ...]:
        values, scale = layout.parts(*shape)
        return (
            Stored(weight, values.shape, (NAMES[values.dtype],)),
            Stored(weight + SCALE, scale.shape, (NAMES[scale.dtype],)),
        )

    def written(self, weight: str, matrix: torch.Tensor, layout: Layout) -> dict[str, torch.Tensor]:
        return dict(zip((weight, weight + SCALE), layout.quantise(matrix), strict=True))
