"""Figure 4: what SpecFit gains over EAGLE-3 as the cache shrinks, and out of what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from specfit.report import robustness
from specfit.report.artifact import Table
from specfit.report.artifacts.systems import CONTROL_NOTE, PAPER_COLUMNS, headed, paper_row
from specfit.report.bounds import RESIDENT_NOTE, resident, resident_label
from specfit.report.figures import Drawing, paper_handle, series
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Interval
from specfit.report.live_check import check_live
from specfit.report.pairs import Pairs, Ratio, pairs_of, pairs_sheet
from specfit.report.paper_values import Claim, Trend, claims_of, trends
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.styles import PAPER, Workload, style_of
from specfit.report.suite_runs import SuiteRun, one, pick
from specfit.report.table_format import DASH, Cell, Entry, Sheet, change, exact, factor, measured
from specfit.report.verdict import OTHER, effect, holds, passes, verdict
from specfit.storage.rows import RunRows

QUANTITIES_SHOWN = ("speed", "cycle", "committed")


AGAINST = {"ar_cache": "eagle3_cache", "specfit": "eagle3_cache", "specfit_own": "eagle3_cache"}


"""Without a cache the rival is vanilla EAGLE-3."""


@dataclass(frozen=True)
class Point:
    """A system at one slot count over EAGLE-3 at the same, in every shown quantity."""

    workload: Workload
    system: str
    slots: int
    ratios: dict[str, Interval]


def points(members: Sequence[SuiteRun]) -> list[Point]:
    """By workload, system, and slots from many to none; SpecFit at 0 slots ends both its lines."""
    found = []
    for workload in sorted({m.workload for m in members}, key=lambda w: w.order):
        held = pick(members, workload=workload)
        for system in AGAINST:
            for slots in sorted({m.slots for m in pick(held, system=system)}, reverse=True):
                base = one(held, system=AGAINST[system], slots=slots)
                found.append(_point(one(held, system=system, slots=slots), base, system))
        uncached = one(held, system="specfit_uncached")
        vanilla = one(held, system="eagle3")
        found.append(_point(uncached, vanilla, "specfit"))
    return found


def bounds(members: Sequence[SuiteRun]) -> list[Point]:
    """EAGLE-3 without copies over EAGLE-3 at each slot count."""
    found = []
    for workload in sorted({m.workload for m in members}, key=lambda w: w.order):
        held = pick(members, workload=workload)
        cached = {m.slots for m in pick(held, system=BOUND)}
        for base in [one(held, system=BOUND, slots=slots) for slots in sorted(cached)[::-1]]:
            found.append(_point(replace(base, rows=resident(base.rows)), base, BOUND))
    return found


def _point(member: SuiteRun, base: SuiteRun, system: str) -> Point:
    ratios = {name: QUANTITIES[name].ratio(member.rows, base.rows) for name in QUANTITIES_SHOWN}
    return Point(member.workload, system, member.slots, ratios)


BOUND = "eagle3_cache"
"""The system that figure 4 divides by, and whose resident rows bound its gains."""
FITS_EXACTLY = (
    "Without a cache the modelled clock is linear in nodes and misses, so that the cost model is "
    "exact there by construction."
)


def slots_sheet(found: Sequence[Point], timed: str, resident_points: Sequence[Point] = ()) -> Sheet:
    columns = (
        "workload",
        "system",
        "slots",
        *(headed(q, timed, ratio=True) for q in QUANTITIES_SHOWN),
    )
    rows: list[tuple[Entry, ...]] = [
        (
            p.workload.label,
            style_of(p.system).label,
            p.slots,
            *(measured(p.ratios[q], change) for q in QUANTITIES_SHOWN),
        )
        for p in found
    ]
    rows += [
        (
            p.workload.label,
            resident_label(p.system),
            p.slots,
            *(measured(p.ratios[q], change) for q in QUANTITIES_SHOWN),
        )
        for p in resident_points
    ]
    title = "Against EAGLE-3 at the same slots (at 0: vanilla EAGLE-3)"
    note = f"{RESIDENT_NOTE} {FITS_EXACTLY}" if resident_points else FITS_EXACTLY
    return Sheet(title, columns, tuple(rows), note)


def slots_paper_sheet(claims: Sequence[Claim], members: Sequence[SuiteRun]) -> Sheet:
    """The paper's gain at each slot count beside ours."""
    columns = ("slots", *PAPER_COLUMNS)
    rows = [
        (claim.slots, *paper_row(claim, _runs(claim, members)))
        for claim in sorted(claims, key=lambda c: (QUANTITIES_SHOWN.index(c.quantity), -c.slots))
    ]
    return Sheet("The paper beside ours", columns, tuple(rows), CONTROL_NOTE)


def _runs(claim: Claim, members: Sequence[SuiteRun]) -> dict[str, RunRows]:
    """At the claim's slots, with the systems that have no cache."""
    held = pick(members, stands_for=claim.workload)
    return {m.system: m.rows for m in reversed(held) if m.slots in (claim.slots, 0)}


