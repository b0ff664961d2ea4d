"""Blocks that are run anew, parts, and cells that wait for another's file. Ids are made up."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import reproduce
from specfit.base.config import RunConfig
from specfit.base.types import SpecfitError
from specfit.report.sandwich import TRIES
from specfit.storage.identity import digest
from specfit.storage.suite import read_suite
from specfit.workflows.suites import planning, running
from specfit.workflows.suites.planning import Plan, Planned, Wanted, Work, plan_suites
from specfit.workflows.suites.running import todo
from tests.fakes.rows import part, store_run

SUITE = """
common: gpu=local
smoke: limit=1
sandwich: base again
groups:
  - kind: bench
    study: probe
    writes: probe-x
    smoke: tokens=4
    axes: [{link: ""}]
  - kind: run
    common: gpu.profile=probe-x
    axes:
      - {news: dataset=embedded_news}
      - {24: cache_slots=24, 48: cache_slots=48}
      - base: selector=eagle3_cache
        specfit: selector=specfit
        again: selector=eagle3_cache repeat=1
  - kind: replay
    common: gpu.clock=modelled
    axes:
      - {news: dataset=embedded_news}
      - {24: cache_slots=24}
      - {base: selector=eagle3_cache}
      - {model: ""}
"""
CONFIG: RunConfig = None  # type: ignore[assignment]  # planning only carries it


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs need the probe's file, as `gpu.profile` does."""

    def work(line: Sequence[str], results: Path, is_replay: bool) -> Work:
        if not is_replay and not (results / "bench" / "probe-x.json").is_file():
            raise SpecfitError("gpu.profile is no file of a probe")
        return Work(digest(sorted(line)), CONFIG, 0, 2, "r" * 12 if is_replay else None)

    monkeypatch.setattr(planning, "work_of", work)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "some.yaml").write_text(SUITE)
    return tmp_path


def planned(results: Path) -> Plan:
    (plan,) = plan_suites(["some"], Wanted(results=results), results / "experiments")
    return plan


def probe(results: Path) -> None:
    (results / "bench").mkdir(exist_ok=True)
    (results / "bench" / "probe-x.json").write_text("{}")


def run(one: Planned, results: Path, ms: float = 4.0) -> None:
    """As if the cell had run; a cycle takes so long."""
    if one.cell.kind == "bench":
        probe(results)
        return
    folder = results / {"run": "runs", "replay": "replays"}[one.cell.kind]
    store_run(folder, [part("a", verify_ns=round(ms * 1e6))], one.cell.id, clock="wall")


def labels(plan: Plan) -> list[str]:
    return [one.cell.label for one in plan.planned if one.cell.kind == "run"]


BLOCK = ["news/24/base", "news/24/specfit", "news/24/again"]
OTHER = ["news/48/base", "news/48/specfit", "news/48/again"]
SECOND = [f"{label}/try2" for label in BLOCK]


@pytest.mark.parametrize(("again_ms", "second"), [(4.1, []), (4.5, SECOND)])
def test_a_block_is_run_anew_where_its_baselines_differ_by_more_than_5_percent(
    results: Path, again_ms: float, second: list[str]
) -> None:
    """Of a cycle of 5 ms (a draft is 1 of them), 0.1 ms are 2 % and 0.5 are 9.5 %."""
    probe(results)
    assert labels(planned(results)) == [*BLOCK, *OTHER], "nothing is known yet"
    for one in planned(results).planned:
        if one.cell.label in BLOCK:
            run(one, results, again_ms if one.cell.label.endswith("again") else 4.0)
    plan = planned(results)
    assert labels(plan) == [*BLOCK, *second, *OTHER]
    cells = {one.cell.label: one for one in plan.planned}
    for label in second:
        repeat = "repeat=3" if "again" in label else "repeat=2"
        assert repeat in cells[label].overrides and label in {
            o.cell.label for o in todo([plan], results)
        }
    assert len({one.cell.id for one in plan.planned}) == len(plan.planned)


