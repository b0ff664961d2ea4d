"""Runs in a process of its own under TRITON_INTERPRET=1: the kernels against the loop, in float64.

`python -m tests.experts.kernel_cases` prints one line a case and exits 1 if one is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import torch

from specfit.experts.arithmetic import LayerWork, LoopArithmetic, sort_by_item
from specfit.experts.kernels.grouped import GroupedArithmetic

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
    arithmetic: GroupedArithmetic | LoopArithmetic,
    topk: np.ndarray,
    order: Sequence[int],
    groups: Sequence[int],
    experts: torch.Tensor,
    hidden: torch.Tensor,
    weights: torch.Tensor,
) -> torch.Tensor:
    """`order` cut into launches of `groups` items; block of item i is a shuffled place."""
    shuffle = np.random.default_rng(len(order)).permutation(len(order))
    storage = torch.full((len(order) + 1, experts.shape[1]), float("nan"), dtype=experts.dtype)
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


if __name__ == "__main__":
    results = [check(name, case, dtype) for name, case in CASES.items() for dtype in LIMITS]
    sys.exit(0 if all(results) else 1)
