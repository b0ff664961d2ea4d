"""Headline ratios at half and double each assumed constant of the profile, from replays.

python scripts/table_constants.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.constants import constants_sheet
from specfit.report.artifact import Table, main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.reader import ResultsReader


def make(reader: ResultsReader) -> Table:
    members = reader.members("constants", kind="replay")
    rows = [m.rows for m in members]
    sheets = {"": constants_sheet(members, words_of(rows))}
    stamp = reader.stamp(rows, "constants", extra=[INTERVALS])
    return Table("table_constants", "What the assumed constants decide", sheets, stamp)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
