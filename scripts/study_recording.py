"""Selection studied on a recording: the numbers behind table 5, as results/bench/study_<id>.json.

    python -m specfit.record                                  # once
    python -m specfit.replay recording=<id> selector=specfit  # fits b_k and beta, leaves the cycles
    python scripts/study_recording.py <replay folder>         # e.g. results/replays/<run id>
    python scripts/table_5.py

Two weightings: every recorded position once, and the cycles that the replayed run starts. Predicted
times are the fit's (modelled); acceptances are the recorded ones.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from specfit.core import Routes, SpecfitError
from specfit.results.manifest import read_manifest
from specfit.results.recording import Recording, find_recording, read_recording
from specfit.results.rows import RunRows, load_run
from specfit.selection.cost import CostModel
from specfit.selection.study import Pools, State, compare


def states_of(
    recording: Recording, ids: list[str]
) -> tuple[list[State], dict[tuple[str, int], int]]:
    """Every recorded position of the requests `ids`, and where each is among them."""
    states: list[State] = []
    index = {}
    for request in recording.requests:
        pools = request.pools
        if pools is None or request.request_id not in ids:
            continue
        for position in range(len(pools)):
            index[request.request_id, position] = len(states)
            atlas = pools.atlas(position).astype(np.int64)
            accepted = pools.accepted[pools.nodes(position)]
            states.append(State(pools.tree(position), Routes(atlas[0], atlas[1:]), accepted))
    return states, index


def started(rows: RunRows, index: dict[tuple[str, int], int]) -> np.ndarray:
    """How many of the run's cycles start at each state: 0 or 1."""
    weights = np.zeros(len(index))
    prompts = dict(zip(rows.requests["request_id"], rows.requests["prompt_tokens"], strict=True))
    cycles = rows.cycles[rows.cycles["cycle"] > 0]
    for request_id, context in zip(cycles["request_id"], cycles["context_tokens"], strict=True):
        weights[index[request_id, int(context) - int(prompts[request_id]) - 1]] += 1
    return weights


def cost_of(results: Path, folder: Path) -> CostModel:
    manifest = read_manifest(folder)
    assert manifest is not None
    calibration = manifest.identity["digests"].get("calibration")
    if calibration is None:
        raise SpecfitError(f"{folder} used no fit; study a replay of selector=specfit")
    for below in ("replays/calibrations", "calibrations"):
        path = results / below / f"{calibration}.json"
        if path.exists():
            return CostModel.from_dict(json.loads(path.read_text())["cost"])
    raise SpecfitError(f"calibration {calibration} is not in {results}; replay again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("replay", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    options = parser.parse_args()
    results = options.replay.parent.parent
    rows = load_run(options.replay)
    assert rows.info.recording is not None, "a replay's manifest names its recording"
    recording = read_recording(find_recording(rows.info.recording, results))
    states, index = states_of(recording, rows.ok_ids)
    cost = cost_of(results, options.replay)
    pools = Pools(states, recording.shape.experts, cost.k)
    weightings = {"every position": None, "cycles of the run": started(rows, index)}
    found = {name: compare(pools, cost, weights) for name, weights in weightings.items()}
    document = {
        "info": asdict(rows.info),
        "requests": len(rows.ok_ids),
        "cost": cost.to_dict(),
        "weightings": {
            name: asdict(one) | {"gap": one.gap, "relative_bound": one.relative_bound}
            for name, one in found.items()
        },
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"study_{rows.info.run_id}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    print(pd.DataFrame(document["weightings"]).to_string())
    print(f"rows: {path}")


if __name__ == "__main__":
    main()
