"""Section 4.6: SpecFit told wrong routes, and how long a selection takes (measured).

python scripts/table_section_4_6.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.accuracy import (
    REPLAYED,
    accuracy_members,
    accuracy_paper_sheet,
    accuracy_sheet,
    selection_bench,
    selection_sheet,
    told,
)
from specfit.report.artifact import Table, main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.paper_values import claims_of
from specfit.report.reader import ResultsReader


def make(reader: ResultsReader) -> Table:
    found = reader.suites("section_4_6")[0]
    members = accuracy_members(reader)
    rows = [m.rows for m in members]
    sheets = {
        "": accuracy_sheet(told(members, found.place), words_of(rows)),
        "paper": accuracy_paper_sheet(claims_of("section_4_6"), members),
        "selection": selection_sheet(selection_bench(found)),
    }
    stamp = reader.stamp(rows, "section_4_6", extra=[INTERVALS, REPLAYED])
    title = "Section 4.6: route accuracy, selection time"
    return Table("table_section_4_6", title, sheets, stamp)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
