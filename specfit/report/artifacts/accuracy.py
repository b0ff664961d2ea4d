"""Section 4.6: what wrong routes cost, and how long a selection takes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from specfit.base.types import SpecfitError
from specfit.report.artifact import Table
from specfit.report.artifacts.systems import PAPER_COLUMNS, headed, paper_row
from specfit.report.figures import Drawing, paper_handle, series
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Interval, ratio_interval
from specfit.report.paper_values import SELECTION_MEDIAN_MS, Claim, claims_of
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.styles import PAPER, Style, Workload, style_of
from specfit.report.suite_runs import SuiteRun, one, pick
from specfit.report.table_format import Cell, Entry, Sheet, change, exact, factor, measured
from specfit.report.verdict import NOT_COMPARABLE
from specfit.storage.calibration_files import find_fit
from specfit.storage.suite import Found

REPLAYED = "SpecFit's rows are replays of a recording, with a live run's simulated errors."


def accuracy_members(reader: ResultsReader) -> list[SuiteRun]:
    """AR and EAGLE-3 + cache as they ran, SpecFit replayed with every accuracy."""
    return [*reader.members("section_4_6"), *reader.members("section_4_6", kind="replay")]


@dataclass(frozen=True)
class Told:
    """SpecFit with routes of one accuracy: its speed, and the unions behind it."""

    workload: Workload
    accuracy: float
    speed: Interval
    over_ar: Interval
    over_eagle: Interval
    verified: Interval
    committed: Interval
    demand: Interval  # experts that a cycle's verified rows really demanded
    believed: Interval  # the union that the selector counted for the same rows
    cycle: Interval


def told(members: Sequence[SuiteRun], place: Path) -> list[Told]:
    """By workload, from exact routes down."""
    found = []
    for workload in sorted({m.workload for m in members}, key=lambda w: w.order):
        held = pick(members, workload=workload)
        ar, eagle = (one(held, system=name) for name in ("ar", "eagle3_cache"))
        runs = sorted(pick(held, system="specfit"), key=lambda m: -m.accuracy)
        found += [_told(member, ar, eagle, place) for member in runs if member.repeat == 0]
    return found


def _told(member: SuiteRun, ar: SuiteRun, eagle: SuiteRun, place: Path) -> Told:
    rows, speed = member.rows, QUANTITIES["speed"]
    return Told(
        member.workload,
        member.accuracy,
        speed.of(rows),
        speed.ratio(rows, ar.rows),
        speed.ratio(rows, eagle.rows),
        QUANTITIES["verified"].of(rows),
        QUANTITIES["committed"].of(rows),
        QUANTITIES["demand"].of(rows),
        believed_union(member, place),
        QUANTITIES["cycle"].of(rows),
    )


def believed_union(member: SuiteRun, place: Path) -> Interval:
    """Mean F of the selections as the selector's routes counted it: (predicted - b_|S|) / beta."""
    if member.calibration_id is None:
        raise SpecfitError(f"run {member.rows.info.run_id} selected without a fit")
    cost = find_fit(member.calibration_id, place)["cost"]
    beta = float(cost["expert_ns"])
    if not beta:
        return Interval(None, None, None, 0)
    cycles = member.rows.cycles[member.rows.cycles["cycle"] > 0]
    base = cycles["verified_nodes"].map(lambda size: cost["intercepts_ns"][int(size)])
    union = ((cycles["predicted_ns"] - base) / beta).astype(float).round()
    sums = pd.DataFrame({"request": cycles["request_id"].astype(str), "union": union, "cycles": 1})
    by_request = sums.groupby("request").sum()
    return ratio_interval(by_request["union"].to_numpy(), by_request["cycles"].to_numpy())