# -- trends ----------------------------------------------------------------------------------------


def trends_sheet(members: Sequence[SuiteRun], timed: str) -> Sheet:
    """The gain at fewer slots over the gain at more: the paper's, ours and the control's."""
    rows = []
    for workload in sorted({m.workload for m in members}, key=lambda w: w.order):
        held = pick(members, workload=workload)
        for trend in trends():
            row = trend_row(trend, held, timed, workload.stands_for == trend.workload)
            rows.append((workload.label, *row))
    note = (
        "A ratio above 1 for speed (below 1 for the cycle): the gain over EAGLE-3 rises as slots "
        "shrink. Paired by request. The paper's are our arithmetic from its figure 4, which "
        f"is of one workload. {CONTROL_NOTE}"
    )
    return Sheet("Trends", ("workload", *PAPER_COLUMNS), tuple(rows), note)


def trend_row(
    trend: Trend, members: Sequence[SuiteRun], timed: str, is_told: bool
) -> tuple[Entry, ...]:
    """PAPER_COLUMNS; without the paper's value where the workload is not the figure's."""
    claim = trend.claim()
    ours, control = (trend_ratio(trend, members, name) for name in ("specfit", "ar_cache"))
    name = f"{headed(trend.quantity, timed, ratio=True)} over EAGLE-3's"
    words = f"SpecFit: {name}, {_named(trend.fewer)} over {_named(trend.more)}"
    if not is_told:
        return words, DASH, DASH, measured(ours, factor), None, DASH, DASH, DASH
    run = next((m.rows for m in pick(members, system="specfit", slots=trend.more)), None)
    return (
        words,
        claim.where,
        Cell(f"{factor(claim.value)}*", claim.value),
        measured(ours, factor),
        exact(effect(claim, ours)),
        "yes" if ours and holds(ours, claim.value) else "no",
        DASH if control is None else "passes" if passes(claim, control) else "fails",
        verdict(claim, ours, run, control),
    )


def trends_against(members: Sequence[SuiteRun]) -> list[str]:
    """A sentence for every published trend that goes the other way here."""
    lines = []
    for trend in trends():
        claim, held = trend.claim(), pick(members, stands_for=trend.workload)
        ours, control = (trend_ratio(trend, held, name) for name in ("specfit", "ar_cache"))
        run = next((m.rows for m in pick(held, system="specfit", slots=trend.more)), None)
        if ours is not None and verdict(claim, ours, run, control) == OTHER:
            words = f"{trend.quantity} over EAGLE-3's, {_named(trend.fewer)} over"
            told = (
                f"ours {measured(ours, factor).text}, the paper's {factor(claim.value)} ({OTHER})"
            )
            lines.append(f"{held[0].workload.short}: {words} {_named(trend.more)}: {told}")
    return lines


def _named(slots: int) -> str:
    return f"{slots} slots" if slots else "no cache"


def trend_ratio(trend: Trend, members: Sequence[SuiteRun], system: str) -> Interval | None:
    """(system over EAGLE-3 at fewer slots) over (the same at more), resampled by request; None
    where a run is not among the members."""
    uncached = {"specfit": "specfit_uncached", "ar_cache": "ar", "eagle3_cache": "eagle3"}
    runs = []
    for slots in (trend.fewer, trend.more):
        for name in (system, "eagle3_cache"):
            held = pick(members, system=name if slots else uncached[name], slots=slots)
            if not held:
                return None
            runs.append(min(held, key=lambda m: m.repeat).rows)
    return QUANTITIES[trend.quantity].ratio_of_ratios(*runs)


def robust_sheet(members: Sequence[SuiteRun]) -> Sheet:
    """SpecFit over EAGLE-3 + cache at each slot count, without single requests."""
    rows = []
    for workload in sorted({m.workload for m in members}, key=lambda w: w.order):
        held = pick(members, workload=workload)
        for slots in sorted({m.slots for m in pick(held, system="eagle3_cache")}, reverse=True):
            ours, base = (one(held, system=s, slots=slots) for s in ("specfit", "eagle3_cache"))
            rows.append(((workload.label, slots), ours.rows, base.rows))
    return robustness.sheet(rows, ("workload", "slots"))


def over_pairs(pairs: Pairs, timed: str) -> dict[str, Sheet]:
    """SpecFit's decode speed over EAGLE-3's at each slot count, by pair."""
    lines = [
        ((p.workload.label, p.slots), gain_at(p.workload, p.slots))
        for p in points(pairs.shown)
        if p.system == "specfit"
    ]
    title = f"SpecFit against EAGLE-3 at the same slots, by pair: {headed('speed', timed, True)}"
    return pairs_sheet(pairs, ("workload", "slots"), lines, change, title)


