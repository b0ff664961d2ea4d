"""The asynchronous copy engine: copies on streams of their own, events for every hand-over.

The host only enqueues. Copy j goes to stream j % in_flight, and a stream runs one thing after the
other, so at most `in_flight` copies are going. Which copy waits for what is decided here, on the
`Streams` interface: the GPU's is in `cuda.py`, and tests bring one that delays and reorders.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from specfit.experts.copies import LinkUse, Mark

COMPUTE = -1
"""The lane that experts run on; copy streams are 0 .. in_flight - 1."""


class Streams(Protocol):
    """Queues of work in order, and events between them. Nothing here waits but `finish`."""

    def copy(
        self, stream: int, source: torch.Tensor, destination: torch.Tensor, locked: bool
    ) -> None: ...

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        """Within the device, on the compute lane."""
        ...

    def record(self, stream: int) -> Any:
        """An event that passes when the stream gets here."""
        ...

    def wait(self, stream: int, event: Any) -> None:
        """The stream goes no further until `event` has passed."""
        ...

    def finish(self, event: Any) -> None:
        """The host returns when `event` has passed."""
        ...

    def elapsed_ns(self, begin: Any, end: Any) -> int:
        """Between two events that have passed; negative if `end` came first."""
        ...


@dataclass(frozen=True)
class _Copy:
    begin: Any
    end: Any
    moved_bytes: int


class StreamedCopyEngine:
    """Order, limits and hand-over of copies on any `Streams`."""

    def __init__(self, streams: Streams, in_flight: int = 2) -> None:
        assert in_flight >= 1
        self.in_flight, self._streams = in_flight, streams
        self.wait_ns = 0
        self.link = LinkUse()
        self._submitted = 0
        self._going: deque[_Copy] = deque()
        self._done: list[_Copy] = []
        self._brought: list[_Copy] = []
        self._waits: list[tuple[Any, Any]] = []

    def begin_layer(self) -> None:
        """Blocks that the work before may still read are overwritten only after it."""
        here = self._streams.record(COMPUTE)
        for stream in range(self.in_flight):
            self._streams.wait(stream, here)

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
        stream = self._submitted % self.in_flight
        self._submitted += 1
        if after is not None:
            self._streams.wait(stream, after)
        begin = self._streams.record(stream)
        self._streams.copy(stream, source, destination, locked)
        end = self._streams.record(stream)
        self._going.append(_Copy(begin, end, source.numel() * source.itemsize))

    def wait_oldest(self) -> None:
        copy = self._going.popleft()
        begin = self._streams.record(COMPUTE)
        self._streams.wait(COMPUTE, copy.end)
        self._waits.append((begin, self._streams.record(COMPUTE)))
        self._done.append(copy)

    def bring(self, source: torch.Tensor, destination: torch.Tensor, locked: bool = True) -> Mark:
        """On a stream of its own: the on-demand ones never queue behind it."""
        stream = self.in_flight
        self._streams.wait(stream, self._streams.record(COMPUTE))
        begin = self._streams.record(stream)
        self._streams.copy(stream, source, destination, locked)
        end = self._streams.record(stream)
        self._brought.append(_Copy(begin, end, source.numel() * source.itemsize))
        return end

    def wait_brought(self, mark: Mark) -> None:
        begin = self._streams.record(COMPUTE)
        self._streams.wait(COMPUTE, mark)
        self._waits.append((begin, self._streams.record(COMPUTE)))

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        self._streams.move(source, destination)

    def mark(self) -> Mark:
        return self._streams.record(COMPUTE)

    def drain(self) -> None:
        """Synchronises, then adds up what the events say."""
        self._done += self._going
        self._going.clear()
        for copy in self._done[-self.in_flight :]:
            self._streams.finish(copy.end)
        for copy in self._brought[-1:]:
            self._streams.finish(copy.end)
        for _, waited in self._waits[-1:]:
            self._streams.finish(waited)
        for begin, end in self._waits:
            self.wait_ns += max(0, self._streams.elapsed_ns(begin, end))
        self._count_link()
        self._done, self._waits = [], []

    def _count_link(self) -> None:
        """Busy time is the union of the copies' intervals: two that overlap share one link."""
        copies = self._done + self._brought
        self._brought = []
        if not copies:
            return
        origin, spans = copies[0].begin, []
        for copy in copies:
            begin = self._streams.elapsed_ns(origin, copy.begin)
            spans.append((begin, self._streams.elapsed_ns(origin, copy.end), copy))
        spans.sort(key=lambda span: span[0])  # those brought in run beside the others
        busy_until = spans[0][0]
        for begin, end, copy in spans:
            self.link.busy_ns += max(0, end - max(begin, busy_until))
            self.link.moved_bytes += copy.moved_bytes
            busy_until = max(busy_until, end)