def accuracy_sheet(found: Sequence[Told], timed: str) -> Sheet:
    columns = (
        "workload",
        "routes right, %",
        headed("speed", timed),
        "over AR",
        "over EAGLE-3 + cache",
        "verified / cycle",
        "committed / cycle",
        headed("cycle", timed),
        "union / cycle",
        "union believed / cycle",
    )
    rows: list[tuple[Entry, ...]] = [
        (
            t.workload.label,
            Cell(f"{100 * t.accuracy:.0f}", 100 * t.accuracy),
            measured(t.speed),
            measured(t.over_ar, factor),
            measured(t.over_eagle, change),
            measured(t.verified),
            measured(t.committed),
            measured(t.cycle),
            measured(t.demand),
            measured(t.believed),
        )
        for t in found
    ]
    note = "union: distinct experts of a cycle's verified rows, over the run's own layers."
    return Sheet("SpecFit told routes of some accuracy", columns, tuple(rows), note)


def accuracy_paper_sheet(claims: Sequence[Claim], members: Sequence[SuiteRun]) -> Sheet:
    columns = PAPER_COLUMNS
    rows = []
    for claim in claims:
        held = pick(members, stands_for=claim.workload)
        runs = {m.system: m.rows for m in pick(held, system="ar")}
        runs |= {m.system: m.rows for m in pick(held, system="specfit", accuracy=claim.accuracy)}
        rows.append(paper_row(claim, runs))
    return Sheet("The paper beside ours", columns, tuple(rows))


# -- selection time, measured ----------------------------------------------------------------------

SELECTION_ROWS = (
    "atlas conversion, 18 nodes and root",
    "search",
    "one call: conversion and search",
    "all five levels, conversion included",
)


def selection_bench(found: Found) -> dict[str, Any]:
    """What scripts/bench/selection.py left for the suite."""
    label = next((c.label for c in found.suite.cells if c.kind == "bench"), None)
    if label is None:
        raise SpecfitError(f"suite {found.suite.artifact} has no selection benchmark")
    return found.document(label)


