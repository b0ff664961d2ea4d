"""Section 4.6: wrong routes, and selection time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specfit.base.types import SpecfitError
from specfit.report.artifacts.accuracy import (
    SELECTION_ROWS,
    accuracy_paper_sheet,
    accuracy_sheet,
    believed_union,
    selection_sheet,
    told,
)
from specfit.report.paper_values import claims_of
from specfit.workflows.studies.selection_cycles import study
from tests.fakes.rows import part, store_run
from tests.report.artifacts.members import decoding, member, texts

ONE = 1 << 20  # a probability of 1, and a token of reward


COST = {"intercepts_ns": [1000.0, 2000.0, 4000.0], "expert_ns": 10.0}


def noisy(
    accuracy: float, ms: float, believed: int, place: Path, dataset: str = "embedded_news"
) -> Any:
    """Two nodes a cycle, whose union the selector took for `believed`."""
    path = place / "calibrations" / "fit.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cost": COST}))
    exact = {} if accuracy == 1 else {"routes": {"name": "noisy", "accuracy": accuracy}}
    predicted = {"predicted_ns": 4000 + 10 * believed, "predicted_reward": 2 * ONE}
    return member(
        "specfit",
        48,
        decoding(3, ms, **predicted),
        exact,
        {"calibration": "fit"},
        run_id=f"n{round(100 * accuracy)}",
        dataset=dataset,
    )


def test_accuracy_lines_hold_speed_and_both_unions(tmp_path: Path) -> None:
    members = [
        member("ar", 0, decoding(1, 8)),
        member("eagle3_cache", 48, decoding(3, 12)),
        noisy(0.6, 9, 14, tmp_path),
        noisy(1.0, 6, 10, tmp_path),
    ]
    found = told(members, tmp_path)
    assert [t.accuracy for t in found] == [1.0, 0.6]
    assert [t.over_ar.value for t in found] == pytest.approx([4.0, 8 / 3])
    assert [t.over_eagle.value for t in found] == pytest.approx([2.0, 12 / 9])
    assert [t.demand.value for t in found] == [10.0, 10.0]
    assert [t.believed.value for t in found] == [10.0, 14.0]
    sheet = accuracy_sheet(found, "modelled")
    assert texts(sheet, "routes right, %") == ["100", "60"]
    assert texts(sheet, "union believed / cycle") == ["10.0", "14.0"]


def test_the_papers_point_is_compared_at_its_accuracy(tmp_path: Path) -> None:
    held = [
        member("ar", 0, decoding(1, 8), dataset="embedded_gsm8k"),
        noisy(1.0, 6, 10, tmp_path, "embedded_gsm8k"),
        noisy(0.6, 8, 10, tmp_path, "embedded_gsm8k"),
    ]
    sheet = accuracy_paper_sheet(claims_of("section_4_6"), held)
    assert texts(sheet, "ours") == ["3.00x", "4.00x"]
    assert texts(sheet, "paper") == ["2.26x", "2.29x"]
    assert "routes 60 % right" in texts(sheet, "quantity")[0]


def test_a_run_without_a_fit_believed_nothing(tmp_path: Path) -> None:
    with pytest.raises(SpecfitError, match="without a fit"):
        believed_union(member("specfit", 48), tmp_path)


def bench(names: tuple[str, ...] = SELECTION_ROWS) -> dict[str, Any]:
    times = {"p5_us": 1.0, "median_us": 2.0, "p95_us": 3.0, "worst_us": 40.0}
    rows = [{"what": n, "nodes": 18, "pools": 5, "calls": 10} | times for n in names]
    machine = {"cpu": "a processor", "load_average_before": [0.1, 0, 0]}
    shape = {"layers": 48, "experts": 128, "top": 8}
    return {"table": rows, "machine": machine, "geometry": shape}


def test_selection_time_is_measured_and_says_where() -> None:
    sheet = selection_sheet(bench())
    assert "measured" in sheet.title and "one core of a processor, load 0.1" in sheet.note
    assert texts(sheet, "median, us") == ["2.00"] * 4
    assert "No selection time of SpecFit's own cycles" in sheet.note
    with pytest.raises(SpecfitError, match="no row"):
        selection_sheet(bench(("search",)))


def test_a_runs_own_cycles_stand_below_the_bench(tmp_path: Path) -> None:
    """Every cycle of these rows selected for 7 ns; prefill is no cycle."""
    folder = store_run(tmp_path, [part("a"), part("b")], dataset="embedded_news")
    own = study(folder)
    assert (own["cycles"], own["requests"]) == (4, 2)
    assert own["median_us"] == own["worst_us"] == pytest.approx(0.007)
    sheet = selection_sheet(bench(), [own])
    assert texts(sheet, "what")[-1] == "a cycle of SpecFit's own, synthetic reports"
    assert texts(sheet, "median, us")[-1] == "0.00700"
    assert "all levels, as replayed on a processor" in sheet.note
