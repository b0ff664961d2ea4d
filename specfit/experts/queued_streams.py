"""Copy streams filled by threads of their own, for blocks that the host has to work on first.

A block that is not page-locked is copied by the host into a pinned bounce block, 1.5 ms at 6 GB/s;
one on disk is read. On the thread that enqueues a layer, that time would be taken from the kernels;
here it passes beside them, and the caller waits only where the compute lane needs an event that
these threads have not reached.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from specfit.experts.copies import Source
from specfit.experts.cuda_copies import COMPUTE, Streams
from specfit.experts.ram_store import Passage


class QueuedStreams:
    """`Streams` around another: what goes to a copy stream is queued, in the order of the calls.

    Stream s belongs to thread s % threads. After a copy that failed nothing more is done, and who
    asks for an event of these streams gets what it raised.
    """

    def __init__(self, streams: Streams, threads: int = 1) -> None:
        self._streams = streams
        self._threads = [ThreadPoolExecutor(1, f"copy-{n}") for n in range(threads)]
        self._failure: BaseException | None = None

    def _queue(self, stream: int, work: Callable[[], Any]) -> Future[Any]:
        def run() -> Any:
            if self._failure is not None:
                raise self._failure
            try:
                return work()
            except BaseException as error:
                self._failure = error
                raise

        return self._threads[stream % len(self._threads)].submit(run)

    def copy(self, stream: int, source: Source, destination: torch.Tensor, locked: bool) -> None:
        def start(here: torch.Tensor) -> _Started:
            self._streams.copy(stream, here, destination, source.locked)
            return _Started(self._streams, self._streams.record(stream))

        if isinstance(source, Passage):
            self._queue(stream, lambda: source.carry_out(start))
        else:
            self._queue(stream, lambda: self._streams.copy(stream, source, destination, locked))

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        self._streams.move(source, destination)

    def record(self, stream: int) -> Any:
        if stream == COMPUTE:
            return self._streams.record(COMPUTE)
        return self._queue(stream, lambda: self._streams.record(stream))

    def wait(self, stream: int, event: Any) -> None:
        if stream == COMPUTE:
            self._streams.wait(COMPUTE, _reached(event))
        else:
            self._queue(stream, lambda: self._streams.wait(stream, _reached(event)))

    def finish(self, event: Any) -> None:
        self._streams.finish(_reached(event))

    def has_passed(self, event: Any) -> bool:
        if isinstance(event, Future) and not event.done():
            return False
        return self._streams.has_passed(_reached(event))

    def elapsed_ns(self, begin: Any, end: Any) -> int:
        return self._streams.elapsed_ns(_reached(begin), _reached(end))


@dataclass(frozen=True)
class _Started:
    """A copy out of RAM, known by the event after it."""

    streams: Streams
    event: Any

    def wait(self) -> None:
        self.streams.finish(self.event)

    def has_passed(self) -> bool:
        return self.streams.has_passed(self.event)


def _reached(event: Any) -> Any:
    """The event of a record that the thread has come to; raises what the thread raised."""
    return event.result() if isinstance(event, Future) else event
