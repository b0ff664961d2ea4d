"""What a format does to speculation, half-real: results/bench/formats_<run id>.json.

    python -m specfit.replay recording=<id> selector=specfit gpu=rtx4090
    python scripts/studies/study.py formats results/replays/<run id>

Experts have the bytes of the format, and every system decodes under real routes, one seed of each
grafting: over links and fixed costs at as many slots as fit the card of the replay's profile
(`cache_slots=fit`), and at figure 4's slots under the profile itself. SpecFit is fitted at every
setting. Texts and acceptances are the donor's in every format: what rounding does to them is not in
here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from specfit.base.config import RunConfig
from specfit.base.types import SpecfitError
from specfit.decoding.replay.traced import GRAFTINGS
from specfit.decoding.spec import profile_of
from specfit.hardware.reference_models import BILLED_MODELS
from specfit.report.degenerate import is_degenerate
from specfit.storage.rows import load_run
from specfit.workflows.simulate import simulate
from specfit.workflows.studies.real_geometry import (
    LEADING,
    SLOTS,
    Line,
    Routing,
    base_of,
    config_of,
    routed,
)

FORMATS = {
    "bf16": "qwen3-30b-a3b",
    "fp8": "qwen3-30b-a3b-fp8",
    "int4": "qwen3-30b-a3b-int4",
}
"""And the model that a forward is billed as."""

FIXED_MS, LINK_GBPS = (10.0, 20.0, 70.0), (5.0, 12.0, 25.0)
CORNERS = (20.0, 70.0), (12.0, 25.0)
"""Of a single request, which answers nothing."""


@dataclass(frozen=True)
class Worker:
    """Simulates one format under one routing, in any process."""

    folder: Path

    def __call__(self, task: tuple[Routing, str, int]) -> list[dict[str, Any]]:
        """`task`: the routing, the format and the slots that fit the card in it."""
        routing, name, slots = task
        base, donor = base_of(self.folder)
        recording = routed(base, donor, routing)
        found = []
        for line in lines(name, slots, len(donor.requests)):
            done = simulate(config_of(base, line), recording)
            totals = {c: done.total(c) for c in ("cycles", "demand_experts", "hit_experts")}
            cell = {**asdict(routing), **asdict(line), "format": name, "totals": totals}
            found.append(cell | {"ns": done.sums["cycle_ns"].tolist()})
        return found


def lines(name: str, slots: int, requests: int) -> Iterator[Line]:
    """Settings of one format: the map at the slots that fit, then figure 4's slots."""
    fixed_ms, link_gbps = (FIXED_MS, LINK_GBPS) if requests > 1 else CORNERS
    own = {"gpu.billed": FORMATS[name]}
    for fixed, link, system in product(fixed_ms, link_gbps, LEADING):
        yield Line(system, slots, own | {"gpu.fixed_ms": fixed, "gpu.link_gbps": link}, "map")
    for count, system in product(SLOTS, LEADING):
        yield Line(system, count, own, "slots")


def slots_of(base: RunConfig, billed: str) -> int:
    """What fits the profile's card. Raises SpecfitError where it has no known size.

    Asked before the workers start: it alone needs torch, which takes each of them seconds.
    """
    import torch

    from specfit.decoding.memory_fit import placed, workload_context

    profile = profile_of(base.gpu)
    if profile.memory_bytes is None:
        raise SpecfitError(f"gpu={profile.name} has no memory_bytes to fit slots into; use rtx4090")
    config = replace(base, gpu=replace(base.gpu, billed=billed))
    context = workload_context(config, sys.maxsize)
    cpu = torch.device("cpu")
    return placed(BILLED_MODELS[billed], context, config, "modelled", cpu, profile).largest()


def study(folder: Path) -> dict[str, Any]:
    """The document that `table_formats` reads."""
    base, donor = base_of(folder)
    answered = [one for one in donor.requests if one.request is not None]
    graftings = list(GRAFTINGS)[: None if len(answered) > 1 else 1]
    fits = {name: slots_of(base, billed) for name, billed in FORMATS.items()}
    todo = [(Routing(graft), name, fits[name]) for graft, name in product(graftings, FORMATS)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        cells = [cell for found in pool.map(Worker(folder), todo) for cell in found]
    outputs = [[int(token) for token in one.output_ids] for one in answered]  # type: ignore[union-attr]
    return {
        "info": asdict(load_run(folder).info),
        "memory_bytes": base.gpu.memory_bytes,
        "profile": {"fixed_ms": base.gpu.fixed_ms, "link_gbps": base.gpu.link_gbps},
        "expert_bytes": {n: BILLED_MODELS[billed].expert_bytes for n, billed in FORMATS.items()},
        "request_ids": [one.request_id for one in answered],
        "degenerate": [
            is_degenerate(ids, one.stop_reason) for ids, one in zip(outputs, answered, strict=True)
        ],
        "committed": [len(ids) - 1 for ids in outputs],
        "cells": cells,
    }
