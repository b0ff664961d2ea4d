"""A device that runs when it likes: streams, events and a scheduler that is out to break the
engine.

Work is queued per stream and done later, one step of a stream chosen at random at a time, as late
or as early as the seed has it. A copy is three steps: it starts (the block is then poison), half
of it is there, all of it is. A stream that waits for an event is passed over until the event has
passed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from specfit.experts.arithmetic import LayerWork, LoopArithmetic
from specfit.experts.cuda_copies import COMPUTE


@dataclass(eq=False)
class Event:
    passed_at: int | None = None


@dataclass
class Step:
    run: Callable[[], None]
    ready: Callable[[], bool] = lambda: True


@dataclass
class Device:
    """`favour` is how much likelier a step of the compute lane is than one of a copy stream."""

    seed: int
    favour: float = 1.0
    now: int = 0
    going: int = 0
    most_going: int = 0
    copies: int = 0
    host_waits: int = 0
    log: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._queues: dict[int, deque[Step]] = {}
        self._rng = np.random.default_rng(self.seed)

    # -- the engine's side: `Streams` ------------------------------------------------------------

    def copy(
        self, stream: int, source: torch.Tensor, destination: torch.Tensor, locked: bool
    ) -> None:
        assert stream != COMPUTE
        number, half = self.copies, len(source) // 2
        self.copies += 1

        def start() -> None:
            self.going += 1
            self.most_going = max(self.most_going, self.going)
            self.log.append(("start", number))
            destination.fill_(float("nan"))

        def middle() -> None:
            destination[:half] = source[:half]

        def end() -> None:
            destination[half:] = source[half:]
            self.going -= 1
            self.log.append(("end", number))

        for step in (start, middle, end):
            self.push(stream, step)

    def move(self, source: torch.Tensor, destination: torch.Tensor) -> None:
        self.push(COMPUTE, lambda: destination.copy_(source))  # type: ignore[arg-type, return-value]

    def record(self, stream: int) -> Event:
        event = Event()
        self.push(stream, lambda: setattr(event, "passed_at", self.now))
        return event

    def wait(self, stream: int, event: Event) -> None:
        self.push(stream, lambda: None, lambda: event.passed_at is not None)

    def finish(self, event: Event) -> None:
        self.host_waits += 1
        while event.passed_at is None:
            self.step()

    def has_passed(self, event: Event) -> bool:
        return event.passed_at is not None

    def elapsed_ns(self, begin: Event, end: Event) -> int:
        assert begin.passed_at is not None and end.passed_at is not None, "asked too early"
        return end.passed_at - begin.passed_at

    # -- the device's side -----------------------------------------------------------------------

    def push(
        self, stream: int, run: Callable[[], None], ready: Callable[[], bool] = lambda: True
    ) -> None:
        self._queues.setdefault(stream, deque()).append(Step(run, ready))

    def step(self) -> None:
        able = [s for s, queue in self._queues.items() if queue and queue[0].ready()]
        assert able, "every stream waits for another: deadlock"
        weights = np.array([self.favour if s == COMPUTE else 1.0 for s in able])
        stream = able[int(self._rng.choice(len(able), p=weights / weights.sum()))]
        self.now += 1
        self._queues[stream].popleft().run()

    def synchronise(self) -> None:
        """As the host does when it reads a layer's routes: the compute lane has nothing left."""
        while self._queues.get(COMPUTE):
            self.step()


class DeferredArithmetic:
    """The plain loop, run when the simulated device gets to it."""

    def __init__(self, device: Device, loop: LoopArithmetic) -> None:
        self._device, self._loop = device, loop

    def run(self, storage: torch.Tensor, first: int, last: int, work: LayerWork) -> None:
        for item in range(first, last):
            self._device.push(COMPUTE, lambda i=item: self._loop.run(storage, i, i + 1, work))  # type: ignore[misc]

    def finish(self, work: LayerWork, weights: torch.Tensor) -> Any:
        self._device.synchronise()
        return self._loop.finish(work, weights)
