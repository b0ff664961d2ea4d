"""The asynchronous copy engine: copies on streams of their own, events for every hand-over.

The host only enqueues. Copy j goes to stream j % in_flight, and a stream runs one thing after the
other, so at most `in_flight` copies are going. Which copy waits for what is decided here, on the
`Streams` interface: the GPU's is in `cuda.py`, and tests bring one that delays and reorders.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from specfit.experts.copies import LinkUse, Mark, Source

COMPUTE = -1
"""The lane that experts run on; copy streams are 0 .. in_flight - 1."""


class Streams(Protocol):
    """Queues of work in order, and events between them. Nothing here waits but `finish`."""

    def copy(
        self, stream: int, source: Source, destination: torch.Tensor, locked: bool
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

    def has_passed(self, event: Any) -> bool:
        """Asked without waiting."""
        ...

    def elapsed_ns(self, begin: Any, end: Any) -> int:
        """Between two events that have passed; negative if `end` came first."""
        ...


@dataclass(frozen=True)
class _Copy:
    end: Any
    moved_bytes: int


@dataclass
class _Layer:
    """Four timed points of the compute lane at most, whatever the number of copies.

    `begin`, where the copies may start; `waits_from`, where the lane has nothing left but what
    travels; `arrived`, where the last copy is here; `ends`, after the last run. The runs between
    two waits are not waiting: each is taken to last as long as the one after the last wait.

    Fewer would not do. Copies need `begin` to keep their order, and the link's busy time starts
    there. A wait is the stretch between two points, and hits run before it, so it cannot start at
    `begin`. Without `ends` the runs between arrivals would count as waiting; it is recorded only
    where there are several. All hits need no point but `begin`.
    """

    begin: Any
    waits: int
    runs: int
    copies: list[_Copy] = field(default_factory=list)
    waits_from: Any = None
    arrived: Any = None
    ends: Any = None

    def wait_ns(self, elapsed_ns: Callable[[Any, Any], int]) -> int:
        if self.arrived is None:
            return 0
        waited = elapsed_ns(self.waits_from, self.arrived)
        if self.ends is not None and self.runs > 1:
            waited -= (self.runs - 1) * elapsed_ns(self.arrived, self.ends)
        return max(0, waited)


@dataclass(frozen=True)
class _Brought:
    """Two timed points of the stream of undemanded copies."""

    begin: Any
    copy: _Copy


class StreamedCopyEngine:
    """Order, limits and hand-over of copies on any `Streams`."""

    def __init__(self, streams: Streams, in_flight: int = 2) -> None:
        assert in_flight >= 1
        self.in_flight, self._streams = in_flight, streams
        self.wait_ns = 0
        self.link = LinkUse()
        self._submitted = 0
        self._going: deque[_Copy] = deque()
        self._layers: list[_Layer] = []
        self._brought: deque[_Brought] = deque()
        self._counted_to: Any = None  # the link's use has been added up to here

    def begin_layer(self, waits: int = 0, runs: int = 0) -> None:
        """Blocks that the work before may still read are overwritten only after it."""
        here = self._streams.record(COMPUTE)
        for stream in range(self.in_flight):
            self._streams.wait(stream, here)
        self._layers.append(_Layer(here, waits, runs))

    def end_layer(self) -> None:
        layer = self._layers[-1]
        if layer.arrived is not None and layer.runs > 1:
            layer.ends = self._streams.record(COMPUTE)

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
        stream = self._submitted % self.in_flight
        self._submitted += 1
        if after is not None:
            self._streams.wait(stream, after)
        self._streams.copy(stream, source, destination, locked)
        end = self._streams.record(stream)
        copy = _Copy(end, source.nbytes)
        self._going.append(copy)
        self._layers[-1].copies.append(copy)

    def wait_oldest(self) -> None:
        copy = self._going.popleft()
        self._before_wait()
        self._streams.wait(COMPUTE, copy.end)
        self._after_wait()

    def wait_brought(self, mark: Mark) -> None:
        self._before_wait()
        self._streams.wait(COMPUTE, mark)
        self._after_wait()

    def _before_wait(self) -> None:
        layer = self._layers[-1]
        if layer.waits_from is None:
            layer.waits_from = self._streams.record(COMPUTE)

    def _after_wait(self) -> None:
        layer = self._layers[-1]
        layer.waits -= 1
        if layer.waits == 0:
            layer.arrived = self._streams.record(COMPUTE)

    def bring(self, source: Source, destination: torch.Tensor, locked: bool = True) -> Mark:
        """On a stream of its own: the on-demand ones never queue behind it."""
        stream = self.in_flight
        self._streams.wait(stream, self._streams.record(COMPUTE))
        begin = self._streams.record(stream)
        self._streams.copy(stream, source, destination, locked)
        end = self._streams.record(stream)
        self._brought.append(_Brought(begin, _Copy(end, source.nbytes)))
        return end

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        self._streams.move(source, destination)

    def mark(self) -> Mark:
        return self._streams.record(COMPUTE)

    def drain(self) -> None:
        """Synchronises with the demanded copies, then adds up what the events say."""
        self._going.clear()
        newest = [copy for layer in self._layers for copy in layer.copies][-self.in_flight :]
        for copy in newest:
            self._streams.finish(copy.end)
        points = [point for layer in self._layers for point in (layer.arrived, layer.ends)]
        for point in [point for point in points if point is not None][-1:]:
            self._streams.finish(point)
        for layer in self._layers:
            self.wait_ns += layer.wait_ns(self._streams.elapsed_ns)
        self._count_link()
        self._layers = []

    def _arrived(self) -> Iterator[_Brought]:
        while self._brought and self._streams.has_passed(self._brought[0].copy.end):
            yield self._brought.popleft()

    def _count_link(self) -> None:
        """Busy time is the union of the layers' copying and what was brought in beside it: two
        that overlap share one link. A layer's copies are taken to start where they may."""
        spans = [
            (layer.begin, [copy.end for copy in layer.copies[-self.in_flight :]], layer.copies)
            for layer in self._layers
            if layer.copies
        ]
        spans += [
            (brought.begin, [brought.copy.end], [brought.copy]) for brought in self._arrived()
        ]
        if not spans:
            return
        origin = self._counted_to if self._counted_to is not None else spans[0][0]
        clocked = []
        for begin, ends, copies in spans:
            start = self._streams.elapsed_ns(origin, begin)
            end, last = max(
                ((self._streams.elapsed_ns(origin, end), end) for end in ends),
                key=lambda timed: timed[0],
            )
            clocked.append((start, end, last, copies))
        clocked.sort(key=lambda span: span[0])
        busy_until = clocked[0][0] if self._counted_to is None else 0
        for start, end, last, copies in clocked:
            self.link.busy_ns += max(0, end - max(start, busy_until))
            self.link.moved_bytes += sum(copy.moved_bytes for copy in copies)
            if end > busy_until:
                busy_until, self._counted_to = end, last
