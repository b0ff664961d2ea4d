"""Where speculation pays and what does best, over the link and the fixed cost of a forward.

python scripts/figure_map.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from drawing import Drawing
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import SubFigure

from specfit.report.analysis.paying import LETTERS, MOVES, Atlas, Panel, atlas_of
from specfit.report.artifact import main
from specfit.report.clock_check import probed_places
from specfit.report.footer import INTERVALS, words_of
from specfit.report.reader import ResultsReader
from specfit.report.styles import WORKLOADS

SUITE = "map"
COLOURS = "PuOr_r"  # readable without colour too: AR's side is dark, and every cell has a letter
MARKS = {
    "paper_main": ("o", "the paper's operating point (paper_main)"),
    "rtx4090": ("s", "its RTX 4090 (rtx4090)"),
}
DARK = 0.18  # of the colours' range from either end: letters are white there
Places = dict[str, tuple[float, float]]


def make(reader: ResultsReader) -> Drawing:
    rows = [member.rows for member in reader.members(SUITE, kind="replay")]
    found = reader.suites(SUITE)[0]
    cells = [cell for cell in found.suite.cells if cell.kind == "bench"]
    atlases = [atlas_of(found.document(cell.label)) for cell in cells]
    probed = probed_places(reader.results, rows[0].info.billed)
    extra = [
        "Every cell is a replay; A, E or S is fastest (AR + cache, EAGLE-3 + cache, SpecFit), in "
        "grey where the gain's interval holds 1. Colour: the best drafting system over AR whose "
        "experts move alike. Learned routes, token table for AR; prefetching keeps a slot less.",
        INTERVALS.replace("Brackets", "Intervals"),
    ]
    stamp = reader.stamp(rows, SUITE, extra=extra)
    title = f"Does speculation pay here? (times {words_of(rows)})"
    return Drawing(
        "figure_map", title, 8.6, stamp, spoken(atlases), lambda s: paint(s, atlases, probed)
    )


def spoken(atlases: list[Atlas]) -> str:
    parts = []
    for atlas in atlases:
        for panel in atlas.panels.values():
            spots = list(panel.spots.values())
            share = sum(spot.best != "ar_cache" for spot in spots) / len(spots)
            where = f"{WORKLOADS[atlas.workload]}, {MOVES[panel.prefetch]}, {panel.slots} slots"
            parts.append(f"{where}: {100 * share:.0f} %")
    return f"Share of the map on which drafting is faster than AR. {'; '.join(parts)}."


def paint(sheet: SubFigure, atlases: list[Atlas], probed: Places) -> None:
    slots, moves = atlases[0].slots, list(MOVES)
    lines = [(atlas, move) for atlas in atlases for move in moves]
    axes: Any = sheet.subplots(len(lines), len(slots), sharex=True, sharey=True, squeeze=False)
    gains = [
        s.gain.value or 1.0 for a in atlases for p in a.panels.values() for s in p.spots.values()
    ]
    norm = TwoSlopeNorm(1.0, min(0.9, *gains), max(1.1, *gains))
    for row, (atlas, move) in enumerate(lines):
        for column, count in enumerate(slots):
            panel = axes[row][column]
            _draw(panel, atlas, atlas.panels[move, count], norm)
            _mark(panel, atlas, probed)
            if row == 0:
                panel.set_title(f"{count} slots")
        axes[row][0].set_ylabel(
            f"{WORKLOADS[atlas.workload]}'s place\n{MOVES[move]}\nfixed cost, ms"
        )
    for panel in axes[-1]:
        panel.set_xlabel("link, GB/s")
    sheet.colorbar(
        ScalarMappable(norm, COLOURS),
        ax=axes,
        label="best drafting system over AR, times",
        aspect=50,
    )
    handles, labels = axes[0][0].get_legend_handles_labels()
    sheet.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def _draw(axes: Any, atlas: Atlas, panel: Panel, norm: TwoSlopeNorm) -> None:
    """Values are evenly spaced; a letter per cell."""
    spots = [[panel.spots[f, g] for g in atlas.link_gbps] for f in atlas.fixed_ms]
    gains = np.array([[spot.gain.value for spot in line] for line in spots], dtype=np.float64)
    axes.imshow(gains, origin="lower", aspect="auto", cmap=COLOURS, norm=norm)
    for y, line in enumerate(spots):
        for x, spot in enumerate(line):
            sure = spot.is_clear
            on_dark = not DARK < norm(spot.gain.value) < 1 - DARK
            sure_colour, other = ("white", "0.75") if on_dark else ("black", "0.55")
            looks = {
                "color": sure_colour if sure else other,
                "weight": "bold" if sure else "normal",
            }
            axes.text(x, y, LETTERS[spot.best], ha="center", va="center", fontsize=5.5, **looks)
    axes.set_xticks(range(len(atlas.link_gbps)), [f"{g:g}" for g in atlas.link_gbps], fontsize=7)
    axes.set_yticks(range(len(atlas.fixed_ms)), [f"{f:g}" for f in atlas.fixed_ms], fontsize=7)
    axes.grid(False)


def _mark(axes: Any, atlas: Atlas, probed: Places) -> None:
    for name, (fixed_ms, link_gbps) in {**atlas.profiles, **probed}.items():
        marker, label = MARKS.get(name, ("^", name))
        x = np.interp(np.log(link_gbps), np.log(atlas.link_gbps), range(len(atlas.link_gbps)))
        y = np.interp(np.log(fixed_ms), np.log(atlas.fixed_ms), range(len(atlas.fixed_ms)))
        axes.plot(
            x,
            y,
            marker,
            ms=11,
            mfc="none",
            mec="black",
            mew=1.2,
            ls="none",
            label=label,
            clip_on=False,
        )


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
