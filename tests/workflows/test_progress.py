"""Time left is judged by the requests finished here; without a terminal lines are rare."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from specfit.workflows.progress import LOG_SECONDS, Countdown, span
from specfit.workflows.waiting import waiting


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def plain() -> tuple[Countdown, Clock, io.StringIO]:
    clock, out = Clock(), io.StringIO()
    return Countdown(Console(file=out, soft_wrap=True, width=200), clock), clock, out


def test_time_left_is_of_the_requests_finished_here() -> None:
    countdown, clock, _ = plain()
    clock.now += 50  # loading is no request
    countdown.starts(total=10, done=4)
    assert countdown.left is None and countdown.elapsed == 0
    clock.now += 20
    countdown.advances()
    assert countdown.left == 20 * 5
    clock.now += 8
    assert countdown.left == 100 - 8 and countdown.elapsed == 28
    clock.now += 2
    countdown.advances()
    assert countdown.left == 15 * 4
    clock.now += 100
    assert countdown.left == 0.0, "a request longer than all that was left"


def test_a_batch_counts_as_its_requests() -> None:
    countdown, clock, _ = plain()
    countdown.starts(total=20)
    clock.now += 80
    countdown.advances(8)
    assert countdown.left == 120


def test_without_a_terminal_a_line_now_and_then() -> None:
    countdown, clock, out = plain()
    with countdown:
        countdown.starts(total=400)
        for _ in range(400):
            clock.now += 6
            countdown.shows("never shown")
            countdown.advances(text="5.00 tok/s")
    lines = out.getvalue().splitlines()
    assert lines[0] == "20 of 400 requests, 5.00 tok/s, 2.0 min elapsed, 38.0 min left"
    assert len(lines) == 20 and not any("never" in line for line in lines)


def test_quick_requests_print_no_line_more_often_than_that() -> None:
    countdown, clock, out = plain()
    countdown.starts(total=100)
    for _ in range(100):
        clock.now += 1
        countdown.advances()
    assert len(out.getvalue().splitlines()) == 100 // LOG_SECONDS


def test_on_a_terminal_there_is_a_bar_and_it_is_left_clean() -> None:
    clock, out = Clock(), io.StringIO()
    console = Console(file=out, force_terminal=True, width=150)
    with Countdown(console, clock) as countdown:
        countdown.starts(total=3)
        clock.now += 10
        countdown.advances(text="5.00 tok/s")
        clock.now += 1
        countdown.shows("6.00 tok/s")
    said = out.getvalue()
    assert "5.00 tok/s" in said or "6.00 tok/s" in said
    assert "1/3" in said and "left" in said
    assert said.rstrip().endswith("\x1b[?25h"), "the cursor is given back"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_wait_without_an_end_is_said_once_it_is_long(is_terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=is_terminal, width=80)
    with waiting("loading a model", console):
        pass
    assert not out.getvalue(), "it ended in time"
    with waiting("loading a model", console, patience_s=0.0):
        while "loading a model" not in out.getvalue():
            time.sleep(0.001)
    assert ("\x1b[" in out.getvalue()) == is_terminal


def test_spans_are_said_as_people_do() -> None:
    assert [span(s) for s in (0.4, 42, 99.4, 99.6, 600, 5969, 7560)] == [
        *("0 s", "42 s", "99 s", "1.7 min", "10.0 min", "99.5 min", "2.1 h"),
    ]
