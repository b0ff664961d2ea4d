"""Panels that more than one figure has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from specfit.report.intervals import Interval
from specfit.report.styles import PAPER, Style, style_of
from specfit.report.table_format import plain

EDGE = "#222222"


def whiskers(interval: Interval) -> list[list[float]]:
    """Lengths below and above the value, as error bars want them."""
    value = interval.value or 0.0
    low = value if interval.low is None else interval.low
    high = value if interval.high is None else interval.high
    return [[value - low], [high - value]]


def bars(
    axes: Any,
    values: Mapping[str, Interval],
    title: str,
    told: Mapping[str, float] | None = None,
) -> None:
    """One horizontal bar per system, its interval and value; the paper's value as a mark."""
    told = told or {}
    names = list(values)
    for row, name in enumerate(names):
        style, interval = style_of(name), values[name]
        if interval.value is None:
            axes.text(0, row, " -", va="center")
            continue
        axes.barh(
            row, interval.value, color=style.colour, hatch=style.hatch, edgecolor=EDGE, lw=0.6
        )
        axes.errorbar(
            interval.value, row, xerr=whiskers(interval), color=EDGE, capsize=2, lw=0.9, fmt="none"
        )
        end = interval.value if interval.high is None else interval.high
        axes.annotate(
            plain(interval.value),
            (end, row - 0.1),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
        )
    marked = [(told[name], row) for row, name in enumerate(names) if name in told]
    for value, row in marked:
        mark(axes, value, row + 0.3)
    axes.set_yticks(range(len(names)), [style_of(name).label for name in names])
    axes.invert_yaxis()
    axes.set_title(title)
    axes.grid(False, axis="y")
    axes.margins(x=0.22)
    axes.set_xlim(left=0)


def mark(axes: Any, x: float, y: float) -> None:
    """The paper's value: hollow, so that it is never taken for ours."""
    axes.plot(
        x, y, PAPER.marker, markerfacecolor="white", markeredgecolor=PAPER.colour, ms=6, zorder=5
    )


def paper_handle(label: str = "paper") -> Line2D:
    return Line2D(
        [],
        [],
        marker=PAPER.marker,
        linestyle="none",
        markerfacecolor="white",
        markeredgecolor=PAPER.colour,
        label=label,
    )


def patch(style: Style) -> Patch:
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
