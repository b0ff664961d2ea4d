"""What a person sees while a run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from omegaconf import OmegaConf
from rich.console import Console

from specfit.base.paths import CONF
from specfit.decoding.cycle import Cycle
from specfit.decoding.spec import RunSpec
from specfit.hardware.profile import Profile
from specfit.report.clock_check import clock_sentence
from specfit.storage.request_files import Part
from specfit.workflows.countdown import Countdown, span

UNITS = ("_ms", "_us", "_gbps")
GPU_FOLDER = CONF / "gpu"

_CONSOLE = Console(soft_wrap=True, highlight=False, markup=False)


def say(text: str) -> None:
    _CONSOLE.print(text)


def headline(spec: RunSpec) -> str:
    """Device, clock and profile: the first line of every run."""
    head = f"{spec.place}; clock {spec.clock}"
    if spec.clock == "wall":
        return f"{head} (times are measured); profile {spec.profile.name}"
    bill = "" if spec.billing.name == "self" else f", billed as {spec.billing.name}"
    known = "; ".join(f"{how}: {', '.join(what)}" for how, what in sources(spec.profile).items())
    told = f" ({known})" if known else ""
    return f"{head} (times are modelled); profile {spec.profile.name}{bill}{told}"


def opening(spec: RunSpec) -> list[str]:
    """What a run says before anything is loaded."""
    lines = [headline(spec)]
    if spec.clock == "modelled":
        lines.append(clock_sentence(Path(spec.config.results_dir), spec.profile.digest()))
    return [*lines, *spec.notes, *spec.workload.notes]


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
    """Watches a run: decode speed and time on the run's clock, beside the countdown's elapsed time
    and time left. `expect` says, before the first request, what is to be expected."""

    def __init__(self, spec: RunSpec, expect: Callable[[RunSpec, int], str] | None = None) -> None:
        self._spec, self._expect = spec, expect
        self._timed = "modelled" if spec.clock == "modelled" else "measured"
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
            f"{span(self._timed_ns / 1e9)} timed ({self._timed})"
        )