def gain_at(workload: Workload, slots: int) -> Ratio:
    """SpecFit over EAGLE-3 with as many slots; without a cache, over vanilla EAGLE-3."""

    def ratio(members: Sequence[SuiteRun]) -> Interval | None:
        found = (p for p in points(pick(members, workload=workload)) if p.system == "specfit")
        return next((p.ratios["speed"] for p in found if p.slots == slots), None)

    return ratio


def table_figure_4(reader: ResultsReader) -> Table:
    """The numbers of figure 4 (sec. 4.4): SpecFit over EAGLE-3 at each slot count."""
    members = reader.members("figure_4")
    rows = [m.rows for m in members]
    sheets = {
        "": slots_sheet(points(members), words_of(rows), bounds(members)),
        "paper": slots_paper_sheet(claims_of("figure_4"), members),
        "robust": robust_sheet(members),
        "trends": trends_sheet(members, words_of(rows)),
        **over_pairs(pairs_of(reader, "figure_4"), words_of(rows)),
    }
    stamp = reader.stamp(rows, "figure_4", extra=[INTERVALS])
    live = check_live(members, reader.members("figure_4", kind="run")).sentence
    title = "Figure 4: gain against slots"
    return Table("table_figure_4", title, sheets, stamp, [live] if live else [])


TITLES = {
    "speed": "speed over\nEAGLE-3 + cache, %",
    "cycle": "cycle time over\nEAGLE-3 + cache, %",
    "committed": "committed / cycle over\nEAGLE-3 + cache, %",
}
LEGEND = {"specfit_own": "SpecFit, refitted at this slot count"}


def figure_4(reader: ResultsReader) -> Drawing:
    """Figure 4 (sec. 4.4): gain over EAGLE-3 against slots, cycle time, committed tokens."""
    members = reader.members("figure_4")
    rows = [m.rows for m in members]
    found = points(members)
    stamp = reader.stamp(rows, "figure_4", extra=[INTERVALS.replace("Brackets", "Bars")])
    title = f"Figure 4: against EAGLE-3 at the same slots (times {words_of(rows)})"
    gains = ", ".join(
        f"{p.workload.short}, {p.slots} slots {percent(p.ratios['speed'].value):+.0f} %"
        for p in found
        if p.system == "specfit"
    )
    alt = f"Decode gain, cycle time and committed tokens against slots. SpecFit's gain: {gains}."
    return Drawing("figure_4", title, 5.6, stamp, alt, lambda sheet: paint(sheet, found))


def percent(ratio: float | None) -> float:
    return 100 * ((ratio or 1.0) - 1)


def changes(interval: Interval) -> Interval:
    """A ratio as a change in percent."""
    low, high = (None if x is None else percent(x) for x in (interval.low, interval.high))
    return Interval(percent(interval.value), low, high, interval.n)


def paint(sheet: Any, found: list[Point]) -> None:
    workloads = list(dict.fromkeys(p.workload for p in found))
    slots = sorted({p.slots for p in found}, reverse=True)
    place = {count: at for at, count in enumerate(slots)}
    axes: Any = sheet.subplots(
        len(QUANTITIES_SHOWN), len(workloads), sharex=True, sharey="row", squeeze=False
    )
    for column, workload in enumerate(workloads):
        for row, quantity in enumerate(QUANTITIES_SHOWN):
            panel = axes[row][column]
            _lines(panel, [p for p in found if p.workload == workload], quantity, place)
            _paper(panel, workload, quantity, place)
            panel.axhline(0, color="0.3", lw=0.8)
            if column == 0:
                panel.set_ylabel(TITLES[quantity])
        axes[0][column].set_title("\n".join(workload.lines))
        axes[-1][column].set_xlabel("slots per layer, fewer to the right")
        labels = [str(count) if count else "no cache" for count in slots]
        axes[-1][column].set_xticks(range(len(slots)), labels)
    handles = axes[0][0].get_legend_handles_labels()
    sheet.legend(
        [*handles[0], paper_handle()],
        [*handles[1], PAPER.label],
        loc="outside lower center",
        ncols=4,
    )


def _lines(panel: Any, found: list[Point], quantity: str, place: dict[int, int]) -> None:
    for nudge, system in enumerate(dict.fromkeys(p.system for p in found)):
        line = [p for p in found if p.system == system]
        at = [place[p.slots] + 0.05 * (nudge - 1) for p in line]
        name = LEGEND.get(system, style_of(system).label)
        gains = [changes(p.ratios[quantity]) for p in line]
        series(panel, at, gains, style_of(system), label=name)


def _paper(panel: Any, workload: Workload, quantity: str, place: dict[int, int]) -> None:
    for claim in claims_of("figure_4"):
        if (claim.workload, claim.quantity) == (
            workload.stands_for,
            quantity,
        ) and claim.slots in place:
            panel.plot(
                place[claim.slots],
                percent(claim.value),
                PAPER.marker,
                mfc="white",
                mec="black",
                ms=7,
            )
