"""`python -m specfit.explain <run> [<run>]`: why the first is faster or slower than the second.

One run alone: all of its counters.

A run is an id in results/runs, results/replays or results/reference, the first letters of one, or
a folder. Reads rows alone: no model, no torch, no Hydra.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specfit.base.entry import script
from specfit.base.types import SpecfitError
from specfit.report.explain import explain
from specfit.report.explained import screen
from specfit.report.run_summary import closing_table, render
from specfit.storage.find import find_run
from specfit.storage.rows import RunRows, baseline_of, load_run


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m specfit.explain", description=__doc__)
    parser.add_argument("run", help="id or folder")
    parser.add_argument("base", nargs="?", help="id or folder of the run it is compared with")
    parser.add_argument("--results", type=Path, default=Path("results"))
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0, or 2 where the two cannot be compared."""
    options = parse(argv)
    try:
        if options.base is None:
            print(alone(load_run(find_run(options.run, options.results)), options.results))
            return 0
        run, base = (
            load_run(find_run(name, options.results)) for name in (options.run, options.base)
        )
        about = f"{run.info.run_id} against {base.info.run_id}: {run.info.dataset}, "
        about += f"{run.info.model}, profile {run.info.profile}, {run.info.device}"
        print(f"{about}\n{screen(explain(run, base))}")
    except SpecfitError as error:
        print(f"specfit: {error}", file=sys.stderr)
        return 2
    return 0


def alone(run: RunRows, results: Path) -> str:
    """Every counter of one run, beside the AR run of the same requests where there is one."""
    lines = closing_table(run, baseline_of(run, results / "runs"), results)
    return render(lines, f"run {run.info.run_id}")


if __name__ == "__main__":
    sys.exit(script(main))
