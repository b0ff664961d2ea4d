"""Where an artifact's rows are looked for: all live, else all reference, else the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specfit.base.types import SpecfitError
from specfit.storage.suite import (
    REFERENCE,
    Cell,
    Suite,
    find_suite,
    read_suite,
    suite_path,
    variant_of,
)
from tests.fakes.rows import part, store_run

RUN, REPLAY = "a" * 12, "b" * 12
CELLS = (
    Cell("news/ar", "run", "selector=ar", RUN),
    Cell("news/specfit", "replay", "selector=specfit", REPLAY),
    Cell("bench/selection", "bench", "", "selection"),
)
SUITE = Suite("table_2", "full", (), CELLS)


def fill(place: Path, without: str = "") -> None:
    """Everything that SUITE needs, but for the cells of one kind."""
    for cell in CELLS:
        if cell.kind == without:
            continue
        if cell.kind == "bench":
            cell.path(place).parent.mkdir(parents=True, exist_ok=True)
            cell.path(place).write_text('{"paper_median_us": 2820.0}')
        else:
            store_run(cell.path(place).parent, [part("q1")], cell.id)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = SUITE.write(tmp_path)
    assert path == tmp_path / "suites" / "table_2.json"
    assert read_suite(tmp_path, "table_2") == SUITE
    assert json.loads(path.read_text())["command"] == "make reproduce SUITE=table_2"
    assert read_suite(tmp_path, "table_3") is None


def test_live_rows_are_taken_when_all_are_there(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / REFERENCE):
        fill(place)
        SUITE.write(place)
    found = find_suite("table_2", tmp_path)
    assert not found.is_reference and found.place == tmp_path and not found.is_preview
    assert found.labels == ["news/ar", "news/specfit", "bench/selection"]
    assert found.run_ids == [RUN, REPLAY]
    assert found.rows("news/specfit").info.run_id == REPLAY
    assert found.document("bench/selection") == {"paper_median_us": 2820.0}


@pytest.mark.parametrize("without", ["run", "replay", "bench"])
def test_one_missing_row_sends_the_whole_artifact_to_the_reference(
    tmp_path: Path, without: str
) -> None:
    fill(tmp_path, without)
    fill(tmp_path / REFERENCE)
    for place in (tmp_path, tmp_path / REFERENCE):
        SUITE.write(place)
    found = find_suite("table_2", tmp_path)
    assert found.is_reference
    assert [cell.kind for cell in found.lacking] == [without]
    assert all(str(found.path(label)).startswith(str(found.place)) for label in found.labels)


def test_a_clone_has_reference_rows_alone(tmp_path: Path) -> None:
    fill(tmp_path / REFERENCE)
    SUITE.write(tmp_path / REFERENCE)
    assert find_suite("table_2", tmp_path).is_reference


def test_the_reference_suite_names_live_runs_too(tmp_path: Path) -> None:
    fill(tmp_path)
    SUITE.write(tmp_path / REFERENCE)
    assert find_suite("table_2", tmp_path).place == tmp_path


def test_nothing_is_drawn_from_two_halves(tmp_path: Path) -> None:
    """Live rows lack the run and the reference lacks the replay: together they would do."""
    fill(tmp_path, "run")
    fill(tmp_path / REFERENCE, "replay")
    for place in (tmp_path, tmp_path / REFERENCE):
        SUITE.write(place)
    with pytest.raises(SpecfitError, match=r"first: make reproduce SUITE=table_2$"):
        find_suite("table_2", tmp_path)


def test_an_unfinished_run_is_missing(tmp_path: Path) -> None:
    fill(tmp_path)
    manifest = CELLS[0].path(tmp_path) / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"finished": False}))
    assert SUITE.missing(tmp_path) == [CELLS[0]]


def test_a_suite_nobody_ran_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(SpecfitError, match="make reproduce SUITE=figure_9"):
        find_suite("figure_9", tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"artefact": "x"}', '{"cells": [{"label": "a"}]}']
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    path = suite_path(tmp_path, "table_2")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(SpecfitError, match=r"table_2\.json is no suite"):
        read_suite(tmp_path, "table_2")


def test_other_sizes_and_overrides_lie_beside_the_shipped_suite(tmp_path: Path) -> None:
    preview = Suite("table_2", "preview", (), CELLS)
    other = Suite("table_2", "full", ("model=qwen3-30b-a3b", "gpu=local"), CELLS)
    paths = [suite.write(tmp_path) for suite in (SUITE, preview, other)]
    assert len(set(paths)) == 3
    assert read_suite(tmp_path, "table_2") == SUITE
    assert read_suite(tmp_path, "table_2", "preview") == preview
    assert read_suite(tmp_path, "table_2", variant_of("full", other.arguments)) == other
    fill(tmp_path)
    assert find_suite("table_2", tmp_path, "preview").is_preview
    assert other.command == 'make reproduce SUITE=table_2 ARGS="model=qwen3-30b-a3b gpu=local"'


def test_a_variant_is_its_overrides_in_any_order_and_a_plain_folder_name() -> None:
    a = variant_of("full", ["gpu=local", "dataset.path=/a/b/../c.jsonl"])
    assert a == variant_of("full", ["dataset.path=/a/b/../c.jsonl", "gpu=local"])
    assert a != variant_of("full", ["gpu=local", "dataset.path=/a/c.jsonl"])
    assert a != variant_of("preview", ["gpu=local", "dataset.path=/a/b/../c.jsonl"])
    assert "/" not in a and not a.startswith(".")
    assert variant_of() == "" and variant_of("smoke") == "smoke"


def test_repeats_of_a_cell_are_found_together(tmp_path: Path) -> None:
    ids = ["c" * 12, "d" * 12]
    cells = [Cell("news/ar", "run", "", run_id, repeat) for repeat, run_id in enumerate(ids)]
    for cell in cells:
        store_run(tmp_path / "runs", [part("q1")], cell.id, repeat=cell.repeat)
    suite = Suite("table_2", "full", (), tuple(cells))
    suite.write(tmp_path)
    found = find_suite("table_2", tmp_path)
    assert found.labels == ["news/ar"]
    assert [run.info.run_id for run in found.repeats("news/ar")] == ids
    assert suite.command == "make reproduce SUITE=table_2 REPEATS=2"
    with pytest.raises(SpecfitError, match="has no cell news/eagle3; it has news/ar"):
        found.rows("news/eagle3")
