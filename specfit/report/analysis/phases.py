"""Where a decode cycle's time goes, per system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specfit.report.explain import phase_sums
from specfit.report.metrics import ratio, totals
from specfit.report.styles import PHASES, WORKLOADS, rank, style_of
from specfit.report.suite_runs import SuiteRun
from specfit.report.table_format import Entry, Sheet, exact


@dataclass(frozen=True)
class Split:
    """Milliseconds of the mean decode cycle by phase of labels.PHASES."""

    workload: str
    system: str
    ms: dict[str, float]
    per_token: float  # milliseconds per committed token

    @property
    def cycle_ms(self) -> float:
        return sum(self.ms.values())


def splits(members: Sequence[SuiteRun]) -> list[Split]:
    """By workload, then in the registry's order of systems."""
    order = list(WORKLOADS)
    found = []
    for member in members:
        if member.repeat:
            continue
        t = totals(member.rows)
        cycles = t.sum("cycles")
        ms = {name: (ratio(ns, cycles) or 0.0) / 1e6 for name, ns in phase_sums(t).items()}
        token = ratio(t.sum("cycle_ns"), t.sum("committed_tokens")) or 0.0
        found.append(Split(member.workload, member.system, ms, token / 1e6))
    return sorted(found, key=lambda s: (order.index(s.workload), rank(s.system)))


def phases_sheet(found: Sequence[Split], timed: str) -> Sheet:
    names = [f"{style.label}, ms ({timed})" for style in PHASES.values()]
    columns = ("in place of", "system", *names, f"cycle, ms ({timed})", f"ms / token ({timed})")
    rows: list[tuple[Entry, ...]] = [
        (
            WORKLOADS[s.workload],
            style_of(s.system).label,
            *(exact(s.ms[name]) for name in PHASES),
            exact(s.cycle_ms),
            exact(s.per_token),
        )
        for s in found
    ]
    return Sheet("Mean decode cycle by phase", columns, tuple(rows))
