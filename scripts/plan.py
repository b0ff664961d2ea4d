"""What `make reproduce` would do: cells, minutes, disk, what is already there. Nothing is run.

    python scripts/plan.py [--suite table_2 ..] [--cells] [--size full|preview|smoke] [overrides]

One line a suite; suites that are named, or --cells, show every cell. Minutes and disk are those of
finished runs like the cell (same model and output limit; workload, selector and slots as close as
there are), live or reference rows, whatever machine made them; loading and calibrations are not
counted. Of a model that is not fetched yet, they are by arithmetic on the machine of its profile.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from specfit.base.entry import needs_extras, print_error, script

with needs_extras():
    from specfit.base.types import SpecfitError
    from specfit.report.run_summary import counted
    from specfit.storage.manifest import read_manifest
    from specfit.workflows.run_time import Estimate, Finished, estimate, finished_below, unfetched
    from specfit.workflows.suites.planning import Plan, Planned, config_of, parser_of, plans_of
    from specfit.workflows.suites.running import todo

HEAD = f"{'cell':34} {'kind':7} {'id':22} {'state':12} {'minutes':>8} {'MB':>7}"
SUITES = f"{'suite':16} {'cells':>6} {'there':>6} {'to run':>7} {'refused':>8} {'minutes':>8}"


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--cells", action="store_true", help="every cell, also of all suites")
    options = parser.parse_args()
    plans = plans_of(options, is_to_run=False)
    results = options.results
    finished = finished_below(results)
    if options.cells or options.suite:
        show_cells(plans, results, finished)
    else:
        print(SUITES)
        for plan in plans:
            print(suite_line(plan, results, finished))
    print(f"\n{totals(plans, results, finished)}")
    return tell_refusals([one for plan in plans for one in plan.refused], finished)


def show_cells(plans: list[Plan], results: Path, finished: list[Finished]) -> None:
    for plan in plans:
        print(
            f"\n{plan.suite.artifact}: {counted(len(plan.planned), 'cell')}; {plan.suite.command}"
        )
        print(HEAD)
        for one in plan.planned:
            print(line(one, results, guess_of(one, finished)))


def suite_line(plan: Plan, results: Path, finished: list[Finished]) -> str:
    """Minutes of the cells that can be estimated, with a + where others cannot."""
    left = [one for one in todo([plan], results) if one.refusal is None]
    guesses = [guess_of(one, finished) for one in [*left, *plan.refused]]
    known = [guess.minutes for guess in guesses if guess is not None]
    minutes = f"{sum(known):.1f}{'+' if len(known) < len(guesses) else ''}" if known else "unknown"
    there = len(plan.planned) - len(left) - len(plan.refused)
    counts = f"{len(plan.planned):6} {there:6} {len(left):7} {len(plan.refused):8}"
    return f"{plan.suite.artifact:16} {counts} {minutes if guesses else '-':>8}"


def guess_of(one: Planned, finished: list[Finished]) -> Estimate | None:
    """By finished runs; by arithmetic where a model that is not fetched leaves the cell no id."""
    if one.refusal is None:
        return estimate(one, finished)
    if one.cell.kind == "bench":
        return None
    try:
        time = unfetched(config_of(one.overrides))
    except SpecfitError:
        return None
    return None if time is None else Estimate(time.elapsed_s / 60, 0.0)


def tell_refusals(refused: list[Planned], finished: list[Finished]) -> int:
    """Each reason once, on stderr. Exit code: 2 where a run is refused for more than that its model
    is to be fetched."""
    for why, count in Counter(str(one.refusal).partition(": ")[2] for one in refused).items():
        print_error(SpecfitError(f"{counted(count, 'cell')} cannot be run yet: {why}"))
    runs = [one for one in refused if one.cell.kind != "bench"]
    return 2 if any(guess_of(one, finished) is None for one in runs) else 0


def line(one: Planned, results: Path, guess: Estimate | None) -> str:
    label = one.cell.label + (f" #{one.cell.repeat}" if one.cell.repeat else "")
    minutes, megabytes = "unknown", "unknown"
    if one.refusal is None and one.cell.is_there(results):
        minutes = megabytes = "-"
    elif guess is not None:
        minutes = f"{guess.minutes:.1f}"
        megabytes = f"{guess.size_bytes / 1e6:.2f}" if guess.size_bytes else "unknown"
    where = "refused" if one.refusal is not None else state(one, results)
    return f"{label:34} {one.cell.kind:7} {one.cell.id:22} {where:12} {minutes:>8} {megabytes:>7}"


def state(one: Planned, results: Path) -> str:
    """there, missing, or how far an interrupted run came."""
    if one.cell.is_there(results):
        return "there"
    folder = one.cell.path(results)
    if one.cell.kind == "bench" or read_manifest(folder) is None:
        return "missing"
    done = sum(part.is_dir() for part in (folder / "parts").glob("[0-9]*"))
    return f"{done} of {one.work.requests if one.work else '?'}"


def totals(plans: list[Plan], results: Path, finished: list[Finished]) -> str:
    left = todo(plans, results)
    guesses = [estimate(one, finished) for one in left]
    known = [guess for guess in guesses if guess is not None]
    cells = sum(len(plan.planned) for plan in plans)
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(one.cell.kind for one in left).items())
    recordings = {one.work.recording for one in left if one.work and one.work.recording}
    absent = [name for name in recordings if not (results / "recordings" / name).is_dir()]
    whole = f"{counted(cells, 'cell')} of {counted(len(plans), 'suite')}"
    said = [
        f"{whole}; {len(left)} to run, each once ({kinds or 'none'})",
        f"about {sum(guess.minutes for guess in known):.1f} minutes and "
        f"{sum(guess.size_bytes for guess in known) / 1e6:.1f} MB for {len(known)} of them, "
        f"{len(left) - len(known)} unknown",
        "loading and calibrations not counted",
    ]
    if absent:
        said.insert(1, f"{counted(len(absent), 'recording')} to make, time unknown")
    return "; ".join(said)


if __name__ == "__main__":
    sys.exit(script(main))
