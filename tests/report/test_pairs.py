"""A headline beside those of pairs of other training seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfit.report.artifacts.front import readme_table
from specfit.report.artifacts.systems import speed_over, table_2
from specfit.report.pairs import pairs_of
from specfit.report.reader import ResultsReader
from specfit.report.table_format import factor
from specfit.storage.suite import Cell, Suite
from tests.fakes.rows import store_run
from tests.report.artifacts.members import decoding

SPEEDS = {"ar": (8, 1), "ar_cache": (5, 1), "eagle3": (30, 3), "eagle3_cache": (12, 3)}
"""Milliseconds of a cycle and tokens it commits."""


def pair(results: Path, seed: int, specfit_ms: int, artifact: str = "table_2") -> Suite:
    """A suite of the pair of this seed; SpecFit commits two tokens in so many milliseconds."""
    dataset = "embedded_news" if artifact == "table_2" else "embedded_gsm8k"
    cells = []
    for number, (name, (ms, tokens)) in enumerate((SPEEDS | {"specfit": (specfit_ms, 2)}).items()):
        run_id = f"{dataset[-1]}{seed}{number}".ljust(12, "0")
        slots = 0 if name in ("ar", "eagle3") else 48
        said = {"selector": name, "cache_slots": slots, "dataset": dataset}
        store_run(results / "runs", decoding(tokens, ms), run_id, **said)
        cells.append(Cell(f"news/{name}", "run", f"selector={name}", run_id))
    folder = f"build/seed_{seed}"
    paths = (f"model.path={folder}/target", f"drafter.path={folder}/drafter")
    suite = Suite(artifact, "full", paths if seed > 1 else (), tuple(cells))
    suite.write(results)
    return suite


def test_the_range_is_over_the_shown_pair_and_every_other(tmp_path: Path) -> None:
    for seed, ms in ((1, 6), (2, 8), (3, 5)):
        pair(tmp_path, seed, ms)
    sheet = table_2(ResultsReader(tmp_path)).sheets["pairs"]
    heads = ("against", "the pair shown", "seed_2", "seed_3", "range over 3 pairs")
    assert sheet.columns == heads
    row = next(row for row in sheet.cells() if row[0].text == "EAGLE-3 + cache")
    values = [2 / ms / (3 / 12) for ms in (6, 8, 5)]
    assert [cell.value for cell in row[1:4]] == pytest.approx(values)
    assert (row[4].low, row[4].high) == pytest.approx((min(values), max(values)))
    assert row[4].text == "1.00 to 1.60x"


def test_one_pair_has_no_range(tmp_path: Path) -> None:
    pair(tmp_path, 1, 6)
    assert "pairs" not in table_2(ResultsReader(tmp_path)).sheets
    pair(tmp_path, 1, 6, "table_3")
    assert "pairs" not in readme_table(ResultsReader(tmp_path))


@pytest.mark.parametrize("reason", ["size", "overrides", "missing"])
def test_what_is_not_a_whole_suite_of_another_pair_does_not_count(
    tmp_path: Path, reason: str
) -> None:
    pair(tmp_path, 1, 6)
    other = pair(tmp_path, 2, 8)
    path = tmp_path / "suites" / other.variant / "table_2.json"
    path.unlink()
    size = "preview" if reason == "size" else "full"
    arguments = ("gpu.fixed_ms=20",) if reason == "overrides" else other.arguments
    extra = (Cell("news/lost", "run", "", "f" * 12),) if reason == "missing" else ()
    Suite("table_2", size, arguments, (*other.cells, *extra)).write(tmp_path)
    assert not pairs_of(ResultsReader(tmp_path), "table_2").others


def test_another_pair_shown_by_itself_has_no_range(tmp_path: Path) -> None:
    pair(tmp_path, 1, 6)
    other = pair(tmp_path, 2, 8)
    found = pairs_of(ResultsReader(tmp_path, other.variant), "table_2")
    assert not found.others
    shown = speed_over("eagle3_cache")(found.shown)
    assert shown is not None and shown.value == pytest.approx(2 / 8 / (3 / 12))


def test_a_system_that_one_pair_lacks_has_no_range(tmp_path: Path) -> None:
    for seed, ms in ((1, 6), (2, 8)):
        pair(tmp_path, seed, ms)
    found = pairs_of(ResultsReader(tmp_path), "table_2")
    assert found.range(speed_over("evict"), factor).text == "-"


def test_the_front_page_shows_the_range(tmp_path: Path) -> None:
    for seed, ms in ((1, 6), (2, 8)):
        for artifact in ("table_2", "table_3"):
            pair(tmp_path, seed, ms, artifact)
    lines = readme_table(ResultsReader(tmp_path)).splitlines()
    (row,) = [line for line in lines if "range over 2 pairs" in line]
    assert row.count("+0.0 to +33.3 %") == 2
