"""Where speculation pays: the documents that the study `paying` leaves, point by point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from specfit.report.artifact import Table
from specfit.report.clock_check import probed_places
from specfit.report.figures import EDGE, ON_DARK, ON_LIGHT, Drawing, colours, sign, tie
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Clusters, Floats, Interval, paired_ratio, ratio_interval
from specfit.report.many import RATE, discoveries
from specfit.report.reader import ResultsReader
from specfit.report.styles import Workload, style_of, workload_of
from specfit.report.table_format import Cell, Entry, Sheet, factor, measured

PLAIN = "ar_cache"


"""What speculation has to beat: plain decoding whose experts move in the same way."""


LETTERS = {"ar_cache": "A", "eagle3_cache": "E", "specfit": "S"}


MOVES = {"off": "on demand", "layer": "prefetching"}


@dataclass(frozen=True)
class Spot:
    """One link and one fixed cost. `gain` is the best drafting system's over PLAIN."""

    fixed_ms: float
    link_gbps: float
    speeds: Mapping[str, Interval]  # tokens/s by system
    drafting: str
    gain: Interval
    is_clear: bool = False  # at the map's false discovery rate

    @property
    def best(self) -> str:
        return self.drafting if (self.gain.value or 0) > 1 else PLAIN


@dataclass(frozen=True)
class Panel:
    workload: Workload
    prefetch: str
    slots: int
    spots: Mapping[tuple[float, float], Spot]  # (fixed_ms, link_gbps)


@dataclass(frozen=True)
class Atlas:
    """One workload: its panels, the grid they share, and the profiles on it."""

    workload: Workload
    fixed_ms: tuple[float, ...]
    link_gbps: tuple[float, ...]
    slots: tuple[int, ...]
    profiles: Mapping[str, tuple[float, float]]
    panels: Mapping[tuple[str, int], Panel]  # (prefetch, slots)


def atlas_of(document: Mapping[str, Any]) -> Atlas:
    workload, grid = workload_of(document["info"]), document["grid"]
    tokens = np.array(document["committed_tokens"], dtype=np.float64)
    clusters = document.get("clusters")
    groups: dict[tuple[str, int], dict[tuple[float, float], dict[str, Floats]]] = {}
    for p in document["points"]:
        panel = groups.setdefault((p["prefetch"], p["slots"]), {})
        spot = panel.setdefault((p["fixed_ms"], p["link_gbps"]), {})
        spot[p["system"]] = np.stack([tokens, np.array(p["decode_ns"], np.float64)], axis=1)
    found = {
        (key, at): _spot(*at, systems, clusters)
        for key, spots in groups.items()
        for at, systems in spots.items()
    }
    clear = discoveries([spot.gain for spot in found.values()])
    settled = {
        key: replace(spot, is_clear=is_clear)
        for (key, spot), is_clear in zip(found.items(), clear, strict=True)
    }
    panels = {
        key: Panel(workload, *key, {at: settled[key, at] for at in spots})
        for key, spots in groups.items()
    }
    profiles = {n: (v["fixed_ms"], v["link_gbps"]) for n, v in document["profiles"].items()}
    fixed_ms, link_gbps, slots = (tuple(grid[n]) for n in ("fixed_ms", "link_gbps", "slots"))
    return Atlas(workload, fixed_ms, link_gbps, slots, profiles, panels)


def _spot(
    fixed_ms: float, link_gbps: float, systems: Mapping[str, Floats], clusters: Clusters
) -> Spot:
    """`systems` [n, 2] tokens and nanoseconds per request."""
    drafting = max((s for s in systems if s != PLAIN), key=lambda s: -systems[s][:, 1].sum())
    gain = paired_ratio(systems[drafting], systems[PLAIN], clusters=clusters)
    speeds = {s: ratio_interval(1e9 * v[:, 0], v[:, 1], clusters) for s, v in systems.items()}
    return Spot(fixed_ms, link_gbps, speeds, drafting, gain)


# -- tables ----------------------------------------------------------------------------------------


def profile_sheet(atlases: Sequence[Atlas], timed: str) -> Sheet:
    """The answer at every profile that lies on the grid."""
    systems = list(LETTERS)
    columns = ["workload", "profile", "experts", "slots"]
    columns += [f"{style_of(s).label}, tokens/s ({timed})" for s in systems]
    columns += ["best", "best drafting over AR alike"]
    rows: list[tuple[Entry, ...]] = []
    for atlas in atlases:
        for name, at in atlas.profiles.items():
            for panel in atlas.panels.values():
                if at in panel.spots:
                    spot = panel.spots[at]
                    line: list[Entry] = [atlas.workload.label, name, MOVES[panel.prefetch]]
                    line += [panel.slots, *(measured(spot.speeds[s]) for s in systems)]
                    rows.append((*line, style_of(spot.best).label, measured(spot.gain, factor)))
    note = (
        "Prefetching systems keep one slot less, so that every system of a line needs the same "
        "memory; AR prefetches by the token table, the others by learned routes."
    )
    return Sheet("At the profiles of the package", tuple(columns), tuple(rows), note)


