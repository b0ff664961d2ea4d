"""The sheet of paper that figures share, and the panels that more than one has.

A figure reads and analyses its rows first and returns a `Drawing`, which paints only when its files
are asked for: matplotlib is imported then and nowhere else, so tables need no drawing library.
Colours, markers, hatches and names come from `specfit.report.styles`.

PDF and PNG stand alone: title above, footnote below, white paper. The SVGs are for a page that says
both itself: panels alone, transparent, their ink and paper colours variables that follow a dark
page; in the narrow one, for a phone, the panels stand below each other.
"""

from __future__ import annotations

import io
import os
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from specfit.report.footer import PREVIEW, Footer
from specfit.report.intervals import Interval
from specfit.report.stacked import Stacked
from specfit.report.styles import PAPER, Style, style_of
from specfit.report.table_format import plain

WIDTH, NARROW_WIDTH = 9.0, 4.3  # inches
NARROW = "narrow.svg"
STAMP_CHARACTERS = 190  # of the stamp's font, across WIDTH
STAMP_LINE = 0.115  # inches

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "specfit",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "savefig.dpi": 160,
}
SAVED: dict[str, dict[str, Any]] = {  # no date, no version: the same rows give the same bytes
    "pdf": {"CreationDate": None, "Creator": "specfit", "Producer": None},
    "svg": {"Date": None, "Creator": "specfit"},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Drawing:
    """`paint` fills an empty sheet, a SubFigure of WIDTH x `height` inches; `alt` says in words
    what is seen."""

    name: str
    title: str
    height: float
    stamp: Footer
    alt: str
    paint: Callable[[Any], None]
    folder = "figures"

    @cached_property
    def files(self) -> dict[str, bytes]:
        matplotlib = _matplotlib()
        with matplotlib.rc_context(STYLE):
            whole = self._figure()
            files = {kind: self._saved(whole, kind) for kind in ("pdf", "png")}
            files["svg"] = follow_the_page(self._saved(self._bare(), "svg"))
            files[NARROW] = follow_the_page(self._saved(self._bare(is_narrow=True), "svg"))
            return {f"{self.name}.{kind}": content for kind, content in files.items()}

    def _bare(self, is_narrow: bool = False) -> Any:
        """The panels alone."""
        from matplotlib.figure import Figure

        figure: Any = Figure(figsize=(WIDTH, self.height), layout="constrained")
        figure.patch.set_alpha(0)
        panels = figure.subfigures(1, 1)
        panels.patch.set_alpha(0)
        if is_narrow:
            stacked = Stacked(panels)
            self.paint(stacked)
            figure.set_size_inches(NARROW_WIDTH, self.height * stacked.finish())
        else:
            self.paint(panels)
        for axes in figure.axes:
            axes.patch.set_alpha(0)
        self._watermark(figure)
        return figure

    def _figure(self) -> Any:
        """Title and panels above, the stamp below in a strip of its own."""
        from matplotlib.figure import Figure

        lines = textwrap.wrap(self.stamp.short, STAMP_CHARACTERS)
        strip = STAMP_LINE * (len(lines) + 1)
        figure: Any = Figure(figsize=(WIDTH, self.height + strip), layout="constrained")
        panels, foot = figure.subfigures(2, 1, height_ratios=[self.height, strip])
        panels.suptitle(self.stamp.titled(self.title), fontsize=11, fontweight="bold")
        self.paint(panels)
        foot.text(0.01, 0.95, "\n".join(lines), fontsize=6, color="0.35", va="top")
        self._watermark(figure)
        return figure

    def _watermark(self, figure: Any) -> None:
        if self.stamp.preview:
            figure.text(0.5, 0.5, PREVIEW, fontsize=60, color="0.85", ha="center", va="center")

    def _saved(self, figure: Any, kind: str) -> bytes:
        out = io.BytesIO()
        figure.savefig(out, format=kind, metadata=SAVED[kind])
        return out.getvalue()


PAGE_COLOURS = {"#000000": "ink", "#222222": "ink", "#4d4d4d": "mid", "#ffffff": "paper"}
"""Colours that follow the page. Of a letter on a coloured cell, use ON_DARK or ON_LIGHT."""

ON_DARK, ON_LIGHT = "#fefefe", "#111111"
SVG_STYLE = """<style>
svg { --ink: #000; --mid: #4d4d4d; --paper: #fff; fill: var(--ink); }
@media (prefers-color-scheme: dark) {
svg { --ink: #e4e4e2; --mid: #b4b4b0; --paper: #161616; }
}
</style>"""


def follow_the_page(svg: bytes) -> bytes:
    """Ink, middle grey and paper as variables, which the SVG sets itself where no page does."""
    text = svg.decode()
    for colour, name in PAGE_COLOURS.items():
        text = re.sub(rf"(fill|stroke): {colour}\b", rf"\1: var(--{name})", text)
    end = text.index(">", text.index("<svg ")) + 1
    return f"{text[:end]}\n{SVG_STYLE}{text[end:]}".encode()


def _matplotlib() -> Any:
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    import matplotlib

    matplotlib.use("Agg")
    return matplotlib


EDGE = "#222222"
BAR, BAR_UP, LANE = 0.56, 0.14, 0.32  # of a row: a bar's height, its shift up, the paper's lane


def sign(marker: str) -> Any:
    """A legend's handle for a letter or a mark."""
    from matplotlib.lines import Line2D

    return Line2D([], [], marker=marker, ls="none", color=EDGE, ms=6)


def marker(shape: str, label: str, fill: str = "none") -> Any:
    """A legend's handle for a point of this shape."""
    from matplotlib.lines import Line2D

    return Line2D([], [], marker=shape, ls="none", color=fill, mfc=fill, mec=EDGE, label=label)


def tie(corner: tuple[float, float] = (0, 0), **looks: Any) -> Any:
    """A hatched cell in which nothing is decided; also a legend's handle for it."""
    from matplotlib.patches import Rectangle

    return Rectangle(corner, 1, 1, fill=False, hatch="////", **looks)


def dot(label: str, fill: str, width: float, edge: str = EDGE) -> Any:
    """A legend's handle for a node that is filled with this colour."""
    from matplotlib.lines import Line2D

    return Line2D([], [], marker="o", ls="none", ms=8, mfc=fill, mec=edge, mew=width, label=label)


def colours(name: str, middle: float, low: float, high: float) -> tuple[Any, Any]:
    """A norm whose middle is the colours' own, and the mappable that a colour bar shows."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import TwoSlopeNorm

    norm = TwoSlopeNorm(middle, low, high)
    return norm, ScalarMappable(norm, name)


def whiskers(interval: Interval) -> list[list[float]]:
    """Lengths below and above the value, as error bars take them."""
    value = interval.value or 0.0
    low = value if interval.low is None else interval.low
    high = value if interval.high is None else interval.high
    return [[value - low], [high - value]]


def bars(
    axes: Any,
    values: Mapping[str, Interval],
    title: str,
    unit: str,
    told: Mapping[str, float] | None = None,
) -> None:
    """One horizontal bar per system, its interval and value; the paper's value in a lane below."""
    told = told or {}
    names = list(values)
    for row, name in enumerate(names):
        style, interval = style_of(name), values[name]
        if interval.value is None:
            axes.text(0, row, " -", va="center")
            continue
        axes.barh(
            row - BAR_UP,
            interval.value,
            height=BAR,
            color=style.colour,
            hatch=style.hatch,
            edgecolor=EDGE,
            lw=0.6,
        )
        axes.errorbar(
            interval.value,
            row - BAR_UP,
            xerr=whiskers(interval),
            color=EDGE,
            capsize=2,
            lw=0.9,
            fmt="none",
        )
        end = interval.value if interval.high is None else interval.high
        axes.annotate(
            plain(interval.value),
            (end, row - BAR_UP),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
        )
    marked = [(told[name], row) for row, name in enumerate(names) if name in told]
    for value, row in marked:
        mark(axes, value, row + LANE)
        axes.annotate(
            plain(value),
            (value, row + LANE),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=6.5,
        )
    axes.set_yticks(range(len(names)), [style_of(name).label for name in names])
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_title(title)
    axes.set_xlabel(unit)
    axes.grid(False, axis="y")
    axes.margins(x=0.22)
    axes.set_xlim(left=0)


def mark(axes: Any, x: float, y: float) -> None:
    """The paper's value: hollow, so that it is never taken for ours."""
    axes.plot(
        x, y, PAPER.marker, markerfacecolor="white", markeredgecolor=PAPER.colour, ms=6, zorder=5
    )


def paper_handle(label: str = "paper") -> Any:
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        marker=PAPER.marker,
        linestyle="none",
        markerfacecolor="white",
        markeredgecolor=PAPER.colour,
        label=label,
    )


def patch(style: Style) -> Any:
    from matplotlib.patches import Patch

    return Patch(
        facecolor=style.colour, hatch=style.hatch, edgecolor=EDGE, label=style.label, lw=0.6
    )


def series(
    axes: Any, x: Sequence[float], values: Sequence[Interval], style: Style, **changes: Any
) -> None:
    """A line with markers and intervals."""
    looks = {
        "color": style.colour,
        "marker": style.marker,
        "linestyle": style.line,
        "label": style.label,
    } | changes
    known = [(at, v) for at, v in zip(x, values, strict=True) if v.value is not None]
    places = [at for at, _ in known]
    means = [v.value for _, v in known]
    ends = [whiskers(v) for _, v in known]
    error = [[e[0][0] for e in ends], [e[1][0] for e in ends]]
    axes.errorbar(
        places,
        means,
        yerr=error,
        capsize=2.5,
        lw=1.4,
        elinewidth=0.9,
        markersize=5.5,
        markeredgecolor=EDGE,
        markeredgewidth=0.6,
        **looks,
    )
