"""int4: four-bit numbers times a scale for each group of columns of a row.

Eight numbers lie in an int32, the first in its lowest bits. A number n stands for (n - zero) times
the scale; zero is 8, or one of its own for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from specfit.experts.expert_format import Part

IN_A_WORD = 8
SYMMETRIC_ZERO = 8


@dataclass(frozen=True)
class Int4Layout:
    """[N, K / 8] int32, scales [N, K / group], and with `zeros` their nibbles, two in a byte of
    [N * K / group / 2]."""

    group: int
    scale_dtype: torch.dtype
    zeros: bool = False

    @property
    def name(self) -> str:
        return f"int4-g{self.group}{'-zeros' if self.zeros else ''}"

    def parts(self, rows: int, columns: int) -> tuple[Part, ...]:
        assert columns % self.group == 0 == columns % IN_A_WORD, "a scheme has checked this"
        groups = columns // self.group
        found = (
            Part((rows, columns // IN_A_WORD), torch.int32),
            Part((rows, groups), self.scale_dtype),
        )
        return (*found, Part((rows * groups // 2,), torch.uint8)) if self.zeros else found

    def widen(self, parts: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
        packed, scale = parts[:2]
        rows, groups = scale.shape
        numbers = unpack_bytes(packed.view(torch.uint8)).view(rows, groups, -1).float()
        if self.zeros:
            numbers -= unpack_bytes(parts[2]).view(rows, groups, 1)
        else:
            numbers -= SYMMETRIC_ZERO
        return (numbers * scale.float()[..., None]).view(rows, -1).to(dtype)

    def quantise(self, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows, columns = weight.shape
        wide = weight.float().view(rows, columns // self.group, self.group)
        if self.zeros:
            low, high = wide.amin(-1).clamp(max=0), wide.amax(-1).clamp(min=0)
            scale = ((high - low) / 15).clamp(min=1e-6).to(self.scale_dtype)
            zero = (-low / scale.float()).round().clamp(0, 15)
        else:
            scale = (wide.abs().amax(-1) / 7.5).clamp(min=1e-6).to(self.scale_dtype)
            zero = torch.full_like(scale, SYMMETRIC_ZERO, dtype=torch.float32)
        numbers = (wide / scale.float()[..., None] + zero[..., None]).round().clamp(0, 15)
        packed = pack_words(numbers.view(rows, columns).to(torch.int32))
        return (packed, scale, pack_bytes(zero)) if self.zeros else (packed, scale)


def unpack_bytes(packed: torch.Tensor) -> torch.Tensor:
    """Bytes [.., n] -> uint8 [.., 2n], the lower nibble first."""
    return torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2)


def pack_bytes(numbers: torch.Tensor) -> torch.Tensor:
    """Numbers 0 .. 15, an even count of them -> bytes, flat, the lower nibble first."""
    pairs = numbers.to(torch.uint8).reshape(-1, 2)
    return pairs[:, 0] | pairs[:, 1] << 4


def unpack_words(packed: torch.Tensor) -> torch.Tensor:
    """int32 [.., n] -> int32 [.., 8n] of 0 .. 15, lowest bits first."""
    shifts = torch.arange(0, 32, 4, dtype=torch.int32, device=packed.device)
    return (packed[..., None] >> shifts & 15).flatten(-2)


def pack_words(numbers: torch.Tensor) -> torch.Tensor:
    """int32 [.., 8n] of 0 .. 15 -> int32 [.., n], lowest bits first."""
    shifts = torch.arange(0, 32, 4, dtype=torch.int32, device=numbers.device)
    return (numbers.unflatten(-1, (-1, IN_A_WORD)) << shifts).sum(-1, dtype=torch.int32)
