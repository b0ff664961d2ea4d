"""The expert kernels on a GPU: error against float64, same bits however grouped, time at real
shapes.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import torch

from specfit.base.published import QWEN3_30B_A3B
from specfit.experts.arithmetic import Arithmetic, LayerWork, LoopArithmetic, sort_by_item
from specfit.experts.kernels.grouped import GroupedArithmetic

HIDDEN, INNER = QWEN3_30B_A3B.hidden, QWEN3_30B_A3B.intermediate
EXPERTS, TOP_K = QWEN3_30B_A3B.experts, QWEN3_30B_A3B.top_k
SHARE_GOAL = 0.6  # of the memory's bandwidth, weights alone counted
LIMITS = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}


def work_of(topk: np.ndarray, order: list[int], hidden: torch.Tensor, inner: int) -> LayerWork:
    """Item i's block is block `order[i]`: storage holds every expert."""
    places, starts = sort_by_item(topk, order)
    table = torch.from_numpy(np.concatenate([places, starts, order])).to(hidden.device)
    outputs = torch.full(
        (topk.size, hidden.shape[1]), float("nan"), dtype=hidden.dtype, device=hidden.device
    )
    return LayerWork(hidden, outputs, topk.shape[1], inner, starts, order, table)


def compute(
    arithmetic: Arithmetic,
    storage: torch.Tensor,
    topk: np.ndarray,
    order: list[int],
    hidden: torch.Tensor,
    weights: torch.Tensor,
    group: int,
    inner: int = INNER,
) -> torch.Tensor:
    work = work_of(topk, order, hidden, inner)
    for first in range(0, len(order), group):
        arithmetic.run(storage, first, min(first + group, len(order)), work)
    return arithmetic.finish(work, weights)


def draw(
    rows: int, device: torch.device, dtype: torch.dtype, inner: int = INNER
) -> tuple[Any, ...]:
    """(storage, topk, order, hidden, weights), fresh random values."""
    rng = np.random.default_rng(rows)
    topk = np.stack([rng.permutation(EXPERTS)[:TOP_K] for _ in range(rows)])
    storage = torch.randn(EXPERTS, 3 * inner * HIDDEN, dtype=dtype, device=device) / 45
    hidden = torch.randn(rows, HIDDEN, dtype=dtype, device=device)
    weights = torch.rand(rows, TOP_K, dtype=dtype, device=device)
    return storage, topk, np.unique(topk).tolist(), hidden, weights


def errors(device: torch.device) -> list[dict[str, Any]]:
    found = []
    loop = LoopArithmetic(torch.nn.functional.silu)
    kernels = GroupedArithmetic(loop)
    for dtype, limit in LIMITS.items():
        for rows in (1, 8, 32):
            storage, topk, order, hidden, weights = draw(rows, device, dtype)
            wide = [t.double() for t in (storage, hidden, weights)]
            truth = compute(loop, wide[0], topk, order, wide[1], wide[2], len(order))
            whole = compute(kernels, storage, topk, order, hidden, weights, len(order))
            alone = compute(kernels, storage, topk, order[::-1], hidden, weights, 1)
            error = float((whole.double() - truth).norm() / truth.norm())
            same = torch.equal(whole, alone)
            row = {"dtype": str(dtype), "rows": rows, "error": error, "same_bits": same}
            found.append(row | {"passed": error < limit and same})
            del storage, wide, truth
    return found


def memory_gbps(device: torch.device, size: int = 1 << 30) -> float:
    """Bytes read and written per nanosecond by a copy within the device's memory."""
    source = torch.empty(size, dtype=torch.uint8, device=device)
    there = torch.empty_like(source)
    times = []
    for _ in range(8):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        there.copy_(source)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return 2 * size / min(times) / 1e6


def timings(device: torch.device, bandwidth: float) -> list[dict[str, Any]]:
    """Median milliseconds of one layer in bfloat16, hits only, kernels and loop."""
    found = []
    loop = LoopArithmetic(torch.nn.functional.silu)
    kernels = GroupedArithmetic(loop)
    for rows in (1, 2, 4, 8, 16, 32):
        storage, topk, order, hidden, weights = draw(rows, device, torch.bfloat16)
        times = {
            name: _timed_ms(arithmetic, storage, work_of(topk, order, hidden, INNER), weights)
            for name, arithmetic in (("loop", loop), ("kernels", kernels))
        }
        moved = len(order) * storage.shape[1] * storage.itemsize
        found.append(
            {
                "rows": rows,
                "experts": len(order),
                "loop_ms": times["loop"],
                "kernels_ms": times["kernels"],
                "speedup": times["loop"] / times["kernels"],
                "kernels_gbps": moved / times["kernels"] / 1e6,
                "share_of_memory": moved / times["kernels"] / 1e6 / bandwidth,
            }
        )
        print(f"kernels, {rows} rows: {found[-1]}")
    return found


def _timed_ms(
    arithmetic: Arithmetic, storage: torch.Tensor, work: LayerWork, weights: torch.Tensor
) -> float:
    times = []
    for repeat in range(25):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        arithmetic.run(storage, 0, len(work.blocks), work)
        arithmetic.finish(work, weights)
        end.record()
        end.synchronize()
        if repeat >= 5:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)
