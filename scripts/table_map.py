"""Does speculation pay: at the package's profiles, and over the whole map.

python scripts/table_map.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.paying import atlas_of, profile_sheet, share_sheet
from specfit.report.artifact import Table, main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.reader import ResultsReader

SUITE = "map"


def make(reader: ResultsReader) -> Table:
    rows = [member.rows for member in reader.members(SUITE, kind="replay")]
    found = reader.suites(SUITE)[0]
    cells = [cell for cell in found.suite.cells if cell.kind == "bench"]
    atlases = [atlas_of(found.document(cell.label)) for cell in cells]
    sheets = {"": profile_sheet(atlases, words_of(rows)), "shares": share_sheet(atlases)}
    stamp = reader.stamp(rows, SUITE, extra=[INTERVALS])
    return Table("table_map", "Does speculation pay?", sheets, stamp)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
