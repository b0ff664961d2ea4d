"""Table 5 (app. A.4): the ratio rule beside the throughput-optimal one, with the paper's values.

python scripts/table_5.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis.rules import fits_sheet, line_sheet, rules_sheet
from specfit.report.artifact import Table, main
from specfit.report.footer import INTERVALS
from specfit.report.reader import ResultsReader
from specfit.report.suite_runs import workload_of

SUITE = "table_5"
NOTES = (
    "Predicted times are the fit's (modelled); acceptances are the recorded ones; S^ is the ratio "
    "rule, S* the throughput-optimal one. The bound is ours (docs/selection.md), not eq. 7.",
)


def make(reader: ResultsReader) -> Table:
    rows = [member.rows for member in reader.members(SUITE, kind="replay")]
    found = reader.suites(SUITE)[0]
    studies = [found.document(cell.label) for cell in found.suite.cells if cell.kind == "bench"]
    sheets = {workload_of(study["info"]["dataset"]): rules_sheet(study) for study in studies}
    sheets |= {"line": line_sheet(studies), "fits": fits_sheet(studies)}
    title = "The ratio rule and the throughput-optimal one on recorded pools"
    return Table(SUITE, title, sheets, reader.stamp(rows, SUITE, extra=[INTERVALS]), NOTES)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
