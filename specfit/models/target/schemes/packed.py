"""What GPTQ and AWQ share: X.qweight, X.qzeros and X.scales for a matrix X.weight, transposed."""

from __future__ import annotations

import torch

from specfit.base.types import SpecfitError
from specfit.experts.expert_format import Layout
from specfit.experts.layouts.int4 import Int4Layout
from specfit.models.target.schemes.scheme import KINDS, Headers, Scheme
from specfit.models.target.shards import FLOATS


class PackedScheme(Scheme):
    """`zeros`: whether each group has a zero of its own."""

    zeros: bool

    def __init__(self, where: str, bits: int, group: int) -> None:
        super().__init__(where)
        self.group = group
        if bits != 4:
            raise SpecfitError(
                f"quantization_config of {where} sets bits={bits}, which specfit does not run for "
                f"{self.method}; it runs 4"
            )

    def nominal(self) -> Int4Layout:
        return Int4Layout(self.group, torch.float16, self.zeros)

    def layout(self, weight: str, shape: tuple[int, ...], headers: Headers) -> Layout | None:
        packed, scales, _ = names = tensor_names(weight)
        if headers(packed) is None:
            return None
        entry = headers(scales)
        absent = next((name for name in names if headers(name) is None), None)
        if entry is None or absent is not None:
            raise self.refuse(packed, f"has no {absent}")
        if entry.dtype not in FLOATS:
            raise self.refuse(scales, f"is stored as {entry.dtype}; expected a scale")
        group = shape[1] if self.group == -1 else self.group
        if shape[1] % group or shape[1] % 8 or shape[0] % 8:
            raise self.refuse(packed, f"has groups of {group}, which do not fill {list(shape)}")
        return Int4Layout(group, KINDS[entry.dtype], self.zeros)


def tensor_names(weight: str) -> tuple[str, str, str]:
    """Of numbers, scales and zeros."""
    base = weight.removesuffix(".weight")
    return f"{base}.qweight", f"{base}.scales", f"{base}.qzeros"


def turned(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.t()
