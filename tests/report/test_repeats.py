"""Spread over repeats, against values added up by hand."""

from __future__ import annotations

import pytest

from specfit.base.types import SpecfitError
from specfit.report.metrics import summarise
from specfit.report.repeats import spread
from specfit.storage.rows import RunRows
from tests.fakes.rows import part, rows_of


def repeat(number: int, verify_ms: int) -> RunRows:
    """Two decode cycles that commit 2 + 3 tokens, each 1 ms of drafting and `verify_ms`."""
    parts = [part("q1", (1, 2, 3), verify_ns=verify_ms * 1_000_000, transfer_wait_ns=0)]
    return rows_of(parts, run_id=str(number) * 12, repeat=number)


def speed(run: RunRows) -> float | None:
    return summarise(run).tokens_per_second


def test_least_middle_and_greatest_over_repeats() -> None:
    found = spread([repeat(0, 4), repeat(1, 9), repeat(2, 1)], speed)
    assert found is not None
    # 5 tokens in 2 x 10, 2 x 5 and 2 x 2 ms
    assert (found.n, found.low, found.median, found.high) == (3, 250.0, 500.0, 1250.0)
    assert found.relative == 2.0
    assert found.note == "3 repeats: 250.-1.25e+03"


def test_one_repeat_has_no_spread_to_show() -> None:
    found = spread([repeat(0, 4)], speed)
    assert found is not None and found.note == "" and found.relative == 0.0
    assert spread([repeat(0, 4)], lambda run: None) is None


def test_what_is_no_repeat_is_refused() -> None:
    with pytest.raises(SpecfitError, match="counted twice"):
        spread([repeat(0, 4), repeat(0, 4)], speed)
    other = rows_of([part("q2")], repeat=1)
    with pytest.raises(SpecfitError, match="different requests"):
        spread([repeat(0, 4), other], speed)
