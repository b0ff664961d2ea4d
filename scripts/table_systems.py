"""Systems side by side: one table per workload and slot count, from finished runs' rows.

    python scripts/table_systems.py --dataset embedded_gsm8k embedded_news --slots 48 12

Uncached systems stand beside every slot count. The ratio is to EAGLE-3 with a cache, which is what
the paper compares with.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specfit.results.compare import compare_table
from specfit.results.find import finished_runs
from specfit.results.rows import RunRows, load_run

SYSTEMS = ("ar", "ar_cache", "eagle3", "eagle3_cache", "specfit")
BASELINE = "eagle3_cache"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--dataset", nargs="+", default=["embedded_gsm8k", "embedded_news"])
    parser.add_argument("--slots", nargs="+", type=int, default=[48, 12])
    parser.add_argument("--profile", default="paper_main")
    parser.add_argument("--clock", default="modelled")
    parser.add_argument("--calibration-at", default="primary", choices=("primary", "own"))
    return parser.parse_args()


def rows_of(options: argparse.Namespace, dataset: str, slots: int) -> list[RunRows]:
    """The systems' runs at these slots, uncached ones at 0; of several, the one with most rows."""
    found = []
    for system in SYSTEMS:
        wanted = {
            "selector": system,
            "dataset": dataset,
            "profile": options.profile,
            "clock": options.clock,
            "cache_slots": 0 if system in ("ar", "eagle3") else slots,
        }
        if system == "specfit":
            wanted["calibration_at"] = options.calibration_at
        runs = [load_run(folder) for folder, _ in finished_runs(options.results / "runs", **wanted)]
        if not runs:
            raise LookupError(
                f"no finished run of {system}; run: python -m specfit.run selector={system} "
                f"cache_slots={slots} dataset={dataset} gpu={options.profile}"
            )
        found.append(max(runs, key=lambda run: len(run.request_ids)))
    return found


def main() -> int:
    options = parse()
    try:
        for dataset in options.dataset:
            for slots in options.slots:
                runs = rows_of(options, dataset, slots)
                baseline = next(run for run in runs if run.info.selector == BASELINE)
                print(f"### {dataset}, {slots} slots, calibration at {options.calibration_at}\n")
                print(compare_table(runs, baseline), end="\n\n")
    except LookupError as error:
        print(f"specfit: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
