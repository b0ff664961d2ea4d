"""Compiles the layer's kernels to machine code of GPUs that are not here, at Qwen3-30B's shapes."""

from __future__ import annotations

import sys
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from specfit.base.published import QWEN3_30B_A3B as SHAPE
from specfit.models.target.layer_kernels import norm_kernel, rotate_kernel, route_kernel

WHOLE = {"columns", "ids"}  # int64
NUMBERS = {"rows": "i32", "capacity": "i32", "eps": "fp32"}
CONSTANTS: list[tuple[Any, dict[str, Any]]] = [
    (norm_kernel, {"width": SHAPE.hidden, "UPDATED": False, "COLUMNS": SHAPE.hidden}),
    (norm_kernel, {"width": SHAPE.hidden, "UPDATED": True, "COLUMNS": SHAPE.hidden}),
    (
        rotate_kernel,
        {
            "heads": SHAPE.heads,
            "kv_heads": SHAPE.kv_heads,
            "depth": SHAPE.head_dim,
            "HALF": SHAPE.head_dim // 2,
        },
    ),
    (
        route_kernel,
        {
            "experts": SHAPE.experts,
            "top_k": SHAPE.top_k,
            "NORMALISED": True,
            "COLUMNS": SHAPE.experts,
            "CHOICES": SHAPE.top_k,
        },
    ),
]


def compile_one(kernel: Any, constants: dict[str, Any], dtype: str, capability: int) -> int:
    """Bytes of machine code."""
    signature = {}
    for name in kernel.arg_names:
        if name in constants:
            signature[name] = "constexpr"
        elif name in NUMBERS:
            signature[name] = NUMBERS[name]
        else:
            signature[name] = "*i64" if name in WHOLE else f"*{dtype}"
    source = ASTSource(kernel, signature, constexprs=constants)
    return len(triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["cubin"])


if __name__ == "__main__":
    for capability in map(int, sys.argv[1:] or ["80", "89", "90", "120"]):
        for kernel, constants in CONSTANTS:
            for dtype in ("bf16", "fp32"):
                size = compile_one(kernel, constants, dtype, capability)
                print(f"{kernel.__name__} {dtype} sm_{capability}: {size} bytes")
