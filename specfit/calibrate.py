"""`python -m specfit.calibrate`: fit b_0 .. b_K and beta for a run's machine, or find the fit.

A calibration is a small run with its own id. It is looked up by that id and made when missing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from specfit.commands import hydra_command
from specfit.config import from_hydra
from specfit.core import SpecfitError
from specfit.facts import Assemble, Facts
from specfit.probing import Probe, Prober
from specfit.results import identity
from specfit.results.atomic import write_json
from specfit.selection.cost import CostModel
from specfit.selection.fit import fit, leave_one_out


@dataclass(frozen=True)
class Calibration:
    calibration_id: str
    cost: CostModel
    path: Path
    made_now: bool


def calibration_slots(facts: Facts) -> int:
    """Slots the fit is made at: uncached runs have their own, cached ones share one or not."""
    if facts.slots == 0:
        return 0
    if facts.config.calibration.at == "own":
        return facts.slots
    return min(facts.config.calibration.slots, facts.geometry.experts)


def find_or_make(
    facts: Facts, assemble: Assemble, results: Path, begins: Callable[[], None] | None = None
) -> Calibration:
    """Raises SpecfitError for a given file that was made for another setting.

    Fits are kept in results/calibrations. `begins` is called before probes are run, which may take
    a minute.
    """
    wanted = identity.calibration_identity(_identity_parts(facts))
    calibration_id = identity.calibration_id(wanted)
    given = facts.config.calibration.path
    path = results / "calibrations" / f"{calibration_id}.json"
    if given is not None:
        return _read(Path(given), wanted, calibration_id)
    if path.exists() and not facts.config.force:
        return _read(path, wanted, calibration_id)
    if begins is not None:
        begins()
    probes = _probe(facts, assemble)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, _document(facts, calibration_id, wanted, probes))
    return Calibration(calibration_id, _fitted(facts, probes), path, made_now=True)


def _identity_parts(facts: Facts) -> dict[str, Any]:
    """Everything the coefficients may depend on, under its config key."""
    config = facts.config
    made_up = config.model.routing != "weights"
    routing = {"routing": config.model.routing} if made_up else {}
    parts: dict[str, Any] = {
        "target": facts.target_digest,
        "drafter": facts.drafter_digest,
        "pool": [config.drafter.top_k, config.drafter.max_depth],
        "rows": facts.questions.digest,
        "model": {"dtype": config.model.dtype, "num_layers": facts.geometry.layers} | routing,
        "profile": facts.profile.digest(),
        "billed": facts.billing.name,
        "clock": facts.clock,
        "cache_slots": calibration_slots(facts),
        "prefill_chunk": config.prefill_chunk,
        "threads": config.threads,
        "k": config.selector.k,
    }
    return parts | ({"device_name": facts.device_name} if facts.clock == "wall" else {})


def _read(path: Path, wanted: identity.Identity, calibration_id: str) -> Calibration:
    if not path.exists():
        raise SpecfitError(f"calibration.path={path} does not exist")
    stored = _stored(path)
    differs = identity.first_difference(stored.get("identity", {}), wanted)
    if differs is not None:
        raise SpecfitError(
            f"{path} was calibrated for another run: {differs} differs; "
            "leave calibration.path out to make the right one"
        )
    if not {"cost", "probe_count", "leave_one_state_out"} <= stored.keys():
        raise SpecfitError(f"{path} is damaged: it holds no fit; remove it to make a new one")
    return Calibration(calibration_id, CostModel.from_dict(stored["cost"]), path, made_now=False)


def _stored(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, OSError) as error:
        raise SpecfitError(
            f"{path} cannot be read ({error}); remove it to make a new one"
        ) from None
    return stored if isinstance(stored, dict) else {}


# -- the probes ----------------------------------------------------------------------------------


def _probe(facts: Facts, assemble: Assemble) -> list[Probe]:
    machine = assemble(facts, calibration_slots(facts), True)
    prober = Prober(
        machine.target,
        machine.drafter(),
        machine.exact_routes(),
        machine.clock(),
        facts.geometry.experts,
        facts.config.selector.k,
    )
    if facts.clock == "wall":  # the first use of anything is slow: one untimed walk
        empty = machine.target.residency()
        prober.run(facts.questions.requests())
        machine.target.restore(empty)
    return prober.run(facts.questions.requests())


# -- the fit -------------------------------------------------------------------------------------


def _columns(probes: list[Probe]) -> tuple[list[int], list[int], list[int]]:
    return (
        [probe.size for probe in probes],
        [probe.demand for probe in probes],
        [probe.cycle_ns for probe in probes],
    )


def _fitted(facts: Facts, probes: list[Probe]) -> CostModel:
    return fit(*_columns(probes), facts.config.selector.k)


def _document(
    facts: Facts, calibration_id: str, wanted: identity.Identity, probes: list[Probe]
) -> dict[str, Any]:
    held_out = leave_one_out(
        [probe.state for probe in probes], *_columns(probes), facts.config.selector.k
    )
    return {
        "calibration_id": calibration_id,
        "identity": wanted,
        "clock": facts.clock,
        "device": facts.device_name,
        "profile": facts.profile.name,
        "cost": _fitted(facts, probes).to_dict(),
        "probe_count": len(probes),
        "leave_one_state_out": {
            "mean_absolute_ns": float(np.mean(held_out.absolute_ns)),
            "mean_relative": float(np.mean(held_out.relative)),
            "worst_relative": float(np.max(held_out.relative)),
        },
        "probes": [asdict(probe) for probe in probes],
    }


def describe(path: Path) -> str:
    """One line about a stored calibration."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    error = 100 * stored["leave_one_state_out"]["mean_relative"]
    beta_us = stored["cost"]["expert_ns"] / 1e3
    return (
        f"calibration {stored['calibration_id']}: {stored['probe_count']} probes on the "
        f"{stored['clock']} clock, beta {beta_us:.0f} us per expert, "
        f"mean error {error:.1f} % (leave one state out)"
    )


def job(composed: Any) -> int:
    """The fit that a run of this config would use, found or made."""
    from specfit.build import build_machine
    from specfit.resolve import resolve

    facts = resolve(from_hydra(composed))
    found = find_or_make(facts, build_machine, Path(facts.config.results_dir))
    print(describe(found.path))
    print(f"{'made' if found.made_now else 'found'}: {found.path}")
    return 0


if __name__ == "__main__":
    sys.exit(hydra_command(job))
