"""Half-real: figure 4, rivals, map and routes under the real router's routes, and the gain against
acceptance. Drawn from what the study of the same name leaves for each workload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specfit.report.artifact import Table
from specfit.report.artifacts.half_real import (
    ALL,
    EMBEDDED,
    ENDS,
    LEADING,
    RANGE,
    SLOTS,
    HalfReal,
    embedded_gain,
    gain,
    missed_share,
    over_all,
    over_seeds,
    ranged,
    slots_named,
)
from specfit.report.artifacts.real_geometry_bounds import (
    BOUND,
    bounds_sheet,
    resident_gain,
    trends_sheet,
)
from specfit.report.bounds import RESIDENT_NOTE, resident_label
from specfit.report.figures import Drawing
from specfit.report.footer import words_of
from specfit.report.reader import ResultsReader
from specfit.report.styles import Workload, style_of
from specfit.report.table_format import Cell, Entry, Sheet, exact, factor

SUITE = "real_geometry"
HALF_REAL = (
    "Half-real: routes are those of real Qwen3-30B-A3B tokens (48 layers, nothing scaled; prompt "
    "tokens of four ShareGPT prompts); trees, path probabilities and acceptances are the embedded "
    "pair's; which route a drafted node has is an assumption (the grafting)."
)
HEADS = (2.0, 2.6)
"""Committed tokens per cycle of published heads of this family."""

# -- sheets ----------------------------------------------------------------------------------------


def figure_4_sheet(halves: Sequence[HalfReal], title: str) -> Sheet:
    """SpecFit over EAGLE-3 and over AR, both with the same cache, as slots shrink."""
    pairs = (("eagle3_cache", "EAGLE-3"), ("ar_cache", "AR"))
    columns = ["workload", "routes", "n"]
    columns += [f"over {label}, {slots_named(slots)}" for _, label in pairs for slots in SLOTS]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        head = half.workload.label
        n = int(half.kept.sum())
        values = [("specfit", base, slots) for base, _ in pairs for slots in SLOTS]
        rows.append((head, EMBEDDED, n, *(embedded_gain(half, *v) for v in values)))
        for graft in half.graftings:
            cells = [over_seeds(half, graft, gain(half, *v)) for v in values]
            rows.append((head, f"real, {graft}", n, *cells))
        rows.append((head, f"real, {ALL}", n, *(over_all(half, gain(half, *v)) for v in values)))
        if half.knows_waits:
            bound = [over_all(half, resident_gain(half, base, slots)) for _, base, slots in values]
            rows.append((head, f"{resident_label(BOUND)}; real, {ALL}", n, *bound))
    return Sheet(title, tuple(columns), tuple(rows), f"{RANGE} {RESIDENT_NOTE}")


def misses_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """Share of demanded experts that were absent."""
    cached = SLOTS[:-1]
    columns = ["workload", "routes"]
    columns += [f"{style_of(s).label}, {slots}" for s in LEADING for slots in cached]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        for graft in (EMBEDDED, *half.graftings):
            cells = []
            for system in LEADING:
                for slots in cached:
                    found = [half.cell(system, slots, graft, s) for s in half.seeds(graft)]
                    cells.append(_percent([missed_share(one) for one in found]))
            rows.append((half.workload.label, graft, *cells))
    return Sheet("Misses, % of demanded experts", tuple(columns), tuple(rows))


def _percent(shares: Sequence[float]) -> Cell:
    values = [100 * share for share in shares]
    middle, low, high = float(np.median(values)), min(values), max(values)
    text = f"{middle:.1f}" + (f" [{low:.1f}, {high:.1f}]" if low < high else "")
    return Cell(text, middle, low, high)


NAMES = {"evict_early": "EVICT, early stop", "specfit_full": "SpecFit, full depth"}


def named(system: str) -> str:
    if system in NAMES:
        return NAMES[system]
    rule, _, size = system.rpartition("_")
    if size.isdigit():
        label = "chain" if rule == "chain" else style_of(rule).label
        return f"{label}, k = {size}"
    return style_of(system).label


def rivals_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """Every other rule over SpecFit, embedded beside real."""
    columns = ["workload", "rule", *(f"embedded, {s} slots" for s in ENDS)]
    columns += [f"real, {s} slots" for s in ENDS]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        rules = dict.fromkeys(
            k[3] for k in half.cells if k[5] in ("grid", "rivals") and k[3] != "specfit"
        )
        for rule in rules:
            study = "grid" if (EMBEDDED, 0, None, rule, 48, "grid", "") in half.cells else "rivals"

            cells: list[Entry] = [
                exact(_over_specfit(half, rule, study, slots, EMBEDDED), factor) for slots in ENDS
            ]
            for slots in ENDS:
                found = [_over_specfit(half, rule, study, slots, g) for g in half.graftings]
                cells.append(ranged(found))
            rows.append((half.workload.label, named(rule), *cells))
    note = "One seed of each grafting; brackets: least and greatest over graftings."
    return Sheet("Speed over SpecFit's at the same slots", tuple(columns), tuple(rows), note)


def _over_specfit(half: HalfReal, rule: str, study: str, slots: int, graft: str) -> float:
    theirs = half.ns(rule, slots, graft, study=study).sum()
    return float(half.ns("specfit", slots, graft).sum() / theirs)


def routes_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """What is left of the speed when routes are known less well."""
    columns = ["workload", "routes that SpecFit reads"]
    columns += [f"{place}, {s} slots" for place in (EMBEDDED, "real") for s in ENDS]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        for source in dict.fromkeys(k[3] for k in half.cells if k[5] == "routes"):
            cells: list[Entry] = []
            for slots in ENDS:
                cells.append(exact(_of_exact(half, source, slots, EMBEDDED), factor))
            for slots in ENDS:
                found = [_of_exact(half, source, slots, g) for g in half.graftings]
                cells.append(ranged(found))
            rows.append((half.workload.label, source.replace("_", " "), *cells))
    note = "SpecFit's speed over that with exact routes. One seed of each grafting."
    return Sheet("Less accurate routes", tuple(columns), tuple(rows), note)


def _of_exact(half: HalfReal, source: str, slots: int, graft: str) -> float:
    theirs = half.ns(source, slots, graft, study="routes").sum()
    return float(half.ns("specfit", slots, graft).sum() / theirs)


def policies_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """Other cache rules in the same memory, over least recently used."""
    settings = list(
        dict.fromkeys(
            (k[6].removeprefix("policy="), k[4])
            for half in halves
            for k in half.cells
            if k[5] == "policies"
        )
    )
    columns = ["workload", "policy", "slots", *(style_of(s).label for s in LEADING)]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        for policy, slots in settings:
            how: dict[str, Any] = {"study": "policies", "changes": {"policy": policy}}
            cells = []
            for system in LEADING:
                found = [
                    float(half.ns(system, slots, g).sum() / half.ns(system, slots, g, **how).sum())
                    for g in half.graftings
                ]
                cells.append(ranged(found))
            rows.append((half.workload.label, policy, slots, *cells))
    note = "pool: one memory for all layers. One seed of each grafting; brackets over graftings."
    return Sheet("Speed over that of LRU, real routes", tuple(columns), tuple(rows), note)


def map_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """The best drafting system over AR, over link and fixed cost."""
    places = sorted({k[6] for half in halves for k in half.cells if k[5] == "map"})
    grid = sorted({tuple(float(w.split("=")[1]) for w in place.split()) for place in places})
    links = sorted({link for _, link in grid})
    columns = ["workload", "slots", "fixed cost, ms", *(f"{g:g} GB/s" for g in links)]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        for slots in ENDS:
            for fixed in sorted({fixed for fixed, _ in grid}):
                found = [
                    ranged([_pays(half, slots, g, fixed, link) for g in half.graftings])
                    for link in links
                ]
                rows.append((half.workload.label, slots, exact(fixed), *found))
    note = (
        "Speed of the faster of SpecFit and EAGLE-3, over AR with the same cache. One seed of each "
        "grafting; brackets: least and greatest over graftings."
    )
    return Sheet("Where speculation pays, real routes", tuple(columns), tuple(rows), note)


def _pays(half: HalfReal, slots: int, graft: str, fixed: float, link: float) -> float:
    how: dict[str, Any] = {
        "study": "map",
        "changes": {"gpu.fixed_ms": fixed, "gpu.link_gbps": link},
    }
    plain, *drafting = (half.ns(s, slots, graft, **how).sum() for s in LEADING)
    return float(plain / min(drafting))


# -- acceptance ------------------------------------------------------------------------------------


def dialled(half: HalfReal) -> list[float]:
    return sorted({k[2] for k in half.cells if k[2] is not None})


def dial_gain(
    half: HalfReal, system: str, base: str, slots: int, value: float, graft: str
) -> float:
    how: dict[str, Any] = {"study": "dial", "acceptance": value}
    theirs = half.ns(base, slots, graft, **how).sum()
    return float(theirs / half.ns(system, slots, graft, **how).sum())


def realised(half: HalfReal, value: float) -> float:
    """Committed tokens a cycle of EAGLE-3 under the dial's trees; routes change none."""
    graft = half.graftings[0]
    cell = half.cell("eagle3_cache", ENDS[0], graft, study="dial", acceptance=value)
    return float(half.committed.sum() / np.sum(cell["cycles"]))


