"""The stored calibration that a run used, as the plain document that `specfit.calibrate` left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specfit.base.types import SpecfitError
from specfit.storage.pack import open_pack

FOLDERS = ("calibrations", "replays/calibrations")


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
