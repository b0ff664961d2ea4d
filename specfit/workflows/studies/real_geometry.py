"""Every system under real routes, over graftings and seeds: bench/real_geometry_<run id>.json.

    python -m specfit.replay recording=<id> selector=specfit cache_slots=48
    python scripts/studies/study.py real_geometry results/replays/<run id>

A replay's recording is grafted onto the shipped trace again and again, and each cell simulated.
Half-real: see `decoding/replay/traced.py`.

The grid is graftings x seeds x systems x slots; one seed of each grafting also has the rivals, a
map of link and fixed cost, routes of less accuracy, other cache policies, and the dial of
acceptance. The donor's own routes stand beside them as the grafting `embedded`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from specfit.base.config import ModelConfig, RoutesConfig, RunConfig, SelectorConfig, from_hydra
from specfit.base.types import SpecfitError
from specfit.decoding.replay.traced import GRAFTINGS
from specfit.decoding.spec import locate
from specfit.report.degenerate import is_degenerate
from specfit.storage.foreign_traces import RoutingTrace, read_trace
from specfit.storage.recording.files import Recording, find_recording, read_once
from specfit.storage.rows import load_run
from specfit.workflows.hydra_cli import compose
from specfit.workflows.recording.tracing import TRACED, traced
from specfit.workflows.simulate import simulate
from specfit.workflows.studies.stored import stored_config

EMBEDDED = "embedded"
SLOTS = (48, 24, 12, 0)
SEEDS, WHOLE = 10, 40
"""Seeds of every grafting where at least WHOLE requests were replayed; else FEW."""
FEW = 2

SYSTEMS: Mapping[str, Mapping[str, Any]] = {
    "ar_cache": {},
    "eagle3_cache": {},
    "specfit": {},
    "evict_early": {"name": "evict", "adaptive_depth": True},
    "chain_3": {"name": "chain_k", "k": 3},
}
LEADING = ("ar_cache", "eagle3_cache", "specfit")
RIVALS: Mapping[str, Mapping[str, Any]] = {
    "chain_1": {"name": "chain_k", "k": 1},
    "chain_2": {"name": "chain_k", "k": 2},
    "chain_5": {"name": "chain_k", "k": 5},
    "cascade": {},
    "moe_speq": {},
    "evict": {},
    "ecospec_3": {"name": "ecospec", "k": 3},
    "ecospec_7": {"name": "ecospec", "k": 7},
    "greedy": {},
    "specfit_full": {"name": "specfit", "adaptive_depth": False},
}
ROUTES = {"noisy_80": ("noisy", 0.8), "noisy_60": ("noisy", 0.6), "last_token": ("last_token", 1.0)}
POLICIES = ("decayed_lfu", "pool")
BELADY = "belady"
CACHED = (48, 24, 12)
FIXED_MS, LINK_GBPS = (5.0, 10.0, 20.0, 40.0, 70.0, 100.0), (5.0, 12.0, 25.0, 60.0)
ACCEPTANCE = (1.2, 1.6, 2.0, 2.3, 2.6, 3.0, 3.5, 4.0, 5.0)
ENDS = (48, 12)
"""Slots of everything that one seed has."""


@dataclass(frozen=True)
class Routing:
    """One routing of the recording: a grafting with its seed, or `embedded`; the dial's value."""

    graft: str
    seed: int = 0
    acceptance: float | None = None


@dataclass(frozen=True)
class Line:
    """One simulated setting."""

    system: str
    slots: int
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the config; gpu.* of its profile
    study: str = "grid"  # grid, rivals, map, routes, policies, dial


def routings(requests: int) -> list[Routing]:
    seeds = SEEDS if requests >= WHOLE else FEW
    drawn = [Routing(graft, seed) for graft in GRAFTINGS for seed in range(seeds)]
    if requests == 1:
        return [Routing(EMBEDDED), *drawn[:1], Routing(drawn[0].graft, 0, ACCEPTANCE[0])]
    dials = [Routing(graft, 0, value) for graft in GRAFTINGS for value in ACCEPTANCE]
    return [Routing(EMBEDDED), *drawn, *dials]


def lines_of(routing: Routing, requests: int) -> list[Line]:
    """Settings to simulate under one routing."""
    if routing.acceptance is not None:
        return [Line(s, n, study="dial") for s, n in product(LEADING, ENDS)]
    grid = [Line(system, slots) for system, slots in product(SYSTEMS, SLOTS)]
    if routing.seed or requests == 1:
        return grid
    rivals = [Line(name, slots, study="rivals") for name, slots in product(RIVALS, ENDS)]
    routes = [Line(name, slots, study="routes") for name, slots in product(ROUTES, ENDS)]
    policies = [
        Line(system, slots, {"policy": policy}, "policies")
        for system, slots, policy in product(LEADING, (24, 12), POLICIES)
    ]
    policies += [
        Line(system, slots, {"policy": BELADY}, "policies")
        for system, slots in product(LEADING, CACHED)
    ]
    places = [
        Line(system, slots, {"gpu.fixed_ms": fixed, "gpu.link_gbps": link}, "map")
        for fixed, link, slots, system in product(FIXED_MS, LINK_GBPS, ENDS, LEADING)
    ]
    return [*grid, *rivals, *routes, *policies, *places]


