"""Runs a suite again, from nothing, and compares it with reference rows: a table of differences.

    python scripts/verify.py [--suite verify] [--size full] [--repeats n]

Every run is made anew in a scratch folder, in spite of rows that are there. A cell is identical,
within 0.5 %, or different; what the two manifests do not share stands below the table. On another
machine low bits may differ, and where two experts or two tokens nearly tie that changes an output:
such a difference is named and is no defect of either run. Exit code: 0, or 1 where a cell differs.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from specfit.base.entry import needs_extras, print_error, script

with needs_extras():
    from specfit.base.types import SpecfitError
    from specfit.storage.suite import REFERENCE, Suite, read_suite, variant_of
    from specfit.workflows.suites.comparing import DIFFERENT, Compared, compare_runs
    from specfit.workflows.suites.planning import Plan, parser_of, plans_of
    from specfit.workflows.suites.running import run_all, todo

DEFAULT = "verify"
NO_REASON = "nothing that the manifests hold: same versions, device and code"


def main() -> int:
    options = parser_of(__doc__).parse_args()
    options.suite = options.suite or [DEFAULT]
    from specfit.workflows.progress import say

    reference = {name: reference_of(name, options) for name in options.suite}
    with tempfile.TemporaryDirectory(prefix="specfit-verify-") as scratch:
        say(f"running again below {scratch}")
        results, options.results = options.results, Path(scratch)
        plans = plans_of(options)
        failed = run_all(todo(plans, options.results), options.results, say)
        compared = [
            one
            for plan in plans
            for one in compare(plan, reference[plan.suite.artifact], results, options.results)
        ]
        say(shown(compared))
    if failed:
        print_error(SpecfitError(f"{len(failed)} cells failed; first {failed[0].sentence()}"))
        return 2
    return 1 if any(one.verdict == DIFFERENT for one in compared) else 0


def reference_of(name: str, options: object) -> Suite:
    """The committed rows; a person's own where none are committed for this size and overrides."""
    size, overrides, results = (getattr(options, key) for key in ("size", "overrides", "results"))
    for place in (results / REFERENCE, results):
        suite = read_suite(place, name, variant_of(size, overrides))
        if suite is not None and not suite.missing(place):
            return suite
    raise SpecfitError(
        f"there are no rows to compare suite {name} with; make reproduce SUITE={name} leaves some"
    )


def compare(plan: Plan, reference: Suite, results: Path, scratch: Path) -> list[Compared]:
    """Cell by cell, by label: an id may be another one here. What a script measured is left out."""
    place = results / REFERENCE if not reference.missing(results / REFERENCE) else results
    there = {(cell.label, cell.repeat): cell for cell in reference.cells}
    return [
        compare_runs(
            f"{plan.suite.artifact}: {cell.label}",
            cell.path(scratch),
            there[cell.label, cell.repeat].path(place),
        )
        for cell in plan.suite.cells
        if cell.kind != "bench" and cell.is_there(scratch) and (cell.label, cell.repeat) in there
    ]


def shown(compared: Sequence[Compared]) -> str:
    """One line per cell, one column per metric; then the reasons, each with how often."""
    if not compared:
        return "nothing to compare"
    names = [difference.metric for difference in compared[0].differences]
    rows = [["cell", *names, "output ids", ""]]
    for one in compared:
        output = "=" if one.same_output else DIFFERENT
        rows.append([one.label, *(d.shown for d in one.differences), output, one.verdict])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
    verdicts = Counter(one.verdict for one in compared)
    lines.append(", ".join(f"{n} of {len(compared)} cells {name}" for name, n in verdicts.items()))
    reasons = Counter(reason for one in compared for reason in one.why or (NO_REASON,))
    if any(one.verdict != "identical" for one in compared):
        lines.append("what may be why, with the number of cells:")
        lines += [f"  {count:3} {reason}" for reason, count in reasons.most_common()]
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    sys.exit(script(main))
