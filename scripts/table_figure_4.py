"""The numbers of figure 4 (sec. 4.4): SpecFit over EAGLE-3 at each slot count, paper beside ours.

python scripts/table_figure_4.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.slots import points, slots_paper_sheet, slots_sheet
from specfit.report.artifact import Table, main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.paper_values import claims_of
from specfit.report.reader import ResultsReader


def make(reader: ResultsReader) -> Table:
    members = reader.members("figure_4")
    rows = [m.rows for m in members]
    sheets = {
        "": slots_sheet(points(members), words_of(rows)),
        "paper": slots_paper_sheet(claims_of("figure_4"), members),
    }
    stamp = reader.stamp(rows, "figure_4", extra=[INTERVALS])
    return Table("table_figure_4", "Figure 4: gain against slots", sheets, stamp)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
