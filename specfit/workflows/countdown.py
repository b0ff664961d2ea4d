"""Requests done of all and the time left, judged by those finished here.

On stderr: a bar where that is a terminal, else a line after a request now and then. Nothing of it
enters a row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

LOG_SECONDS = 30.0  # where no terminal draws a bar: a line at most this often,
LOG_LINES = 20  # and about this many of a whole run
DRAW_SECONDS = 0.2


class Countdown:
    """Use as a context manager: leaving it gives the terminal back, whatever happened inside."""

    def __init__(
        self, console: Console | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console or Console(
            stderr=True, soft_wrap=True, highlight=False, markup=False
        )
        self._now = now
        self._total = self._done = self._here = self._logged = 0
        self._begun = self._last_end = self._shown = now()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._on_terminal = self._console.is_terminal
        self._bar = Bar(*columns, console=self._console, disable=not self._on_terminal)
        self._task = self._bar.add_task("", total=None, left="")

    def __enter__(self) -> Countdown:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._bar.stop()

    @property
    def elapsed(self) -> float:
        """Seconds since the first request of this process began."""
        return self._now() - self._begun

    @property
    def left(self) -> float | None:
        """Seconds, if the others take as long as those finished here on average; None before."""
        if not self._here:
            return None
        mean = (self._last_end - self._begun) / self._here
        since = self._now() - self._last_end
        return max(0.0, mean * (self._total - self._done) - since)

    def starts(self, total: int, done: int = 0) -> None:
        self._total, self._done = total, done
        self._begun = self._last_end = self._shown = self._now()
        self._bar.update(self._task, total=total, completed=done)
        self._bar.start()

    def shows(self, text: str) -> None:
        """What else there is to say; called often, and drawing must not cost what it shows."""
        if self._on_terminal and self._now() - self._shown >= DRAW_SECONDS:
            self._draw(text)

    def advances(self, count: int = 1, text: str = "") -> None:
        """So many more are done; `text` is what else there is to say."""
        self._done, self._here = self._done + count, self._here + count
        self._last_end = self._now()
        if self._on_terminal:
            self._draw(text)
        elif self._is_due():
            self._shown, self._logged = self._now(), self._done
            said = f"{text}, " if text else ""
            self._console.print(f"{self._done} of {self._total} requests, {said}{self._times()}")
        if self._done >= self._total:
            self._bar.stop()

    def _is_due(self) -> bool:
        many = self._done - self._logged >= max(1, self._total // LOG_LINES)
        return many and self._now() - self._shown >= LOG_SECONDS

    def _draw(self, text: str) -> None:
        self._shown = self._now()
        said = {"description": text, "left": self._times()}
        self._bar.update(self._task, completed=self._done, **said)  # type: ignore[arg-type]

    def _times(self) -> str:
        left = self.left
        ahead = "time left known after a request" if left is None else f"{span(left)} left"
        return f"{span(self.elapsed)} elapsed, {ahead}"


def span(seconds: float) -> str:
    """As a person says it: 40 s, 3.5 min, 2.1 h."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5970 else f"{seconds / 3600:.1f} h"
