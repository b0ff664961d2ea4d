"""Route sources: what of the exact routes' gain each keeps, its time, and how right it is.

python scripts/table_routes.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.routes import (
    clock_sheet,
    costs_sheet,
    kept_sheet,
    recall_sheets,
    settings,
    size_sheet,
    union_sheet,
)
from specfit.report.artifact import Table, main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.reader import ResultsReader

SUITE = "routes"


def make(reader: ResultsReader) -> Table:
    members, suite = reader.members(SUITE, kind="replay"), reader.suites(SUITE)[0]
    documents = [suite.document(c.label) for c in suite.suite.cells if c.kind == "bench"]
    found, rows = settings(members), [m.rows for m in members]
    timed = words_of(rows)
    sheets = {
        "": kept_sheet(found, timed),
        "costs": costs_sheet(found),
        "clock": clock_sheet(found, timed),
        "size": size_sheet(documents),
        **recall_sheets(documents),
        "union": union_sheet(documents),
    }
    stamp = reader.stamp(rows, SUITE, extra=[INTERVALS])
    return Table("table_routes", "Routes on the clock", sheets, stamp)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
