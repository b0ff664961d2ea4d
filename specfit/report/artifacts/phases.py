"""Where a decode cycle's time goes, per system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specfit.report.artifact import Table
from specfit.report.explain import phase_sums
from specfit.report.figures import EDGE, Drawing, patch
from specfit.report.footer import words_of
from specfit.report.metrics import ratio, totals
from specfit.report.reader import ResultsReader
from specfit.report.styles import PHASES, Workload, rank, style_of
from specfit.report.suite_runs import SuiteRun
from specfit.report.table_format import Entry, Sheet, exact, plain


@dataclass(frozen=True)
class Split:
    """Milliseconds of the mean decode cycle by phase of styles.PHASES."""

    workload: Workload
    system: str
    ms: dict[str, float]
    per_token: float  # milliseconds per committed token

    @property
    def cycle_ms(self) -> float:
        return sum(self.ms.values())


def splits(members: Sequence[SuiteRun]) -> list[Split]:
    """By workload, then in the registry's order of systems."""
    found = []
    for member in members:
        if member.repeat:
            continue
        t = totals(member.rows)
        cycles = t.sum("cycles")
        ms = {name: (ratio(ns, cycles) or 0.0) / 1e6 for name, ns in phase_sums(t).items()}
        token = ratio(t.sum("cycle_ns"), t.sum("committed_tokens")) or 0.0
        found.append(Split(member.workload, member.system, ms, token / 1e6))
    return sorted(found, key=lambda s: (s.workload.order, rank(s.system)))


def phases_sheet(found: Sequence[Split], timed: str) -> Sheet:
    names = [f"{style.label}, ms ({timed})" for style in PHASES.values()]
    columns = ("workload", "system", *names, f"cycle, ms ({timed})", f"ms / token ({timed})")
    rows: list[tuple[Entry, ...]] = [
        (
            s.workload.label,
            style_of(s.system).label,
            *(exact(s.ms[name]) for name in PHASES),
            exact(s.cycle_ms),
            exact(s.per_token),
        )
        for s in found
    ]
    return Sheet("Mean decode cycle by phase", columns, tuple(rows))


SUITES = ("table_2", "table_3")


def table_phases(reader: ResultsReader) -> Table:
    """Where a decode cycle's time goes, per system: the rows of tables 2 and 3."""
    members = reader.members(*SUITES)
    rows = [m.rows for m in members]
    sheets = {"": phases_sheet(splits(members), words_of(rows))}
    title = "Where a decode cycle's time goes"
    return Table("table_phases", title, sheets, reader.stamp(rows, *SUITES))


def figure_phases(reader: ResultsReader) -> Drawing:
    """Where a decode cycle's time goes, per system, stacked: the rows of tables 2 and 3."""
    members = reader.members(*SUITES)
    rows = [m.rows for m in members]
    found, word = splits(members), words_of(rows)
    longest = max(found, key=lambda s: s.cycle_ms)
    alt = (
        f"Stacked bars of a decode cycle's phases per system. Longest: "
        f"{style_of(longest.system).label}, {plain(longest.cycle_ms)} ms, of which "
        f"{plain(longest.ms['wait'])} ms wait for copies."
    )
    title = f"Where a decode cycle's time goes ({word})"
    stamp = reader.stamp(rows, *SUITES)
    return Drawing("figure_phases", title, 3.2, stamp, alt, lambda sheet: paint(sheet, found, word))


def paint(sheet: Any, found: list[Split], word: str) -> None:
    workloads = list(dict.fromkeys(s.workload for s in found))
    axes: Any = sheet.subplots(1, len(workloads), sharex=True, squeeze=False)[0]
    shown = [name for name in PHASES if any(s.ms[name] for s in found)]
    for column, (panel, workload) in enumerate(zip(axes, workloads, strict=True)):
        held = [s for s in found if s.workload == workload]
        for row, split in enumerate(held):
            _stack(panel, row, split, shown)
        panel.set_yticks(range(len(held)), [style_of(s.system).label for s in held])
        if column:
            panel.set_yticklabels([])
        panel.invert_yaxis()
        panel.grid(False, axis="y")
        panel.margins(x=0.24)
        panel.set_title("\n".join(workload.lines))
        panel.set_xlabel(f"ms per cycle ({word}); beside: ms per token")
    handles = [patch(PHASES[name]) for name in shown]
    sheet.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _stack(panel: Any, row: int, split: Split, shown: list[str]) -> None:
    left = 0.0
    for name in shown:
        style = PHASES[name]
        panel.barh(
            row,
            split.ms[name],
            left=left,
            color=style.colour,
            hatch=style.hatch,
            edgecolor=EDGE,
            lw=0.5,
        )
        left += split.ms[name]
    panel.annotate(
        f"{plain(left)} ({plain(split.per_token)} / token)",
        (left, row),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=7.5,
    )
