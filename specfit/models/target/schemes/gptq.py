"""`gptq` int4, symmetric: X.qweight int32 [K / 8, N] with eight numbers of a column in a word,
lowest bits first; X.scales [K / group, N]; X.qzeros holds 7 everywhere (8 in `gptq_v2`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import ConfigDict, Field

from specfit.base.types import SpecfitError
from specfit.experts.expert_format import Layout
from specfit.experts.layouts.int4 import SYMMETRIC_ZERO
from specfit.models.schema import File, by_model
from specfit.models.target.schemes.packed import PackedScheme, tensor_names, turned
from specfit.models.target.schemes.scheme import NAMES, Headers, Stored


class _Config(File):
    """Of a GPTQ config, what changes a value; the rest says how the numbers were found."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    bits: int
    group_size: int
    sym: bool = True
    desc_act: bool = False
    checkpoint_format: str = "gptq"
    pack_dtype: str = "int32"
    dynamic: dict[str, Any] = Field(default_factory=dict)


class Gptq(PackedScheme):
    method = "gptq"
    zeros = False

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        said = f"quantization_config of {where}"
        read = by_model(_Config, config, said)
        super().__init__(where, read.bits, read.group_size)
        plain = {"sym": True, "desc_act": False, "pack_dtype": "int32", "dynamic": {}}
        for name, expected in plain.items():
            if getattr(read, name) != expected:
                raise SpecfitError(
                    f"{said} sets {name}={getattr(read, name)}, which specfit does not run for "
                    f"gptq; it runs symmetric numbers in column order"
                )
        if read.checkpoint_format not in ("gptq", "gptq_v2"):
            raise SpecfitError(
                f"{said} sets checkpoint_format={read.checkpoint_format}; specfit reads gptq and "
                "gptq_v2"
            )
        self._zero = SYMMETRIC_ZERO - (read.checkpoint_format == "gptq")

    def stored(
        self, weight: str, shape: tuple[int, ...], layout: Layout, headers: Headers
    ) -> tuple[Stored, ...]:
        rows, columns = shape
        packed, scales, _ = tensor_names(weight)
        scale = layout.parts(*shape)[1]
        return (
            Stored(packed, (columns // 8, rows), ("I32",), convert=turned),
            Stored(scales, scale.shape[::-1], (NAMES[scale.dtype],), convert=turned),
        )

    def beside(self, weight: str) -> tuple[str, ...]:
        return tensor_names(weight)[2], weight.removesuffix("weight") + "g_idx"

    def check_beside(self, tensors: Mapping[str, torch.Tensor], shape: tuple[int, ...]) -> None:
        for name, tensor in tensors.items():
            if name.endswith(".g_idx"):
                group = shape[1] if self.group == -1 else self.group
                if not torch.equal(tensor.long(), torch.arange(shape[1]) // group):
                    raise self.refuse(name, "reorders columns, which specfit does not run")
            elif not bool((tensor == self._word).all()):
                raise self.refuse(name, f"holds zeros other than {self._zero} in a symmetric file")

    @property
    def _word(self) -> int:
        """Eight zeros, as an int32."""
        word = 0x11111111 * self._zero
        return word - (1 << 32) if word >> 31 else word

    def written(self, weight: str, matrix: torch.Tensor, layout: Layout) -> dict[str, torch.Tensor]:
        packed, scale = layout.quantise(matrix)
        zeros = torch.full((scale.shape[1], len(matrix) // 8), self._word, dtype=torch.int32)
        values = packed.t().contiguous(), scale.t().contiguous(), zeros
        return dict(zip(tensor_names(weight), values, strict=True))
