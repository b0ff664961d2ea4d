"""Selection studied on a recording, for table 5: results/bench/study_<run id>.json.

    python -m specfit.record                                  # once
    python -m specfit.replay recording=<id> selector=specfit  # fits b_k and beta, leaves the cycles
    python scripts/studies/study.py rules results/replays/<run id>

Three weightings: full-depth pools at every recorded position once, full-depth pools where the
replayed run starts a cycle, and the pools that the run drafted there, which end at the level where
SpecFit stopped (the paper's "candidate pools drafted by SpecFit"). Predicted
times are the fit's (modelled); acceptances are the recorded ones. Beside the paper's fit stands the
line b_k = a + c k through the same probes, with and without the size limit (app. A.3).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from specfit.base.types import Routes, SpecfitError
from specfit.selection.cost import CostModel
from specfit.selection.fit import Fitting, fit, fit_affine, leave_one_out
from specfit.selection.theory.affine import compare_line
from specfit.selection.theory.study import Pools, State, compare, recorded_sums
from specfit.storage.calibration_files import find_fit
from specfit.storage.manifest import read_manifest
from specfit.storage.recording.files import Recording, find_recording, read_recording
from specfit.storage.rows import RunRows, load_run

Key = tuple[str, int]
"""Request and position: one recorded state."""
OF_STOPPING = ("early_stops", "lost_by_stop", "stop_loss", "stop_gain", "levels")
"""What a pool that ends where drafting stopped cannot say."""
SUMS = ("tokens_best", "ns_best", "tokens_ratio", "ns_ratio")


@dataclass(frozen=True)
class Fit:
    cost: CostModel
    error: float  # mean of |predicted - probed| / probed, leaving one state out

    def to_dict(self) -> dict[str, Any]:
        return self.cost.to_dict() | {"mean_relative_error": self.error}


def states_of(recording: Recording, ids: list[str]) -> dict[Key, State]:
    """Every recorded position of the requests `ids`, in order."""
    states: dict[Key, State] = {}
    for request in recording.requests:
        pools = request.pools
        if pools is None or request.request_id not in ids:
            continue
        for position in range(len(pools)):
            atlas = pools.atlas(position).astype(np.int64)
            accepted = pools.accepted[pools.nodes(position)]
            state = State(pools.tree(position), Routes(atlas[0], atlas[1:]), accepted)
            states[request.request_id, position] = state
    return states


def starts_of(rows: RunRows) -> list[tuple[Key, int]]:
    """The state that each of the run's cycles starts at, and the levels it drafted."""
    prompts = dict(zip(rows.requests["request_id"], rows.requests["prompt_tokens"], strict=True))
    cycles = rows.cycles[rows.cycles["cycle"] > 0]
    columns = (cycles[name] for name in ("request_id", "context_tokens", "drafted_levels"))
    return [
        ((request_id, int(context) - int(prompts[request_id]) - 1), int(levels))
        for request_id, context, levels in zip(*columns, strict=True)
    ]


def started(rows: RunRows, keys: list[Key]) -> np.ndarray:
    """How many of the run's cycles start at each state: 0 or 1."""
    index = {key: at for at, key in enumerate(keys)}
    weights = np.zeros(len(keys))
    for key, _ in starts_of(rows):
        weights[index[key]] += 1
    return weights


def drafted(rows: RunRows, states: dict[Key, State]) -> dict[Key, State]:
    """The pools that the run drafted, in its order: each ends where drafting stopped."""
    found = {}
    for key, levels in starts_of(rows):
        whole = states[key]
        tree = whole.tree.upto(levels)
        routes = Routes(whole.routes.root, whole.routes.nodes[: len(tree)])
        found[key] = State(tree, routes, whole.accepted[: len(tree)])
    return found


def probes_of(results: Path, folder: Path) -> list[dict[str, Any]]:
    """The calibration probes behind the run's fit."""
    manifest = read_manifest(folder)
    assert manifest is not None
    calibration = manifest.identity["digests"].get("calibration")
    if calibration is None:
        raise SpecfitError(f"{folder} used no fit; study a replay of selector=specfit")
    fit = find_fit(calibration, results)
    if "probes" not in fit:
        raise SpecfitError(f"calibration {calibration} is stored without its probes; replay again")
    return list(fit["probes"])


def fits_of(probes: list[dict[str, Any]], largest_pool: int) -> dict[str, Fit]:
    """Both fits of the same probes, with their errors; the line prices whole pools."""
    states = [(probe["request_id"], probe["position"]) for probe in probes]
    known = {state: number for number, state in enumerate(dict.fromkeys(states))}
    numbers = [known[state] for state in states]
    sizes, demands, times = (
        [probe[name] for probe in probes] for name in ("size", "demand", "cycle_ns")
    )
    k = max(sizes)

    def one(fitting: Fitting, priced: int) -> Fit:
        held_out = leave_one_out(numbers, sizes, demands, times, k, fitting)
        fitted = fitting(sizes, demands, times, priced)
        return Fit(fitted, float(held_out.relative.mean()))

    return {"free": one(fit, k), "line": one(fit_affine, max(k, largest_pool))}


def weighed(
    pools: Pools, fits: dict[str, Fit], keys: list[Key], weights: np.ndarray
) -> dict[str, Any]:
    """One column of the table: both rules, the line, and recorded sums by request for intervals."""
    cost, line = fits["free"].cost, fits["line"].cost
    found = compare(pools, cost, weights)
    sums = weights[:, None] * recorded_sums(pools, cost, found.best_throughput)
    by_request = pd.DataFrame(sums, columns=list(SUMS)).groupby([name for name, _ in keys]).sum()
    return {
        "rules": asdict(found) | {"gap": found.gap, "relative_bound": found.relative_bound},
        "line": asdict(compare_line(pools, cost, line, weights)),
        "recorded": {name: by_request[name].tolist() for name in SUMS},
    }


def study(folder: Path) -> dict[str, Any]:
    results = folder.parent.parent
    rows = load_run(folder)
    if rows.info.recording is None:
        raise SpecfitError(f"{folder} is no replay; a study needs the recording that one read")
    recording = read_recording(find_recording(rows.info.recording, results))
    states = states_of(recording, rows.ok_ids)
    keys = list(states)
    fits = fits_of(probes_of(results, folder), max(len(state.tree) for state in states.values()))
    pools = Pools(list(states.values()), recording.shape.experts, fits["free"].cost.k)
    weightings = {"every position": np.ones(len(keys)), "cycles of the run": started(rows, keys)}
    columns = {name: weighed(pools, fits, keys, w) for name, w in weightings.items()}
    own = drafted(rows, states)
    short = Pools(list(own.values()), recording.shape.experts, fits["free"].cost.k)
    columns["drafted pools"] = weighed(short, fits, list(own), np.ones(len(own)))
    columns["drafted pools"]["rules"] |= dict.fromkeys(OF_STOPPING)
    return {
        "info": asdict(rows.info),
        "requests": len(rows.ok_ids),
        "fits": {name: one.to_dict() for name, one in fits.items()},
        "weightings": columns,
    }
