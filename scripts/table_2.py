"""Table 2 (sec. 4.2): the systems on reports, in CNN/DailyMail's place, at the primary cache.

python scripts/table_2.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.systems import systems_table
from specfit.report.artifact import Table, main
from specfit.report.reader import ResultsReader


def make(reader: ResultsReader) -> Table:
    return systems_table(reader, "table_2", "Table 2: CNN/DailyMail's place, main profile")


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
