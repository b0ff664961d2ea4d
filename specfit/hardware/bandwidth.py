"""Host-to-device bandwidth by size, from pinned and from pageable memory, and a copy's latency."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

SIZES = tuple(1 << power for power in range(14, 27, 2))  # 16 KiB to 64 MiB
REPEATS = 7


@dataclass(frozen=True)
class Bandwidth:
    """Median time of one copy and its GB/s, and the slowest and the fastest repeat's."""

    memory: str  # pinned or pageable
    size_bytes: int
    copy_us: float
    gbps: float
    low_gbps: float
    high_gbps: float


def measure_link(
    device: torch.device, sizes: tuple[int, ...] = SIZES, repeats: int = REPEATS
) -> list[Bandwidth]:
    """On the CPU, where "device" memory is host memory, pageable only."""
    kinds = (True, False) if device.type == "cuda" else (False,)
    return [_measure(device, size, pinned, repeats) for pinned in kinds for size in sizes]


def _measure(device: torch.device, size: int, pinned: bool, repeats: int) -> Bandwidth:
    """Several sources in turn, so that a small one does not sit in the processor's cache."""
    count = max(2, min(64, (64 << 20) // size))
    sources = torch.empty(count, size, dtype=torch.uint8, pin_memory=pinned).random_(0, 255)
    there = torch.empty(size, dtype=torch.uint8, device=device)
    times = []
    for repeat in range(repeats + 2):
        begin = _now(device)
        for source in sources:
            there.copy_(source, non_blocking=pinned)
        if repeat >= 2:
            times.append((_now(device) - begin) / count)
    median = statistics.median(times)
    memory = "pinned" if pinned else "pageable"
    return Bandwidth(
        memory, size, median / 1e3, size / median, size / max(times), size / min(times)
    )


def _now(device: torch.device) -> int:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        return time.perf_counter_ns()
    return time.process_time_ns()  # a busy machine disturbs it less


def latency_us(table: Sequence[Bandwidth]) -> float:
    """A copy's time at size 0: the straight line through the smallest and the largest size of the
    best kind of memory, 0 at least."""
    best = [row for row in table if row.memory == table[0].memory]
    small, large = best[0], best[-1]
    slope = (large.copy_us - small.copy_us) / (large.size_bytes - small.size_bytes)
    return max(0.0, small.copy_us - slope * small.size_bytes)


def gbps_at(table: Sequence[Bandwidth], size_bytes: int) -> float:
    """Bandwidth at the size measured that is nearest to `size_bytes`, latency taken out."""
    best = [row for row in table if row.memory == table[0].memory]
    row = min(best, key=lambda b: abs(b.size_bytes - size_bytes))
    busy_us = max(row.copy_us - latency_us(table), row.copy_us / 2)
    return row.size_bytes / busy_us / 1e3
