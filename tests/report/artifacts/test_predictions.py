"""Where a cycle's time goes, and what was promised of it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from specfit.report.artifacts.phases import phases_sheet, splits
from specfit.report.artifacts.predictions import (
    Drafter,
    at_most_slots,
    bias,
    calibration_error,
    drafter,
    drafter_sheet,
    mape,
    path_bins,
    promises,
    promises_sheet,
    reward_bins,
)
from specfit.report.styles import Workload
from tests.fakes.rows import part
from tests.report.artifacts.members import decoding, member, texts

ONE = 1 << 20  # a probability of 1, and a token of reward


def test_phases_are_stacked_to_the_whole_cycle() -> None:
    (split,) = splits([member("specfit", 48, decoding(2, 6, select_ns=500_000))])
    assert split.ms == {
        "draft": 1.0,
        "route": 0.0,
        "select": 0.5,
        "wait": 2.0,
        "compute": 3.0,
        "commit": 0.0,
    }
    assert split.cycle_ms == pytest.approx(6.5) and split.per_token == pytest.approx(3.25)
    assert texts(phases_sheet([split], "modelled"), "cycle, ms (modelled)") == ["6.50"]


def predicted(ns: int, tokens: float, **changes: Any) -> dict[str, Any]:
    return {"predicted_ns": ns, "predicted_reward": round(tokens * ONE)} | changes


def test_errors_of_time_and_tokens_over_cycles() -> None:
    """4 ms and 2 tokens came; promised: 5 ms and 1.5 at full depth, 3 ms and 2.5 else."""
    parts = [
        part("a", (1, 2, 2), **predicted(5_000_000, 1.5, drafted_levels=3)),
        part("b", (1, 2), **predicted(3_000_000, 2.5, drafted_levels=1)),
    ]
    one = promises(member("specfit", 48, parts))
    full = one.cycles[one.cycles["full"]]
    assert (len(full), len(one.cycles)) == (2, 3)
    assert mape(full, "ms").value == pytest.approx(25.0)
    assert mape(one.cycles, "ms").value == pytest.approx(25.0)
    assert bias(one.cycles, "ms").value == pytest.approx(13 / 12)
    assert mape(one.cycles, "tokens").value == pytest.approx(25.0)
    assert bias(full, "tokens").value == pytest.approx(0.75)
    sheet = promises_sheet([one], "modelled")
    assert texts(sheet, "number") == ["2", "1", "3"]
    assert texts(sheet, "slots") == ["48", "48", "48"]
    assert texts(sheet, "time predicted / realised (modelled)") == [
        "+25.0 %",
        "-25.0 %",
        "+8.3 % [-25.0, +25.0]",
    ]
    assert [(b.count, b.predicted, b.came.value) for b in reward_bins(one)] == [
        (2, 1.5, 2.0),
        (1, 2.5, 2.0),
    ]


def test_the_figure_shows_the_most_slots_of_each_workload() -> None:
    few, many = (
        promises(member("specfit", slots, [part("a", (1, 2), **predicted(4_000_000, 2.0))]))
        for slots in (12, 48)
    )
    assert at_most_slots([few, many]) == [many]


def test_cycles_cut_by_a_stop_count_no_tokens() -> None:
    parts = [part("a", (1, 2), **predicted(4_000_000, 2.0, stop_reason="length"))]
    one = promises(member("specfit", 48, parts))
    assert not one.cycles["whole"].any() and reward_bins(one) == []


def counts() -> pd.DataFrame:
    """Two bins: 10 nodes promised .2 of which 4 came, 10 promised .8 of which 8 came."""
    low, high = round(0.2 * 10 * ONE), round(0.8 * 10 * ONE)
    return pd.DataFrame(
        {
            "request_id": ["a", "a", "b", "b"],
            "level": [1, 1, 2, 2],
            "bin": [2, 8, 2, 8],
            "nodes": [5, 5, 5, 5],
            "path_probs": [low // 2, high // 2, low // 2, high // 2],
            "accepted": [3, 4, 1, 4],
            "cluster": None,
        }
    )


def test_calibration_error_weighs_each_bins_gap_by_its_nodes() -> None:
    one = Drafter(Workload("embedded_news", "cnn_dailymail"), 10, counts())
    assert calibration_error(one).value == pytest.approx((10 * 0.2 + 10 * 0.0) / 20, abs=1e-5)
    assert calibration_error(one, level=1).value == pytest.approx(0.2, abs=1e-5)
    bins = path_bins(one)
    assert [b.count for b in bins] == [10, 10]
    assert [b.came.value for b in bins] == [0.4, 0.8]
    assert [b.predicted for b in bins] == pytest.approx([0.2, 0.8], abs=1e-5)
    assert texts(drafter_sheet([one]), "level") == ["1", "2", "all"]
    assert texts(drafter_sheet([one]), "nodes") == ["10", "10", "20"]


def test_shares_of_the_drafter_have_the_wider_interval() -> None:
    """Six requests of a template in which all is accepted, six of one in which nothing is."""
    names = [f"{template}{number}" for template in "ab" for number in range(6)]
    table = {"request_id": names, "level": 1, "bin": 5, "nodes": 10, "path_probs": 5 * ONE}
    table["accepted"] = [10] * 6 + [0] * 6
    document = {"info": {"dataset": "embedded_news"}, "bins": 10, "counts": table}
    one, alone = (drafter(document, {n: cluster(n) for n in names}) for cluster in (first, alike))
    (bin_,), (wide,) = path_bins(alone), path_bins(one)
    assert wide.came.value == bin_.came.value == 0.5
    assert wide.came.clusters == 2 and not bin_.came.clusters
    assert wide.came.width > bin_.came.width
    assert calibration_error(one).clusters == 2


def alike(name: str) -> None:
    """No cluster is known."""


def first(name: str) -> str:
    return name[0]