PAIRS = (("specfit", "eagle3_cache"), ("specfit", "ar_cache"), ("eagle3_cache", "ar_cache"))


def dial_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """Gains as acceptance is turned from 1.2 to 5 committed tokens."""
    columns = ["workload", "slots", "EAGLE-3 commits a cycle"]
    columns += [f"{style_of(a).label} over {style_of(b).label}" for a, b in PAIRS]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        for slots in ENDS:
            for value in dialled(half):
                cells = [
                    ranged([dial_gain(half, *pair, slots, value, g) for g in half.graftings])
                    for pair in PAIRS
                ]
                rows.append((half.workload.label, slots, exact(realised(half, value)), *cells))
    note = (
        "Trees of a stated process (specfit/decoding/replay/acceptance.py) over the workload's "
        f"prompts and lengths. Published heads of this family commit {HEADS[0]:g} to {HEADS[1]:g}."
    )
    return Sheet("Gain against acceptance, real routes", tuple(columns), tuple(rows), note)


def break_even_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """The committed tokens of EAGLE-3 at which one system equals another."""
    columns = ["workload", "slots"]
    columns += [f"{style_of(a).label} = {style_of(b).label}" for a, b in PAIRS]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        values = dialled(half)
        at = [realised(half, value) for value in values]
        for slots in ENDS:
            cells: list[Entry] = []
            for pair in PAIRS:
                found = [
                    crossing(at, [dial_gain(half, *pair, slots, v, g) for v in values])
                    for g in half.graftings
                ]
                cells.append(_crossings(found, at))
            rows.append((half.workload.label, slots, *cells))
    note = (
        "EAGLE-3's committed tokens a cycle at which the two are as fast, interpolated along the "
        "dial, range over graftings; a dash where they never are between its ends."
    )
    return Sheet("Break-even committed tokens", tuple(columns), tuple(rows), note)


