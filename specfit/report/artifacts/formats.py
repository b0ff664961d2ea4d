"""What a format of the experts does to speculation on one card, half-real. Drawn from what the
study of the same name leaves for each workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specfit.report.artifact import Table
from specfit.report.artifacts.half_real import LEADING, SLOTS, HalfReal, ranged, slots_named
from specfit.report.artifacts.paying import COLOURS, DARK, LETTERS, PLAIN
from specfit.report.artifacts.real_geometry import HALF_REAL
from specfit.report.figures import EDGE, ON_DARK, ON_LIGHT, Drawing, colours, series, sign
from specfit.report.footer import Footer, words_of
from specfit.report.intervals import Interval
from specfit.report.reader import ResultsReader
from specfit.report.styles import Style, style_of
from specfit.report.table_format import Cell, Entry, Sheet, exact

SUITE = "formats"
GB = 1e9
SHOWN = ((20.0, 70.0), (12.0, 25.0))
"""Fixed costs, ms, and links, GB/s, of the first sheet."""
NAMES = {"bf16": "bf16", "fp8": "FP8", "int4": "int4"}
LOOKS = {
    "bf16": Style("bf16", "#4D4D4D", "D", line="-."),
    "fp8": Style("FP8", "#0072B2", "^", line="--"),
    "int4": Style("int4", "#D55E00", "o", line="-"),
}
GAINS = (("specfit", "eagle3_cache"), ("specfit", "ar_cache"))
RANGES = "One seed of each grafting; brackets: least and greatest over graftings."


@dataclass(frozen=True)
class Setting:
    """One format at one place of the map or, with the profile's own link, of figure 4."""

    format: str
    study: str  # map or slots
    slots: int
    changes: Mapping[str, Any]

    @property
    def place(self) -> tuple[float, float]:
        """Of the map: ms, GB/s."""
        return self.changes["gpu.fixed_ms"], self.changes["gpu.link_gbps"]

    def ns(self, half: HalfReal, system: str, graft: str) -> int:
        """Decode time of all requests that count."""
        how: dict[str, Any] = {"study": self.study, "changes": self.changes}
        return int(half.ns(system, self.slots, graft, **how).sum())

    def gain(self, half: HalfReal, system: str, base: str) -> Cell:
        """The range over graftings."""
        return ranged([self.ns(half, base, g) / self.ns(half, system, g) for g in half.graftings])

    def best(self, half: HalfReal) -> tuple[str, Cell]:
        """The drafting system that is the faster over all graftings, and its speed over AR."""
        drafting = [name for name in LEADING if name != PLAIN]
        spent = {s: sum(self.ns(half, s, g) for g in half.graftings) for s in drafting}
        fastest = min(drafting, key=lambda name: spent[name])
        return fastest, self.gain(half, fastest, PLAIN)


def settings(half: HalfReal, study: str) -> list[Setting]:
    """In the document's order."""
    found = {}
    for cell in half.document["cells"]:
        if cell["study"] == study:
            key = cell["format"], cell["slots"], str(cell["changes"])
            found[key] = Setting(cell["format"], study, cell["slots"], cell["changes"])
    return list(found.values())


def documents(reader: ResultsReader) -> list[HalfReal]:
    found = reader.suites(SUITE)[0]
    labels = [cell.label for cell in found.suite.cells if cell.label.endswith("/study")]
    return [HalfReal.of(found.document(label)) for label in labels]


# -- sheets ----------------------------------------------------------------------------------------


def fit_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """Speed of AR, and what drafting adds, format by format at the slots that fit."""
    columns = ["workload", "format", "MB an expert", "slots", "fixed cost, ms", "link, GB/s"]
    columns += ["AR + cache, tokens/s", "AR misses, %", "EAGLE-3 over AR", "SpecFit over AR"]
    columns += ["SpecFit over EAGLE-3"]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        sizes: Mapping[str, int] = half.document["expert_bytes"]
        for one in settings(half, "map"):
            if one.place[0] not in SHOWN[0] or one.place[1] not in SHOWN[1]:
                continue
            size = exact(sizes[one.format] / 1e6)
            place = [exact(value) for value in one.place]
            cells = _speeds(half, one)
            head = half.workload.label, NAMES[one.format], size, one.slots
            rows.append((*head, *place, *cells))
    return Sheet("Formats at the slots that fit the card", tuple(columns), tuple(rows), RANGES)


