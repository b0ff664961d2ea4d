"""Runs what the suites of experiments/ need and is missing; says which run is which cell.

    python scripts/reproduce.py [--suite table_2 ..] [--part 24 ..] [--size full|preview|smoke]
                                [overrides]

One process, so that runs share the loaded model and calibrations, unless a --launcher is named. A
finished run is found by its id, an interrupted one goes on after its last request, one that fails
stops no other. Writes results/suites/<artifact>.json, which is what figures and tables are drawn
from; for another size or other overrides into a folder of its own there.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from specfit.base.entry import needs_extras, print_error, script

with needs_extras():
    from specfit.base.types import SpecfitError
    from specfit.report.run_summary import counted
    from specfit.storage.suite import FULL
    from specfit.workflows.suites.planning import Plan, Planned, parser_of, plans_of
    from specfit.workflows.suites.running import Failed


def main() -> int:
    """Exit code: 0; 2 where a cell failed or nothing could be planned."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--launcher",
        nargs="+",
        metavar=("NAME", "hydra.launcher.KEY=VALUE"),
        help="of conf/hydra/launcher: runs become its jobs, several at once",
    )
    options = parser.parse_args()
    from specfit.workflows.progress import say
    from specfit.workflows.suites.running import sentences

    plans, failed = everything(options, say)
    refused = [one for plan in plans for one in plan.refused]
    for plan in plans:
        if plan.refused:
            continue  # without ids there is nothing to say
        lacking = len(plan.suite.missing(options.results))
        state = f"{lacking} of {len(plan.planned)} missing" if lacking else "complete"
        say(f"{plan.suite.write(options.results)}: {state}")
    if not failed and not refused:
        say(f"next: {next_command(options)}")
    for sentence in sentences(failed):
        print_error(SpecfitError(sentence))
    for one in refused:
        print_error(SpecfitError(f"refused: {one.cell.label}: {one.refusal}"))
    return 2 if failed or refused else 0


def everything(
    options: argparse.Namespace, say: Callable[[str], None]
) -> tuple[list[Plan], list[Failed]]:
    """Plans and runs, again while what has run asks for more: cells that read another cell's file,
    and blocks whose baselines were not equally fast. Each cell is tried once."""
    from specfit.workflows.suites.running import run_all, todo

    plans, failed, tried = plans_of(options), [], set[tuple[str, str]]()
    while True:
        left = todo(plans, options.results)
        left = [one for one in left if (one.cell.kind, one.cell.id) not in tried]
        cells = sum(len(plan.planned) for plan in plans)
        if left or not tried:
            whole = f"{counted(cells, 'cell')} of {counted(len(plans), 'suite')}"
            say(f"{whole}; {len(left)} to run, the rest is there")
        if not left:
            return plans, failed
        tried |= {(one.cell.kind, one.cell.id) for one in left}
        if options.launcher:
            failed += launched(left, options)
            left = [one for one in left if one.cell.kind != "run"]
        failed += run_all(left, options.results, say)
        if not any(plan.may_grow for plan in plans):
            return plans, failed
        plans = plans_of(options)


def next_command(options: argparse.Namespace) -> str:
    """What draws these rows."""
    words = ["make figures report"]
    words += [f"SIZE={options.size}"] if options.size != FULL else []
    words += [f"RESULTS={options.results}"] if options.results != Path("results") else []
    words += [f"ARGS={shlex.quote(' '.join(options.overrides))}"] if options.overrides else []
    return " ".join(words)


def launched(left: list[Planned], options: argparse.Namespace) -> list[Failed]:
    """Runs as jobs; returns those that have not finished then."""
    from specfit.workflows.suites.launching import launch

    runs = [one for one in left if one.cell.kind == "run"]
    name, *values = options.launcher
    if runs:
        launch(runs, options.results, name, values)
    why = "its job said why above"
    return [Failed(one.cell, why) for one in runs if not one.cell.is_there(options.results)]


if __name__ == "__main__":
    sys.exit(script(main))