def crossing(at: Sequence[float], gains: Sequence[float]) -> float | None:
    """Where the gain passes 1, the last such place."""
    found = None
    for i in range(len(at) - 1):
        a, b = gains[i] - 1, gains[i + 1] - 1
        if a * b <= 0 and a != b:
            found = at[i] + (at[i + 1] - at[i]) * a / (a - b)
    return found


def _crossings(found: Sequence[float | None], at: Sequence[float]) -> Cell:
    known = [value for value in found if value is not None]
    if not known:
        return Cell("-")
    middle, low, high = float(np.median(known)), min(known), max(known)
    some = "" if len(known) == len(found) else f" ({len(known)} of {len(found)} graftings)"
    return Cell(f"{middle:.2f} [{low:.2f}, {high:.2f}]{some}", middle, low, high, not some)


# -- the lead figure's points ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cloud:
    """One point a request: EAGLE-3's committed tokens a cycle, and the gain over it."""

    workload: Workload
    slots: int
    committed: NDArray[np.float64]  # [n]
    embedded: NDArray[np.float64]
    real: NDArray[np.float64]  # median over graftings and seeds
    degenerate: NDArray[np.bool_]


def cloud(half: HalfReal, slots: int) -> Cloud:
    cycles = np.array(half.cell("eagle3_cache", slots, EMBEDDED)["cycles"])
    keep = (half.committed > 0) & (cycles > 0)

    def gains(graft: str, seed: int) -> NDArray[np.float64]:
        theirs, ours = (half.ns(s, slots, graft, seed) for s in ("eagle3_cache", "specfit"))
        return np.asarray((theirs / np.maximum(ours, 1))[keep])

    drawn = [gains(graft, seed) for graft in half.graftings for seed in half.seeds(graft)]
    return Cloud(
        half.workload,
        slots,
        (half.committed[keep] / cycles[keep]),
        gains(EMBEDDED, 0),
        np.median(drawn, axis=0),
        np.array(half.document["degenerate"], dtype=np.bool_)[keep],
    )


