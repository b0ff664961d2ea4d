"""`Streams` of a CUDA device: events with timing, a bounce buffer, a throttled link.

Only a GPU can run this file; what it is asked to do, and in which order, is tested on a CPU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from specfit.experts.cuda_copies import COMPUTE

_PROBE_BYTES = 64 << 20
_PROBE_CYCLES = 20_000_000


class CudaStreams:
    """Copy streams 0 .. n - 1 beside the current stream, which computes.

    Blocks that are not page-locked are copied by the host into a pinned bounce block first; the
    thread then waits where that block's last copy has not ended (`QueuedStreams` has a thread for
    it, with two blocks in hand beside the one that travels).
    """

    def __init__(
        self, device: torch.device, copy_streams: int, link_gbps_cap: float | None = None
    ) -> None:
        # A capped link serves one copy at a time, so every copy shares one stream.
        distinct = copy_streams if link_gbps_cap is None else 1
        self._streams = [torch.cuda.Stream(device) for _ in range(distinct)]
        self._device = device
        self._bounce: deque[tuple[torch.Tensor, torch.cuda.Event]] = deque()
        self._bounce_blocks = copy_streams + 2
        self._throttle = None if link_gbps_cap is None else Throttle(device, link_gbps_cap)

    def _stream(self, stream: int) -> torch.cuda.Stream:
        if stream == COMPUTE:
            return torch.cuda.current_stream(self._device)
        return self._streams[stream % len(self._streams)]

    def copy(
        self, stream: int, source: torch.Tensor, destination: torch.Tensor, locked: bool
    ) -> None:
        on = self._stream(stream)
        with torch.cuda.stream(on):
            if locked:
                destination.copy_(source, non_blocking=True)
            else:
                self._copy_bounced(on, source, destination)
            if self._throttle is not None:
                self._throttle.stretch(source.nbytes)

    def _copy_bounced(
        self, on: torch.cuda.Stream, source: torch.Tensor, destination: torch.Tensor
    ) -> None:
        if len(self._bounce) < self._bounce_blocks:
            block, free = torch.empty_like(source, pin_memory=True), torch.cuda.Event()
        else:
            block, free = self._bounce.popleft()
            free.synchronize()
        block.copy_(source)
        destination.copy_(block, non_blocking=True)
        free.record(on)
        self._bounce.append((block, free))

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        destination.copy_(source, non_blocking=True)  # the current stream computes

    def record(self, stream: int) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record(self._stream(stream))
        return event

    def wait(self, stream: int, event: Any) -> None:
        self._stream(stream).wait_event(event)

    def finish(self, event: Any) -> None:
        event.synchronize()

    def has_passed(self, event: Any) -> bool:
        return bool(event.query())

    def elapsed_ns(self, begin: Any, end: Any) -> int:
        return round(begin.elapsed_time(end) * 1e6)


def border(device: torch.device) -> Callable[[], None]:
    """Waits for what computes, and not for copies that nobody has demanded: the end of a phase.

    Demanded copies are waited for on the compute stream itself.
    """
    return lambda: torch.cuda.current_stream(device).synchronize()


class Throttle:
    """Keeps the copy stream busy after each copy for as long as a slower link would have been.

    The link's own speed and the sleep kernel's clock are measured once, here; clocks that move
    later show in the rows' achieved GB/s.
    """

    def __init__(self, device: torch.device, link_gbps_cap: float) -> None:
        self._cap = link_gbps_cap
        self._cycles_per_ns = _PROBE_CYCLES / _timed_ns(lambda: torch.cuda._sleep(_PROBE_CYCLES))
        host = torch.empty(_PROBE_BYTES, dtype=torch.uint8, pin_memory=True)
        there = torch.empty(_PROBE_BYTES, dtype=torch.uint8, device=device)
        self.own_gbps = _PROBE_BYTES / _timed_ns(lambda: there.copy_(host, non_blocking=True))

    def stretch(self, moved_bytes: int) -> None:
        """Called on the copy's stream, right after it."""
        extra_ns = moved_bytes / self._cap - moved_bytes / self.own_gbps
        if extra_ns > 0:
            torch.cuda._sleep(int(extra_ns * self._cycles_per_ns))


def _timed_ns(work: Any) -> float:
    """The best of four; the first is slow."""
    best = float("inf")
    for _ in range(4):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end) * 1e6)
    return best
