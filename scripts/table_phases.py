"""Where a decode cycle's time goes, per system: the rows of tables 2 and 3.

python scripts/table_phases.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.phases import phases_sheet, splits
from specfit.report.artifact import Table, main
from specfit.report.footer import words_of
from specfit.report.reader import ResultsReader

SUITES = ("table_2", "table_3")


def make(reader: ResultsReader) -> Table:
    members = reader.members(*SUITES)
    rows = [m.rows for m in members]
    sheets = {"": phases_sheet(splits(members), words_of(rows))}
    title = "Where a decode cycle's time goes"
    return Table("table_phases", title, sheets, reader.stamp(rows, *SUITES))


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
