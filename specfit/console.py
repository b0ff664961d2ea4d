"""What a person sees while a run goes on."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Any

from omegaconf import OmegaConf
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from specfit.cycle import Cycle
from specfit.facts import Facts
from specfit.hardware.profile import Profile
from specfit.results.parts import Part

LOG_SECONDS = 30.0  # where no terminal draws a bar, one line at most this often
DRAW_SECONDS = 0.2
UNITS = ("_ms", "_us", "_gbps")
GPU_FOLDER = Path(__file__).parent / "conf" / "gpu"

_CONSOLE = Console(soft_wrap=True, highlight=False, markup=False)


def say(text: str) -> None:
    _CONSOLE.print(text)


def headline(facts: Facts) -> str:
    """Device, clock and profile: the first line of every run."""
    head = f"{facts.place}; clock {facts.clock}"
    if facts.clock == "wall":
        return f"{head} (times are measured); profile {facts.profile.name}"
    bill = "" if facts.billing.name == "self" else f", billed as {facts.billing.name}"
    known = "; ".join(f"{how}: {', '.join(what)}" for how, what in sources(facts.profile).items())
    told = f" ({known})" if known else ""
    return f"{head} (times are modelled); profile {facts.profile.name}{bill}{told}"


def sources(profile: Profile) -> dict[str, list[str]]:
    """How the profile's values are known -> which: `inferred` and `assumed` by its notes, `set` for
    those that differ from its file, whatever the note there says."""
    path = GPU_FOLDER / f"{profile.name}.yaml"
    stored: Any = OmegaConf.to_container(OmegaConf.load(path)) if path.exists() else {}
    found: dict[str, list[str]] = {}
    for name, how in profile.notes.items():
        if name in stored and stored[name] != getattr(profile, name):
            how = "set"
        if how in ("inferred", "assumed", "set"):
            found.setdefault(how, []).append(_plain(name))
    return found


def _plain(name: str) -> str:
    for unit in UNITS:
        name = name.removesuffix(unit)
    return name.replace("_", " ")


class Progress:
    """A bar over requests: live decode speed on the run's clock, elapsed time beside it.

    Where output is no terminal there is no bar, and a line now and then. Use as a context manager:
    leaving it gives the terminal back, whatever happened inside.
    """

    def __init__(self, facts: Facts) -> None:
        self._timed = "modelled" if facts.clock == "modelled" else "measured"
        self._committed = self._cycles = self._decode_ns = 0
        self._begun = self._shown = time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        self._on_terminal = _CONSOLE.is_terminal
        self._bar = Bar(*columns, console=_CONSOLE, disable=not self._on_terminal)
        self._task = self._bar.add_task("prefill", total=None)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def calibrates(self) -> None:
        say("calibrating: no fit for this setting yet (kept for later runs)")

    def starts(self, total: int, done: int) -> None:
        if done:
            say(f"{done} of {total} requests were finished before; going on after them")
        self._bar.update(self._task, total=total, completed=done)
        self._bar.start()

    def sees_cycle(self, cycle: Cycle) -> None:
        if cycle.record.cycle == 0:
            return
        self._committed += cycle.record.committed_tokens
        self._cycles += 1
        self._decode_ns += cycle.record.cycle_ns
        self._show()

    def finishes_request(self, part: Part) -> None:
        self._bar.update(self._task, advance=1, description=self._describe())
        task = self._bar.tasks[0]
        if task.total is not None and task.completed >= task.total:
            self._bar.stop()

    def _show(self) -> None:
        """Drawing must not cost what it shows."""
        now = time.monotonic()
        if now - self._shown < (DRAW_SECONDS if self._on_terminal else LOG_SECONDS):
            return
        self._shown = now
        if self._on_terminal:
            self._bar.update(self._task, description=self._describe())
        else:
            task = self._bar.tasks[0]
            say(f"{int(task.completed)} of {int(task.total or 0)} requests, {self._describe()}")

    def _describe(self) -> str:
        if not self._decode_ns:
            return "prefill"
        speed = self._committed * 1e9 / self._decode_ns
        return (
            f"{speed:.2f} tok/s {self._timed}, {self._committed / self._cycles:.2f} committed per "
            f"cycle, {time.monotonic() - self._begun:.0f} s elapsed"
        )
