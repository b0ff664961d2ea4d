"""One recorded cycle taken apart, the numbers behind figure 1: results/bench/cycle_<run id>.json.

    python -m specfit.replay recording=<id> selector=specfit cache_slots=48
    python scripts/studies/study.py anatomy results/replays/<run id>
The cycle is chosen by a rule, not by eye: of the replayed cycles that kept a drafted token, drafted
most levels and whose routes named every expert that was then used, the one with the median cycle
time (of two, the shorter; of equals, the first); --cycle evaluation-3:12 names another. Selected
nodes count the experts that they add in level order; the others those that they would add to the
selection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from specfit.base.types import PROBABILITY_ONE, Routes, SpecfitError
from specfit.selection.bitmaps import bitmaps, demand
from specfit.selection.cost import CostModel
from specfit.selection.forced_trees import most_probable
from specfit.selection.selectors import SpecFit
from specfit.selection.theory.subtrees import legal_columns
from specfit.storage.calibration_files import find_fit
from specfit.storage.manifest import read_manifest
from specfit.storage.recording.files import find_recording, read_recording
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.rows import RunRows, load_run

RULE = (
    "of the cycles that kept a drafted token, drafted most levels and whose routes named every "
    "expert used, the one with the median cycle time"
)
CONTEXT_TOKENS = 16


def chosen_cycle(rows: RunRows) -> tuple[pd.Series, int]:
    """(the row that RULE picks, how many it was picked from)."""
    cycles = rows.cycles[rows.cycles["cycle"] > 0].reset_index(drop=True)
    if not len(cycles):
        raise SpecfitError(f"replay {rows.info.run_id} has no decode cycle to take apart")
    exact = cycles[cycles["route_mismatches"].fillna(0) == 0]
    found = exact if len(exact) else cycles
    kept = found[found["accepted_tokens"] > 0]
    found = kept if len(kept) else found
    found = found[found["drafted_levels"] == found["drafted_levels"].max()]
    ordered = found.sort_values("cycle_ns", kind="stable")
    return ordered.iloc[(len(ordered) - 1) // 2], len(ordered)


def named_cycle(rows: RunRows, name: str) -> pd.Series:
    """The decode cycle `<request>:<number>`. Raises SpecfitError where there is none, or where it
    drafted nothing."""
    request, _, number = name.rpartition(":")
    found = rows.cycles[rows.cycles["request_id"].astype(str) == request]
    found = found[found["cycle"].astype(str) == number]
    if not len(found) or not int(found.iloc[0]["drafted_levels"]):
        raise SpecfitError(
            f"run {rows.info.run_id} has no drafted cycle {name!r}; name one as <request>:<cycle>, "
            f"as in {rows.ok_ids[0]}:1"
        )
    return found.iloc[0]


def taken_apart(
    recorded: RecordedRequest, row: pd.Series, cost: CostModel, experts: int
) -> dict[str, Any]:
    """The pool, the selection the row tells of, and every legal subtree's price."""
    assert recorded.pools is not None and recorded.request is not None, "a cycle has a pool"
    position = int(row["context_tokens"]) - len(recorded.request.prompt_ids) - 1
    tree, atlas = recorded.pools.tree(position), recorded.pools.atlas(position).astype(np.int64)
    routes, levels = Routes(atlas[0], atlas[1:]), int(row["drafted_levels"])
    drafted = tree.upto(levels)
    part = Routes(routes.root, routes.nodes[: len(drafted)])
    picked = SpecFit(cost, experts, cost.k).select(drafted, part)
    same = (len(picked.nodes), picked.predicted_ns, picked.predicted_reward)
    stored = tuple(int(row[c]) for c in ("verified_nodes", "predicted_ns", "predicted_reward"))
    if same != stored:
        raise SpecfitError("the replay's cycle and its recording disagree; replay it again")
    bits = bitmaps(part, experts)
    accepted = recorded.pools.accepted[recorded.pools.nodes(position)][: len(drafted)]
    legal = legal_columns(drafted, bits, accepted, cost.k)
    eagle = most_probable(drafted, cost.k)
    union = demand(bits, picked.nodes)
    return {
        "position": position,
        "drafted_levels": levels,
        "root_demand": demand(bits, ()),
        "union": union,
        "nodes": [
            {
                "parent": int(drafted.parents[node]),
                "depth": int(drafted.depths[node]),
                "path_prob": int(drafted.path_probs[node]) / PROBABILITY_ONE,
                "selected": node in picked.nodes,
                "accepted": bool(accepted[node]),
                "new_experts": added(bits, picked.nodes, node),
            }
            for node in range(len(drafted))
        ],
        "legal": {
            "reward": (legal.reward / PROBABILITY_ONE).round(6).tolist(),
            "time_ns": legal.time_ns(cost).round().astype(int).tolist(),
            "size": legal.size.tolist(),
        },
        "eagle3": {
            "nodes": list(eagle),
            "union": demand(bits, eagle),
            "reward": 1 + float(drafted.path_probs[list(eagle)].sum() / PROBABILITY_ONE),
            "time_ns": round(cost.predict_ns(len(eagle), demand(bits, eagle))),
        },
    }


