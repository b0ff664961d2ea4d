"""What a waiting person sees: the opening lines, requests done of all, the time left, the speed.

On stderr a bar where that is a terminal, else a line after a request now and then. Nothing of it
enters a row.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from specfit.base.entry import print_error
from specfit.base.types import SpecfitError
from specfit.decoding.calibration.trials import STATES
from specfit.decoding.cycle import Cycle
from specfit.decoding.spec import RunSpec, stored_profile
from specfit.hardware.profile import Profile
from specfit.report.clock_check import clock_sentence
from specfit.report.run_summary import failures
from specfit.storage.request_files import Part
from specfit.storage.rows import RunRows
from specfit.workflows.execute import Watcher

UNITS = ("_ms", "_us", "_gbps")
WIDTH = 78  # columns
LOG_SECONDS = 30.0  # where no terminal draws a bar: a line at most this often,
LOG_LINES = 20  # and about this many of a whole run
DRAW_SECONDS = 0.2

_CONSOLE = Console(soft_wrap=True, highlight=False, markup=False)


def say(text: str) -> None:
    _CONSOLE.print(text)


def say_failed(run: RunRows) -> None:
    """The last line of a run some of whose requests failed, on stderr."""
    why = failures(run)
    if why is not None:
        print_error(SpecfitError(f"run {run.info.run_id}, {len(run.request_ids)} requests: {why}"))


def headline(spec: RunSpec) -> str:
    """Whose times they will be, how the profile's values are known, and what decodes: lines of at
    most WIDTH columns where names are short."""
    if spec.clock == "wall":
        return f"times: measured by the wall clock on this {spec.place}"
    billed = spec.config.model.name if spec.billing.name == "self" else spec.billing.name
    known = "; ".join(f"{how}: {', '.join(what)}" for how, what in sources(spec.profile).items())
    lines = [f"times: modelled for {billed} by profile {spec.profile.name}"]
    lines += textwrap.wrap(known, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join([*lines, f"{spec.place}; its speed is in no modelled time"])


def opening(spec: RunSpec) -> list[str]:
    """What a run says before anything is loaded."""
    lines = [headline(spec)]
    if spec.clock == "modelled":
        lines.append(clock_sentence(Path(spec.config.results_dir), spec.profile.digest()))
    return [*lines, *spec.notes, *spec.workload.notes]


def sources(profile: Profile) -> dict[str, list[str]]:
    """How the profile's values are known -> which: `inferred` and `assumed` by its notes, `set` for
    those that differ from its file, whatever the note there says."""
    stored = stored_profile(profile.name)
    result: dict[str, list[str]] = {}
    for name, how in profile.notes.items():
        if name in stored and stored[name] != getattr(profile, name):
            how = "set"
        if how in ("inferred", "assumed", "set"):
            result.setdefault(how, []).append(_plain(name))
    return result


def _plain(name: str) -> str:
    for unit in UNITS:
        name = name.removesuffix(unit)
    return name.replace("_", " ")


def span(seconds: float) -> str:
    """As a person says it: 40 s, 3.5 min, 2.1 h."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5970 else f"{seconds / 3600:.1f} h"


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
        self._noun = "requests"
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

    def starts(self, total: int, done: int = 0, noun: str = "requests") -> None:
        """So many of what `noun` names; counts what was there before as nothing done here."""
        self._total, self._done, self._here, self._logged, self._noun = total, done, 0, done, noun
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
            self._console.print(
                f"{self._done} of {self._total} {self._noun}, {said}{self._times()}"
            )
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


class Progress(Watcher):
    """Watches a run: decode speed and time on the run's clock, beside the countdown's elapsed time
    and time left. `expect` says, before the first request, what is to be expected."""

    def __init__(self, spec: RunSpec, expect: Callable[[RunSpec, int], str] | None = None) -> None:
        self._spec, self._expect = spec, expect
        self._committed = self._cycles = self._decode_ns = self._timed_ns = 0
        self._countdown = Countdown()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._countdown.__exit__(kind, error, at)

    def calibrates(self) -> None:
        say("calibrating: no fit for this setting yet (kept for later runs)")
        self._countdown.starts(STATES, noun="states probed")

    def probes(self) -> None:
        self._countdown.advances(text="calibrating")

    def starts(self, total: int, done: int) -> None:
        if done:
            say(f"{done} of {total} requests were finished before; going on after them")
        if self._expect is not None and done < total:
            say(self._expect(self._spec, done))
        self._countdown.starts(total, done)

    def sees_cycle(self, cycle: Cycle) -> None:
        self._timed_ns += cycle.record.cycle_ns
        if cycle.record.cycle > 0:
            self._committed += cycle.record.committed_tokens
            self._cycles += 1
            self._decode_ns += cycle.record.cycle_ns
        self._countdown.shows(self._describe())

    def finishes_request(self, part: Part) -> None:
        self._countdown.advances(text=self._describe())

    def _describe(self) -> str:
        if not self._decode_ns:
            return "prefill"
        speed, each = self._committed * 1e9 / self._decode_ns, self._committed / self._cycles
        return (
            f"{speed:.2f} tok/s, {each:.2f} committed per cycle, "
            f"{span(self._timed_ns / 1e9)} timed ({self._spec.timed})"
        )
