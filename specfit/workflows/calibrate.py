"""The fit that a run of this config would use, found or made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specfit.base.config import from_hydra
from specfit.decoding.calibration.files import calibrated_cost


def calibrate(composed: Any) -> int:
    from specfit.decoding.live import build_runtime
    from specfit.decoding.resolve import resolve

    spec = resolve(from_hydra(composed))
    result = calibrated_cost(spec, build_runtime, Path(spec.config.results_dir))
    for line in [result.sentence(), *result.warnings()]:
        print(line)
    print(f"{'made' if result.made_now else 'found'}: {result.path}")
    return 0
