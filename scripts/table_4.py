"""Table 4 (sec. 4.5): the systems on the RTX 4090 profile, and SpecFit without a cache.

python scripts/table_4.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.systems import systems_table
from specfit.report.artifact import Table, main
from specfit.report.reader import ResultsReader


def make(reader: ResultsReader) -> Table:
    return systems_table(reader, "table_4", "Table 4: GSM8K's place, RTX 4090 profile")


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
