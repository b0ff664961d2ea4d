"""What stands under every table and figure: n, clock, profile, device, run ids, what to mind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from specfit.report.machines import unequal_among
from specfit.report.run_summary import machine_moved
from specfit.report.styles import label_of, workload_of
from specfit.storage.rows import RunRows

PREVIEW = "preview"


@dataclass(frozen=True)
class Footer:
    """`lines` are sentences; `run_ids` those of every run that went in, each once; `suites` list
    these runs and the benchmark files beside them."""

    lines: tuple[str, ...]
    run_ids: tuple[str, ...]
    preview: bool = False
    suites: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        runs = f" Runs: {', '.join(self.run_ids)}." if self.run_ids else ""
        return " ".join(self.lines) + runs

    @property
    def short(self) -> str:
        """With the suites' names in the place of the ids, which their files list."""
        suites = f" Suites: {', '.join(self.suites)}." if self.suites else ""
        return " ".join(self.lines) + suites

    def titled(self, title: str) -> str:
        """The title, with the word preview where too few requests went in for more."""
        return f"{title} ({PREVIEW})" if self.preview else title


def stamp_of(
    runs: Sequence[RunRows],
    place: str,
    preview: bool = False,
    extra: Sequence[str] = (),
    suites: Sequence[str] = (),
) -> Footer:
    """Of the runs that went in. `place` says which rows: live or reference."""
    infos = [run.info for run in runs]
    failed = sum(len(run.request_ids) - len(run.ok_ids) for run in runs)
    clocks = _each(f"{i.clock} (times are {i.timed})" for i in infos)
    billed = _each(i.billed for i in infos if i.billed not in (None, "self"))
    about = [
        f"n = {_each(len(run.ok_ids) for run in runs)} requests"
        + (f" ({failed} failed, in no ratio)" if failed else ""),
        f"clock {clocks}",
        f"profile {_each(i.profile for i in infos)}" + (f", billed as {billed}" if billed else ""),
        f"model {_each(i.model for i in infos)}",
        f"workload {_each(workload_of(i).label for i in infos)}",
        f"device {_each(i.device for i in infos)}",
        f"{place} rows",
    ]
    ids = tuple(dict.fromkeys(i.run_id for i in infos))
    return Footer(("; ".join(about) + ".", *_marks(runs), *extra), ids, preview, tuple(suites))


INTERVALS = "Brackets: 95 %, bootstrap over requests; ratios are paired by request."


def words_of(runs: Sequence[RunRows]) -> str:
    """The word that goes with every time of these runs."""
    return _each(run.info.timed for run in runs)


def _each(values: Iterable[Any]) -> str:
    return " / ".join(dict.fromkeys(str(value) for value in values))


def _marks(runs: Sequence[RunRows]) -> list[str]:
    """What a reader must know before using the numbers."""
    lines = []
    misfits = [run for run in runs if bool(run.requests["fits"].eq(False).any())]
    if misfits:
        names = _each(f"{label_of(r.info)} at {r.info.cache_slots} slots" for r in misfits)
        lines.append(f"Would not fit the profile's memory: {names}.")
    forced = [run for run in runs if bool(run.requests["drafter_forced"].eq(True).any())]
    if forced:
        names = _each(label_of(run.info) for run in forced)
        lines.append(f"Committed ids are a script's (drafter.force): {names}.")
    moved = sorted({name for run in runs for name in machine_moved(run)})
    if differs := unequal_among(runs):
        lines.append(
            f"Measured on unequal machines, so their times are in no ratio: {'; '.join(differs)}."
        )
    if moved:
        lines.append(f"The machine's state moved during a run: {', '.join(moved)}.")
    return lines
