"""Every selection rule at every slot count on both workloads, and accepted tokens per expert moved.

python scripts/table_rivals.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.rivals import Field, anatomy_sheet, main_sheet, over_sheet
from specfit.report.artifact import Table, main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.reader import ResultsReader
from specfit.report.suite_runs import pick

SUITE = "rivals"
BASELINE = ("eagle3_cache", 7, "")
OURS = ("specfit", 7, "")


def make(reader: ResultsReader) -> Table:
    members = reader.members(SUITE, kind="replay")
    workloads = dict.fromkeys(m.workload for m in members)
    fields = [Field(pick(members, workload=workload)) for workload in workloads]
    rows = [m.rows for m in members]
    timed, most = words_of(rows), max(m.slots for m in members)
    sheets = {
        "": main_sheet(fields, BASELINE, timed),
        "over": over_sheet(fields, OURS),
        "cycle": anatomy_sheet(fields, most, timed),
    }
    stamp = reader.stamp(rows, SUITE, extra=[INTERVALS])
    return Table("table_rivals", "Selection rules side by side", sheets, stamp)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
