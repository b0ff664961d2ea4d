"""The published ratios are met at every fixed cost, and the line of equal AR is one."""

from __future__ import annotations

import pytest

from specfit.report.artifacts.constants import (
    COPIED_GB,
    constants_sheet,
    is_on_line,
    line_sheet,
    uncached_ms,
)
from specfit.report.artifacts.implied import (
    FIXED_MS,
    LEVEL_MS,
    LEVELS,
    NODE_MS,
    PAPER,
    SELECTION_MS,
    TOP_K,
    VERIFIED,
    implied,
    implied_sheet,
    verdict,
)
from tests.report.artifacts.members import decoding, member, texts


@pytest.mark.parametrize("workload", PAPER)
@pytest.mark.parametrize("fixed", FIXED_MS)
def test_the_implied_clock_gives_back_what_was_published(workload: str, fixed: float) -> None:
    paper, one = PAPER[workload], implied(PAPER[workload], fixed)
    copy_ms = 1e3 * COPIED_GB / one.link_gbps / TOP_K  # one expert of every layer
    assert 1e3 / (fixed + TOP_K * copy_ms) == pytest.approx(paper.ar)
    eagle = fixed + NODE_MS * VERIFIED + LEVEL_MS * LEVELS
    missed = one.union * one.misses / 100
    uncached, cached = eagle + one.union * copy_ms, eagle + missed * copy_ms
    assert 1e3 * one.committed / uncached == pytest.approx(paper.eagle3)
    assert 1e3 * one.committed / cached == pytest.approx(paper.eagle3_cache)
    ours = fixed + NODE_MS * paper.verified + LEVEL_MS * LEVELS + SELECTION_MS
    ours += paper.experts * paper.committed * missed * copy_ms
    assert ours / cached == pytest.approx(paper.cycle)


def test_what_stands_against_a_line_is_said() -> None:
    assert "demands more" in verdict(implied(PAPER["cnn_dailymail"], 70.0))
    assert "commits more" in verdict(implied(PAPER["cnn_dailymail"], 100.0))
    assert len(implied_sheet().rows) == len(PAPER) * len(FIXED_MS)


def test_the_line_keeps_ar_and_nothing_else_moves() -> None:
    usual = {"fixed_ms": 70.0, "link_gbps": 25.0, "node_ms": 0.6}
    on = usual | {"fixed_ms": 20.0, "link_gbps": 18.588}
    assert uncached_ms(on) == pytest.approx(uncached_ms(usual), rel=1e-4)
    assert is_on_line(on, usual) and is_on_line(usual, usual)
    assert not is_on_line(usual | {"fixed_ms": 20.0}, usual)
    assert not is_on_line(on | {"node_ms": 1.2}, usual)


def test_the_line_has_a_sheet_of_its_own() -> None:
    """At 20 ms and its link SpecFit is twice EAGLE-3 + cache, as it is 4/3."""
    usual = {"name": "p", "fixed_ms": 70.0, "link_gbps": 25.0, "node_ms": 0.6}
    moved = usual | {"fixed_ms": 20.0, "link_gbps": 18.588}
    members = [
        member(system, slots, decoding(*took), {"gpu": gpu}, run_id=f"{system}{gpu['fixed_ms']}")
        for gpu, ours_ms in ((usual, 6), (moved, 4))
        for system, slots, took in (
            ("ar", 0, (1, 8)),
            ("ar_cache", 48, (1, 5)),
            ("eagle3", 0, (3, 30)),
            ("eagle3_cache", 48, (3, 12)),
            ("specfit", 48, (2, ours_ms)),
        )
    ]
    line = line_sheet(members)
    assert texts(line, "fixed cost, ms") == ["20.0", "70.0"]
    assert texts(line, "SpecFit over EAGLE-3 + cache") == ["2.00x", "1.33x"]
    assert texts(line, "EAGLE-3, cached over uncached") == ["2.50x", "2.50x"]
    assert texts(line, "the paper's") == ["1.62x", "1.62x"]
    assert texts(constants_sheet(members, "modelled"), "profile") == ["as it is"]