def selection_times(bench: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Rows of scripts/bench/selection.py at the paper's pool: 18 nodes, at most 7 of them."""
    found = {row["what"]: row for row in bench["table"] if row["nodes"] == 18}
    missing = [name for name in SELECTION_ROWS if name not in found]
    if missing:
        raise SpecfitError(
            f"the selection benchmark has no row {missing[0]!r}; run scripts/bench/selection.py"
        )
    return [found[name] for name in SELECTION_ROWS]


def selection_sheet(bench: Mapping[str, Any]) -> Sheet:
    columns = ("per call", "pools", "calls", "5 %, us", "median, us", "95 %, us", "worst, us")
    rows: list[tuple[Entry, ...]] = [
        (
            row["what"],
            row["pools"],
            row["calls"],
            *(exact(row[key]) for key in ("p5_us", "median_us", "p95_us", "worst_us")),
        )
        for row in selection_times(bench)
    ]
    told = f"paper, per cycle: {SELECTION_MEDIAN_MS} ms median on its own hardware"
    note = f"Measured: {device_of(bench)}. Random pools. {told}: {NOT_COMPARABLE}."
    return Sheet("Selection time (measured)", columns, tuple(rows), note)


def device_of(bench: Mapping[str, Any]) -> str:
    machine, shape = bench["machine"], bench["geometry"]
    return (
        f"one core of {machine['cpu']}, load {machine['load_average_before'][0]}; "
        f"{shape['layers']} layers x {shape['experts']} experts, top-{shape['top']}"
    )


def table_section_4_6(reader: ResultsReader) -> Table:
    """Section 4.6: SpecFit told wrong routes, and how long a selection takes (measured)."""
    found = reader.suites("section_4_6")[0]
    members = accuracy_members(reader)
    rows = [m.rows for m in members]
    sheets = {
        "": accuracy_sheet(told(members, found.place), words_of(rows)),
        "paper": accuracy_paper_sheet(claims_of("section_4_6"), members),
        "selection": selection_sheet(selection_bench(found)),
    }
    stamp = reader.stamp(rows, "section_4_6", extra=[INTERVALS, REPLAYED])
    title = "Section 4.6: route accuracy, selection time"
    return Table("table_section_4_6", title, sheets, stamp)


LOOKS = ({"linestyle": "--", "markerfacecolor": "white"}, {"linestyle": "-"})


# The selector's own count is a grey, not a system's colour: both lines are of one SpecFit.
BELIEVED = Style("union that the selector believed", "#737373", "^")


def figure_section_4_6(reader: ResultsReader) -> Drawing:
    """Section 4.6: speed and union size against route accuracy, and selection time (measured)."""
    found = reader.suites("section_4_6")[0]
    members = accuracy_members(reader)
    rows, bench = [m.rows for m in members], selection_bench(found)
    lines = told(members, found.place)
    measured = f"Selection time is measured: {device_of(bench)}."
    bars = INTERVALS.replace("Brackets", "Bars")
    stamp = reader.stamp(rows, "section_4_6", extra=[bars, REPLAYED, measured])
    title = f"Section 4.6: wrong routes (times {words_of(rows)}); selection time (measured)"
    alt = (
        "Speed over AR and union size of SpecFit as its routes get worse, from exact to half "
        "wrong; and how long one selection takes, measured."
    )
    return Drawing(
        "figure_section_4_6", title, 3.6, stamp, alt, lambda sheet: paint(sheet, lines, bench)
    )


def paint(sheet: Any, lines: list[Told], bench: Mapping[str, Any]) -> None:
    axes: Any = sheet.subplots(1, 3, gridspec_kw={"width_ratios": [1, 1, 1.05]})
    speed, union, times = axes
    workloads = dict.fromkeys(t.workload for t in lines)
    for workload, look in zip(workloads, itertools.cycle(LOOKS), strict=False):
        line = [t for t in lines if t.workload == workload]
        at = [100 * t.accuracy for t in line]
        named = workload.short
        style = style_of("specfit")
        series(speed, at, [t.over_ar for t in line], style, label=named, **look)
        series(union, at, [t.demand for t in line], style, label=f"demanded, {named}", **look)
        series(union, at, [t.believed for t in line], BELIEVED, label=f"believed, {named}", **look)
    for claim in claims_of("section_4_6"):
        speed.plot(100 * claim.accuracy, claim.value, PAPER.marker, mfc="white", mec="black", ms=7)
    handles, labels = speed.get_legend_handles_labels()
    speed.legend([*handles, paper_handle()], [*labels, "paper, GSM8K"], loc="best")
    for panel, title in ((speed, "speed over AR, x"), (union, "distinct experts / cycle")):
        panel.set_title(title)
        panel.set_xlabel("route ids that are right, %")
        panel.set_xticks(sorted({100 * t.accuracy for t in lines}))
        panel.invert_xaxis()
        panel.set_ylim(bottom=0)
    union.legend(loc="lower left", fontsize=7)
    _times(times, bench)


def _times(panel: Any, bench: Mapping[str, Any]) -> None:
    """Box: 5 to 95 %; line: median; tick: the worst call."""
    rows = selection_times(bench)
    for at, row in enumerate(rows):
        low, mid, high, worst = (
            row[key] / 1e3 for key in ("p5_us", "median_us", "p95_us", "worst_us")
        )
        panel.barh(at, high - low, left=low, height=0.45, color="#D9D9D9", edgecolor="#222222")
        panel.plot([mid, mid], [at - 0.22, at + 0.22], color="#222222", lw=2)
        panel.plot(worst, at, "|", color="#222222", ms=9)
        panel.annotate(
            f"{1e3 * mid:.0f} us",
            (mid, at - 0.27),
            ha="center",
            fontsize=7.5,
        )
    panel.axvline(SELECTION_MEDIAN_MS, color="black", ls=":", lw=1.2)
    panel.annotate(
        f"paper's median\n{SELECTION_MEDIAN_MS} ms",
        (SELECTION_MEDIAN_MS, -0.55),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=7.5,
    )
    names = [row["what"].replace(", ", ",\n").replace(": ", ":\n") for row in rows]
    panel.set_yticks(range(len(rows)), names, fontsize=7.5)
    panel.set_xscale("log")
    panel.set_xlim(left=0.6 * min(row["p5_us"] for row in rows) / 1e3)
    panel.set_ylim(len(rows) - 0.5, -0.9)
    panel.set_xlabel("ms per call, measured")
    panel.set_title("selection time (measured)")
