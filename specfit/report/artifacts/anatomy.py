"""Figure 1: one recorded cycle, as the study `anatomy` took it apart, made ready to be drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specfit.base.entry import reading
from specfit.base.types import PROBABILITY_ONE
from specfit.report.figures import EDGE, ON_DARK, Drawing, dot, patch
from specfit.report.footer import words_of
from specfit.report.reader import ResultsReader
from specfit.report.styles import PHASES, Style, style_of
from specfit.report.table_format import plain
from specfit.storage.find import find_run
from specfit.storage.rows import RunRows, load_run

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Node:
    """A drafted node where it is drawn: `x` its level, `y` its place among the leaves."""

    parent: int  # -1 the root
    x: float
    y: float
    path_prob: float
    new_experts: int
    selected: bool
    accepted: bool
    text: str


@dataclass(frozen=True, eq=False)
class Anatomy:
    """`legal_*` are of every legal subtree; times in ms, rewards in tokens."""

    nodes: tuple[Node, ...]
    root_y: float
    legal_reward: NDArray[np.float64]
    legal_ms: NDArray[np.float64]
    reward: float
    predicted_ms: float
    eagle_reward: float
    eagle_ms: float
    phases_ms: dict[str, float]  # of the realised cycle, as in labels.PHASES
    parts_ms: dict[str, float]  # of the predicted one: b_|S|, and beta times the union
    union: int
    root_demand: int
    hits: int
    copies: int
    committed: int

    @property
    def realised_ms(self) -> float:
        return sum(self.phases_ms.values())

    @property
    def rate(self) -> float:
        """Predicted tokens per ms of the selection: the best of all legal subtrees."""
        return self.reward / self.predicted_ms


def anatomy(document: Document) -> Anatomy:
    row, cost = document["row"], document["cost"]
    nodes = document["nodes"]
    ys, root_y = heights([int(node["parent"]) for node in nodes])
    texts = document["texts"] or [str(token) for token in document["tokens"]]
    size = row["verified_nodes"]
    base = cost["intercepts_ns"][size] / 1e6
    wait = row["transfer_wait_ns"]
    split = {"wait": wait, "compute": row["verify_ns"] - wait}
    return Anatomy(
        nodes=tuple(
            Node(
                int(node["parent"]),
                float(node["depth"]),
                ys[i],
                float(node["path_prob"]),
                int(node["new_experts"]),
                bool(node["selected"]),
                bool(node["accepted"]),
                text,
            )
            for i, (node, text) in enumerate(zip(nodes, texts, strict=True))
        ),
        root_y=root_y,
        legal_reward=np.array(document["legal"]["reward"]),
        legal_ms=np.array(document["legal"]["time_ns"]) / 1e6,
        reward=row["predicted_reward"] / PROBABILITY_ONE,
        predicted_ms=row["predicted_ns"] / 1e6,
        eagle_reward=document["eagle3"]["reward"],
        eagle_ms=document["eagle3"]["time_ns"] / 1e6,
        phases_ms={
            name: (split[name] if name in split else row[f"{name}_ns"]) / 1e6 for name in PHASES
        },
        parts_ms={"b": base, "union": row["predicted_ns"] / 1e6 - base},
        union=document["union"],
        root_demand=document["root_demand"],
        hits=row["hit_experts"],
        copies=row["transferred_experts"],
        committed=row["committed_tokens"],
    )


def heights(parents: list[int]) -> tuple[list[float], float]:
    """Leaves at 0, 1, 2, .. in depth-first order, an inner node midway between its children; the
    last value is the root's."""
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    ys = [0.0] * len(parents)
    leaves = 0

    def place(node: int) -> float:
        nonlocal leaves
        below = children.get(node, [])
        if not below:
            y = float(leaves)
            leaves += 1
        else:
            at = [place(child) for child in below]
            y = (at[0] + at[-1]) / 2
        if node >= 0:
            ys[node] = y
        return y

    return ys, place(-1)


TAKEN, LEFT, ACCEPTED = style_of("specfit").colour, "white", "#1B7837"


