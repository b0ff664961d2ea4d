"""Table 3 (sec. 4.3): the systems on word problems, in GSM8K's place, at the primary cache.

python scripts/table_3.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.systems import systems_table
from specfit.report.artifact import Table, main
from specfit.report.reader import ResultsReader


def make(reader: ResultsReader) -> Table:
    return systems_table(reader, "table_3", "Table 3: GSM8K's place, main profile")


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
