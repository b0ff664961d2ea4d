"""Replays beside the live runs of their first requests, row by row."""

from __future__ import annotations

from specfit.report.live_check import check_live
from specfit.report.suite_runs import SuiteRun
from tests.report.artifacts.members import member, part

CONFIG = {"selector": {"name": "specfit"}, "limit": 160}
PARTS = [part(name, (1, 2, 3)) for name in "abcd"]


def replay(selector: str = "specfit", slots: int = 48, **config: object) -> SuiteRun:
    return member(selector, slots, PARTS, CONFIG | config, recording="r1")


def live(*parts: object, selector: str = "specfit", slots: int = 48) -> SuiteRun:
    chosen = list(parts) or PARTS[:2]
    return member(selector, slots, chosen, CONFIG | {"limit": 2}, run_id="f" * 12)  # type: ignore[arg-type]


def test_equal_rows_are_counted_over_the_requests_that_ran_live() -> None:
    check = check_live([replay(), replay("ar_cache")], [live(), live(selector="ar_cache")])
    assert (check.systems, check.requests, check.cycles, check.others) == (2, 4, 12, ())
    assert "4 of 4 requests that 2 systems also decoded live (12 cycles)" in check.sentence


def test_a_row_that_differs_is_named() -> None:
    spoilt = part("b", (1, 2, 3), hit_experts=5, transferred_experts=5)
    check = check_live([replay()], [live(PARTS[0], spoilt)])
    assert check.others == ("SpecFit, b: hit_experts, transferred_experts",)
    assert "1 of 2 requests" in check.sentence and check.sentence.endswith("transferred_experts.")


def test_only_the_same_setting_is_compared() -> None:
    assert check_live([replay(slots=24)], [live()]).sentence == ""
    assert check_live([replay(policy="lfu")], [live()]).requests == 0
    alone = live()
    assert check_live([alone], [alone]).requests == 0, "a suite of live runs alone"
    assert check_live([], []).sentence == ""
