"""Copy engines: move one expert block from the host store to device memory.

An engine keeps at most `in_flight` copies going (app. B: two) and hands them over in the order
they were submitted. On the CPU "device" memory is host memory too and a copy is done when it is
submitted, so the time spent copying is exactly the time waited; `streams.py` overlaps behind the
same interface.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

Mark = Any
"""A point of the compute lane that a later copy can be told to wait for."""

Source = Any
"""A block as its store gives it, of `nbytes`: host memory, a `DiskBlock` that is still to be read,
or a `Passage` through RAM."""


@dataclass
class LinkUse:
    """What the link did since it was last asked: bytes moved, nanoseconds with a copy on it."""

    moved_bytes: int = 0
    busy_ns: int = 0

    @property
    def gbps(self) -> float | None:
        """1e9 bytes per second reached while busy; None before the first copy."""
        return self.moved_bytes / self.busy_ns if self.busy_ns else None


class CopyEngine(Protocol):
    in_flight: int
    wait_ns: int  # time the compute side has waited for copies since the last reset
    link: LinkUse  # of demanded copies complete after `drain`

    def begin_layer(self, waits: int = 0, runs: int = 0) -> None:
        """Copies submitted from here on start no earlier than the compute lane gets here. The
        layer waits for `waits` copies, and computes `runs` times with what they bring."""
        ...

    def end_layer(self) -> None:
        """The last of those runs has been handed to the compute lane."""
        ...

    def has_room(self) -> bool:
        """False while `in_flight` copies have been submitted and not been waited for."""
        ...

    def submit(
        self,
        source: Source,
        destination: torch.Tensor,
        after: Mark | None = None,
        locked: bool = True,
    ) -> None:
        """Copy when `after` has passed; `locked` says that `source` is page-locked."""
        ...

    def wait_oldest(self) -> None:
        """What is computed from here on sees the oldest copy in flight arrived."""
        ...

    def bring(self, source: Source, destination: torch.Tensor, locked: bool = True) -> Mark | None:
        """Copy what nobody has demanded yet, beside the others and uncounted among them; it starts
        no earlier than the compute lane gets here."""
        ...

    def wait_brought(self, mark: Mark | None) -> None:
        """What is computed from here on sees that copy arrived."""
        ...

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        """From one place of the device to another, on the compute lane."""
        ...

    def mark(self) -> Mark | None:
        """What has been handed to the compute lane so far; None where it has run already."""
        ...

    def drain(self) -> None:
        """Return when no demanded copy is in flight and `wait_ns` is complete. What was brought in
        undemanded is not waited for: it counts in `link` once it has arrived."""
        ...


class CpuCopyEngine:
    """Synchronous copies with the bookkeeping of an asynchronous engine.

    `link_gbps_cap` makes each copy take at least its bytes over the cap.
    """

    def __init__(self, in_flight: int = 2, link_gbps_cap: float | None = None) -> None:
        assert in_flight >= 1
        self.in_flight = in_flight
        self.wait_ns = 0
        self.link = LinkUse()
        self.timer: Callable[[], int] = time.perf_counter_ns
        self._cap = link_gbps_cap
        self._going: deque[torch.Tensor] = deque()

    def begin_layer(self, waits: int = 0, runs: int = 0) -> None:
        """What was computed has been computed."""

    def end_layer(self) -> None:
        """It has been."""

    def has_room(self) -> bool:
        return len(self._going) < self.in_flight

    def submit(
        self,
        source: torch.Tensor,
        destination: torch.Tensor,
        after: Mark | None = None,
        locked: bool = True,
    ) -> None:
        assert self.has_room(), "more copies in flight than allowed"
        self.wait_ns += self._copy(source, destination)
        self._going.append(destination)

    def _copy(self, source: torch.Tensor, destination: torch.Tensor) -> int:
        """Nanoseconds it took."""
        begin = self.timer()
        destination.copy_(source)
        moved = source.nbytes
        if self._cap is not None:
            while self.timer() - begin < moved / self._cap:
                pass
        took = self.timer() - begin
        self.link.moved_bytes += moved
        self.link.busy_ns += took
        return took

    def bring(self, source: torch.Tensor, destination: torch.Tensor, locked: bool = True) -> None:
        """At once: a CPU's link is never idle while it computes."""
        self._copy(source, destination)

    def wait_brought(self, mark: Mark | None) -> None:
        """It has arrived."""

    def wait_oldest(self) -> None:
        self._going.popleft()

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        destination.copy_(source)

    def mark(self) -> None:
        return None

    def drain(self) -> None:
        self._going.clear()
