from __future__ import annotations

import pytest

from specfit.base.types import SpecfitError
from specfit.report.suite_runs import by_system, one, pick, workload_of
from tests.report.artifacts.members import member

HELD = [
    member("ar", 0),
    member("specfit", 0),
    member("specfit", 12),
    member("specfit", 12, calibration_at="own", run_id="own"),
    member("specfit", 48, config={"routes": {"name": "noisy", "accuracy": 0.6}}, routes="noisy"),
    member("eagle3_cache", 12, dataset="gsm8k"),
]


def test_a_run_is_known_by_what_its_manifest_says() -> None:
    assert [m.system for m in HELD] == [
        "ar",
        "specfit_uncached",
        "specfit",
        "specfit_own",
        "specfit",
        "eagle3_cache",
    ]
    assert [m.accuracy for m in HELD] == [1.0, 1.0, 1.0, 1.0, 0.6, 1.0]
    assert [m.workload for m in HELD] == ["news"] * 5 + ["gsm8k"]


def test_datasets_have_the_place_of_a_workload() -> None:
    names = ("gsm8k", "embedded_gsm8k", "cnn_dailymail", "embedded_news")
    assert [workload_of(name) for name in names] == ["gsm8k", "gsm8k", "news", "news"]


def test_runs_are_picked_by_their_attributes() -> None:
    assert pick(HELD, system="specfit", slots=12) == [HELD[2]]
    assert one(HELD, accuracy=0.6) is HELD[4]
    assert list(by_system(HELD, ["specfit_own", "ar"])) == ["specfit_own", "ar"]
    with pytest.raises(SpecfitError, match="no run with system EAGLE-3, slots 12"):
        one(HELD, system="eagle3", slots=12)
