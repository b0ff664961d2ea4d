"""Every rival on the same made-up calibration, and records of cycles that never ran."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specfit.base.interfaces import Selector
from specfit.base.types import PROBABILITY_ONE, ROOT, CycleRecord, DraftTree, Routes
from specfit.selection.baselines.moe_speq import LinkCosts
from specfit.selection.cost import CostModel
from specfit.selection.mean_by_size import BySize
from specfit.selection.registry import SELECTORS, SelectorArgs

RIVALS = {
    "chain_k": 3,
    "eagle3_full": 18,
    "evict": 7,
    "ecospec": 7,
    "cascade": 5,
    "moe_speq": 7,
    "greedy": 7,
}
"""Name -> K."""

COST = CostModel(1e6 + 2e5 * np.arange(8), 3e4)
SIZES = BySize(1e6 + 3e5 * np.arange(8), 4.0 + 3 * np.arange(8))
LINK = LinkCosts(fixed_ns=1e6, draft_level_ns=1e5, node_ns=1e5, expert_ns=0.0, copy_ns=1e5)


def make(name: str, experts: int, k: int | None = None) -> Selector:
    """As a run makes it."""
    k = RIVALS[name] if k is None else k
    args = SelectorArgs(name, k, name == "greedy", experts, COST, sizes=SIZES, link=LINK)
    return SELECTORS[name].make(args)


def fresh(experts: int) -> dict[str, Callable[[], Selector]]:
    return {name: lambda name=name: make(name, experts) for name in RIVALS}  # type: ignore[misc]


def tree_of(*nodes: tuple[int, float]) -> DraftTree:
    """(parent, path probability in sixteenths) of every node, in level order."""
    parents = np.array([parent for parent, _ in nodes])
    depths: list[int] = []
    for parent in parents.tolist():
        depths.append(1 if parent == ROOT else depths[parent] + 1)
    probs = np.array([round(sixteenths * PROBABILITY_ONE / 16) for _, sixteenths in nodes])
    return DraftTree(np.arange(len(nodes)), parents, np.array(depths), probs)


def routes_of(*rows: set[int]) -> Routes:
    """One layer; row 0 is the root. Rows are filled up by repeating one of their experts."""
    width = max(map(len, rows))
    ids = np.array([[[*row, *[min(row)] * (width - len(row))]] for row in map(sorted, rows)])
    return Routes(ids[0], ids[1:])


def record(
    cycle: int,
    committed: int = 1,
    ns: int = 1,
    verified: int | None = None,
    demand: int = 1,
    moved: int = 0,
    stop: str | None = None,
) -> CycleRecord:
    accepted = committed - 1
    return CycleRecord(
        **dict.fromkeys(CycleRecord.columns(), 0)
        | {
            "request_id": "r",
            "cycle": cycle,
            "verified_nodes": accepted if verified is None else verified,
            "accepted_tokens": accepted,
            "committed_tokens": committed,
            "stop_reason": stop,
            "demand_experts": demand,
            "transferred_experts": moved,
            "hit_experts": demand - moved,
            "verify_ns": ns,
            "cycle_ns": ns,
            # no RAM between a disk and the slots, which is not the same as none read
            "ram_hit_experts": None,
            "read_experts": None,
            "read_bytes": None,
        }
    )
