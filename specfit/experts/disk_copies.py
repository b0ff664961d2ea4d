"""Copies from disk: each is a read of its own, straight into the block it is for.

Hits are computed while misses are read: by the kernel where it reads beside the caller, by threads
elsewhere. The order of submission is the order of arrival to the compute side, as with every copy
engine.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import torch

from specfit.experts.copies import LinkUse, Mark, Source
from specfit.experts.disk_weights import DiskBlock, StartedRead
from specfit.experts.kernel_reads import KernelReads
from specfit.experts.ram_store import Passage


@dataclass(frozen=True)
class _Read:
    begin_ns: int
    end_ns: int
    moved_bytes: int


class _Going(Protocol):
    """A read that was asked for."""

    def is_done(self) -> bool: ...

    def wait(self) -> _Read:
        """Raises what the read has raised."""
        ...


class DiskCopyEngine:
    """`in_flight` reads of what is demanded, one more of what is predicted. `kernel` makes the
    reads' kernel side, and raises OSError where there is none."""

    def __init__(self, in_flight: int = 2, kernel: Callable[[], KernelReads] = KernelReads) -> None:
        assert in_flight >= 1
        self.in_flight = in_flight
        self.wait_ns = 0
        self.link = LinkUse()
        try:
            self._kernel: KernelReads | None = kernel()
        except OSError:
            self._kernel = None
        self._readers = ThreadPoolExecutor(in_flight, "specfit-read")
        self._ahead = ThreadPoolExecutor(1, "specfit-prefetch")
        self._going: deque[_Going] = deque()
        self._brought: list[_Going] = []
        self._queued: deque[_Queued] = deque()  # of what was brought: the first is being read
        self._done: list[_Read] = []

    def begin_layer(self, waits: int = 0, runs: int = 0) -> None:
        """What was computed has been computed."""
        self._advance()

    def end_layer(self) -> None:
        """It has been."""

    def has_room(self) -> bool:
        self._advance()
        return len(self._going) < self.in_flight

    def submit(
        self,
        source: Source,
        destination: torch.Tensor,
        after: Mark | None = None,
        locked: bool = True,
    ) -> None:
        assert self.has_room(), "more copies in flight than allowed"
        self._going.append(self._start(source, destination, self._readers))

    def _start(self, source: Source, destination: torch.Tensor, by: ThreadPoolExecutor) -> _Going:
        """By the kernel where it can, else by the threads."""
        started = None if self._kernel is None else source.start(self._kernel, destination)
        if started is not None:
            return _KernelRead(started, source.nbytes)
        return _ThreadRead(by.submit(_read, source, destination))

    def wait_oldest(self) -> None:
        self._done.append(self._wait(self._going.popleft()))

    def _wait(self, read: _Going) -> _Read:
        begin = time.perf_counter_ns()
        done = read.wait()
        self.wait_ns += time.perf_counter_ns() - begin
        return done

    def bring(self, source: Source, destination: torch.Tensor, locked: bool = True) -> Mark:
        """Behind the others that were brought, beside those that are demanded."""
        if isinstance(source, Passage):  # a demanded read may wait for it: its thread's from now on
            read: _Going = self._start(source, destination, self._ahead)
        else:
            read = queued = _Queued(lambda: self._start(source, destination, self._ahead))
            self._queued.append(queued)
        self._brought.append(read)
        self._advance()
        return read

    def wait_brought(self, mark: Mark) -> None:
        self._wait(mark)
        self._advance()

    def _advance(self) -> None:
        """The next of what was brought begins when the one before has ended."""
        if self._kernel is not None and self._queued:
            self._kernel.look()
        while self._queued and self._queued[0].begun().is_done():
            self._queued.popleft()

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        destination.copy_(source)

    def mark(self) -> None:
        return None

    def drain(self) -> None:
        """Raises what a read has raised; nothing is in flight then either."""
        going = [*self._going, *self._brought]
        self._going.clear()
        self._brought.clear()
        self._queued.clear()
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


class _ThreadRead:
    def __init__(self, future: Future[_Read]) -> None:
        self._future = future

    def is_done(self) -> bool:
        return self._future.done()

    def wait(self) -> _Read:
        return self._future.result()


class _KernelRead:
    def __init__(self, started: StartedRead, moved_bytes: int) -> None:
        self._started, self._moved_bytes = started, moved_bytes
        self._is_settled = False

    def is_done(self) -> bool:
        return self._started.read.result is not None

    def wait(self) -> _Read:
        if not self._is_settled:
            self._started.finish()
            self._is_settled = True
        read = self._started.read
        return _Read(read.begin_ns, read.end_ns, self._moved_bytes)


class _Queued:
    """Begins when it is its turn, or when it is waited for."""

    def __init__(self, start: Callable[[], _Going]) -> None:
        self._start = start
        self._going: _Going | None = None

    def begun(self) -> _Going:
        if self._going is None:
            self._going = self._start()
        return self._going

    def is_done(self) -> bool:
        return self._going is not None and self._going.is_done()

    def wait(self) -> _Read:
        return self.begun().wait()


def _read(source: DiskBlock | Passage, destination: torch.Tensor) -> _Read:
    begin = time.perf_counter_ns()
    source.read_into(destination)
    return _Read(begin, time.perf_counter_ns(), source.nbytes)
