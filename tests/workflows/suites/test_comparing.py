"""Identical, within half a percent, or different: rows written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specfit.workflows.suites.comparing import DIFFERENT, IDENTICAL, WITHIN, Compared, compare_runs
from tests.fakes.rows import part, store_run


def compared(tmp_path: Path, changes: dict[str, Any], **info: Any) -> Compared:
    """A run of two decode cycles, 4 ms each, and the same with `changes`."""
    there = store_run(tmp_path / "there", [part("q1")])
    here = store_run(tmp_path / "here", [part("q1", **changes)], **info)
    return compare_runs("news/ar", here, there)


def shown(found: Compared) -> dict[str, str]:
    return {one.metric: one.shown for one in found.differences}


def test_the_same_rows_are_identical(tmp_path: Path) -> None:
    found = compared(tmp_path, {})
    assert found.verdict == IDENTICAL and found.why == ()
    assert set(shown(found).values()) == {"="}


def test_a_cycle_of_a_few_microseconds_more_is_within_half_a_percent(tmp_path: Path) -> None:
    """4.01 ms for 4: tokens/s fall by 1 - 4 / 4.01 = 0.249 %, everything counted is the same."""
    found = compared(tmp_path, {"verify_ns": 3_010_000})
    assert found.verdict == WITHIN
    told = shown(found)
    assert (told["cycle"], told["tokens/s"], told["committed"]) == ("+0.25 %", "-0.25 %", "=")


def test_one_metric_too_far_makes_a_cell_different(tmp_path: Path) -> None:
    found = compared(tmp_path, {"verify_ns": 3_030_000})
    assert found.verdict == DIFFERENT and shown(found)["cycle"] == "+0.75 %"


def test_other_tokens_are_a_difference_whatever_the_metrics_say(tmp_path: Path) -> None:
    found = compared(tmp_path, {"output_ids": [9, 9, 9, 9, 9, 9]})
    assert set(shown(found).values()) == {"="}
    assert found.verdict == DIFFERENT and not found.same_output


def test_what_may_be_why_is_what_the_manifests_do_not_share(tmp_path: Path) -> None:
    found = compared(tmp_path, {}, device="an abacus")
    assert found.why == ("device: an abacus here, a processor there",)


@pytest.mark.parametrize("missing", ["here", "there"])
def test_a_run_that_answered_nothing_has_no_number(tmp_path: Path, missing: str) -> None:
    folders = {
        place: store_run(
            tmp_path / place, [part("q1", status="empty" if place == missing else "ok")]
        )
        for place in ("here", "there")
    }
    found = compare_runs("news/ar", folders["here"], folders["there"])
    assert found.verdict == DIFFERENT and shown(found)["tokens/s"] == DIFFERENT
