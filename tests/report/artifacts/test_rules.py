"""Table 5's sheets from a study written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from specfit.report.artifacts.rules import (
    clusters_by_name,
    fits_sheet,
    line_sheet,
    realised,
    rules_sheet,
)
from specfit.report.table_format import to_markdown
from tests.fakes.rows import part
from tests.report.artifacts.members import member

RULES = {
    "cycles": 40,
    "best_throughput": 2e-8,
    "ratio_throughput": 1.98e-8,
    "gap": 0.01,
    "relative_bound": 0.0234567,
    "different": 0.25,
    "early_stops": 0.5,
    "levels": 3.0,
    "lost_by_stop": 0.125,
    "stop_loss": 0.001,
    "stop_gain": -0.00001,
    "nodes_per_token": 1.0,
    "nodes_per_token_double": 0.5,
    "demand_per_token": 60.0,
    "demand_per_token_double": 45.0,
}
LINE = dict.fromkeys(
    ("different", "loss", "gain", "realised_gain", "above_limit", "limit_loss", "limit_gain"), 0.5
) | {"largest": 9}
RECORDED = {
    "tokens_best": [30.0, 20.0],
    "ns_best": [10.0, 10.0],
    "tokens_ratio": [15.0, 10.0],
    "ns_ratio": [6.0, 6.0],
}


def document(dataset: str = "embedded_news", **fits: Any) -> dict[str, Any]:
    weighting = {"rules": RULES, "line": LINE, "recorded": RECORDED}
    fit = {"intercepts_ns": [5e6, 6e6], "expert_ns": 2500.0, "mean_relative_error": 0.05}
    return {
        "info": {"dataset": dataset, "clock": "modelled"},
        "fits": {"free": fit, "line": fit} | fits,
        "weightings": {"every position": weighting, "cycles of the run": weighting},
    }


def test_the_papers_value_stands_beside_ours() -> None:
    sheet = rules_sheet(document())
    cells = {str(row[0].text): [cell.text for cell in row[1:]] for row in sheet.cells()}
    assert cells["cycles"] == ["40", "40", "-"]
    assert cells["lambda*, tokens/s (modelled)"] == ["20.000", "20.000", "-"]
    assert cells["gap of the ratio rule to lambda*"] == ["1.000 %", "1.000 %", "below 1 %"]
    assert cells["cycles in which the two rules part"][-1] == "about a quarter"
    assert cells["stops before the last level"] == ["50.0 %", "50.0 %", "85.8 %"]
    assert cells["tokens per time by stopping"][0] == "+0.00 %", "no negative nothing"
    assert cells["nodes per committed token"] == ["1.000", "1.000", "-"]
    assert cells["with twice beta in selection"] == ["45.0", "45.0", "falls"], "of the demand"
    gsm8k = rules_sheet(document("embedded_gsm8k")).cells()
    assert [row[-1].text for row in gsm8k if row[0].text.startswith("stops")] == ["33.7 %"]


def test_pools_that_end_where_drafting_stopped_say_nothing_of_stopping() -> None:
    study = document()
    rules = RULES | {"early_stops": None, "gap": 0.008}
    study["weightings"]["drafted pools"] = {"rules": rules, "line": LINE, "recorded": RECORDED}
    sheet = rules_sheet(study)
    assert sheet.columns[3:] == ("pools SpecFit drafted", "paper")
    cells = {str(row[0].text): row[3].text for row in sheet.cells()}
    assert cells["gap of the ratio rule to lambda*"] == "0.800 %"
    assert cells["stops before the last level"] == "-"


def test_the_realised_gain_is_a_ratio_of_sums_resampled_by_request() -> None:
    found = realised(document()["weightings"]["every position"], None)
    assert found.value == pytest.approx((50 / 20) / (25 / 12)) and found.n == 2
    assert found.low is not None and found.low <= found.value


def test_the_realised_gain_has_the_wider_of_the_two_intervals() -> None:
    """Requests of a template gain alike: templates say less than as many requests."""
    gains = [1.5] * 6 + [1.0] * 6
    sums = {"tokens_best": gains, "ns_best": [1.0] * 12}
    weighting = {"recorded": sums | {"tokens_ratio": [1.0] * 12, "ns_ratio": [1.0] * 12}}
    alone = realised(weighting, None)
    found = realised(weighting, ["shop"] * 6 + ["farm"] * 6)
    assert found.value == alone.value and found.clusters == 2 and found.width > alone.width
    study = document()
    study["weightings"] = {"every position": study["weightings"]["every position"] | weighting}
    cells = {row[0].text: row[1] for row in rules_sheet(study, ["a"] * 6 + ["b"] * 6).cells()}
    shown = cells["recorded tokens per predicted time, S* over S^"]
    assert shown.low == pytest.approx(found.low) and shown.high == pytest.approx(found.high)


def test_clusters_are_in_the_order_of_a_studys_sums() -> None:
    """By ascending name, without requests that end with their first token."""
    rows = member("specfit", 48, [part(name, (1, 2)) for name in ("e-2", "e-10", "e-1")]).rows
    rows.requests["cluster"] = rows.requests["request_id"].map(
        {"e-2": "two", "e-10": "ten", "e-1": "one"}
    )
    assert clusters_by_name(rows) == ["one", "ten", "two"]


def test_the_line_and_the_fits() -> None:
    sheet = line_sheet([document(), document("embedded_gsm8k")])
    assert sheet.columns[1:3] == (
        "synthetic reports, every recorded position",
        "synthetic reports, cycles SpecFit starts",
    )
    assert sheet.cells()[0][1].text == "50.0 %" and sheet.cells()[-1][1].text == "9"
    text = to_markdown(fits_sheet([document()]))
    assert "| b_1, ms | 6.00 | 6.00 |" in text and "| beta, us per expert | 2.50 | 2.50 |" in text
    with pytest.raises(AssertionError, match="one fit serves both workloads"):
        fits_sheet([document(), document(free={"intercepts_ns": []})])
