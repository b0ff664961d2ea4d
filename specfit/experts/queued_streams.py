"""Copy streams filled by a thread of their own, for blocks that are not page-locked.

Such a block is copied by the host into a pinned bounce block first, 1.5 ms at 6 GB/s. On the thread
that enqueues a layer, that time would be taken from the kernels; here it passes beside them, and
the caller waits only where the compute lane needs an event that this thread has not reached.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from specfit.experts.cuda_copies import COMPUTE, Streams


class QueuedStreams:
    """`Streams` around another: what goes to a copy stream is queued, in the order of the calls."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bounce")

    def copy(
        self, stream: int, source: torch.Tensor, destination: torch.Tensor, locked: bool
    ) -> None:
        self._thread.submit(self._streams.copy, stream, source, destination, locked)

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        self._streams.move(source, destination)

    def record(self, stream: int) -> Any:
        if stream == COMPUTE:
            return self._streams.record(COMPUTE)
        return self._thread.submit(self._streams.record, stream)

    def wait(self, stream: int, event: Any) -> None:
        if stream == COMPUTE:
            self._streams.wait(COMPUTE, _reached(event))
        else:
            self._thread.submit(lambda: self._streams.wait(stream, _reached(event)))

    def finish(self, event: Any) -> None:
        self._streams.finish(_reached(event))

    def has_passed(self, event: Any) -> bool:
        if isinstance(event, Future) and not event.done():
            return False
        return self._streams.has_passed(_reached(event))

    def elapsed_ns(self, begin: Any, end: Any) -> int:
        return self._streams.elapsed_ns(_reached(begin), _reached(end))


def _reached(event: Any) -> Any:
    """The event of a record that the thread has come to; raises what the thread raised."""
    return event.result() if isinstance(event, Future) else event
