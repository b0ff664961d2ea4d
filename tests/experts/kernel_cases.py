"""Runs in a process of its own under TRITON_INTERPRET=1: the kernels against the loop, in float64.

`python -m tests.experts.kernel_cases` prints one line a case and exits 1 if one is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import torch

from specfit.experts.arithmetic import (
    Arithmetic,
    LayerWork,
    LoopArithmetic,
    WidenedArithmetic,
    sort_by_item,
)
from specfit.experts.expert_format import ExpertFormat, Layout
from specfit.experts.kernels.grouped import GroupedArithmetic
from specfit.experts.kernels.packed import packed_shape
from specfit.experts.layouts.fp8 import Fp8Layout
from specfit.experts.layouts.int4 import Int4Layout

# Neither size is a multiple of a block, and the two differ.
HIDDEN, INNER = 72, 40
# Relative error against float64; the interpreter's bfloat16 dot is wrong (seen, Triton 3.9), so
# bfloat16 is checked on a GPU only.
LIMITS = {torch.float32: 2e-6, torch.float16: 2e-3}

CASES = {
    "one row": [[3, 0, 5]],
    "ragged": [[0, 1, 2], [0, 1, 3], [0, 4, 5], [0, 1, 6], [0, 7, 1]],
    "all rows to one expert": [[6]] * 20,
    "two tiles": [[i % 2, 2 + i % 5] for i in range(32)],
    "every expert but some": [[i % 8, (i + 3) % 8] for i in range(0, 16, 3)],
}


def work_of(
    topk: np.ndarray, order: Sequence[int], blocks: Sequence[int], hidden: torch.Tensor
) -> LayerWork:
    places, starts = sort_by_item(topk, order)
    table = torch.from_numpy(np.concatenate([places, starts, blocks]))
    outputs = torch.full((topk.size, HIDDEN), float("nan"), dtype=hidden.dtype)
    return LayerWork(hidden, outputs, topk.shape[1], INNER, starts, list(blocks), table)


def compute(
    arithmetic: Arithmetic,
    topk: np.ndarray,
    order: Sequence[int],
    groups: Sequence[int],
    experts: torch.Tensor,
    hidden: torch.Tensor,
    weights: torch.Tensor,
) -> torch.Tensor:
    """`order` cut into launches of `groups` items; block of item i is a shuffled place."""
    shuffle = np.random.default_rng(len(order)).permutation(len(order))
    poison = float("nan") if experts.is_floating_point() else 255
    storage = torch.full((len(order) + 1, experts.shape[1]), poison, dtype=experts.dtype)
    for item, expert in enumerate(order):
        storage[shuffle[item]] = experts[expert]
    work = work_of(topk, order, shuffle.tolist(), hidden)
    first = 0
    for size in groups:
        arithmetic.run(storage, first, first + size, work)
        first += size
    return arithmetic.finish(work, weights)


def check(name: str, topk_list: list[list[int]], dtype: torch.dtype) -> bool:
    torch.manual_seed(len(name))
    topk = np.array(topk_list)
    experts = torch.randn(8, 3 * HIDDEN * INNER, dtype=torch.float64) / 8
    hidden = torch.randn(len(topk), HIDDEN, dtype=torch.float64)
    weights = torch.rand(topk.shape, dtype=torch.float64)
    order = np.unique(topk).tolist()
    loop = LoopArithmetic(torch.nn.functional.silu)
    kernels = GroupedArithmetic(loop)
    rounded = [t.to(dtype) for t in (experts, hidden, weights)]
    truth = compute(loop, topk, order, [len(order)], *(t.double() for t in rounded))
    whole = compute(kernels, topk, order, [len(order)], *rounded)
    error = float((whole.double() - truth).norm() / truth.norm())
    backwards = order[::-1]
    alone = compute(kernels, topk, backwards, [1] * len(order), *rounded)
    same = torch.equal(whole, alone)
    print(f"{name}, {dtype}: error {error:.1e}, one by one and reversed the same: {same}")
    return error < LIMITS[dtype] and same


LAYOUTS = (
    Fp8Layout((16, 24), torch.float32),
    Fp8Layout((1, 0), torch.bfloat16),
    Int4Layout(8, torch.float16),
    Int4Layout(8, torch.bfloat16, zeros=True),
)


def check_packed(layout: Layout) -> bool:
    """The same bits as the kernels on blocks that were widened up front, every e4m3 number among
    them; and the loop for many rows."""
    torch.manual_seed(3)
    format = ExpertFormat(HIDDEN, INNER, torch.float32, layout)
    storage = torch.zeros(8, format.elements, dtype=torch.uint8)
    for block in storage:
        shapes = (INNER, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER)
        made = [part for shape in shapes for part in layout.quantise(torch.randn(shape) / 8)]
        for view, part in zip(format.views(block), made, strict=True):
            view.copy_(part)
        if isinstance(layout, Fp8Layout):
            codes = torch.arange(256, dtype=torch.uint8)
            codes = codes[codes & 127 != 127]  # no number
            format.views(block)[0].view(torch.uint8).view(-1)[: len(codes)] = codes
    wide = torch.stack([format.widen(block) for block in storage])
    loop = LoopArithmetic(torch.nn.functional.silu)
    packed = GroupedArithmetic(WidenedArithmetic(loop, format), packed_shape(format))
    same = True
    for rows in (5, 40):
        topk = np.stack([np.random.default_rng(row).permutation(8)[:3] for row in range(rows)])
        inputs = torch.randn(rows, HIDDEN), torch.rand(topk.shape)
        order = np.unique(topk).tolist()
        plain = compute(GroupedArithmetic(loop), topk, order, [len(order)], wide, *inputs)
        ours = compute(packed, topk, order, [len(order)], storage, *inputs)
        same &= torch.equal(plain, ours) and bool(ours.isfinite().all())
    print(f"{layout.name}: widened on the way the same: {same}")
    return same


if __name__ == "__main__":
    results = [check(name, case, dtype) for name, case in CASES.items() for dtype in LIMITS]
    results += [check_packed(layout) for layout in LAYOUTS]
    sys.exit(0 if all(results) else 1)
