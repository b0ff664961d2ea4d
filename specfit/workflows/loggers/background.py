"""A logger in a thread of its own: what it does to itself never reaches the run.

Events wait in a bounded queue. One that finds it full is dropped and counted; after the first
failure nothing more is sent. A person hears one sentence about either.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from specfit.workflows.loggers.metrics import Closing, Number

CAPACITY = 1000  # events; a run has one per request


class Sink(Protocol):
    """Somewhere to log to. Every method may raise or take its time."""

    def begin(self, name: str, config: Mapping[str, Any]) -> None: ...

    def request(self, number: int, metrics: Mapping[str, Number]) -> None: ...

    def end(self, closing: Closing | None) -> str:
        """None: the run failed. Returns a sentence that says where the log is."""
        ...


Event = Callable[[Sink], str | None]
Tell = Callable[[str], None]


class Background:
    """`put` returns at once, whatever the sink does; `close` waits, but not for ever.

    `say` is told where the log is, `warn` what became of it instead, once.
    """

    def __init__(
        self, make: Callable[[], Sink], say: Tell, warn: Tell, capacity: int = CAPACITY
    ) -> None:
        self._make, self._say, self._warn = make, say, warn
        self._events: queue.Queue[Event | None] = queue.Queue(capacity)
        self._where, self._has_failed, self._is_left = "", False, False
        self._given = self._sent = 0
        self._thread = threading.Thread(target=self._work, daemon=True, name="specfit-logger")
        self._thread.start()

    @property
    def unsent(self) -> int:
        """Events that the sink has not taken to the end: waiting, dropped, or failed."""
        return self._given - self._sent

    def put(self, event: Event) -> None:
        self._given += 1
        with suppress(queue.Full):
            self._events.put_nowait(event)

    def close(self, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        with suppress(queue.Full):
            self._events.put(None, timeout=wait_s)
            self._thread.join(max(0.0, until - time.monotonic()))
        if self._has_failed:
            return
        if self._thread.is_alive():
            self._is_left = True  # what it says after this would be said beside another run
            self._warn(f"is not done after {wait_s:g} s and is left; {self.unsent} records unsent")
        elif self.unsent:
            self._warn(f"could not keep up: {self.unsent} records unsent; {self._where}")
        else:
            self._say(self._where)

    def _work(self) -> None:
        sink = None
        while (event := self._events.get()) is not None:
            if self._has_failed:
                continue
            try:
                sink = sink or self._make()
                self._where = event(sink) or self._where
                self._sent += 1
            except Exception as error:  # of any library's kind
                self._has_failed = True
                if not self._is_left:
                    self._warn(f"failed ({_one_line(error)}); the run goes on without it")


def _one_line(error: Exception) -> str:
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
