"""What `make reproduce` would do: cells, minutes, disk, what is already there. Nothing is run.

    python scripts/plan.py [--suite table_2 ..] [--size full|preview|smoke] [overrides]

Minutes and disk are those of finished runs like the cell (same model and output limit; workload,
selector and slots as close as there are), live or reference rows, whatever machine made them;
loading and calibrations are not counted.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from specfit.base.entry import needs_extras, script

with needs_extras():
    from specfit.storage.manifest import read_manifest
    from specfit.workflows.run_time import Estimate, Finished, estimate, finished_below
    from specfit.workflows.suites.asking import parser_of, plans_of
    from specfit.workflows.suites.planning import Plan, Planned
    from specfit.workflows.suites.running import todo

HEAD = f"{'cell':34} {'kind':7} {'id':22} {'state':12} {'minutes':>8} {'MB':>7}"


def main() -> int:
    options = parser_of(__doc__).parse_args()
    plans = plans_of(options)
    results = options.results
    finished = finished_below(results)
    for plan in plans:
        print(f"\n{plan.suite.artefact}: {len(plan.planned)} cells; {plan.suite.command}")
        print(HEAD)
        for one in plan.planned:
            print(line(one, results, estimate(one, finished)))
        print(subtotal(plan, results, finished))
    print(f"\n{totals(plans, results, finished)}")
    return 0


def line(one: Planned, results: Path, guess: Estimate | None) -> str:
    label = one.cell.label + (f" #{one.cell.repeat}" if one.cell.repeat else "")
    minutes, megabytes = "unknown", "unknown"
    if one.refusal is not None:
        return f"{label:34} {one.cell.kind:7} refused: {one.refusal}"
    if one.cell.is_there(results):
        minutes = megabytes = "-"
    elif guess is not None:
        minutes, megabytes = f"{guess.minutes:.1f}", f"{guess.size_bytes / 1e6:.2f}"
    where = state(one, results)
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


def subtotal(plan: Plan, results: Path, finished: list[Finished]) -> str:
    """Of one suite alone; what it shares with others is counted in each."""
    left = todo([plan], results)
    known = [guess for one in left if (guess := estimate(one, finished)) is not None]
    minutes, size = sum(one.minutes for one in known), sum(one.size_bytes for one in known) / 1e6
    unknown = f", {len(left) - len(known)} cells unknown" if len(known) < len(left) else ""
    return f"together: about {minutes:.1f} minutes and {size:.1f} MB{unknown}"


def totals(plans: list[Plan], results: Path, finished: list[Finished]) -> str:
    left = todo(plans, results)
    guesses = [estimate(one, finished) for one in left]
    known = [guess for guess in guesses if guess is not None]
    cells = sum(len(plan.planned) for plan in plans)
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(one.cell.kind for one in left).items())
    recordings = {one.work.recording for one in left if one.work and one.work.recording}
    absent = [name for name in recordings if not (results / "recordings" / name).is_dir()]
    said = [
        f"{cells} cells of {len(plans)} suites; {len(left)} to run, each once ({kinds or 'none'})",
        f"about {sum(guess.minutes for guess in known):.1f} minutes and "
        f"{sum(guess.size_bytes for guess in known) / 1e6:.1f} MB for {len(known)} of them, "
        f"{len(left) - len(known)} unknown",
        "loading and calibrations not counted",
    ]
    if absent:
        said.insert(1, f"{len(absent)} recordings to make, time unknown")
    return "; ".join(said)


if __name__ == "__main__":
    sys.exit(script(main))
