"""Figure 4 under real routes (half-real): gain against slots, embedded and under each grafting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specfit.report.artifacts.half_real import (
    ALL,
    EMBEDDED,
    SLOTS,
    HalfReal,
    embedded_gain,
    gain,
    over_all,
    over_seeds,
    slots_named,
)
from specfit.report.artifacts.real_geometry import HALF_REAL, SUITE, degenerate_line, documents
from specfit.report.artifacts.slots import gains_of
from specfit.report.figures import Drawing, paper_handle
from specfit.report.footer import words_of
from specfit.report.reader import ResultsReader
from specfit.report.styles import PAPER, Workload
from specfit.report.table_format import Cell, factor

BASES = {"eagle3_cache": "EAGLE-3 + cache", "ar_cache": "AR + cache"}
COLOURS = ("#D55E00", "#E69F00", "#009E73", "#56B4E9", "#CC79A7")
MARKERS = ("s", "D", "^", "v", "P")


@dataclass(frozen=True)
class GainLine:
    """SpecFit's gain over `base` at each of SLOTS; bounds are an interval or a range."""

    workload: Workload
    base: str
    routes: str  # EMBEDDED, a grafting, or ALL
    gains: Sequence[Cell]


def gain_lines(half: HalfReal) -> list[GainLine]:
    """Embedded, each grafting over its seeds, and all of them together, over each base."""
    found = []
    for base in BASES:
        pairs = [("specfit", base, slots) for slots in SLOTS]
        lines = {EMBEDDED: [embedded_gain(half, *pair) for pair in pairs]}
        for graft in half.graftings:
            lines[graft] = [over_seeds(half, graft, gain(half, *pair)) for pair in pairs]
        lines[ALL] = [over_all(half, gain(half, *pair)) for pair in pairs]
        found += [GainLine(half.workload, base, routes, cells) for routes, cells in lines.items()]
    return found


def figure_real_geometry(reader: ResultsReader) -> Drawing:
    """Half-real: figure 4 under embedded routes and under each grafting of real ones."""
    halves = documents(reader)
    lines = [line for half in halves for line in gain_lines(half)]
    rows = [m.rows for m in reader.members(SUITE, kind="replay")]
    seeds = max(len(half.seeds(graft)) for half in halves for graft in half.graftings)
    extra = [
        HALF_REAL,
        "Embedded: bars are 95 % intervals. A grafting: the median seed, bars least and greatest "
        f"over its seeds (up to {seeds}). Grey: least and greatest over all graftings and seeds.",
        degenerate_line(halves),
    ]
    return Drawing(
        "figure_real_geometry",
        f"Figure 4 under real routes (times {words_of(rows)})",
        5.6,
        reader.stamp(rows, SUITE, extra=extra),
        in_words(lines),
        lambda sheet: paint(sheet, lines),
    )


def in_words(lines: Sequence[GainLine]) -> str:
    """The gains over EAGLE-3, embedded and real, for who cannot see them."""
    told = []
    for line in lines:
        if line.base == "eagle3_cache" and line.routes in (EMBEDDED, ALL):
            gains = ", ".join(
                f"{factor(cell.value)} at {slots_named(slots)}"
                for slots, cell in zip(SLOTS, line.gains, strict=True)
                if cell.value is not None
            )
            told.append(f"{line.workload.short}, {line.routes}: {gains}")
    return f"SpecFit's speed over EAGLE-3 + cache against slots. {'; '.join(told)}."


def paint(sheet: Any, lines: Sequence[GainLine]) -> None:
    workloads = list(dict.fromkeys(line.workload for line in lines))
    axes: Any = sheet.subplots(len(BASES), len(workloads), sharex=True, sharey="row", squeeze=False)
    labels = [str(slots) if slots else "no cache" for slots in SLOTS]
    for column, workload in enumerate(workloads):
        for row, (base, name) in enumerate(BASES.items()):
            panel = axes[row][column]
            _panel(panel, [one for one in lines if (one.workload, one.base) == (workload, base)])
            panel.axhline(1, color="0.3", lw=0.8)
            if column == 0:
                panel.set_ylabel(f"SpecFit's speed over\n{name}, times")
        _paper(axes[0][column], workload)
        axes[0][column].set_title("\n".join(workload.lines))
        axes[-1][column].set_xlabel("slots per layer, fewer to the right")
        axes[-1][column].set_xticks(range(len(SLOTS)), labels)
    handles, names = axes[0][0].get_legend_handles_labels()
    sheet.legend(
        [*handles, paper_handle()], [*names, PAPER.label], loc="outside lower center", ncols=4
    )


def _panel(panel: Any, lines: Sequence[GainLine]) -> None:
    places = range(len(SLOTS))
    for nudge, line in enumerate(lines):
        values, lows, highs = (
            [getattr(c, n) for c in line.gains] for n in ("value", "low", "high")
        )
        lows = [v if low is None else low for v, low in zip(values, lows, strict=True)]
        highs = [v if high is None else high for v, high in zip(values, highs, strict=True)]
        if line.routes == ALL:
            panel.fill_between(
                places, lows, highs, color="0.5", alpha=0.22, lw=0, zorder=0, label=ALL
            )
            continue
        real = nudge - 1
        colour, marker = ("#000000", "o") if real < 0 else (COLOURS[real], MARKERS[real])
        panel.errorbar(
            [at + 0.05 * (nudge - 2) for at in places],
            values,
            yerr=[
                [v - low for v, low in zip(values, lows, strict=True)],
                [high - v for v, high in zip(values, highs, strict=True)],
            ],
            color=colour,
            marker=marker,
            ms=4.5,
            capsize=2,
            lw=1.8 if real < 0 else 1.1,
            elinewidth=0.8,
            label=EMBEDDED if real < 0 else f"real, {line.routes}",
        )


def _paper(panel: Any, workload: Workload) -> None:
    """The published gains over EAGLE-3 at the same slots."""
    for claim in gains_of(workload, "speed"):
        at = SLOTS.index(claim.slots)
        panel.plot(at, claim.value, PAPER.marker, mfc="white", mec=PAPER.colour, ms=7)
