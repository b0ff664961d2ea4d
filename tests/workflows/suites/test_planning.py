"""Which cells a person gets: sizes, repeats, overrides. Ids are made up, nothing is composed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from specfit.base.config import RunConfig
from specfit.base.types import SpecfitError
from specfit.storage.identity import digest
from specfit.storage.suite import REFERENCE
from specfit.workflows.suites import planning, running
from specfit.workflows.suites.planning import Plan, Wanted, Work, plan_suites
from tests.fakes.rows import part, store_run

TWO = """
common: cache_slots=48
smoke: limit=1
preview: limit=8
groups:
  - kind: run
    axes:
      - {news: dataset=embedded_news, gsm8k: dataset=embedded_gsm8k}
      - {ar: selector=ar, specfit: selector=specfit}
"""
STUDY = """
smoke: limit=1
groups:
  - kind: replay
    axes: [{news: dataset=embedded_news}, {specfit: selector=specfit}]
  - kind: bench
    study: rules
    writes: study_{id}
    reads: replay
    axes: [{news: dataset=embedded_news}, {study: selector=specfit}]
  - kind: bench
    study: selection_time
    writes: selection
    smoke: scale=0.01
    axes: [{bench: ""}, {selection: ""}]
"""


CONFIG: RunConfig = None  # type: ignore[assignment]  # planning only carries it


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def work(line: Sequence[str], results: Path, is_replay: bool) -> Work:
        if "cache_slots=500" in line:
            raise SpecfitError("cache_slots is 500, but a layer has 128 experts; use all")
        recording = "r" * 12 if is_replay else None
        return Work(digest(sorted(line)), CONFIG, 0, 2, recording)

    monkeypatch.setattr(planning, "work_of", work)
    experiments = tmp_path / "experiments"
    experiments.mkdir()
    (experiments / "two.yaml").write_text(TWO)
    (experiments / "study.yaml").write_text(STUDY)
    return experiments


def lines(plan: Plan) -> dict[str, str]:
    return {one.cell.label: one.cell.overrides for one in plan.planned if not one.cell.repeat}


def planned(folder: Path, name: str = "two", *arguments: str, **wanted: object) -> Plan:
    (plan,) = plan_suites([name], Wanted(arguments=arguments, **wanted), folder)  # type: ignore[arg-type]
    return plan


def test_a_size_adds_to_every_line_and_a_person_replaces(folder: Path) -> None:
    assert lines(planned(folder))["news/ar"] == "cache_slots=48 dataset=embedded_news selector=ar"
    small = lines(planned(folder, "two", "cache_slots=12", "limit=3", size="preview"))
    assert small["gsm8k/specfit"].split() == [
        "cache_slots=12",
        "dataset=embedded_gsm8k",
        "selector=specfit",
        "limit=3",
    ]


def test_a_name_in_front_chooses_the_cells(folder: Path) -> None:
    found = lines(planned(folder, "two", "gsm8k:dataset=gsm8k", "specfit:selector.k=5"))
    assert "dataset=gsm8k" in found["gsm8k/ar"] and "selector.k" not in found["gsm8k/ar"]
    assert "dataset=embedded_news" in found["news/specfit"]
    assert "selector.k=5" in found["news/specfit"]
    # a name that only another suite has is for that one
    assert lines(planned(folder, "study", "gsm8k:dataset=gsm8k")) == lines(planned(folder, "study"))


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("dataset=gsm8k", "would give 2 workloads one dataset; say which, as in gsm8k:dataset="),
        ("dataset.path=a.jsonl", "would give 2 workloads one dataset"),
        ("cnn:dataset=x", "no suite has any; they are named ar, gsm8k, news, specfit, study"),
        ("results_dir=x", "use RESULTS="),
        ("repeat=2", "use REPEATS="),
        ("news:force=true", "remove its folder"),
        ("selector", "is not key=value"),
    ],
)
def test_an_override_that_no_suite_can_take_is_refused(
    folder: Path, argument: str, sentence: str
) -> None:
    with pytest.raises(SpecfitError, match=sentence):
        planned(folder, "two", argument)


def test_one_workload_may_be_replaced_whole(folder: Path) -> None:
    assert "dataset=gsm8k" in lines(planned(folder, "study", "dataset=gsm8k"))["news/specfit"]


def test_systems_are_interleaved_over_repeats(folder: Path) -> None:
    plan = planned(folder, "two", repeats=2)
    order = [(one.cell.label, one.cell.repeat) for one in running.todo([plan], folder)]
    assert order[:4] == [(label, 0) for label in lines(plan)]
    assert order[4:] == [(label, 1) for label in lines(plan)]
    assert len({one.cell.id for one in plan.planned}) == 8
    assert all("repeat=1" in one.overrides for one in plan.planned if one.cell.repeat)
    assert not any("repeat=" in one.cell.overrides for one in plan.planned if not one.cell.repeat)


def test_a_study_is_named_after_the_run_it_reads(folder: Path) -> None:
    replay, study, bench = planned(folder, "study", repeats=3).planned[:3]
    assert study.cell.id == f"study_{replay.cell.id}" and study.work == replay.work
    assert replay.work is not None and replay.work.recording == "r" * 12
    assert (bench.cell.id, bench.work) == ("selection", None)
    small = planned(folder, "study", "seed=3", size="smoke").planned[-1].cell
    assert (small.id, small.overrides) == ("selection-smoke", "scale=0.01")


def test_suites_share_runs_and_finished_ones_are_left_out(folder: Path, tmp_path: Path) -> None:
    plan = planned(folder)
    results = tmp_path / "results"
    assert len(running.todo([plan, plan], results)) == 4
    store_run(results / "runs", [part("q1")], plan.planned[1].cell.id)
    left = running.todo([plan], results)
    assert [one.cell.label for one in left] == ["news/ar", "gsm8k/ar", "gsm8k/specfit"]


def test_a_reference_row_is_no_finished_run(folder: Path, tmp_path: Path) -> None:
    plan = planned(folder)
    results = tmp_path / "results"
    for one in plan.planned:
        store_run(results / REFERENCE / "runs", [part("q1")], one.cell.id)
    assert len(running.todo([plan], results)) == 4


def test_a_cell_that_cannot_be_run_stops_no_other(folder: Path, tmp_path: Path) -> None:
    plan = planned(folder, "two", "specfit:cache_slots=500")
    assert [one.cell.label for one in plan.refused] == ["news/specfit", "gsm8k/specfit"]
    assert [one.cell.label for one in running.todo([plan], tmp_path)] == ["news/ar", "gsm8k/ar"]
    with pytest.raises(SpecfitError, match="a layer has 128 experts"):
        planned(folder, "two", "cache_slots=500")


def test_a_plan_that_is_only_shown_fetches_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the model, and the draft head only where something is drafted."""
    monkeypatch.setattr(planning, "_is_fetched", lambda repository: repository.key == "model")
    words = ("model=qwen3-30b-a3b", "drafter=redhat-eagle3")
    plan = planned(folder, "two", *words, is_to_run=False)
    assert [one.cell.label for one in plan.refused] == ["news/specfit", "gsm8k/specfit"]
    assert all("is not fetched; run `hf download" in str(one.refusal) for one in plan.refused)
    monkeypatch.setattr(planning, "_is_fetched", lambda repository: False)
    assert len(planned(folder, "two", *words, is_to_run=False).refused) == 4, "and it is shown"
