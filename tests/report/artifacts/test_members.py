from __future__ import annotations

from dataclasses import asdict

import pytest

from specfit.base.types import SpecfitError
from specfit.report.styles import Workload
from specfit.report.suite_runs import by_system, one, pick
from specfit.storage.manifest import run_info
from tests.fakes.rows import info
from tests.report.artifacts.members import member

HELD = [
    member("ar", 0),
    member("specfit", 0),
    member("specfit", 12),
    member("specfit", 12, calibration_at="own", run_id="own"),
    member("specfit", 48, config={"routes": {"name": "noisy", "accuracy": 0.6}}, routes="noisy"),
    member("eagle3_cache", 12, dataset="gsm8k", stands_for="gsm8k"),
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
    assert [m.workload for m in HELD] == [Workload("embedded_news", "cnn_dailymail")] * 5 + [
        Workload("gsm8k", "gsm8k")
    ]


def test_a_workload_is_called_by_what_its_dataset_stands_for() -> None:
    named = "synthetic word problems (our stand-in for GSM8K)"
    assert Workload("embedded_gsm8k", "gsm8k").label == named
    assert Workload("gsm8k", "gsm8k").label == "GSM8K"
    assert Workload("mine", "gsm8k").label == "mine (our stand-in for GSM8K)"
    assert Workload("prompts", None).label == "prompts"


def test_rows_older_than_the_key_stand_for_what_they_always_did() -> None:
    stored = asdict(info(dataset="embedded_news"))
    del stored["stands_for"]
    assert run_info(stored).stands_for == "cnn_dailymail"
    assert run_info(stored | {"dataset": "prompts"}).stands_for is None
    assert run_info(stored | {"stands_for": None}).stands_for is None, "a later row says so itself"


def test_runs_are_picked_by_their_attributes() -> None:
    assert pick(HELD, system="specfit", slots=12) == [HELD[2]]
    assert one(HELD, accuracy=0.6) is HELD[4]
    assert list(by_system(HELD, ["specfit_own", "ar"])) == ["specfit_own", "ar"]
    with pytest.raises(SpecfitError, match="no run with system EAGLE-3, slots 12"):
        one(HELD, system="eagle3", slots=12)
