"""Copies from disk: each is a read by a thread of its own, straight into the block it is for.

Hits are computed while misses are read. The order of submission is the order of arrival to the
compute side, as with every copy engine.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch

from specfit.experts.copies import LinkUse, Mark, Source
from specfit.experts.disk_weights import DiskBlock
from specfit.experts.ram_store import Passage


@dataclass(frozen=True)
class _Read:
    begin_ns: int
    end_ns: int
    moved_bytes: int


class DiskCopyEngine:
    """`in_flight` readers for what is demanded, one more for what is predicted."""

    def __init__(self, in_flight: int = 2) -> None:
        assert in_flight >= 1
        self.in_flight = in_flight
        self.wait_ns = 0
        self.link = LinkUse()
        self._readers = ThreadPoolExecutor(in_flight, "specfit-read")
        self._ahead = ThreadPoolExecutor(1, "specfit-prefetch")
        self._going: deque[Future[_Read]] = deque()
        self._brought: list[Future[_Read]] = []
        self._done: list[_Read] = []

    def begin_layer(self, waits: int = 0, runs: int = 0) -> None:
        """What was computed has been computed."""

    def end_layer(self) -> None:
        """It has been."""

    def has_room(self) -> bool:
        return len(self._going) < self.in_flight

    def submit(
        self,
        source: Source,
        destination: torch.Tensor,
        after: Mark | None = None,
        locked: bool = True,
    ) -> None:
        assert self.has_room(), "more copies in flight than allowed"
        self._going.append(self._readers.submit(_read, source, destination))

    def wait_oldest(self) -> None:
        self._done.append(self._wait(self._going.popleft()))

    def _wait(self, read: Future[_Read]) -> _Read:
        begin = time.perf_counter_ns()
        done = read.result()
        self.wait_ns += time.perf_counter_ns() - begin
        return done

    def bring(self, source: Source, destination: torch.Tensor, locked: bool = True) -> Mark:
        """Behind the others that were brought, beside those that are demanded."""
        read = self._ahead.submit(_read, source, destination)
        self._brought.append(read)
        return read

    def wait_brought(self, mark: Mark) -> None:
        self._wait(mark)

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        destination.copy_(source)

    def mark(self) -> None:
        return None

    def drain(self) -> None:
        """Raises what a read has raised; nothing is in flight then either."""
        going = [*self._going, *self._brought]
        self._going.clear()
        self._brought.clear()
        failed: BaseException | None = None
        for read in going:
            try:
                self._done.append(self._wait(read))
            except Exception as error:
                failed = failed or error
        self._count_link()
        if failed is not None:
            raise failed

    def _count_link(self) -> None:
        """Busy time is the union of the reads' intervals: two that overlap share one disk."""
        busy_until = 0
        for read in sorted(self._done, key=lambda read: read.begin_ns):
            self.link.busy_ns += max(0, read.end_ns - max(read.begin_ns, busy_until))
            self.link.moved_bytes += read.moved_bytes
            busy_until = max(busy_until, read.end_ns)
        self._done = []


def _read(source: DiskBlock | Passage, destination: torch.Tensor) -> _Read:
    begin = time.perf_counter_ns()
    source.read_into(destination)
    return _Read(begin, time.perf_counter_ns(), source.nbytes)
