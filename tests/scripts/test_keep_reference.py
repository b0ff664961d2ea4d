"""What is committed of finished suites: enough to draw from, small, and of no machine."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from specfit.base.entry import script
from specfit.base.types import SpecfitError
from specfit.report.degenerate import degenerate_of
from specfit.report.metrics import same_ids, summarise
from specfit.report.quantities import QUANTITIES
from specfit.storage.calibration_files import find_fit
from specfit.storage.manifest import read_manifest
from specfit.storage.pack import packed_below, study_text
from specfit.storage.rows import load_run, run_yaml
from specfit.storage.suite import REFERENCE, Cell, Suite, find_suite
from specfit.workflows.shown import show
from tests.fakes.rows import part, store_run

ROOT = Path(__file__).parents[2]
PROBE = {"request_id": "q1", "position": 8}
FIT = {"calibration_id": "fit", "cost": {"expert_ns": 1.0}}
RUN, OLD = "a" * 12, "f" * 12
SUITE = Suite(
    "table_2",
    "full",
    (),
    (
        Cell("news/specfit", "run", "selector=specfit", RUN),
        Cell("bench/selection", "bench", "", "selection"),
    ),
)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = store_run(
        tmp_path / "runs",
        [part("q1", (1, 2, 3), stop_reason="length"), part("q2", status="empty")],
        RUN,
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["identity"]["digests"] = {"calibration": "fit"}
    manifest["provenance"] = [{"argv": ["/home/x/specfit/run.py", "dataset.path=/home/x/q.jsonl"]}]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "run.yaml").write_text("results_dir: /home/x/results\nmodel:\n  path: package:w\n")
    for name, document in (
        ("bench/selection", {"median_us": 9}),
        ("calibrations/fit", FIT | {"probes": [PROBE, PROBE]}),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    SUITE.write(tmp_path)
    return tmp_path


def keep(results: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    asked = ["keep_reference.py", "--results", str(results), "--suite", "table_2", *arguments]
    monkeypatch.setattr(sys, "argv", asked)
    return script(import_module("keep_reference").main)


def test_kept_rows_say_what_the_live_ones_said(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keep(results, monkeypatch) == 0
    live, kept = load_run(results / "runs" / RUN), load_run(results / REFERENCE / "runs" / RUN)
    assert kept.info == live.info
    assert summarise(kept) == replace(summarise(live), elapsed_ns=None, atlas_ns=None)
    pd.testing.assert_frame_equal(kept.cycles, live.cycles)
    pd.testing.assert_frame_equal(kept.requests, live.requests)
    assert kept.timings.empty and list(kept.timings) == list(live.timings), "no two runs share them"
    assert find_fit("fit", results / REFERENCE) == FIT | {"states": 1}
    studies = [
        study_text(place / "bench/selection.json") for place in (results, results / REFERENCE)
    ]
    assert studies[0] == studies[1] and studies[0] is not None
    assert not (results / REFERENCE / "bench").exists(), "packed"
    assert study_text(results / REFERENCE / "bench/another.json") is None
    assert not list((results / REFERENCE).rglob("*.npz")), "residencies are for going on"


def test_where_sums_are_kept_every_ratio_stays_and_outputs_go(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace(SUITE, keeps="sums").write(results)
    assert keep(results, monkeypatch) == 0 and keep(results, monkeypatch) == 0, "and again"
    live, kept = load_run(results / "runs" / RUN), load_run(results / REFERENCE / "runs" / RUN)
    assert kept.cycles.empty and kept.sums is not None and len(kept.sums) == 2
    assert kept.requests[["output_ids", "output_text"]].isna().all(axis=None)
    assert summarise(kept) == replace(summarise(live), elapsed_ns=None, atlas_ns=None)
    for name, quantity in QUANTITIES.items():
        assert quantity.of(kept) == quantity.of(live), name
    assert degenerate_of(kept) == degenerate_of(live)
    assert same_ids(kept, live).compared == 0, "there is nothing to compare"
    (results / "runs").rename(results / "elsewhere")
    assert find_suite("table_2", results).suite.keeps == "sums"
    with pytest.raises(SpecfitError, match="is committed without its outputs; run it again"):
        show(RUN, results, 1)


def test_a_run_that_one_suite_keeps_whole_is_kept_whole(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = replace(SUITE, artifact="rivals", keeps="sums")
    shared.write(results)
    assert keep(results, monkeypatch, "rivals") == 0
    assert not load_run(results / REFERENCE / "runs" / RUN).cycles.empty


def test_a_clone_draws_from_what_was_kept(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(results, monkeypatch)
    (results / "runs").rename(results / "elsewhere")
    found = find_suite("table_2", results)
    assert found.is_reference and found.document("bench/selection") == {"median_us": 9}
    assert found.rows("news/specfit").ok_ids == ["q1"]


def test_no_path_of_the_machine_is_kept(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(results, monkeypatch)
    manifest = read_manifest(results / REFERENCE / "runs" / RUN)
    assert manifest is not None
    assert manifest.provenance == [{"argv": ["run.py", "dataset.path=q.jsonl"]}]
    told = run_yaml(results / REFERENCE / "runs" / RUN)
    assert told == "results_dir: results\nmodel:\n  path: package:w\n"


def test_what_no_suite_names_any_more_goes(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = Cell("news/old", "run", "", OLD)
    store_run(results / "runs", [part("q1")], OLD)
    (results / "runs" / OLD / "run.yaml").write_text("a: 1\n")
    Suite("table_2", "full", (), (*SUITE.cells, old)).write(results)
    assert keep(results, monkeypatch) == 0 and len(packed_below(results / REFERENCE / "runs")) == 2
    SUITE.write(results)
    keep(results, monkeypatch)
    assert [row.run_id for row in packed_below(results / REFERENCE / "runs")] == [RUN]
    assert keep(results, monkeypatch) == 0, "again, over what is there"


def test_suites_of_another_pair_are_kept_as_sums_beside_the_shipped(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keep(results, monkeypatch) == 0
    store_run(results / "runs", [part("q1")], OLD)
    (results / "runs" / OLD / "run.yaml").write_text("a: 1\n")
    paths = ("model.path=seed_2/target", "drafter.path=seed_2/drafter")
    other = Suite("table_2", "full", paths, (Cell("news/specfit", "run", "", OLD),))
    other.write(results)
    assert keep(results, monkeypatch, "--", *paths) == 0
    kept = load_run(results / REFERENCE / "runs" / OLD)
    assert kept.cycles.empty and kept.sums is not None
    assert not load_run(results / REFERENCE / "runs" / RUN).cycles.empty
    assert find_suite("table_2", results, other.variant).suite.arguments == paths
    assert keep(results, monkeypatch) == 0, "the shipped suites again"
    assert len(packed_below(results / REFERENCE / "runs")) == 2


def test_an_incomplete_suite_is_refused(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "bench" / "selection.json").unlink()
    assert keep(results, monkeypatch) == 2
    assert "suite table_2 is not complete; first: make reproduce" in capsys.readouterr().err
    assert not (results / REFERENCE).exists()
