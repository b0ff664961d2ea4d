"""Copy engines: move one expert block from the host store to device memory.

An engine keeps at most `in_flight` copies going (app. B: two); they arrive in the order they were
submitted. On the CPU "device" memory is host memory too and a copy is done when it is submitted, so the
time spent copying is exactly the time waited; a CUDA engine overlaps behind the same interface.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Protocol

import torch


class CopyEngine(Protocol):
    in_flight: int
    wait_ns: int  # time the compute side has waited for copies since the last reset

    def has_room(self) -> bool:
        """False while `in_flight` copies are going."""
        ...

    def submit(self, source: torch.Tensor, destination: torch.Tensor) -> None: ...

    def wait_oldest(self) -> None:
        """Return when the oldest copy in flight has arrived."""
        ...

    def drain(self) -> None: ...


class CpuCopyEngine:
    """Synchronous copies with the bookkeeping of an asynchronous engine."""

    def __init__(self, in_flight: int = 2) -> None:
        assert in_flight >= 1
        self.in_flight = in_flight
        self.wait_ns = 0
        self._going: deque[torch.Tensor] = deque()

    def has_room(self) -> bool:
        return len(self._going) < self.in_flight

    def submit(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        assert self.has_room(), "more copies in flight than allowed"
        begin = time.perf_counter_ns()
        destination.copy_(source)
        self.wait_ns += time.perf_counter_ns() - begin
        self._going.append(destination)

    def wait_oldest(self) -> None:
        self._going.popleft()

    def drain(self) -> None:
        self._going.clear()
