"""Figure 4: what SpecFit gains over EAGLE-3 as the cache shrinks, and out of what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specfit.report.analysis.systems import headed, paper_row
from specfit.report.intervals import Interval
from specfit.report.paper_values import Claim
from specfit.report.quantities import QUANTITIES
from specfit.report.styles import WORKLOADS, style_of
from specfit.report.suite_runs import SuiteRun, one, pick
from specfit.report.table_format import Entry, Sheet, change, measured
from specfit.storage.rows import RunRows

QUANTITIES_SHOWN = ("speed", "cycle", "committed")
AGAINST = {"ar_cache": "eagle3_cache", "specfit": "eagle3_cache", "specfit_own": "eagle3_cache"}
"""Without a cache the rival is vanilla EAGLE-3."""


@dataclass(frozen=True)
class Point:
    """A system at one slot count over EAGLE-3 at the same, in every shown quantity."""

    workload: str
    system: str
    slots: int
    ratios: dict[str, Interval]


def points(members: Sequence[SuiteRun]) -> list[Point]:
    """By workload, system, and slots from many to none; SpecFit at 0 slots ends both its lines."""
    found = []
    for workload in sorted({m.workload for m in members}, key=list(WORKLOADS).index):
        held = pick(members, workload=workload)
        for system in AGAINST:
            for slots in sorted({m.slots for m in pick(held, system=system)}, reverse=True):
                base = one(held, system=AGAINST[system], slots=slots)
                found.append(_point(one(held, system=system, slots=slots), base, system))
        uncached = one(held, system="specfit_uncached")
        vanilla = one(held, system="eagle3")
        found.append(_point(uncached, vanilla, "specfit"))
    return found


def _point(member: SuiteRun, base: SuiteRun, system: str) -> Point:
    ratios = {name: QUANTITIES[name].ratio(member.rows, base.rows) for name in QUANTITIES_SHOWN}
    return Point(member.workload, system, member.slots, ratios)


def slots_sheet(found: Sequence[Point], timed: str) -> Sheet:
    columns = (
        "in place of",
        "system",
        "slots",
        *(headed(q, timed, ratio=True) for q in QUANTITIES_SHOWN),
    )
    rows: list[tuple[Entry, ...]] = [
        (
            WORKLOADS[p.workload],
            style_of(p.system).label,
            p.slots,
            *(measured(p.ratios[q], change) for q in QUANTITIES_SHOWN),
        )
        for p in found
    ]
    return Sheet("Against EAGLE-3 at the same slots (at 0: vanilla EAGLE-3)", columns, tuple(rows))


def slots_paper_sheet(claims: Sequence[Claim], members: Sequence[SuiteRun]) -> Sheet:
    """The paper's gain at each slot count beside ours."""
    columns = ("slots", "quantity", "paper's place", "paper", "ours", "verdict")
    rows = [
        (claim.slots, *paper_row(claim, _runs(claim, members)))
        for claim in sorted(claims, key=lambda c: (QUANTITIES_SHOWN.index(c.quantity), -c.slots))
    ]
    return Sheet("The paper beside ours", columns, tuple(rows))


def _runs(claim: Claim, members: Sequence[SuiteRun]) -> dict[str, RunRows]:
    held = pick(members, workload=claim.workload, slots=claim.slots)
    return {m.system: m.rows for m in reversed(held)}
