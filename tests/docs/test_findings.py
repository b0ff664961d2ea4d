"""docs/findings.md names what is there: suites, artifacts, scripts, and committed values."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from specfit.report.artifacts import FIGURES

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
TABLES = ROOT / "results" / "reference" / "tables"


def test_every_suite_and_script_is_there() -> None:
    named = {name for said in re.findall(r'SUITE="?([\w ]+)"?`', TEXT) for name in said.split()}
    assert {"routes", "movement", "map", "rivals", "advice"} <= named
    for name in named:
        assert (ROOT / "experiments" / f"{name}.yaml").is_file(), name
    for path in re.findall(r"`(?:python )?(scripts/\w+\.py)", TEXT):
        assert (ROOT / path).is_file(), path


def test_every_artifact_is_drawn_and_its_rows_are_kept() -> None:
    for name in set(re.findall(r"`(table_\w+)`", TEXT)):
        assert (TABLES / f"{name}.csv").is_file() or (TABLES / f"{name}.md").is_file(), name
    for name in set(re.findall(r"`(figure_\w+)`", TEXT)):
        assert name in FIGURES, name


def test_every_finding_says_where_it_is_from() -> None:
    for section in TEXT.split("\n## ")[1:]:
        assert re.search(r"`(table_|figure_|make |python |scripts/)", section), section[:40]


@pytest.mark.parametrize(
    ("table", "chosen", "column", "shown"),
    [
        (
            "table_movement",
            {
                "workload": "synthetic reports",
                "profile": "as it is",
                "setting": "routes=learned, prefetch=layer",
            },
            "over SpecFit",
            "1.14",
        ),
        (
            "table_movement",
            {
                "workload": "synthetic word problems",
                "profile": "as it is",
                "setting": "routes=learned, prefetch=layer",
            },
            "over SpecFit",
            "1.17",
        ),
        (
            "table_movement",
            {
                "workload": "synthetic reports",
                "profile": "as it is",
                "setting": "routes=learned, prefetch=layer",
            },
            "over EAGLE-3, prefetching alike",
            "0.98",
        ),
        (
            "table_2_ratios",
            {"against": "EAGLE-3 + cache"},
            "tokens/s (modelled)",
            "0.95",
        ),
        (
            "table_3_ratios",
            {"against": "EAGLE-3 + cache"},
            "tokens/s (modelled)",
            "1.01",
        ),
        (
            "table_rivals",
            {"workload": "synthetic reports", "selector": "EVICT, early stop"},
            "48: against EAGLE-3 + cache",
            "1.04",
        ),
        (
            "table_rivals",
            {"workload": "synthetic word problems", "selector": "EVICT, early stop"},
            "48: against EAGLE-3 + cache",
            "1.07",
        ),
        (
            "table_rivals",
            {"workload": "synthetic word problems", "selector": "closure"},
            "12: against EAGLE-3 + cache",
            "1.28",
        ),
        (
            "table_routes",
            {"workload": "synthetic reports", "routes": "learned, top-k"},
            "12: kept",
            "0.823",
        ),
        (
            "table_routes",
            {"workload": "synthetic word problems", "routes": "learned, top-k"},
            "12: kept",
            "0.928",
        ),
    ],
)
def test_what_it_says_first_is_what_the_rows_give(
    table: str, chosen: dict[str, str], column: str, shown: str
) -> None:
    told = (TABLES / f"{table}.csv").read_text(encoding="utf-8").splitlines()
    lines = csv.DictReader(line for line in told if not line.startswith("#"))
    (row,) = [line for line in lines if all(v in line[k] for k, v in chosen.items())]
    value = next(v for k, v in row.items() if k.partition(", value")[0] == column)
    digits = len(shown.partition(".")[2])
    assert f"{float(value):.{digits}f}" == shown and shown in TEXT
