"""MXFP4: four-bit e2m1 numbers times a power of two for each 32 columns of a row (OCP MX 1.0)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from specfit.experts.expert_format import Part
from specfit.experts.layouts.int4 import pack_bytes, unpack_bytes

GROUP = 32
BIAS = 127
POSITIVE = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""By the lower three bits of a number; the fourth is its sign."""


@dataclass(frozen=True)
class Mxfp4Layout:
    """[N, K / 32, 16] bytes of two numbers, the lower nibble first; exponents [N, K / 32]."""

    @property
    def name(self) -> str:
        return "mxfp4"

    def parts(self, rows: int, columns: int) -> tuple[Part, ...]:
        assert columns % GROUP == 0, "a scheme has checked this"
        groups = columns // GROUP
        return Part((rows, groups, GROUP // 2), torch.uint8), Part((rows, groups), torch.uint8)

    def widen(self, parts: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
        packed, exponent = parts
        values = torch.tensor([*POSITIVE, *(-v for v in POSITIVE)], device=packed.device)
        numbers = values[unpack_bytes(packed).int()]
        wide = torch.ldexp(numbers, (exponent.int() - BIAS)[..., None])
        return wide.view(len(packed), -1).to(dtype)

    def quantise(self, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows, columns = weight.shape
        wide = weight.float().view(rows, columns // GROUP, GROUP)
        peaks = wide.abs().amax(-1).clamp(min=2.0**-100)
        exponent = (peaks / POSITIVE[-1]).log2().ceil().clamp(-BIAS, BIAS)
        values = torch.tensor(POSITIVE, device=weight.device)
        borders = (values[1:] + values[:-1]) / 2
        codes = torch.bucketize((wide / exponent.exp2()[..., None]).abs(), borders)
        codes = codes + 8 * (wide < 0)
        packed = pack_bytes(codes).view(rows, columns // GROUP, GROUP // 2)
        return packed, (exponent + BIAS).to(torch.uint8)
