"""Compiles the kernels to machine code of GPUs that are not here.

Shows that Triton's compiler takes them, with the types they are launched with; nothing is run.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from specfit.experts.expert_format import ExpertFormat, Layout, plain_format
from specfit.experts.kernels.grouped import TILE, combine_kernel, down_kernel, gate_up_kernel
from specfit.experts.kernels.packed import packed_shape
from specfit.experts.layouts.fp8 import Fp8Layout
from specfit.experts.layouts.int4 import Int4Layout

POINTERS = {"hidden", "storage", "inner", "outputs", "weights", "total"}
TABLES = {"places", "starts", "blocks"}


LAYOUTS = {
    "plain": None,
    "fp8": Fp8Layout((128, 128), torch.bfloat16),
    "int4": Int4Layout(128, torch.bfloat16),
    "int4 with zeros": Int4Layout(128, torch.float16, zeros=True),
}


def compile_one(kernel: Any, dtype: str, capability: int, layout: Layout | None) -> int:
    """Bytes of machine code."""
    depth = 32 if dtype == "fp32" else 128
    constants = {"TILE": TILE, "COLUMNS": 32, "DEPTH": depth, "width": 2048, "size": 768}
    format = plain_format(2048, 768, torch.bfloat16)
    if layout is not None:
        format = ExpertFormat(2048, 768, torch.bfloat16, layout)
    shape = packed_shape(format)
    assert shape is not None
    for name, offsets in zip(("gate", "up", "down"), shape.offsets, strict=True):
        ends = (f"{name}_at", f"{name}_scales", f"{name}_zeros")
        constants |= dict(zip(ends, offsets, strict=True))
    constants |= {"stride": shape.stride, **shape.of(2 if kernel is down_kernel else 0)}
    if kernel is combine_kernel:
        constants |= {"top_k": 8, "COLUMNS": 256}
    signature = {}
    for name in kernel.arg_names:
        if name == "storage" and layout is not None:
            signature[name] = "*u8"
        elif name in POINTERS:
            signature[name] = f"*{dtype}"
        elif name in TABLES:
            signature[name] = "*i64"
        else:
            signature[name] = "constexpr" if name in constants else "i32"
    known = {name: value for name, value in constants.items() if name in kernel.arg_names}
    source = ASTSource(kernel, signature, constexprs=known)
    return len(triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["cubin"])


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["89", "90", "120"]
    for capability in map(int, wanted):
        for kernel in (gate_up_kernel, down_kernel, combine_kernel):
            for name, layout in LAYOUTS.items():
                if kernel is combine_kernel and layout is not None:
                    continue
                for dtype in ("bf16", "fp32"):
                    size = compile_one(kernel, dtype, capability, layout)
                    print(f"{kernel.__name__} {name} {dtype} sm_{capability}: {size} bytes")