def _speeds(half: HalfReal, one: Setting) -> list[Entry]:
    how: dict[str, Any] = {"study": one.study, "changes": one.changes}
    tokens = int(half.committed[half.kept].sum())
    totals = [half.cell(PLAIN, one.slots, g, **how)["totals"] for g in half.graftings]
    return [
        _spread([1e9 * tokens / one.ns(half, PLAIN, g) for g in half.graftings]),
        _spread([100 * (1 - t["hit_experts"] / t["demand_experts"]) for t in totals]),
        one.gain(half, "eagle3_cache", PLAIN),
        one.gain(half, "specfit", PLAIN),
        one.gain(half, "specfit", "eagle3_cache"),
    ]


def _spread(values: Sequence[float]) -> Cell:
    """The median with the least and the greatest."""
    middle, low, high = float(np.median(values)), min(values), max(values)
    text = f"{middle:.1f}" + (f" [{low:.1f}, {high:.1f}]" if low < high else "")
    return Cell(text, middle, low, high)


def figure_4_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """SpecFit over EAGLE-3 and over AR with the same cache as slots shrink, format by format."""
    columns = ["workload", "format"]
    columns += [
        f"over {style_of(base).label}, {slots_named(slots)}" for _, base in GAINS for slots in SLOTS
    ]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        found = settings(half, "slots")
        for name in NAMES:
            at = {one.slots: one for one in found if one.format == name}
            cells = [at[slots].gain(half, *pair) for pair in GAINS for slots in SLOTS]
            rows.append((half.workload.label, NAMES[name], *cells))
    profile = halves[0].document["profile"]
    note = (
        f"{profile['fixed_ms']:g} ms and {profile['link_gbps']:g} GB/s; SpecFit is fitted at each "
        f"slot count. {RANGES}"
    )
    return Sheet("SpecFit's speed-up by format and slots", tuple(columns), tuple(rows), note)


def map_sheet(halves: Sequence[HalfReal]) -> Sheet:
    """The best drafting system over AR, over link and fixed cost, format by format."""
    links = sorted({one.place[1] for half in halves for one in settings(half, "map")})
    columns = ["workload", "format", "slots", "fixed cost, ms", *(f"{g:g} GB/s" for g in links)]
    rows: list[tuple[Entry, ...]] = []
    for half in halves:
        lines: dict[tuple[str, int, float], dict[float, Cell]] = {}
        for one in settings(half, "map"):
            fixed, link = one.place
            system, gain = one.best(half)
            told = Cell(f"{LETTERS[system]} {gain.text}", gain.value, gain.low, gain.high)
            lines.setdefault((one.format, one.slots, fixed), {})[link] = told
        for (name, slots, fixed), cells in lines.items():
            head = half.workload.label, NAMES[name], slots, exact(fixed)
            rows.append((*head, *(cells[link] for link in links)))
    note = (
        "Speed of the faster of EAGLE-3 (E) and SpecFit (S) over AR with the same cache, at the "
        f"slots that fit the card. {RANGES}"
    )
    return Sheet("Where speculation pays, by format", tuple(columns), tuple(rows), note)


# -- artifacts -------------------------------------------------------------------------------------


def _stamp(reader: ResultsReader, halves: Sequence[HalfReal]) -> tuple[Footer, str]:
    """And the clock in words."""
    rows = [m.rows for m in reader.members(SUITE, kind="replay")]
    card = halves[0].document["memory_bytes"] / GB
    about = [
        HALF_REAL,
        f"Card: {card:.1f} GB; attention and head in bfloat16. Texts, trees and acceptances are "
        "the same in every format: what rounding does to them is not in here.",
    ]
    return reader.stamp(rows, SUITE, extra=about), words_of(rows)


def table_formats(reader: ResultsReader) -> Table:
    """Half-real: bf16, FP8 and int4 experts at the slots that fit one card, and at figure 4's."""
    halves = documents(reader)
    stamp, timed = _stamp(reader, halves)
    sheets = {"": fit_sheet(halves)}
    if any(np.any(half.document["degenerate"]) for half in halves):
        kept = [half.without_degenerate() for half in halves]
        sheets["without_degenerate"] = fit_sheet(kept)
    sheets |= {"figure_4": figure_4_sheet(halves), "map": map_sheet(halves)}
    title = f"Half-real: speculation by format of the experts ({timed})"
    return Table("table_formats", title, sheets, stamp)


