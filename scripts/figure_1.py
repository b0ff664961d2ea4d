"""Figure 1: one real recorded cycle taken apart; scripts/study_cycle.py chooses it by a rule.

python scripts/figure_1.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from drawing import Drawing
from drawing.panels import EDGE, patch
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D

from specfit.report.analysis.anatomy import Anatomy, Node, anatomy
from specfit.report.artifact import main
from specfit.report.footer import words_of
from specfit.report.reader import ResultsReader
from specfit.report.styles import PHASES, Style, style_of
from specfit.report.table_format import plain

TAKEN, LEFT = style_of("specfit").colour, "white"
PARTS = {
    "b": Style("predicted: by size, b", "white"),
    "union": Style("predicted: by union, beta x F", "#E69F00", hatch="///"),
}


def make(reader: ResultsReader) -> Drawing:
    found = reader.suites("figure_1")[0]
    label = next(c.label for c in found.suite.cells if c.kind == "bench")
    document = found.document(label)
    rows = [m.rows for m in reader.members("figure_1", kind="replay")]
    a, word = anatomy(document), words_of(rows)
    row = document["row"]
    which = (
        f"Cycle {row['cycle']} of request {document['request_id']}: {document['rule']} "
        f"({document['among']} cycles). Experts are counted over the run's own "
        f"{document['layers']} layers."
    )
    taken = sum(node.selected for node in a.nodes)
    alt = (
        f"A tree of {len(a.nodes)} drafted nodes, {taken} of them selected; their union is "
        f"{a.union} experts; predicted {plain(a.predicted_ms)} ms, realised "
        f"{plain(a.realised_ms)} ms ({word}); {a.committed} tokens committed."
    )
    context = document["context"]
    stamp = reader.stamp(rows, "figure_1", extra=[which])
    title = f"Figure 1: anatomy of a recorded cycle (times {word})"
    return Drawing("figure_1", title, 5.4, stamp, alt, lambda s: paint(s, a, word, context))


def paint(sheet: SubFigure, a: Anatomy, word: str, context: str | None) -> None:
    axes: Any = sheet.subplot_mosaic(
        [["tree", "rule"], ["tree", "time"]], width_ratios=[1.75, 1], height_ratios=[1.25, 1]
    )
    _tree(axes["tree"], a, context)
    _rule(axes["rule"], a, word)
    _time(axes["time"], a, word)


def _tree(panel: Any, a: Anatomy, context: str | None) -> None:
    """The pool, root to the left; beside each node its token, path probability and new experts."""
    root = Node(-1, 0.0, a.root_y, 1.0, a.root_demand, True, True, "root")
    for node in a.nodes:
        above = root if node.parent < 0 else a.nodes[node.parent]
        look = {"color": TAKEN, "lw": 2.2} if node.selected else {"color": "0.6", "lw": 0.9}
        panel.plot([above.x, node.x], [above.y, node.y], zorder=1, **look)
    for node in (root, *a.nodes):
        panel.plot(
            node.x,
            node.y,
            "o",
            ms=15.5,
            mfc=TAKEN if node.selected else LEFT,
            mec=EDGE,
            mew=2.2 if node.accepted else 0.8,
            zorder=2,
        )
        added = f"{node.new_experts}" if node is root else f"+{node.new_experts}"
        colour = "white" if node.selected else "black"
        panel.text(node.x, node.y, added, ha="center", va="center", fontsize=6.5, color=colour)
        told = "root" if node is root else f"{_word(node.text)}  {_share(node.path_prob)}"
        panel.annotate(
            told,
            (node.x, node.y),
            xytext=(0, 11.5),
            textcoords="offset points",
            ha="center",
            fontsize=7,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
        )
    levels = int(max(node.x for node in a.nodes))
    panel.set_xticks(range(levels + 1), ["root", *(f"level {i}" for i in range(1, levels + 1))])
    panel.set_yticks([])
    panel.invert_yaxis()
    panel.margins(x=0.06, y=0.09)
    panel.grid(False)
    panel.spines["left"].set_visible(False)
    said = f" after “…{_word(context)}”" if context else ""
    panel.set_title(f"pool and selection{said}", fontsize=8.5)
    handles = [
        _dot("selected", TAKEN, 0.8),
        _dot("drafted only", LEFT, 0.8),
        _dot("what the target says next", LEFT, 2.2),
    ]
    text = (
        f"in a node: experts it adds (filled: to the selected ones before it; hollow: to the "
        f"selection)\nunion of root and selection: {a.union} experts, {a.hits} resident, "
        f"{a.copies} copied; committed {a.committed} tokens"
    )
    panel.set_xlabel(text, fontsize=7.5, labelpad=22)
    panel.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.045), ncols=3)


def _dot(label: str, fill: str, width: float) -> Line2D:
    return Line2D([], [], marker="o", ls="none", ms=8, mfc=fill, mec=EDGE, mew=width, label=label)


def _share(value: float) -> str:
    return f"{value:.2f}" if value >= 0.01 else f"{value:.1g}"


def _word(text: str) -> str:
    """A token as one visible word; white space is shown, and `$` is no formula."""
    shown = text.replace("\n", "⏎").replace("$", r"\$")
    return f"“{shown}”" if shown.strip() != shown or not shown else shown


def _rule(panel: Any, a: Anatomy, word: str) -> None:
    """Every legal subtree as reward against predicted time; the best has the steepest ray."""
    panel.plot(a.legal_ms, a.legal_reward, ".", color="0.6", ms=3.5, label="a legal subtree")
    ends = np.array([0, max(a.legal_ms.max(), a.eagle_ms)])
    panel.plot(ends, ends * a.rate, color=TAKEN, lw=1)
    eagle, ours = style_of("eagle3"), style_of("specfit")
    panel.plot(
        a.eagle_ms, a.eagle_reward, eagle.marker, color=eagle.colour, mec=EDGE, ms=7,
        label="EAGLE-3: 7 most probable",
    )  # fmt: skip
    panel.plot(
        a.predicted_ms, a.reward, ours.marker, color=ours.colour, mec=EDGE, ms=7,
        label="SpecFit: most tokens per time",
    )  # fmt: skip
    low, high = a.legal_ms.min(), ends[1]
    panel.set_xlim(low - 0.08 * (high - low), high + 0.05 * (high - low))
    top = a.legal_reward.max()
    panel.set_ylim(1 - 0.5 * (top - 1), top + 0.25 * (top - 1))  # room for the legend below
    panel.set_xlabel(f"predicted ms ({word})")
    panel.set_ylabel("expected tokens")
    panel.set_title("every legal subtree, priced", fontsize=8.5)
    panel.legend(loc="lower right", fontsize=7, frameon=True, framealpha=0.85, edgecolor="none")


def _time(panel: Any, a: Anatomy, word: str) -> None:
    """The predicted cycle above the realised one."""
    for row, parts, styles in ((0, a.parts_ms, PARTS), (1, a.phases_ms, PHASES)):
        left = 0.0
        for name, ms in parts.items():
            style = styles[name]
            panel.barh(
                row, ms, left=left, color=style.colour, hatch=style.hatch, edgecolor=EDGE, lw=0.5
            )
            left += ms
        panel.annotate(
            plain(left), (left, row), xytext=(4, 0), textcoords="offset points", va="center"
        )
    panel.set_yticks([0, 1], ["predicted", "realised"])
    panel.invert_yaxis()
    panel.margins(x=0.15)
    panel.grid(False, axis="y")
    panel.set_xlabel(f"ms ({word})")
    shown = [PHASES[name] for name, ms in a.phases_ms.items() if ms]
    handles = [patch(style) for style in (*PARTS.values(), *shown)]
    panel.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.42, -0.3), ncols=2, fontsize=7
    )


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
