"""What a person sees while a run goes on."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn
from rich.progress import TimeRemainingColumn

from specfit.cycle import Cycle
from specfit.resolve import Resolved
from specfit.results.parts import Part

_CONSOLE = Console(soft_wrap=True, highlight=False, markup=False)


def say(text: str) -> None:
    _CONSOLE.print(text)


class Progress:
    """A bar over requests with live decode speed on the run's clock and elapsed time beside it."""

    def __init__(self, facts: Resolved) -> None:
        self._timed = "modelled" if facts.clock == "modelled" else "measured"
        self._committed = self._cycles = self._decode_ns = 0
        self._elapsed_ns = self._atlas_ns = 0
        self._shown = 0.0
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        self._bar = Bar(*columns, console=_CONSOLE)
        self._task = self._bar.add_task("prefill", total=None)

    def starts(self, total: int, done: int) -> None:
        self._bar.update(self._task, total=total, completed=done)
        self._bar.start()

    def sees_cycle(self, cycle: Cycle) -> None:
        self._elapsed_ns += cycle.timing.elapsed_ns
        self._atlas_ns += cycle.timing.atlas_ns
        if cycle.record.cycle == 0:
            return
        self._committed += cycle.record.committed_tokens
        self._cycles += 1
        self._decode_ns += cycle.record.cycle_ns
        if time.monotonic() - self._shown > 0.2:  # drawing must not cost what it shows
            self._shown = time.monotonic()
            self._bar.update(self._task, description=self._describe())

    def finishes_request(self, part: Part) -> None:
        self._bar.update(self._task, advance=1, description=self._describe())
        task = self._bar.tasks[0]
        if task.total is not None and task.completed >= task.total:
            self._bar.stop()

    def _describe(self) -> str:
        if not self._decode_ns:
            return "prefill"
        speed = self._committed * 1e9 / self._decode_ns
        return (
            f"{speed:.2f} tok/s {self._timed}, {self._committed / self._cycles:.2f} committed per "
            f"cycle, {self._elapsed_ns / 1e9:.0f} s elapsed"
        )
