"""Figure 1: one recorded cycle, as scripts/study_cycle.py took it apart, made ready to be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specfit.base.types import PROBABILITY_ONE
from specfit.report.styles import PHASES

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
