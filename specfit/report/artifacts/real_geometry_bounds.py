"""Half-real: whether the gain rises as slots shrink, what no cache exceeds, what a cycle needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specfit.report.artifacts.half_real import (
    ALL,
    EMBEDDED,
    ENDS,
    LEADING,
    RANGE,
    SLOTS,
    HalfReal,
    Of,
    changes_key,
    gain,
    missed_share,
    over_all,
    over_seeds,
    slots_named,
)
from specfit.report.bounds import BELADY
from specfit.report.intervals import Floats, interval_of
from specfit.report.styles import style_of
from specfit.report.table_format import Cell, Entry, Sheet, exact, factor, measured

BOUND = "eagle3_cache"
"""The system whose times without copies bound the others'."""


def resident_gain(half: HalfReal, base: str, slots: int) -> Of:
    """Speed of EAGLE-3 with every expert on the device over that of `base`. Routes change nothing
    of the former."""
    cell = half.cell(BOUND, ENDS[0], half.graftings[0])
    bound = (np.array(cell["ns"]) - np.array(cell["wait_ns"]))[half.kept].sum()

    def value(graft: str, seed: int) -> float:
        return float(half.ns(base, slots, graft, seed).sum() / bound)

    return value


STEPS = ((48, 24), (24, 12), (12, 0), (48, 12))
"""More slots and fewer."""


def trends_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """SpecFit's gain over EAGLE-3 at fewer slots over that at more (sec. 4.4)."""
    columns = ["workload", "routes"]
    columns += [f"{slots_named(fewer)} over {slots_named(more)}" for more, fewer in STEPS]
    columns.append("rises at every step")
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        places: dict[str, list[Cell]] = {EMBEDDED: [_embedded_step(half, *s) for s in STEPS]}
        for graft in half.graftings:
            places[f"real, {graft}"] = [over_seeds(half, graft, _step(half, *s)) for s in STEPS]
        places[f"real, {ALL}"] = [over_all(half, _step(half, *s)) for s in STEPS]
        for place, cells in places.items():
            rows.append((half.workload.label, place, *cells, _rises(cells)))
    note = (
        f"Above 1: the gain rises as slots shrink. 'yes' where every bracket lies above 1. {RANGE}"
    )
    return Sheet("Trends of the gain over EAGLE-3", tuple(columns), tuple(rows), note)


def _step(half: HalfReal, more: int, fewer: int) -> Of:
    many, few = (gain(half, "specfit", BOUND, slots) for slots in (more, fewer))
    return lambda graft, seed: few(graft, seed) / many(graft, seed)


def _embedded_step(half: HalfReal, more: int, fewer: int) -> Cell:
    names = ((BOUND, fewer), ("specfit", more), ("specfit", fewer), (BOUND, more))
    columns = np.stack([half.ns(name, slots, EMBEDDED) for name, slots in names], axis=1)

    def statistic(sums: Floats) -> Floats:
        found: Floats = sums[..., 0] * sums[..., 1] / (sums[..., 2] * sums[..., 3])
        return found

    return measured(interval_of(statistic, columns, clusters=half.clusters), factor)


def _rises(cells: Sequence[Cell]) -> str:
    """Whether the lower end of every bracket is above 1."""
    lows = [cell.value if cell.low is None else cell.low for cell in cells]
    return "yes" if all(low is not None and low > 1 for low in lows) else "no"


def bounds_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """What a cycle must commit to equal AR + cache, and what a knowing cache would hit more."""
    drafting = LEADING[1:]
    columns = ["workload", "routes", "slots"]
    columns += [f"{style_of(s).label} commits a cycle" for s in drafting]
    columns += [f"{style_of(s).label}, break-even" for s in drafting]
    columns += [f"{style_of(s).label}, hit rate short of Belady, points" for s in LEADING]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        for graft in (EMBEDDED, *half.graftings):
            for slots in SLOTS[:-1]:
                place = (half, graft, slots)
                committed = [exact(_committed(s, *place)) for s in drafting]
                needed = [exact(_needed(s, *place)) for s in drafting]
                short = [exact(_short_of_belady(s, *place)) for s in LEADING]
                rows.append((half.workload.label, graft, slots, *committed, *needed, *short))
    note = "One seed of each grafting. Break-even: tokens a cycle must commit to equal AR + cache."
    return Sheet("Break-even and Belady's bound", tuple(columns), tuple(rows), note)


def _committed(system: str, half: HalfReal, graft: str, slots: int) -> float:
    cycles = half.cell(system, slots, graft)["totals"]["cycles"]
    return float(half.committed.sum() / cycles)


def _needed(system: str, half: HalfReal, graft: str, slots: int) -> float:
    cell, plain = (half.cell(s, slots, graft) for s in (system, "ar_cache"))
    token_ns = np.sum(plain["ns"]) / half.committed.sum()
    return float(np.sum(cell["ns"]) / cell["totals"]["cycles"] / token_ns)


def _short_of_belady(system: str, half: HalfReal, graft: str, slots: int) -> float | None:
    how: dict[str, Any] = {"study": "policies", "changes": {"policy": BELADY}}
    key = (graft, 0, None, system, slots, "policies", changes_key({"policy": BELADY}))
    if key not in half.cells:
        return None
    knowing = half.cell(system, slots, graft, **how)
    return 100 * (missed_share(half.cell(system, slots, graft)) - missed_share(knowing))
