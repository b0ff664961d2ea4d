"""How selection time (measured) grows with pool, K and, without a size limit, nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specfit.report.artifacts.accuracy import device_of, selection_bench
from specfit.report.figures import Drawing
from specfit.report.footer import Footer
from specfit.report.paper_values import SELECTION_MEDIAN_MS
from specfit.report.reader import ResultsReader
from specfit.report.styles import style_of

SUITE = "section_4_6"


PANELS = (
    (("growth_nodes",), "nodes", "nodes in the pool (K = 7)"),
    (("growth_k",), "k", "K (60 nodes)"),
    (("growth_closure", "growth_closure_cheap"), "nodes", "nodes in the pool (no size limit)"),
)


BELOW = 20.0  # room under the data for the legend, as a factor


LOOKS = (style_of("specfit"), style_of("eagle3_cache"))


def figure_selection_growth(reader: ResultsReader) -> Drawing:
    """How selection time (measured) grows with pool, K and, without a size limit, nodes."""
    found = reader.suites(SUITE)[0]
    bench = selection_bench(found)
    lines = (f"Times are measured: {device_of(bench)}; random pools.",)
    stamp = Footer(lines, (), found.is_preview, (SUITE,))
    largest = bench["growth_nodes"][-1]
    alt = (
        f"Median selection time against pool size, K and, for the unlimited rule, nodes; "
        f"{largest['nodes']} nodes at K = 7 take {largest['median_us'] / 1e3:.2f} ms."
    )
    title = "Selection time against the size of the problem (measured)"
    return Drawing("figure_selection_growth", title, 3.2, stamp, alt, lambda s: paint(s, bench))


def paint(sheet: Any, bench: Mapping[str, Any]) -> None:
    axes: Any = sheet.subplots(1, len(PANELS))
    for panel, (names, along, label) in zip(axes, PANELS, strict=True):
        for name, style in zip(names, LOOKS, strict=False):
            _series(panel, bench[name], along, style)
        panel.axhline(
            SELECTION_MEDIAN_MS, color="0.3", linestyle=":", label="paper: 18 nodes, K = 7"
        )
        panel.set_yscale("log")
        panel.set_ylim(bottom=panel.get_ylim()[0] / BELOW)
        panel.set_xlabel(label)
        panel.legend(fontsize=7, loc="lower right")
    axes[0].set_ylabel("ms per pool (measured)")


def _series(panel: Any, rows: Sequence[Mapping[str, Any]], along: str, style: Any) -> None:
    """Median, with a band from the 5th to the 95th percentile."""
    places = [row[along] for row in rows]
    median, low, high = (
        [row[key] / 1e3 for row in rows] for key in ("median_us", "p5_us", "p95_us")
    )
    panel.fill_between(places, low, high, color=style.colour, alpha=0.25, linewidth=0)
    label = f"{rows[0]['what']}:\nmedian, 5-95 % of {rows[0]['pools']} pools"
    panel.plot(places, median, color=style.colour, marker=style.marker, ms=4, label=label)