# -- artifacts -------------------------------------------------------------------------------------


def documents(reader: ResultsReader) -> list[HalfReal]:
    found = reader.suites(SUITE)[0]
    labels = [cell.label for cell in found.suite.cells if cell.label.endswith("/study")]
    return [HalfReal.of(found.document(label)) for label in labels]


def degenerate_line(halves: Iterable[HalfReal]) -> str:
    counts = [
        f"{int(np.sum(half.document['degenerate']))} of {len(half.committed)} "
        f"({half.workload.short})"
        for half in halves
    ]
    return f"Degenerate outputs (a loop over half of the output, or the cap): {', '.join(counts)}."


def table_real_geometry(reader: ResultsReader) -> Table:
    """Half-real: figure 4, rivals, map, routes and acceptance under real routes."""
    halves = documents(reader)
    rows = [m.rows for m in reader.members(SUITE, kind="replay")]
    timed = words_of(rows)
    whole = f"SpecFit's speed-up ({timed}), embedded and real routes"
    sheets = {
        "": figure_4_sheet(halves, whole),
        "without_degenerate": figure_4_sheet(
            [half.without_degenerate() for half in halves], f"{whole}; degenerate outputs left out"
        ),
        "trends": trends_sheet(halves),
        "misses": misses_sheet(halves),
        "bounds": bounds_sheet(halves),
    }
    studies = {
        "rivals": rivals_sheet,
        "routes": routes_sheet,
        "policies": policies_sheet,
        "map": map_sheet,
    }
    sheets |= {n: make(halves) for n, make in studies.items() if all(h.has(n) for h in halves)}
    if all(len(dialled(half)) > 1 for half in halves):
        sheets |= {"acceptance": dial_sheet(halves), "break_even": break_even_sheet(halves)}
    stamp = reader.stamp(rows, SUITE, extra=[HALF_REAL, degenerate_line(halves)])
    title = "Half-real: figure 4 and more under the real router's routes"
    return Table("table_real_geometry", title, sheets, stamp)


def figure_acceptance(reader: ResultsReader) -> Drawing:
    """What SpecFit gains over EAGLE-3 against what EAGLE-3 commits a cycle, one point a request."""
    halves = documents(reader)
    clouds = [cloud(half, slots) for half in halves for slots in ENDS]
    dials = [dial_line(half, slots) for half in halves for slots in ENDS]
    rows = [m.rows for m in reader.members(SUITE, kind="replay")]
    extra = [
        HALF_REAL,
        "Points: one a request, gain of SpecFit over EAGLE-3, both with the same cache; real "
        "routes: the median over graftings and seeds. Lines: trees of a stated process at real "
        "routes, band over graftings. Crosses: degenerate outputs. Grey: published heads of this "
        f"family ({HEADS[0]:g} to {HEADS[1]:g}).",
    ]
    stamp = reader.stamp(rows, SUITE, extra=extra)
    title = f"Gain over EAGLE-3 + cache against acceptance (times {words_of(rows)})"
    return Drawing(
        "figure_acceptance",
        title,
        5.6,
        stamp,
        acceptance_in_words(clouds),
        lambda sheet: paint_acceptance(sheet, clouds, dials),
    )