def figure_formats(reader: ResultsReader) -> Drawing:
    """Half-real: where speculation pays, and figure 4, by format of the experts."""
    halves = documents(reader)
    stamp, timed = _stamp(reader, halves)
    title = f"Speculation by format of the experts, real routes (times {timed})"
    return Drawing(
        "figure_formats", title, 5.8, stamp, in_words(halves), lambda s: paint(s, halves)
    )


def in_words(halves: Sequence[HalfReal]) -> str:
    parts = []
    for half in halves:
        found = settings(half, "map")
        for name in NAMES:
            gains = [one.best(half)[1].value or 0 for one in found if one.format == name]
            pays = sum(gain > 1 for gain in gains)
            parts.append(
                f"{half.workload.short}, {NAMES[name]}: {pays} of {len(gains)} points, "
                f"{min(gains):.2f} to {max(gains):.2f}"
            )
    return (
        "The best drafting system's speed over AR on a map of link and fixed cost, and where it is "
        f"above 1. {'; '.join(parts)}."
    )


def paint(sheet: Any, halves: Sequence[HalfReal]) -> None:
    """A line a workload: a map a format, then SpecFit over EAGLE-3 against slots."""
    axes: Any = sheet.subplots(len(halves), len(NAMES) + 1, squeeze=False)
    best = [{name: _map(half, name) for name in NAMES} for half in halves]
    gains = [
        cell.value or 1.0 for maps in best for one in maps.values() for _, cell in one.values()
    ]
    norm, shown = colours(COLOURS, 1.0, min(0.9, *gains), max(1.1, *gains))
    for line, half, maps in zip(axes, halves, best, strict=True):
        for panel, name in zip(line, NAMES, strict=False):
            slots = next(one.slots for one in settings(half, "map") if one.format == name)
            _draw_map(panel, maps[name], norm)
            panel.set_title(f"{NAMES[name]}, {slots} slots fit")
            panel.set_xlabel("link, GB/s")
        line[0].set_ylabel(f"{half.workload.short}\nfixed cost per forward, ms")
        _draw_slots(line[-1], half)
    sheet.colorbar(shown, ax=axes[:, :-1], label="best drafting system over AR, times", aspect=40)
    letters = [sign(f"${LETTERS[name]}$") for name in LEADING]
    lines = axes[0][-1].get_legend_handles_labels()
    sheet.legend(
        [*letters, *lines[0]],
        [*(f"{style_of(name).label} fastest" for name in LEADING), *lines[1]],
        loc="outside lower center",
        ncols=6,
    )


Map = Mapping[tuple[float, float], tuple[str, Cell]]
"""(ms, GB/s) -> the best drafting system and its speed over AR."""


def _map(half: HalfReal, name: str) -> Map:
    return {one.place: one.best(half) for one in settings(half, "map") if one.format == name}


def _draw_map(axes: Any, found: Map, norm: Any) -> None:
    """Values are evenly spaced; a letter per cell."""
    fixed, links = (sorted({place[i] for place in found}) for i in (0, 1))
    gains = np.array([[found[f, g][1].value for g in links] for f in fixed], dtype=np.float64)
    axes.imshow(gains, origin="lower", aspect="auto", cmap=COLOURS, norm=norm)
    for y, at in enumerate(fixed):
        for x, link in enumerate(links):
            drafting, gain = found[at, link]
            value = gain.value or 0.0
            colour = ON_LIGHT if DARK < norm(value) < 1 - DARK else ON_DARK
            letter = LETTERS[drafting if value > 1 else PLAIN]
            axes.text(
                x, y, f"{letter}\n{value:.2f}", ha="center", va="center", color=colour, size=6
            )
    axes.set_xticks(range(len(links)), [f"{g:g}" for g in links], fontsize=7)
    axes.set_yticks(range(len(fixed)), [f"{f:g}" for f in fixed], fontsize=7)
    axes.grid(False)


def _draw_slots(axes: Any, half: HalfReal) -> None:
    found = settings(half, "slots")
    for name, look in LOOKS.items():
        at = {one.slots: one.gain(half, *GAINS[0]) for one in found if one.format == name}
        n = len(half.graftings)
        values = [Interval(at[s].value, at[s].low, at[s].high, n) for s in SLOTS]
        series(axes, range(len(SLOTS)), values, look)
    axes.axhline(1, color=EDGE, lw=0.8)
    axes.set_xticks(range(len(SLOTS)), [str(slots) for slots in SLOTS])
    axes.set_xlabel("slots of each layer")
    axes.set_ylabel("SpecFit over EAGLE-3, times")
    axes.set_title("figure 4")
