"""The movement tables by hand: which run stands beside which, and what is counted."""

from __future__ import annotations

from typing import Any

import pytest

from specfit.base.types import SpecfitError
from specfit.report.artifacts import movement
from specfit.report.artifacts.movement import Field, Setting
from specfit.report.suite_runs import SuiteRun
from specfit.storage.request_files import Part
from tests.report.artifacts.members import decoding, member, texts

TIMED = "modelled"


def run(
    selector: str, slots: int, ms: float, gpu: dict[str, Any] | None = None, **config: Any
) -> SuiteRun:
    """Two requests that commit 2 tokens in two cycles of `ms` milliseconds each."""
    said = {"gpu": {"name": "paper_main", "node_ms": 0.6} | (gpu or {})} | config
    at = "own" if config.pop("own", False) else "primary"
    return member(selector, slots, decoding(2, ms), said, calibration_at=at)


def test_a_setting_is_what_differs_from_the_papers() -> None:
    plain = run("specfit", 48, 100)
    other = run("specfit", 48, 100, policy="lfu", prefetch="layer", routes={"name": "learned"})
    noisy = run("specfit", 48, 100, routes={"name": "noisy", "accuracy": 0.6})
    warm = run("specfit", 48, 100, drafter={"temperature": 1.15}, bypass=True)
    assert Setting.of(plain).is_plain and Setting.of(plain).words() == "the paper's"
    assert Setting.of(other).words() == "routes=learned, policy=lfu, prefetch=layer"
    assert Setting.of(other).differs_in("policy", "prefetch", "routes")
    assert not Setting.of(other).differs_in("policy", "routes")
    assert Setting.of(noisy).routes == "noisy 60 %"
    assert Setting.of(warm).words() == "temperature=1.15, bypass"


def test_policies_stand_beside_the_same_system() -> None:
    field = Field(
        [
            run("specfit", 48, 100),
            run("specfit", 48, 80, policy="lfu"),
            run("specfit", 48, 50, prefetch="layer"),
            run("ar_cache", 48, 200),
            run("ar_cache", 48, 160, policy="lfu"),
        ]
    )
    sheet = movement.policy_sheet([field], TIMED)
    assert texts(sheet, "setting") == ["the paper's", "policy=lfu", "the paper's", "policy=lfu"]
    assert texts(sheet, "48: over the paper's") == ["1.00x", "1.25x", "1.00x", "1.25x"]


def test_prefetching_says_what_came_and_what_came_true() -> None:
    parts: list[Part] = decoding(
        2, 50.0, prefetched_experts=10, used_prefetched_experts=4, hit_experts=6
    )
    said = {"gpu": {"name": "paper_main", "node_ms": 0.6}, "prefetch": "layer"}
    early = member("specfit", 48, parts, said, calibration_at="own")
    field = Field([run("specfit", 48, 100, own=True), early])
    field.slots = [48]
    sheet = movement.prefetch_sheet([field], TIMED)
    assert texts(sheet, "prefetch") == ["off", "layer"]
    assert texts(sheet, "slots") == ["48", "48"]
    assert texts(sheet, "used, %") == ["-", "40.0"]
    assert texts(sheet, "over none") == ["1.00x", "2.00x"]


def test_at_the_shared_fits_slots_there_is_one_fit() -> None:
    """A run that asks for its own is then the run with the shared one, whichever came first."""
    field = Field(
        [
            run("specfit", 48, 100),
            run("specfit", 48, 80, own=True, cost="miss"),
            run("specfit", 24, 300),
            run("specfit", 24, 200, own=True),
            run("specfit", 24, 100, own=True, cost="miss"),
        ]
    )
    sheet = movement.cost_sheet([field], TIMED)
    at = texts(sheet, "setting").index("cost=miss")
    assert texts(sheet, "48: over the paper's")[at] == "1.25x"
    assert texts(sheet, "24: over the paper's")[at] == "2.00x"


def goal(gpu: dict[str, Any] | None = None, without: str = "") -> list[SuiteRun]:
    early = {"prefetch": "layer", "policy": "decayed_lfu"}
    members = [
        run("ar_cache", 48, 90, gpu),
        run("eagle3_cache", 48, 180, gpu),
        run("specfit", 48, 120, gpu),
        run("specfit", 47, 100, gpu, **early, routes={"name": "learned"}),
        run("ar_cache", 47, 80, gpu, **early, routes={"name": "token_table"}),
        run("eagle3_cache", 47, 150, gpu, **early, routes={"name": "learned"}),
    ]
    return [m for m in members if f"{m.system}{m.slots}" != without]


def test_the_goal_is_against_plain_and_alike_systems() -> None:
    field = Field([*goal(), *goal({"node_ms": 0.3})])
    sheet = movement.goal_sheet([field], TIMED)
    assert texts(sheet, "profile") == ["as it is", "node_ms 0.6 -> 0.3"]
    assert texts(sheet, "over SpecFit") == ["1.20x"] * 2
    assert texts(sheet, "over EAGLE-3 + cache") == ["1.80x"] * 2
    assert texts(sheet, "over AR + cache") == ["0.90x"] * 2
    assert texts(sheet, "over EAGLE-3, prefetching alike") == ["1.50x"] * 2
    assert texts(sheet, "over AR, prefetching by token") == ["0.80x"] * 2


def test_a_missing_system_is_said() -> None:
    with pytest.raises(SpecfitError, match="lacks eagle3_cache at 47 slots"):
        movement.goal_sheet([Field(goal(without="eagle3_cache47"))], TIMED)