def config_of(base: RunConfig, line: Line) -> RunConfig:
    known = {**SYSTEMS, **RIVALS}
    name = line.system if line.system in known else "specfit"
    chosen = dict(known[name])
    selector = SelectorConfig(
        chosen.get("name", name),
        k=chosen.get("k", base.selector.k),
        adaptive_depth=chosen.get("adaptive_depth", name == "specfit" or name == "greedy"),
    )
    routes = base.routes
    if line.system in ROUTES:
        source, accuracy = ROUTES[line.system]
        routes = RoutesConfig(source, accuracy)
    gpu = {k.removeprefix("gpu."): v for k, v in line.changes.items() if k.startswith("gpu.")}
    own = {k: v for k, v in line.changes.items() if not k.startswith("gpu.")}
    if gpu or own.get("policy", BELADY) != BELADY:  # it bounds the very cells that LRU has
        own["calibration"] = replace(base.calibration, at="own")
    whole: dict[str, Any] = {"selector": selector, "routes": routes, "cache_slots": line.slots}
    return replace(base, gpu=replace(base.gpu, **gpu), **whole, **own)


def routed(base: RunConfig, donor: Recording, routing: Routing) -> Recording:
    """The donor, or the donor under the trace's routes."""
    if routing.graft == EMBEDDED:
        return donor
    return traced(replace(base, model=traced_model(routing)), donor, _trace())


def traced_model(routing: Routing) -> ModelConfig:
    return replace(
        _model(), graft=routing.graft, graft_seed=routing.seed, acceptance=routing.acceptance
    )


@cache
def _model() -> ModelConfig:
    return from_hydra(compose([f"model={TRACED}"])).model


@cache
def _trace() -> RoutingTrace:
    """Read and checked once in a process: every routing draws from it."""
    return read_trace(locate(_model().path))


@dataclass(frozen=True)
class Worker:
    """Simulates every line of a routing, in any process."""

    folder: Path

    def __call__(self, routing: Routing) -> list[dict[str, Any]]:
        base, donor = base_of(self.folder)
        recording = routed(base, donor, routing)
        lines = lines_of(routing, len(donor.requests))
        return [_cell(routing, line, base, recording) for line in lines]


def _cell(routing: Routing, line: Line, base: RunConfig, recording: Recording) -> dict[str, Any]:
    done = simulate(config_of(base, line), recording)
    own = {"ns": done.sums["cycle_ns"].tolist()}
    if line.study in ("grid", "dial") and routing.seed == 0:
        own["cycles"] = done.sums["cycles"].tolist()  # of acceptance alone, seeds change nothing
    if line.study == "grid" and routing.seed == 0:
        own["wait_ns"] = done.sums["transfer_wait_ns"].tolist()
    names = ("cycles", "verified_nodes", "demand_experts", "hit_experts")
    totals = {name: done.total(name) for name in names}
    return {**asdict(routing), **asdict(line), **own, "totals": totals}


@cache
def base_of(folder: Path) -> tuple[RunConfig, Recording]:
    """The replay's own config without its recording, and what it replayed."""
    name, results = load_run(folder).info.recording, folder.parent.parent
    if name is None:
        raise SpecfitError(f"{folder} is no replay")
    recording = read_once(find_recording(name, results))
    config = stored_config(folder, recording, results)
    count = len(load_run(folder).request_ids)
    return config, replace(recording, requests=recording.requests[:count])


def study(folder: Path) -> dict[str, Any]:
    """The document that `table_real_geometry` and the figures read."""
    _, donor = base_of(folder)
    answered = [one for one in donor.requests if one.request is not None]
    todo = routings(len(donor.requests))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        cells = [cell for found in pool.map(Worker(folder), todo) for cell in found]
    outputs = [[int(token) for token in one.output_ids] for one in answered]  # type: ignore[union-attr]
    return {
        "info": asdict(load_run(folder).info),
        "trace": Path(_model().path).name,
        "request_ids": [one.request_id for one in answered],
        "degenerate": [
            is_degenerate(ids, one.stop_reason) for ids, one in zip(outputs, answered, strict=True)
        ],
        "committed": [len(ids) - 1 for ids in outputs],  # by decoding: prefill commits the first
        "cells": cells,
    }
