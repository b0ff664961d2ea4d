"""Replays beside the live runs of their first requests, row by row."""

from __future__ import annotations

import numpy as np

from specfit.experts.cache import ExpertCache
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


def counted(drafted: list[list[int]]) -> list[tuple[int, int, int, int]]:
    """(demand, hits, misses, evictions) of forwards of one layer with four slots."""
    cache, found = ExpertCache(1, 8, 4), []
    for rows in ([[0, 1], [2, 3]], [[0, 1], *drafted], [[0, 1]], [[5, 6]]):
        trace = cache.replay(np.array([rows]), len(rows) - 1, is_prefill=False)
        hits, misses = int(trace.hits[0]), int(trace.misses[0])
        found.append((hits + misses, hits, misses, int(trace.evictions[0])))
    return found


def test_a_tie_at_a_draft_nodes_router_shows_in_one_cycle() -> None:
    """One row names expert 4 in the place of 3: equal demand, one hit fewer, one eviction more; the
    cycles behind it count alike: the pattern of the one request of table 2 that parts."""
    one, other = counted([[2, 3]]), counted([[2, 4]])
    assert [a != b for a, b in zip(one, other, strict=True)] == [False, True, False, False]
    assert (one[1], other[1]) == ((4, 4, 0, 0), (4, 3, 1, 1))
