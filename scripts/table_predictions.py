"""What selections predicted against what came, and whether the drafter's probabilities hold.

python scripts/table_predictions.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.predictions import drafter_sheet, promised, promises_sheet
from specfit.report.artifact import Table, main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.reader import ResultsReader


def make(reader: ResultsReader) -> Table:
    promises, drafters, rows = promised(reader)
    sheets = {
        "": promises_sheet(promises, words_of(rows)),
        "drafter": drafter_sheet(drafters),
    }
    stamp = reader.stamp(rows, "predictions", extra=[INTERVALS])
    return Table("table_predictions", "Predicted against realised", sheets, stamp)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
