"""`python -m specfit.calibrate`: fit b_0 .. b_K and beta for a run's machine, or find the fit.

A calibration is a small run with its own id. It is looked up by that id and made when missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

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
from specfit.selection.costs import BY_RESIDENCY
from specfit.selection.fit import fit, fit_affine
from specfit.selection.mean_by_size import BySize, by_size
from specfit.storage import identity
from specfit.storage.atomic import write_json, write_json_once
from specfit.storage.calibration_files import ORIGIN, calibration_path, copy_shipped
from specfit.storage.recording.files import file_digest


@dataclass(frozen=True)
class Calibration:
    calibration_id: str
    cost: CostModel
    path: Path
    made_now: bool
    is_line: bool = False  # b_k = a + c k, as a selector without a size limit needs

    def sizes(self, k: int) -> BySize:
        """The same probes by node count alone. Raises SpecfitError where the file holds none."""
        stored = _stored(self.path)
        if "probes" not in stored:
            raise SpecfitError(f"{self.path} holds no probes; remove it to make a new one")
        probes = _probes_in(stored)
        return by_size([probe.family for probe in probes], *columns_of(probes), k)


def find_or_make(
    spec: RunSpec, build: BuildRuntime, results: Path, begins: Callable[[], None] | None = None
) -> Calibration:
    """Raises SpecfitError for a given file that was made for another setting.

    Fits are kept in results/calibrations; one that the package ships is copied there first.
    `begins` is called before probes are run, which may take a minute.
    """
    wanted = identity.calibration_identity(_identity_parts(spec))
    calibration_id = identity.calibration_id(wanted)
    given = spec.config.calibration.path
    path = calibration_path(calibration_id, results)
    if given is not None:
        return _read(spec, Path(given), wanted, calibration_id)
    if not spec.config.force and (path.exists() or copy_shipped(calibration_id, results)):
        return _read(spec, path, wanted, calibration_id)
    if begins is not None:
        begins()
    document = _document(spec, build, calibration_id, wanted, run_trials(spec, build))
    path.parent.mkdir(parents=True, exist_ok=True)
    # Jobs of one sweep may probe at once: all of them go by one fit.
    (write_json if spec.config.force else write_json_once)(path, document)
    return replace(_read(spec, path, wanted, calibration_id), made_now=True)


def calibration_id_of(spec: RunSpec) -> str:
    """Of the fit that a run would use, known before anything is probed."""
    return identity.calibration_id(identity.calibration_identity(_identity_parts(spec)))


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
        "model": {"dtype": config.model.dtype, "num_layers": spec.geometry.layers} | routing,
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
        # No card knows the future: its coefficients are the default policy's.
        "policy": "lru" if config.policy == CLAIRVOYANT else config.policy,
        "bypass": config.bypass,
        "miss": config.miss,
        "prefetch": config.prefetch,
    }
    if config.prefetch == "off":
        return parts
    parts |= {"prefetch_blocks": config.prefetch_blocks, "routes": asdict(config.routes)}
    parts |= {"seed": config.seed}  # of simulated noise
    if spec.routes_file is not None:
        parts["routes_file"] = file_digest(spec.routes_file)
    return parts


def _read(spec: RunSpec, path: Path, wanted: identity.Identity, calibration_id: str) -> Calibration:
    if not path.exists():
        raise SpecfitError(f"calibration.path={path} does not exist")
    stored = _stored(path)
    differs = identity.first_difference(stored.get("identity", {}), wanted)
    if differs is not None:
        raise SpecfitError(
            f"{path} was calibrated for another run: {differs} differs; "
            "leave calibration.path out to make the right one"
        )
    needed = {"cost", "probe_count", "leave_one_state_out"}
    if not (needed | {"probes"} if spec.kind.unlimited else needed) <= stored.keys():
        raise SpecfitError(f"{path} is damaged: it holds no fit; remove it to make a new one")
    if spec.kind.unlimited:
        line = fit_affine(*columns_of(_probes_in(stored)), spec.config.selector.k)
        return Calibration(calibration_id, line, path, made_now=False, is_line=True)
    return Calibration(calibration_id, CostModel.from_dict(stored["cost"]), path, made_now=False)


def _stored(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, OSError) as error:
        raise SpecfitError(
            f"{path} cannot be read ({error}); remove it to make a new one"
        ) from None
    return stored if isinstance(stored, dict) else {}


def _probes_in(stored: Mapping[str, Any]) -> list[TreeTrial]:
    return [TreeTrial(**probe) for probe in stored["probes"]]


def _document(
    spec: RunSpec,
    build: BuildRuntime,
    calibration_id: str,
    wanted: identity.Identity,
    probes: list[TreeTrial],
) -> dict[str, Any]:
    left_out = held_out(probes, fit)
    return {
        "calibration_id": calibration_id,
        "identity": wanted,
        "clock": spec.clock,
        "device": spec.device_name,
        "profile": spec.profile.name,
        "cost": fit_cost(spec, build, probes).to_dict(),
        "probe_count": len(probes),
        "leave_one_state_out": {
            "mean_absolute_ns": float(np.mean(left_out.absolute_ns)),
            "mean_relative": float(np.mean(left_out.relative)),
            "worst_relative": float(np.max(left_out.relative)),
        },
        "probes": [asdict(probe) for probe in probes],
    }


def describe(found: Calibration) -> str:
    """One line about a stored calibration."""
    stored = json.loads(found.path.read_text(encoding="utf-8"))
    error = stored["leave_one_state_out"]["mean_relative"]
    if found.is_line:
        error = float(np.mean(held_out(_probes_in(stored), fit_affine).relative))
    origin = f" ({stored[ORIGIN]})" if ORIGIN in stored else ""
    return (
        f"calibration {found.calibration_id}{origin}: {stored['probe_count']} probes on the "
        f"{stored['clock']} clock, {'b_k on a line, ' if found.is_line else ''}beta "
        f"{found.cost.expert_ns / 1e3:.0f} us per expert, mean error {100 * error:.1f} % "
        "(leave one state out)"
    )
