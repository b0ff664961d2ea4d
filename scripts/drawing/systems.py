"""Figures 2 and 3: the systems of a table, panel by panel."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import SubFigure

from drawing import Drawing
from drawing.panels import bars, paper_handle
from specfit.report.analysis.systems import headed, runs_of
from specfit.report.footer import INTERVALS, words_of
from specfit.report.paper_values import claims_of
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.styles import style_of
from specfit.report.table_format import change
from specfit.report.verdict import PAPER_TARGETS

BARS = ("speed", "committed", "cycle", "verified", "experts")
GAINS = ("speed", "speed_with_prefill", "committed", "cycle", "experts")


def systems_figure(reader: ResultsReader, name: str, table: str, title: str) -> Drawing:
    """Bars of each quantity, and SpecFit over EAGLE-3 + cache beside the paper's ratios."""
    runs = runs_of(reader, table)
    word = words_of(list(runs.values()))
    values = {q: {s: QUANTITIES[q].of(run) for s, run in runs.items()} for q in BARS}
    ratios = {q: QUANTITIES[q].ratio(runs["specfit"], runs["eagle3_cache"]) for q in GAINS}
    claims = claims_of(table)
    published = {
        q: {c.system: c.value for c in claims if c.quantity == q and c.against is None}
        for q in BARS
    }
    told = {c.quantity: c.value for c in claims if c.against == "eagle3_cache"}
    same = all(run.info.model in PAPER_TARGETS for run in runs.values())
    whose = "the paper's" + ("" if same else " (another model and machine)")
    fastest = max(values["speed"], key=lambda s: values["speed"][s].value or 0.0)
    alt = (
        f"Bars for {len(runs)} systems: speed, committed tokens, cycle time, verified nodes, "
        f"experts per token. Fastest here: {style_of(fastest).label}. SpecFit against EAGLE-3 + "
        f"cache: {change(ratios['speed'].value or 1.0)} decode speed."
    )

    def paint(figure: SubFigure) -> None:
        axes: Any = figure.subplots(2, 3).ravel()
        for panel, quantity in zip(axes, BARS, strict=False):
            bars(panel, values[quantity], headed(quantity, word), published[quantity])
        for panel in (axes[1], axes[4]):
            panel.set_yticklabels([])
        _gains(axes[5], ratios, told)
        figure.legend(
            handles=[paper_handle(whose)],
            loc="outside lower center",
        )

    stamp = reader.stamp(list(runs.values()), table, extra=[INTERVALS.replace("Brackets", "Bars")])
    return Drawing(name, title, 4.6, stamp, alt, paint)


def _gains(axes: Any, ratios: dict, told: dict[str, float]) -> None:
    """SpecFit over EAGLE-3 + cache, in percent."""
    names = list(ratios)
    style = style_of("specfit")
    for row, name in enumerate(names):
        ours = ratios[name]
        low, high = (100 * ((x or ours.value) - 1) for x in (ours.low, ours.high))
        axes.plot([low, high], [row, row], color=style.colour, lw=2.2)
        axes.plot(100 * (ours.value - 1), row, style.marker, color=style.colour, mec="#222222")
        if name in told:
            axes.plot(100 * (told[name] - 1), row + 0.28, "d", mfc="white", mec="black", ms=6)
    axes.axvline(0, color="0.3", lw=0.8)
    axes.set_yticks(range(len(names)), [QUANTITIES[n].label for n in names])
    axes.invert_yaxis()
    axes.set_title("SpecFit against\nEAGLE-3 + cache, %")
    axes.margins(y=0.15)