def added(bits: np.ndarray, selected: Sequence[int], node: int) -> int:
    """Experts that `node` brings: to the selected nodes before it, or to the whole selection."""
    before = [n for n in selected if n < node] if node in selected else list(selected)
    return demand(bits, sorted([*before, node])) - demand(bits, before)


def cost_of(replay: Path) -> CostModel:
    """The fit that the replayed run selected by."""
    manifest = read_manifest(replay)
    assert manifest is not None, "the rows have been read"
    calibration = manifest.identity["digests"].get("calibration")
    if calibration is None:
        raise SpecfitError(f"{replay} used no fit; study a replay of selector=specfit")
    return CostModel.from_dict(find_fit(calibration, replay.parent.parent)["cost"])


def tokenizer_of(model: Mapping[str, Any]) -> Any | None:
    """None where the recorded checkpoint is not at hand."""
    from tokenizers import Tokenizer

    from specfit.decoding.resolve import locate

    file = locate(model["path"]) / "tokenizer.json" if model.get("path") else None
    return Tokenizer.from_file(str(file)) if file is not None and file.is_file() else None


def words(tokenizer: Any | None, recorded: RecordedRequest, position: int, nodes: int) -> dict:
    """Token texts; null without a tokenizer."""
    assert recorded.pools is not None and recorded.output_ids is not None
    assert recorded.request is not None
    at = recorded.pools.nodes(position)
    drafted = recorded.pools.tokens[at][:nodes].tolist()
    said = [*recorded.request.prompt_ids.tolist(), *recorded.output_ids[: position + 1].tolist()]
    if tokenizer is None:
        return {"tokens": drafted, "texts": None, "context": None}
    decode = tokenizer.decode
    texts = [decode([token], skip_special_tokens=False) for token in drafted]
    context = decode(said[-CONTEXT_TOKENS:], skip_special_tokens=False)
    return {"tokens": drafted, "texts": texts, "context": context}


def study(folder: Path, cycle: str | None = None) -> dict[str, Any]:
    """`cycle` names another than RULE picks, as <request>:<number>."""
    rows = load_run(folder)
    recording = read_recording(find_recording(str(rows.info.recording), folder.parent.parent))
    cost = cost_of(folder)
    row, among = chosen_cycle(rows) if cycle is None else (named_cycle(rows, cycle), None)
    recorded = next(r for r in recording.requests if r.request_id == row["request_id"])
    found = taken_apart(recorded, row, cost, recording.shape.experts)
    texts = words(
        tokenizer_of(recording.config["model"]), recorded, found["position"], len(found["nodes"])
    )
    columns = rows.cycles.columns.drop(["run_id", "request_id", "stop_reason"])
    print(f"request {row['request_id']}, cycle {int(row['cycle'])}")
    return {
        "info": asdict(rows.info),
        "rule": RULE if cycle is None else "asked for by its number",
        "among": among,
        "requests": len(rows.ok_ids),
        "request_id": str(row["request_id"]),
        "row": {name: None if pd.isna(row[name]) else int(row[name]) for name in columns},
        "cost": cost.to_dict(),
        "layers": recording.shape.layers,
        **found,
        **texts,
    }
