"""Whether the advice is right: against every setting over both workloads at four slot counts.

python scripts/table_advice.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.advice import advice_sheet
from specfit.report.artifact import Table, main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.reader import ResultsReader

SUITE = "advice"


def make(reader: ResultsReader) -> Table:
    rows = [member.rows for member in reader.members(SUITE, kind="replay")]
    found = reader.suites(SUITE)[0]
    cells = [cell for cell in found.suite.cells if cell.kind == "bench"]
    documents = [found.document(cell.label) for cell in cells]
    sheets = {"": advice_sheet(documents, words_of(rows))}
    stamp = reader.stamp(rows, SUITE, extra=[INTERVALS])
    return Table("table_advice", "What specfit.advise says, held against full runs", sheets, stamp)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