def share_sheet(atlases: Sequence[Atlas]) -> Sheet:
    """How much of the grid each system takes, and what the gain is at its ends."""
    columns = ["workload", "experts", "slots", *(style_of(s).label for s in LETTERS)]
    columns += ["undecided", "least gain", "greatest gain"]
    rows = []
    for atlas in atlases:
        for panel in atlas.panels.values():
            rows.append(_share_line(atlas, panel))
    note = (
        "Points of the grid at which each system is fastest; undecided: of these, where the best "
        "drafting system's gain over AR (experts moved alike) is not clear of 1 at a false "
        f"discovery rate of {100 * RATE:.0f} % over the workload's map (Benjamini-Hochberg). "
        f"{CHOSEN}"
    )
    return Sheet("Of the whole map", tuple(columns), tuple(rows), note)


CHOSEN = "Which system drafts best at a point is chosen on the text that it is shown on."


def _share_line(atlas: Atlas, panel: Panel) -> tuple[Entry, ...]:
    spots = list(panel.spots.values())
    counts = [sum(spot.best == s for spot in spots) for s in LETTERS]
    by_gain = sorted(spots, key=lambda spot: spot.gain.value or 0)
    ends = [_end(spot) for spot in (by_gain[0], by_gain[-1])]
    head: list[Entry] = [atlas.workload.label, MOVES[panel.prefetch], panel.slots]
    return (*head, *counts, sum(not spot.is_clear for spot in spots), *ends)


def _end(spot: Spot) -> Cell:
    told = measured(spot.gain, factor).text
    return Cell(f"{told} at {spot.fixed_ms:g} ms, {spot.link_gbps:g} GB/s", is_number=False)


SUITE = "map"


def table_map(reader: ResultsReader) -> Table:
    """Does speculation pay: at the package's profiles, and over the whole map."""
    rows = [member.rows for member in reader.members(SUITE, kind="replay")]
    found = reader.suites(SUITE)[0]
    cells = [cell for cell in found.suite.cells if cell.kind == "bench"]
    atlases = [atlas_of(found.document(cell.label)) for cell in cells]
    sheets = {"": profile_sheet(atlases, words_of(rows)), "shares": share_sheet(atlases)}
    stamp = reader.stamp(rows, SUITE, extra=[INTERVALS])
    return Table("table_map", "Does speculation pay?", sheets, stamp)


COLOURS = "PuOr_r"  # readable without colour too: AR's side is dark, and every cell has a letter


MARKS = {
    "paper_main": ("o", "the paper's operating point (paper_main)"),
    "rtx4090": ("s", "its RTX 4090 (rtx4090)"),
}


DARK = 0.18  # of the colours' range from either end: letters are white there


Places = dict[str, tuple[float, float]]


def figure_map(reader: ResultsReader) -> Drawing:
    """Where speculation pays and what does best, over the link and the fixed cost of a forward."""
    rows = [member.rows for member in reader.members(SUITE, kind="replay")]
    found = reader.suites(SUITE)[0]
    cells = [cell for cell in found.suite.cells if cell.kind == "bench"]
    atlases = [atlas_of(found.document(cell.label)) for cell in cells]
    probed = probed_places(reader.results, rows[0].info.billed)
    extra = [
        "Every cell is a replay. Colour: the best drafting system over AR whose experts move "
        "alike; hatched where it is not clear of 1 at a false discovery rate of "
        f"{100 * RATE:.0f} % over a workload's map. Learned routes, token table for AR; "
        "prefetching keeps a slot less. "
        f"{CHOSEN}",
        INTERVALS.replace("Brackets", "Intervals"),
    ]
    stamp = reader.stamp(rows, SUITE, extra=extra)
    title = f"Does speculation pay here? (times {words_of(rows)})"
    return Drawing(
        "figure_map", title, 11.2, stamp, spoken(atlases), lambda s: paint(s, atlases, probed)
    )


def spoken(atlases: list[Atlas]) -> str:
    parts = []
    for atlas in atlases:
        for panel in atlas.panels.values():
            spots = list(panel.spots.values())
            share = sum(spot.best != "ar_cache" for spot in spots) / len(spots)
            where = f"{atlas.workload.short}, {MOVES[panel.prefetch]}, {panel.slots} slots"
            parts.append(f"{where}: {100 * share:.0f} %")
    return f"Share of the map on which drafting is faster than AR. {'; '.join(parts)}."


