"""Tables and figures as a whole: complete or not at all, from one place, the same bytes."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.draw import main
from specfit.base.entry import script
from specfit.base.types import SpecfitError
from specfit.report.artifact import write
from specfit.report.artifacts import FIGURES, TABLES, UNCOMMITTED
from specfit.report.draw import Made, make_all, names_of, split_names
from specfit.report.reader import ResultsReader
from specfit.storage.suite import Cell, Suite, read_suite, suite_path
from tests.fakes.rows import store_run
from tests.report.artifacts.members import decoding
from tests.scripts.drawable import made

ROOT = Path(__file__).parents[2]
DRAW = ROOT / "scripts" / "draw.py"


def test_a_table_is_written_in_three_spellings_with_its_stamp(tmp_path: Path) -> None:
    results = made(tmp_path)
    assert main(["--results", str(results), "--only", "table_2"]) == 0
    tables = results / "tables"
    assert sorted(path.name for path in tables.iterdir()) == [
        "table_2.csv",
        "table_2.md",
        "table_2.tex",
        "table_2_paper.csv",
        "table_2_ratios.csv",
        "table_2_robust.csv",
    ]
    for path in tables.iterdir():
        text = path.read_text().replace("\\_", "_")
        assert "n = 2 requests; clock modelled" in text and "000000000000, 111111111111" in text
    assert "\\toprule" in (tables / "table_2.tex").read_text()


def test_a_missing_run_is_named_with_its_command_and_nothing_is_drawn_half(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = made(tmp_path, leave_out="specfit")
    assert main(["--results", str(results), "--only", "table_2", "figure_2"]) == 2
    said = capsys.readouterr().err
    assert "the first news/specfit (444444444444); first: make reproduce SUITE=table_2" in said
    assert said.count("make reproduce") == 1, "each sentence once"
    assert said.startswith("specfit: table_2, figure_2: ")
    assert not (results / "tables").exists() and not (results / "figures").exists()
    index = json.loads((results / "artifacts.json").read_text())
    assert all("make reproduce SUITE=table_2" in entry["missing"] for entry in index.values())


def test_what_is_complete_is_written_beside_what_is_missing(tmp_path: Path) -> None:
    results = made(tmp_path)
    assert main(["--results", str(results), "--only", "table_2", "table_3"]) == 2
    assert (results / "tables" / "table_2.csv").is_file()
    assert not list((results / "tables").glob("table_3*"))
    index = json.loads((results / "artifacts.json").read_text())
    assert "make reproduce SUITE=table_3" in index["table_3"]["missing"]
    assert index["table_2"]["suites"] == {"table_2": "make reproduce SUITE=table_2"}
    assert "missing" not in index["table_2"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Results, and a folder that was not there with table 2 and figure 2 of them."""
    folder = tmp_path_factory.mktemp("drawn")
    results, out = made(folder / "results"), folder / "not" / "there"
    assert main(["table_2", "--results", str(results), "--out", str(out), "figure_2"]) == 0
    return results, out


def test_names_may_stand_alone_beside_overrides(drawn: tuple[Path, Path], tmp_path: Path) -> None:
    _, out = drawn
    assert sorted(json.loads((out / "artifacts.json").read_text())) == ["figure_2", "table_2"]
    assert split_names(["table_2", "model=x"]) == (["table_2"], ["model=x"])
    empty = tmp_path / "empty"
    assert main(["table_2", "--results", str(empty)]) == 2, "no rows: said, not raised"
    assert "missing" in json.loads((empty / "artifacts.json").read_text())["table_2"]


