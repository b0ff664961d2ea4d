"""`awq` int4 (gemm): X.qweight int32 [K, N / 8], X.scales [K / group, N], and in X.qzeros
[K / group, N / 8] a zero for each group. A word holds rows 0, 2, 4, 6, 1, 3, 5, 7 of its eight,
lowest bits first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from pydantic import Field

from specfit.experts.expert_format import Layout
from specfit.experts.layouts.int4 import pack_bytes, pack_words, unpack_bytes, unpack_words
from specfit.models.schema import File, by_model
from specfit.models.target.schemes.packed import PackedScheme, tensor_names, turned
from specfit.models.target.schemes.scheme import NAMES, Headers, Stored

PLACE_OF = (0, 4, 1, 5, 2, 6, 3, 7)
"""Row r of eight lies at this place of a word."""
ROW_AT = (0, 2, 4, 6, 1, 3, 5, 7)


class _Config(File):
    quant_method: Literal["awq"]
    bits: int
    group_size: int
    zero_point: Literal[True] = True
    version: Literal["gemm"] = "gemm"
    modules_to_not_convert: list[str] = Field(default_factory=list)
    backend: str | None = None


class Awq(PackedScheme):
    method = "awq"
    zeros = True

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        version = config.get("version")
        given = {**config, "version": version.lower() if isinstance(version, str) else version}
        read = by_model(_Config, given, f"quantization_config of {where}")
        super().__init__(where, read.bits, read.group_size)

    def stored(
        self, weight: str, shape: tuple[int, ...], layout: Layout, headers: Headers
    ) -> tuple[Stored, ...]:
        rows, columns = shape
        packed, scales, zeros = tensor_names(weight)
        scale = layout.parts(*shape)[1]
        groups = scale.shape[1]
        return (
            Stored(packed, (columns, rows // 8), ("I32",), convert=_numbers),
            Stored(scales, (groups, rows), (NAMES[scale.dtype],), convert=turned),
            Stored(zeros, (groups, rows // 8), ("I32",), convert=_zeros),
        )

    def written(self, weight: str, matrix: torch.Tensor, layout: Layout) -> dict[str, torch.Tensor]:
        packed, scale, zeros = layout.quantise(matrix)
        by_row = unpack_bytes(zeros).view(scale.shape).to(torch.int32)
        values = _packed(unpack_words(packed)), scale.t().contiguous(), _packed(by_row)
        return dict(zip(tensor_names(weight), values, strict=True))


def _rows(packed: torch.Tensor) -> torch.Tensor:
    """[C, N / 8] words -> [N, C] numbers."""
    places = unpack_words(packed).unflatten(-1, (-1, 8))
    return places[..., list(PLACE_OF)].flatten(-2).t()


def _packed(numbers: torch.Tensor) -> torch.Tensor:
    """[N, C] numbers -> [C, N / 8] words."""
    places = numbers.t().unflatten(-1, (-1, 8))[..., list(ROW_AT)]
    return pack_words(places.flatten(-2).contiguous())


def _numbers(packed: torch.Tensor) -> torch.Tensor:
    return pack_words(_rows(packed).contiguous())


def _zeros(packed: torch.Tensor) -> torch.Tensor:
    return pack_bytes(_rows(packed))
