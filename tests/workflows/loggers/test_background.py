"""A sink that raises, hangs or is slow: the run never notices, and a person hears one sentence."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from specfit.workflows.loggers.background import Background
from specfit.workflows.loggers.metrics import Closing


class Sink:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def begin(self, name: str, config: Mapping[str, Any]) -> None:
        self.seen.append(name)

    def request(self, number: int, metrics: Mapping[str, Any]) -> None:
        self.seen.append(number)

    def end(self, closing: Closing | None) -> str:
        self.seen.append("end")
        return "at home"


class Told:
    """A Background, and what it said and warned of."""

    def __init__(self, make: Any, capacity: int = 100) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []
        self.background = Background(make, self.said.append, self.warned.append, capacity)

    def logs(self, requests: int) -> None:
        self.background.put(lambda sink: sink.begin("run", {}))
        for number in range(requests):
            self.background.put(lambda sink, number=number: sink.request(number, {}))
        self.background.put(lambda sink: sink.end(None))


def test_events_arrive_in_order_and_the_place_is_said() -> None:
    sink = Sink()
    told = Told(lambda: sink)
    told.logs(3)
    told.background.close(5)
    assert sink.seen == ["run", 0, 1, 2, "end"]
    assert (told.said, told.warned, told.background.unsent) == (["at home"], [], 0)


def test_a_sink_that_cannot_be_made_is_one_sentence() -> None:
    def make() -> Sink:
        raise ImportError("no such library\nand a page about it")

    told = Told(make)
    told.logs(3)
    told.background.close(5)
    assert told.warned == ["failed (ImportError: no such library); the run goes on without it"]
    assert told.said == [] and told.background.unsent == 5


def test_after_one_failure_nothing_more_is_sent() -> None:
    class Breaks(Sink):
        def request(self, number: int, metrics: Mapping[str, Any]) -> None:
            super().request(number, metrics)
            raise ConnectionError

    sink = Breaks()
    told = Told(lambda: sink)
    told.logs(3)
    told.background.close(5)
    assert sink.seen == ["run", 0], "no second try, no end"
    assert told.warned == ["failed (ConnectionError); the run goes on without it"]
    assert told.background.unsent == 4


def test_a_hanging_sink_holds_nobody_up_and_what_it_misses_is_counted() -> None:
    released = threading.Event()

    class Hangs(Sink):
        def begin(self, name: str, config: Mapping[str, Any]) -> None:
            released.wait(60)

    told = Told(Hangs, capacity=4)
    time.sleep(0.05)
    began = time.monotonic()
    told.logs(1000)
    assert time.monotonic() - began < 1, "a put returns at once"
    told.background.close(0.2)
    assert time.monotonic() - began < 2
    (sentence,) = told.warned
    assert sentence == "is not done after 0.2 s and is left; 1002 records unsent"
    assert told.said == []
    released.set()


def test_a_slow_sink_gets_what_fits_and_the_rest_is_counted() -> None:
    class Slow(Sink):
        def begin(self, name: str, config: Mapping[str, Any]) -> None:
            time.sleep(0.3)

    sink = Slow()
    told = Told(lambda: sink, capacity=4)
    told.logs(100)
    told.background.close(5)
    assert len(sink.seen) + 1 + told.background.unsent == 102
    assert told.background.unsent >= 96
    assert told.warned and told.warned[0].startswith("could not keep up: ")
