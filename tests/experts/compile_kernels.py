"""Compiles the kernels to machine code of GPUs that are not here.

Shows that Triton's compiler takes them, with the types they are launched with; nothing is run.
"""

from __future__ import annotations

import sys
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from specfit.experts.kernels.grouped import TILE, combine_kernel, down_kernel, gate_up_kernel

POINTERS = {"hidden", "storage", "inner", "outputs", "weights", "total"}
TABLES = {"places", "starts", "blocks"}


def compile_one(kernel: Any, dtype: str, capability: int) -> int:
    """Bytes of machine code."""
    depth = 32 if dtype == "fp32" else 128
    constants = {"TILE": TILE, "COLUMNS": 32, "DEPTH": depth, "width": 2048, "size": 768}
    if kernel is combine_kernel:
        constants |= {"top_k": 8, "COLUMNS": 256}
    signature = {}
    for name in kernel.arg_names:
        if name in POINTERS:
            signature[name] = f"*{dtype}"
        elif name in TABLES:
            signature[name] = "*i64"
        else:
            signature[name] = "constexpr" if name in constants else "i32"
    known = {name: value for name, value in constants.items() if name in kernel.arg_names}
    source = ASTSource(kernel, signature, constexprs=known)
    return len(triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["cubin"])


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["80", "90"]
    for capability in map(int, wanted):
        for kernel in (gate_up_kernel, down_kernel, combine_kernel):
            for dtype in ("bf16", "fp32"):
                size = compile_one(kernel, dtype, capability)
                print(f"{kernel.__name__} {dtype} sm_{capability}: {size} bytes")