def test_tries_end_with_the_first_steady_one_or_the_last(results: Path) -> None:
    probe(results)
    for number in range(TRIES + 1):
        for one in todo([planned(results)], results):
            if "/24/" in one.cell.label and one.cell.kind == "run":
                run(one, results, 9.0 if "again" in one.cell.label else 4.0)
        known = [label for label in labels(planned(results)) if label.startswith("news/24/base")]
        assert len(known) == min(number + 2, TRIES)


def reproduced(results: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[str]:
    """Labels in the order that `make reproduce` ran them; the first `again` is the slow one."""
    ran: list[str] = []

    def runs(cells: Sequence[Planned], results: Path, say: object) -> list[running.Failed]:
        for one in cells:
            ran.append(one.cell.label)
            run(one, results, 9.0 if one.cell.label == "news/24/again" else 4.0)
        return []

    monkeypatch.setattr(running, "run_all", runs)
    folders = ["--results", str(results), "--experiments", str(results / "experiments")]
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--suite", "some", *options, *folders])
    assert reproduce.main() == 0
    return ran


def test_one_command_probes_runs_and_repeats(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = "news/24/base/model"
    assert reproduced(results, monkeypatch) == ["link", model, *BLOCK, *OTHER, *SECOND]
    suite = read_suite(results, "some")
    assert suite is not None and not suite.missing(results)
    assert suite.command == "make reproduce SUITE=some"
    assert reproduced(results, monkeypatch) == [], "everything is there"


def test_a_part_is_drawn_from_what_was_asked_for(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["--part", "link", "48"]
    assert reproduced(results, monkeypatch, *asked) == ["link", *OTHER]
    suite = read_suite(results, "some")
    assert suite is not None and [cell.label for cell in suite.cells] == ["link", *OTHER]
    assert not suite.missing(results)
    ran = reproduced(results, monkeypatch, "--part", "24")
    assert ran == [*BLOCK, f"{BLOCK[0]}/model", *SECOND]
    suite = read_suite(results, "some")
    assert suite is not None and {*OTHER, *SECOND} <= {cell.label for cell in suite.cells}


def test_a_part_that_no_cell_is_in_is_one_sentence(results: Path) -> None:
    options = planning.parser_of("x").parse_args(
        ["--suite", "some", "--part", "96", "--experiments", str(results / "experiments")]
    )
    with pytest.raises(SpecfitError, match="no cell has 96 in its label"):
        planning.plans_of(options, is_to_run=False)


def test_runs_of_a_block_take_turns(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = results / "experiments" / "some.yaml"
    path.write_text(path.read_text().replace("sandwich:", "turn: 4\nsandwich:"))
    probe(results)
    turns: list[tuple[str, int]] = []

    def some_requests(one: Planned, where: Path, say: object, until: int) -> bool:
        """Of ten."""
        turns.append((one.cell.label, until))
        if until >= 10:
            run(one, where)
        return until >= 10

    monkeypatch.setattr(running, "_run", some_requests)
    cells = [one for one in todo([planned(results)], results) if one.cell.kind == "run"]
    assert running.run_all(cells, results, lambda text: None) == []
    assert turns == [(label, n) for block in (BLOCK, OTHER) for n in (4, 8, 12) for label in block]


def test_a_run_that_ends_without_rows_is_not_asked_again(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = results / "experiments" / "some.yaml"
    path.write_text(path.read_text().replace("sandwich:", "turn: 4\nsandwich:"))
    probe(results)
    monkeypatch.setattr(running, "_run", lambda *_: True)
    cells = [one for one in todo([planned(results)], results) if one.cell.kind == "run"]
    failed = running.run_all(cells, results, lambda text: None)
    assert [one.why for one in failed] == ["it left no finished rows"] * 6


@pytest.mark.parametrize("turn", ["0", "a"])
def test_a_turn_is_a_number_of_requests(results: Path, turn: str) -> None:
    path = results / "experiments" / "some.yaml"
    path.write_text(path.read_text().replace("sandwich:", f"turn: {turn}\nsandwich:"))
    with pytest.raises(SpecfitError, match="is a number of requests"):
        planned(results)
