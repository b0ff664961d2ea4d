"""The fit of a run: looked up by its own id, or made and kept.

A calibration is a small run with its own id. `calibrated_cost` is all that a run needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from specfit.base.config import hashed_part
from specfit.base.types import SpecfitError
from specfit.decoding.calibration.fit import (
    calibration_slots,
    columns_of,
    fit_cost,
    held_out,
    run_trials,
)
from specfit.decoding.calibration.trials import TreeTrial
from specfit.decoding.expert_cache_factory import CLAIRVOYANT
from specfit.decoding.spec import BuildRuntime, RunSpec
from specfit.selection.cost import CostModel
from specfit.selection.cost_forms import BY_RESIDENCY
from specfit.selection.fit import doubts, fit, fit_affine
from specfit.selection.mean_by_size import BySize, by_size
from specfit.storage import identity
from specfit.storage.atomic import write_json, write_json_once
from specfit.storage.calibration_files import ORIGIN, calibration_path, copy_shipped
from specfit.storage.recording.files import file_digest


@dataclass(frozen=True)
class Calibration:
    """Coefficients for one selector of a run, and where they are kept."""

    calibration_id: str
    cost: CostModel
    sizes: BySize | None  # the same trials by node count, where the selector needs them
    is_line: bool  # b_k = a + c k, as a selector without a size limit needs
    path: Path | None = None  # None: kept nowhere
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    made_now: bool = False
    doubts: tuple[str, ...] = ()  # why the fit may not be what it is read as

    def sentence(self) -> str:
        """What a stored fit is made of and how well it predicts what it was not fitted on."""
        error = self.document["leave_one_state_out"]["mean_relative"]
        if self.is_line:
            error = float(np.mean(held_out(_trials_in(self.document), fit_affine).relative))
        origin = f" ({self.document[ORIGIN]})" if ORIGIN in self.document else ""
        return (
            f"calibration {self.calibration_id}{origin}: {self.document['probe_count']} probes on "
            f"the {self.document['clock']} clock, {'b_k on a line, ' if self.is_line else ''}beta "
            f"{self.cost.expert_ns / 1e3:.0f} us per expert, mean error {100 * error:.1f} % "
            "(leave one state out)"
        )

    def warnings(self) -> list[str]:
        """A line for each doubt."""
        return [f"warning: ill-conditioned fit: {doubt}" for doubt in self.doubts]


def calibrated_cost(
    spec: RunSpec,
    build: BuildRuntime,
    results: Path,
    begins: Callable[[], None] | None = None,
    seen: Callable[[], None] | None = None,
) -> Calibration:
    """Found in results/calibrations or in the file that `calibration.path` names, else made there.

    One that the package ships is copied to results/calibrations first. `begins` is called before
    trees are forced, which may take a minute, and `seen` after each of the states they are forced
    in.
    Raises SpecfitError for a given file that was made for another setting.
    """
    expected = hashed_part(_identity_parts(spec))
    calibration_id = identity.calibration_id(expected)
    given = spec.config.calibration.path
    path = calibration_path(calibration_id, results)
    if given is not None:
        return _read(spec, Path(given), expected, calibration_id)
    if not spec.config.force and (path.exists() or copy_shipped(calibration_id, results)):
        return _read(spec, path, expected, calibration_id)
    if begins is not None:
        begins()
    document = _document(spec, build, calibration_id, expected, run_trials(spec, build, seen))
    path.parent.mkdir(parents=True, exist_ok=True)
    # Jobs of one sweep may calibrate at once: all of them go by one fit.
    (write_json if spec.config.force else write_json_once)(path, document)
    return replace(_read(spec, path, expected, calibration_id), made_now=True)


def solved(
    spec: RunSpec, calibration_id: str, cost: CostModel, trials: Sequence[TreeTrial]
) -> Calibration:
    """What this selector needs of one set of trials; kept nowhere."""
    k, kind = spec.config.selector.k, spec.kind
    if kind.unlimited:
        cost = fit_affine(*columns_of(trials), k)
    sizes = None
    if kind.needs_sizes:
        sizes = by_size([trial.family for trial in trials], *columns_of(trials), k)
    told = tuple(_doubts(spec, cost, trials))
    return Calibration(calibration_id, cost, sizes, kind.unlimited, doubts=told)


def _doubts(spec: RunSpec, cost: CostModel, trials: Sequence[TreeTrial]) -> list[str]:
    """Beta is judged where a copy's time is known and nothing hides it: on the modelled clock,
    without prefetching and without a host that computes; and where it prices a union."""
    config, profile = spec.config, spec.profile
    on_demand = (
        config.prefetch == "off" and config.miss == "transfer" and config.cost not in BY_RESIDENCY
    )
    miss_ns = None
    if spec.clock == "modelled" and on_demand and profile.link_gbps is not None:
        billing = spec.billing
        miss_ns = billing.layer_scale * billing.expert_bytes / profile.link_gbps  # bytes per ns
    return doubts(cost, columns_of(trials)[1], [trial.missing for trial in trials], miss_ns)


def calibration_id_of(spec: RunSpec) -> str:
    """Of the fit that a run would use, known before anything is probed."""
    return identity.calibration_id(hashed_part(_identity_parts(spec)))


def _identity_parts(spec: RunSpec) -> dict[str, Any]:
    """Everything the coefficients may depend on, under its config key."""
    config = spec.config
    made_up = config.model.routing != "weights"
    routing = {"routing": config.model.routing} if made_up else {}
    parts: dict[str, Any] = {
        "target": spec.target_digest,
        "drafter": spec.drafter_digest,
        "pool": [config.drafter.top_k, config.drafter.max_depth],
        "rows": spec.questions.digest,
        "model": {"dtype": config.model.dtype, "num_layers": spec.geometry.layers}
        | routing
        | spec.foreign_tokenizer,
        "profile": spec.profile.digest(),
        "billed": spec.billing.name,
        "clock": spec.clock,
        "cache_slots": calibration_slots(spec),
        "prefill_chunk": config.prefill_chunk,
        "threads": config.threads,
        "k": spec.kind.probed(config.selector.k),
    }
    parts |= _movement_parts(spec)
    if config.cost in BY_RESIDENCY:
        parts["cost"] = config.cost
    if config.drafter.temperature != 1.0:
        parts["temperature"] = config.drafter.temperature
    return parts | ({"device_name": spec.device_name} if spec.clock == "wall" else {})


def _movement_parts(spec: RunSpec) -> dict[str, Any]:
    """What moves and how. With prefetching probes know what the run will: its own routes."""
    config = spec.config
    parts: dict[str, Any] = {
        # belady runs on no card: its coefficients are the default policy's.
        "policy": "lru" if config.policy == CLAIRVOYANT else config.policy,
        "bypass": config.bypass,
        "miss": config.miss,
        "offload.tier": config.offload.tier,
        "offload.ram_slots": config.offload.ram_slots,
        "prefetch": config.prefetch,
    }
    if config.prefetch == "off":
        return parts
    parts |= {"prefetch_blocks": config.prefetch_blocks, "routes": asdict(config.routes)}
    parts |= {"seed": config.seed}  # of simulated noise
    if spec.routes_file is not None:
        parts["routes_file"] = file_digest(spec.routes_file)
    return parts


def _read(
    spec: RunSpec, path: Path, expected: identity.Identity, calibration_id: str
) -> Calibration:
    if not path.exists():
        raise SpecfitError(f"calibration.path={path} does not exist")
    document = _stored(path)
    differs = identity.first_difference(document.get("identity", {}), expected)
    if differs is not None:
        raise SpecfitError(
            f"{path} was calibrated for another run: {differs} differs; "
            "leave calibration.path out to make the right one"
        )
    needed = {"cost", "probe_count", "leave_one_state_out"}
    if not needed <= document.keys():
        raise SpecfitError(f"{path} is damaged: it holds no fit; remove it to make a new one")
    kind = spec.kind
    trials = _trials_in(document) if "probes" in document else []
    if not trials and (kind.unlimited or kind.needs_sizes):
        raise SpecfitError(f"{path} holds no probes; remove it to make a new one")
    cost = CostModel.from_dict(document["cost"])
    return replace(solved(spec, calibration_id, cost, trials), path=path, document=document)


def _stored(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, OSError) as error:
        raise SpecfitError(
            f"{path} cannot be read ({error}); remove it to make a new one"
        ) from None
    return stored if isinstance(stored, dict) else {}


def _trials_in(document: Mapping[str, Any]) -> list[TreeTrial]:
    return [TreeTrial(**trial) for trial in document["probes"]]


def _document(
    spec: RunSpec,
    build: BuildRuntime,
    calibration_id: str,
    expected: identity.Identity,
    trials: Sequence[TreeTrial],
) -> dict[str, Any]:
    left_out = held_out(trials, fit)
    cost = fit_cost(spec, build, trials)
    return {
        "calibration_id": calibration_id,
        "identity": expected,
        "clock": spec.clock,
        "device": spec.device_name,
        "profile": spec.profile.name,
        "cost": cost.to_dict(),
        "doubts": _doubts(spec, cost, trials),
        "probe_count": len(trials),
        "leave_one_state_out": {
            "mean_absolute_ns": float(np.mean(left_out.absolute_ns)),
            "mean_relative": float(np.mean(left_out.relative)),
            "worst_relative": float(np.max(left_out.relative)),
        },
        "probes": [asdict(trial) for trial in trials],
    }
