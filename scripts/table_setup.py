"""The set-up: models, drafter, profiles and how their numbers are known, limits, fits, versions.

python scripts/table_setup.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from specfit.report.analysis.setup import (
    fits_sheet,
    profile_sheet,
    setup_sheet,
    versions_sheet,
    workload_sheet,
)
from specfit.report.artifact import Table, main
from specfit.report.reader import ResultsReader
from specfit.storage.rows import run_yaml

SUITES = ("table_2", "table_3", "table_4", "figure_4")
PROFILES = Path(__file__).resolve().parents[1] / "conf" / "gpu"


def make(reader: ResultsReader) -> Table:
    members = reader.members(*SUITES)
    configs = {m.rows.info.run_id: yaml.safe_load(run_yaml(m.folder)) for m in members}
    place = reader.place(*SUITES)
    profiles = {p.stem: yaml.safe_load(p.read_text("utf-8")) for p in PROFILES.glob("*.yaml")}
    sheets = {
        "": setup_sheet(members, configs, place),
        "profiles": profile_sheet(configs, profiles),
        "workloads": workload_sheet(members, configs),
        "fits": fits_sheet(members, place),
        "versions": versions_sheet([m.manifest for m in members]),
    }
    return Table("table_setup", "Set-up", sheets, reader.stamp([m.rows for m in members], *SUITES))


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
