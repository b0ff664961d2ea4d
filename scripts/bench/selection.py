"""Selection time at the real geometry: rows to results/bench/selection.json.

python scripts/bench/selection.py [--scale 1.0]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    from specfit.workflows.studies import study_named, write_study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of calls")
    parser.add_argument("--out", type=Path, default=Path("results/bench/selection.json"))
    options = parser.parse_args()
    write_study("selection_time", study_named("selection_time")(options.scale), options.out)


if __name__ == "__main__":
    sys.exit(script(main))
