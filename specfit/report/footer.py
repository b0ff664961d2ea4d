"""What stands under every table and figure: n, clock, profile, device, run ids, what to mind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from specfit.report.degenerate import degenerate_of, loops_of
from specfit.report.intervals import clusters_in
from specfit.report.machines import unequal_among
from specfit.report.robustness import robustness
from specfit.report.run_summary import machine_moved
from specfit.report.styles import label_of, workload_of
from specfit.report.table_format import factor, measured
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
    told = [_with_clusters(line, runs) for line in extra]
    lines = ("; ".join(about) + ".", *_marks(runs), *_degenerate(runs), *told)
    return Footer(lines, ids, preview, tuple(suites))


OVER = "bootstrap over requests"
INTERVALS = f"Brackets: 95 %, {OVER}; ratios are paired by request."


def _with_clusters(line: str, runs: Sequence[RunRows]) -> str:
    """What INTERVALS says where it is known which requests were made from one template."""
    counts = []
    for run in runs:
        clusters = clusters_in(run, run.ok_ids)
        if clusters is not None:
            counts.append(f"{len(set(clusters))} of {workload_of(run.info).short}")
    if not counts:
        return line
    return line.replace(OVER, f"{OVER} and over clusters ({_each(counts)}), the wider of the two")


def _degenerate(runs: Sequence[RunRows]) -> list[str]:
    """Outputs that say nothing of a method, by workload, and what the headline is without them."""
    groups: dict[str, list[RunRows]] = {}
    for run in runs:
        groups.setdefault(workload_of(run.info).short, []).append(run)
    counts, without = [], []
    for name, held in groups.items():
        counts.append(f"{name} {_each(map(_count, held))}")
        pair = _headline(held)
        if pair is not None and degenerate_of(pair[0]):
            found = robustness(*pair)
            without.append(
                f"without them SpecFit is {measured(found.without, factor).text} as fast as "
                f"EAGLE-3 + cache on {name} at {pair[0].info.cache_slots} slots, "
                f"{measured(found.whole, factor).text} with them"
            )
    if not counts:
        return []
    told = "; ".join([", ".join(counts), *without])
    return [f"Degenerate outputs (one n-gram over half of it, or cut at the cap): {told}."]


def _count(run: RunRows) -> str:
    found = degenerate_of(run)
    loops = len(loops_of(run) & found)
    return f"{len(found)} of {len(run.ok_ids)}" + (f" ({loops} by n-gram)" if found else "")


def _headline(runs: Sequence[RunRows]) -> tuple[RunRows, RunRows] | None:
    """SpecFit and EAGLE-3 + cache under one profile, at the most slots that both have; the first of
    each, which is as the paper has it."""
    found: dict[tuple[int, str | None, str], RunRows] = {}
    for run in runs:
        key = run.info.cache_slots, run.info.profile_digest, run.info.selector
        if tuple(run.request_ids) == tuple(runs[0].request_ids):
            found.setdefault(key, run)
    for slots, profile, selector in sorted(found, key=lambda key: -key[0]):
        base = found.get((slots, profile, "eagle3_cache"))
        if selector == "specfit" and base is not None:
            return found[slots, profile, selector], base
    return None


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
