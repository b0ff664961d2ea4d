"""Policies, prefetching, costs by residency and the goal without an oracle, from replays.

python scripts/table_movement.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from specfit.report.analysis import movement
from specfit.report.artifact import Table, main
from specfit.report.footer import INTERVALS, words_of
from specfit.report.reader import ResultsReader
from specfit.report.suite_runs import pick

SUITE = "movement"


def make(reader: ResultsReader) -> Table:
    members = reader.members(SUITE, kind="replay")
    workloads = dict.fromkeys(m.workload for m in members)
    fields = [movement.Field(pick(members, workload=workload)) for workload in workloads]
    rows = [m.rows for m in members]
    timed = words_of(rows)
    sheets = {
        "": movement.goal_sheet(fields, timed),
        "policies": movement.policy_sheet(fields, timed),
        "prefetch": movement.prefetch_sheet(fields, timed),
        "costs": movement.cost_sheet(fields, timed),
        "temperature": movement.temperature_sheet(fields, timed),
        "host": movement.host_sheet(fields, timed),
    }
    stamp = reader.stamp(rows, SUITE, extra=[INTERVALS])
    return Table("table_movement", "What moves, and when", sheets, stamp)


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
