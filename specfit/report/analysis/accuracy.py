"""Section 4.6: what wrong routes cost, and how long a selection takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from specfit.base.types import SpecfitError
from specfit.report.analysis.systems import headed, paper_row
from specfit.report.intervals import Interval, ratio_interval
from specfit.report.paper_values import SELECTION_MEDIAN_MS, Claim
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.styles import WORKLOADS
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

    workload: str
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
    for workload in sorted({m.workload for m in members}, key=list(WORKLOADS).index):
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
        "in place of",
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
            WORKLOADS[t.workload],
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
    columns = ("quantity", "paper's place", "paper", "ours", "verdict")
    rows = []
    for claim in claims:
        held = pick(members, workload=claim.workload)
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
        raise SpecfitError(f"suite {found.suite.artefact} has no selection benchmark")
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