def test_an_unknown_word_is_one_sentence_and_nothing_is_written(tmp_path: Path) -> None:
    command = [sys.executable, str(DRAW), "table_1", "--results", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("specfit: no artifact is called table_1; there is")
    assert not list(tmp_path.iterdir())


def test_an_unknown_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script(lambda: main(["--results", str(tmp_path), "--only", "table_1"])) == 2
    assert "no artifact is called table_1; there is" in capsys.readouterr().err


def test_the_same_rows_give_the_same_bytes(drawn: tuple[Path, Path], tmp_path: Path) -> None:
    """Two processes: nothing of the time, the process or the order of hashes gets in."""
    results, first = drawn
    options = ["--results", str(results), "--out", str(tmp_path), "--only", "table_2", "figure_2"]
    command = [sys.executable, str(DRAW), *options]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    found = [
        {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
        for out in (first, tmp_path)
    ]
    assert found[0] == found[1]
    assert {p.suffix for p in found[0]} == {".md", ".tex", ".csv", ".pdf", ".svg", ".png", ".json"}
    index = json.loads((first / "artifacts.json").read_text())
    assert index["figure_2"]["files"] == [
        *("figure_2.narrow.svg", "figure_2.pdf", "figure_2.png", "figure_2.svg")
    ]
    assert index["figure_2"]["runs"] == index["table_2"]["runs"] and index["figure_2"]["alt"]


def test_a_preview_says_so_and_lies_apart(tmp_path: Path) -> None:
    results = made(tmp_path, "preview")
    assert suite_path(results, "table_2", "preview").is_file()
    assert main(["--results", str(results), "--size", "preview", "--only", "table_2"]) == 0
    text = (results / "variants" / "preview" / "tables" / "table_2.md").read_text()
    assert text.startswith(
        "### Table 2: synthetic reports (our stand-in for CNN/DailyMail) (preview)"
    )
    assert not (results / "tables").exists(), "a preview replaces nothing"


def test_rows_of_two_places_are_not_drawn_together(tmp_path: Path) -> None:
    """table_2 is there live, table_3 as reference alone: both come from there, or neither."""
    results = made(tmp_path)
    reference = tmp_path / "reference"
    shutil.copytree(tmp_path / "runs", reference / "runs")
    store_run(reference / "runs", decoding(1, 8), "9" * 12, selector="ar", cache_slots=0)
    cells = (Cell("gsm8k/ar", "run", "selector=ar", "9" * 12),)
    Suite("table_3", "full", (), cells).write(reference)
    with pytest.raises(SpecfitError, match="lie in two places"):
        ResultsReader(results).members("table_2", "table_3")
    live = read_suite(results, "table_2")
    assert live is not None
    live.write(reference)
    reader = ResultsReader(results)
    assert reader.place("table_2", "table_3") == reference
    assert len(reader.members("table_2", "table_3", "table_2")) == 6, "a run comes once"
    assert reader.place("table_2") == results


def test_names_are_those_of_the_functions_that_make_them() -> None:
    assert {"table_2", "table_setup"} <= set(TABLES) and {"figure_1", "figure_4"} <= set(FIGURES)
    for name, make in (TABLES | FIGURES).items():  # type: ignore[operator]
        assert make.__name__ == name and make.__doc__, name


REFERENCE = ROOT / "results" / "reference"


def cells(path: Path) -> list[list[str]]:
    """The rows of a table, without its heading and footer, which may be reworded."""
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(line for line in file if line[0] != "#")][1:]


def lacking(made: Made) -> dict[str, str]:
    """Missing although rows of their suites are committed."""
    return {n: why for n, why in made.missing.items() if not why.startswith("no run of suite")}


def test_what_has_no_committed_rows_is_made_once_its_suite_ran(tmp_path: Path) -> None:
    results = made(tmp_path)
    everything, there = names_of(), names_of(results=results)
    assert set(everything) - set(there) == set(UNCOMMITTED)
    assert names_of(only=["table_validation"], results=results) == ["table_validation"]
    for name in set(UNCOMMITTED.values()):
        Suite(name, "full", (), ()).write(results)
    assert names_of(results=results) == everything


def test_no_number_of_the_committed_tables_changes(tmp_path: Path) -> None:
    if not (REFERENCE / "tables").is_dir():
        pytest.skip("results/reference holds no tables yet: no reference rows are committed")
    (tmp_path / "reference").symlink_to(REFERENCE)
    made = make_all(ResultsReader(tmp_path), names_of(tables_only=True))
    assert not lacking(made)
    write(list(made.artifacts.values()), tmp_path)
    kept, again = (
        {p.name: cells(p) for p in (place / "tables").glob("*.csv")}
        for place in (REFERENCE, tmp_path)
    )
    assert set(again) == set(kept)
    for name in kept:
        assert again[name] == kept[name], name


@pytest.mark.slow
def test_every_figure_can_be_drawn_from_the_committed_rows(tmp_path: Path) -> None:
    if not (REFERENCE / "suites").is_dir():
        pytest.skip("results/reference holds no suites yet: no reference rows are committed")
    (tmp_path / "reference").symlink_to(REFERENCE)
    made = make_all(ResultsReader(tmp_path), FIGURES)
    assert not lacking(made)
    for name, figure in made.artifacts.items():
        kinds = ("narrow.svg", "pdf", "png", "svg")
        assert sorted(figure.files) == [f"{name}.{kind}" for kind in kinds]
        assert figure.alt.endswith(".") and figure.stamp.text
