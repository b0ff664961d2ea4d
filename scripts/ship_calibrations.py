"""Makes the calibrations that the package ships: those of the default settings.

    python scripts/ship_calibrations.py

Run it after the embedded pair, its calibration questions or a default setting has changed: a test
fails while the default settings' calibration is not among the shipped ones. Modelled clock, so that
the figures do not depend on the machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    from specfit.base.config import from_hydra
    from specfit.storage import atomic
    from specfit.storage.calibration_files import SHIPPED

SETTINGS = ((), ("cache_slots=0",))
"""What cached runs share (calibration.at=primary), and what runs without a cache use."""


def main() -> int:
    from specfit.decoding.calibration.files import calibrated_cost
    from specfit.decoding.live import build_runtime
    from specfit.decoding.resolve import resolve
    from specfit.workflows.hydra_cli import compose

    documents = []
    with tempfile.TemporaryDirectory(prefix="specfit-ship-") as scratch:
        for overrides in SETTINGS:
            spec = resolve(from_hydra(compose([*overrides, "device=cpu", "force=true"])))
            calibration = calibrated_cost(spec, build_runtime, Path(scratch))
            print(calibration.sentence())
            documents.append(dict(calibration.document))
    documents.sort(key=lambda document: document["calibration_id"])
    atomic.write_text(SHIPPED, "".join(json.dumps(one) + "\n" for one in documents))
    print(f"{SHIPPED}: {len(documents)} calibrations, {SHIPPED.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(script(main))
