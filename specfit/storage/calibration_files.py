"""Stored calibrations by id: plain documents, of a results folder or shipped with the package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from specfit.base.paths import PACKAGE
from specfit.base.types import SpecfitError
from specfit.storage import atomic
from specfit.storage.pack import open_pack

FOLDERS = ("calibrations", "replays/calibrations")
SHIPPED = PACKAGE / "weights" / "embedded" / "calibrations.jsonl"
"""One calibration a line, trials included: those of the default settings (modelled clock)."""
ORIGIN = "origin"  # key of a document that was not made below its results folder
SHIPPED_ORIGIN = "shipped with the package"


def calibration_path(calibration_id: str, results: Path) -> Path:
    """Where a run below `results` keeps the calibration of this id."""
    return results / "calibrations" / f"{calibration_id}.json"


@cache
def shipped_calibrations() -> Mapping[str, Mapping[str, Any]]:
    """By id; each says that it is shipped."""
    lines = SHIPPED.read_text(encoding="utf-8").splitlines() if SHIPPED.is_file() else []
    documents = [json.loads(line) for line in lines]
    return {one["calibration_id"]: one | {ORIGIN: SHIPPED_ORIGIN} for one in documents}


def copy_shipped(calibration_id: str, results: Path) -> bool:
    """Puts the shipped calibration of this id below `results`, unless one is there already.

    False where none of this id is shipped.
    """
    document = shipped_calibrations().get(calibration_id)
    if document is None:
        return False
    path = calibration_path(calibration_id, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json_once(path, document)
    return True


def find_fit(calibration_id: str, results: Path) -> dict[str, Any]:
    """Raises SpecfitError where it is not below `results`."""
    for below in FOLDERS:
        path = results / below / f"{calibration_id}.json"
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
    pack = open_pack(results)
    if pack is not None and calibration_id in pack.calibrations:
        return dict(pack.calibrations[calibration_id])
    raise SpecfitError(
        f"calibration {calibration_id} is not in {results}; the run that used it makes it again "
        "with force=true"
    )


def states_of(fit: Mapping[str, Any]) -> int:
    """How many states were probed; reference rows keep the count without the probes."""
    if "states" in fit:
        return int(fit["states"])
    return len({(probe["request_id"], probe["position"]) for probe in fit["probes"]})
