"""Selection time of a replay's own cycles, as the paper reports it (sec. 4.6): per cycle, all
levels together, conversion included: results/bench/selection_cycles_<run id>.json.

    python -m specfit.replay recording=<id> selector=specfit cache_slots=48
    python scripts/studies/study.py selection_cycles results/replays/<run id>

Measured while the replay ran, whatever its clock: a replay selects with a live run's code.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from specfit.base.types import SpecfitError
from specfit.storage.rows import load_run

PERCENTILES = {"p5_us": 5, "median_us": 50, "p95_us": 95, "worst_us": 100}


def study(folder: Path) -> dict[str, Any]:
    """Raises SpecfitError for a run whose measured times were not kept."""
    rows = load_run(folder)
    timings = rows.timings[rows.timings["cycle"] > 0]
    if not len(timings):
        raise SpecfitError(f"{folder} keeps no measured times; replay it again")
    spent_us = timings["selection_ns"].to_numpy(float) / 1e3
    found = {name: float(np.percentile(spent_us, at)) for name, at in PERCENTILES.items()}
    return {
        "info": asdict(rows.info),
        "requests": len(rows.ok_ids),
        "cycles": len(spent_us),
        "mean_us": float(spent_us.mean()),
        **found,
    }