PARTS = {
    "b": Style("predicted: fixed part for this many nodes", "#D9D9D9"),
    "union": Style("predicted: per distinct expert", "#238B45", hatch="///"),
}


def figure_1(reader: ResultsReader) -> Drawing:
    """Figure 1: one real recorded cycle taken apart; a study chooses it by a rule."""
    document, rows = _asked_for(reader.cycle, reader) if reader.cycle else _of_suite(reader)
    a, word = anatomy(document), words_of(rows)
    row = document["row"]
    among = f" ({document['among']} cycles)" if document["among"] else ""
    which = (
        f"Cycle {row['cycle']} of request {document['request_id']}: {document['rule']}{among}. "
        f"Experts are counted over the run's own {document['layers']} layers."
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
    return Drawing("figure_1", title, 5.6, stamp, alt, lambda s: paint(s, a, word, context))


def _of_suite(reader: ResultsReader) -> tuple[Document, list[RunRows]]:
    """The cycle that the study chose, and the replay that it read."""
    found = reader.suites("figure_1")[0]
    label = next(c.label for c in found.suite.cells if c.kind == "bench")
    return found.document(label), [m.rows for m in reader.members("figure_1", kind="replay")]


def _asked_for(file: Path, reader: ResultsReader) -> tuple[Document, list[RunRows]]:
    """Another cycle, from the file that the study anatomy left. Raises SpecfitError."""
    with reading(file, "a document of the study anatomy"):
        document: Document = json.loads(file.read_text(encoding="utf-8"))
        run_id = document["info"]["run_id"]
    return document, [load_run(find_run(run_id, reader.results))]


def paint(sheet: Any, a: Anatomy, word: str, context: str | None) -> None:
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
        if node.accepted and node.selected:
            look["color"] = ACCEPTED
        panel.plot([above.x, node.x], [above.y, node.y], zorder=1, **look)
    for node in (root, *a.nodes):
        panel.plot(
            node.x,
            node.y,
            "o",
            ms=15.5,
            mfc=fill_of(node),
            mec=ACCEPTED if node.accepted else EDGE,
            mew=2.2 if node.accepted else 0.8,
            zorder=2,
        )
        added = f"{node.new_experts}" if node is root else f"+{node.new_experts}"
        colour = ON_DARK if node.selected else "black"
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
    said = f"\nafter “…{_word(context)}”" if context else ""
    panel.set_title(f"drafted tree and what is verified{said}", fontsize=8.5)
    handles = [
        dot("verified", TAKEN, 0.8),
        dot("verified and accepted", ACCEPTED, 0.8),
        dot("drafted only", LEFT, 0.8),
        dot("drafted only, would have been right", LEFT, 2.2, ACCEPTED),
    ]
    taken = sum(node.selected for node in a.nodes)
    text = (
        f"Beside a node: its token and the drafter's probability of the path to it.\n"
        f"In a node: the distinct experts that verifying it adds.\n"
        f"{taken} verified, {a.committed - 1} accepted + 1 of the target's own = {a.committed} "
        f"token{'s' if a.committed > 1 else ''} committed.\n"
        f"Verifying needs {a.union} experts: {a.hits} on the device, {a.copies} copied."
    )
    panel.set_xlabel(text, fontsize=7.5, labelpad=34)
    panel.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.045), ncols=2)


def fill_of(node: Node) -> str:
    if not node.selected:
        return LEFT
    return ACCEPTED if node.accepted else TAKEN


def _share(value: float) -> str:
    return f"{value:.2f}" if value >= 0.01 else f"{value:.1g}"


def _word(text: str) -> str:
    """A token as one visible word; white space is shown, and `$` is no formula."""
    shown = text.replace("\n", "⏎").replace("$", r"\$")
    return f"“{shown}”" if shown.strip() != shown or not shown else shown


def _rule(panel: Any, a: Anatomy, word: str) -> None:
    """Every legal subtree as reward against predicted time; the best has the steepest ray."""
    panel.plot(
        a.legal_ms,
        a.legal_reward,
        ".",
        color="0.6",
        ms=3.5,
        label="a subtree that could be verified",
    )
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
    panel.set_title("every choice: tokens against time", fontsize=8.5)
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