@dataclass(frozen=True)
class DialLine:
    """Gain over EAGLE-3 along the dial: the median over graftings, with the least and greatest."""

    workload: Workload
    slots: int
    committed: Sequence[float]
    gains: Sequence[Cell]


def dial_line(half: HalfReal, slots: int) -> DialLine:
    values = dialled(half)
    gains = [
        ranged([dial_gain(half, *PAIRS[0], slots, value, g) for g in half.graftings])
        for value in values
    ]
    return DialLine(half.workload, slots, [realised(half, value) for value in values], gains)


def acceptance_in_words(clouds: Sequence[Cloud]) -> str:
    parts = []
    for one in clouds:
        low, high = one.committed < HEADS[0], one.committed >= HEADS[1]
        told = [
            f"{word} {np.median(values[where]):.2f}"
            for values, kind in ((one.embedded, EMBEDDED), (one.real, "real"))
            for where, word in (
                (low, f"{kind} below {HEADS[0]:g}"),
                (high, f"{kind} from {HEADS[1]:g}"),
            )
            if where.any()
        ]
        parts.append(f"{one.workload.short}, {one.slots} slots: {', '.join(told)}")
    return f"Median gain by EAGLE-3's committed tokens a cycle. {'; '.join(parts)}."


MARKERS = {"gsm8k": "o", "cnn_dailymail": "s"}
ROUTED = {EMBEDDED: "#0072B2", "real": "#D55E00"}


def paint_acceptance(sheet: Any, clouds: Sequence[Cloud], dials: Sequence[DialLine]) -> None:
    axes: Any = sheet.subplots(1, len(ENDS), sharey=True, squeeze=False)[0]
    for panel, slots in zip(axes, ENDS, strict=True):
        panel.axvspan(*HEADS, color="0.5", alpha=0.2, lw=0, zorder=0)
        panel.axhline(1, color="0.3", lw=0.8)
        for one in (c for c in clouds if c.slots == slots):
            for kind, gains in ((EMBEDDED, one.embedded), ("real", one.real)):
                _points(panel, one, kind, gains)
        for line in (d for d in dials if d.slots == slots):
            _dial(panel, line)
        panel.set_title(f"{slots} slots")
        panel.set_xlabel("EAGLE-3's committed tokens a cycle")
    axes[0].set_ylabel("SpecFit over EAGLE-3 + cache, times")
    handles, labels = axes[0].get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    sheet.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=3)


def _points(panel: Any, one: Cloud, kind: str, gains: NDArray[np.float64]) -> None:
    label = f"{one.workload.short}, {kind} routes"
    fill = ROUTED[kind] if kind == EMBEDDED else "none"
    whole = ~one.degenerate
    looks = {"s": 16, "alpha": 0.75, "linewidths": 0.8}
    panel.scatter(
        one.committed[whole],
        gains[whole],
        marker=MARKERS.get(one.workload.stands_for or "", "D"),
        facecolors=fill,
        edgecolors=ROUTED[kind],
        label=label,
        **looks,
    )
    if one.degenerate.any():
        panel.scatter(one.committed[~whole], gains[~whole], marker="x", color=ROUTED[kind], **looks)


def _dial(panel: Any, line: DialLine) -> None:
    if not line.committed:
        return
    style = "-" if line.workload.stands_for == "gsm8k" else "--"
    values, low, high = ([getattr(g, n) for g in line.gains] for n in ("value", "low", "high"))
    panel.fill_between(line.committed, low, high, color=ROUTED["real"], alpha=0.12, lw=0)
    label = f"dial, {line.workload.short}, real routes"
    panel.plot(line.committed, values, style, color=ROUTED["real"], lw=1.3, label=label)