def paint(sheet: Any, atlases: list[Atlas], probed: Places) -> None:
    """A summary first: how much of each panel below every system takes."""
    above, below = sheet.subfigures(2, 1, height_ratios=[1, 3.6])
    for part in (above, below):
        part.patch.set_alpha(0)
    _summary(above, atlases)
    _panels(below, atlases, probed)


def _summary(sheet: Any, atlases: list[Atlas]) -> None:
    axes: Any = sheet.subplots(1, len(atlases), sharex=True, sharey=True, squeeze=False)[0]
    for axis, atlas in zip(axes, atlases, strict=True):
        panels = list(atlas.panels.values())
        for row, panel in enumerate(panels):
            left, spots = 0.0, panel.spots.values()
            for system in LETTERS:
                share = 100 * sum(spot.best == system for spot in spots) / len(spots)
                style = style_of(system)
                look = {"color": style.colour, "hatch": style.hatch, "edgecolor": EDGE, "lw": 0.5}
                axis.barh(row, share, left=left, label=None if row else style.label, **look)
                left += share
        axis.set_yticks(
            range(len(panels)), [f"{p.slots} slots, {MOVES[p.prefetch]}" for p in panels]
        )
        axis.set_ylim(len(panels) - 0.5, -0.5)
        axis.set_xlim(0, 100)
        axis.grid(False, axis="y")
        axis.set_title("\n".join(atlas.workload.lines))
        axis.set_xlabel("points of the map at which each is fastest, %")
    handles, labels = axes[0].get_legend_handles_labels()
    sheet.legend(handles, labels, loc="outside upper center", ncols=len(labels))


def _panels(sheet: Any, atlases: list[Atlas], probed: Places) -> None:
    slots, moves = atlases[0].slots, list(MOVES)
    lines = [(atlas, move) for atlas in atlases for move in moves]
    axes: Any = sheet.subplots(len(lines), len(slots), sharex=True, sharey=True, squeeze=False)
    gains = [
        s.gain.value or 1.0 for a in atlases for p in a.panels.values() for s in p.spots.values()
    ]
    norm, shown = colours(COLOURS, 1.0, min(0.9, *gains), max(1.1, *gains))
    for row, (atlas, move) in enumerate(lines):
        for column, count in enumerate(slots):
            panel = axes[row][column]
            _draw(panel, atlas, atlas.panels[move, count], norm)
            _mark(panel, atlas, probed)
            if row == 0:
                panel.set_title(f"{count} slots")
        axes[row][0].set_ylabel(
            f"{atlas.workload.short}\n{MOVES[move]}\nfixed cost per forward, ms"
        )
    for panel in axes[-1]:
        panel.set_xlabel("link, GB/s")
    sheet.colorbar(
        shown,
        ax=axes,
        label="best drafting system over AR, times",
        aspect=50,
    )
    marks = axes[0][0].get_legend_handles_labels()
    letters = [sign(f"${letter}$") for letter in LETTERS.values()]
    sheet.legend(
        [*letters, tie(edgecolor=EDGE, lw=0.5), *marks[0]],
        [*(f"{style_of(name).label} fastest" for name in LETTERS), "undecided", *marks[1]],
        loc="outside lower center",
        ncols=4,
    )
    sheet.supxlabel("fixed cost of a forward: kernel launches, attention", fontsize=7.5)


def _draw(axes: Any, atlas: Atlas, panel: Panel, norm: Any) -> None:
    """Values are evenly spaced; a letter per cell, hatched where nothing is decided."""
    spots = [[panel.spots[f, g] for g in atlas.link_gbps] for f in atlas.fixed_ms]
    gains = np.array([[spot.gain.value for spot in line] for line in spots], dtype=np.float64)
    axes.imshow(gains, origin="lower", aspect="auto", cmap=COLOURS, norm=norm)
    for y, line in enumerate(spots):
        for x, spot in enumerate(line):
            colour = ON_LIGHT if DARK < norm(spot.gain.value) < 1 - DARK else ON_DARK
            looks = {"color": colour, "weight": "bold", "fontsize": 5.5}
            axes.text(x, y, LETTERS[spot.best], ha="center", va="center", **looks)
            if not spot.is_clear:
                axes.add_patch(tie((x - 0.5, y - 0.5), edgecolor=colour, lw=0))
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
            mec=ON_LIGHT,
            mew=1.2,
            ls="none",
            label=label,
            clip_on=False,
        )
