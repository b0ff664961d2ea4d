"""Advice and what came of it, written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from specfit.report.artifacts.advice import advice_sheet


def line(name: str, ms: int, advised: bool = False, can_run: bool = True) -> dict[str, Any]:
    return {
        "name": name,
        "overrides": ["selector=x", "prefetch=layer", "cache_slots=3"],
        "can_run": can_run,
        "advised": advised,
        "expected_tokens_per_s": 9.0,
        "committed_tokens": [10, 10],
        "decode_ns": [ms * 10**6] * 2,
    }


@pytest.mark.parametrize(
    ("advised_ms", "verdict", "share"),
    [(100, "right", 1), (102, "met", 0.98), (110, "missed", 0.91)],
)
def test_right_within_two_percent_or_missed(advised_ms: int, verdict: str, share: float) -> None:
    lines = [line("AR + cache", 200), line("bound", 10, can_run=False)]
    lines += [line("advised", advised_ms, advised=True), line("other", 101)]
    document = {"info": {"dataset": "embedded_gsm8k"}, "requests": 6, "slots": {"4": lines}}
    sheet = advice_sheet([document], "modelled")
    told = dict(zip(sheet.columns, sheet.cells()[0], strict=True))
    assert told["slots"].value == 4 and told["goal"].text == verdict
    best = min(advised_ms, 101)
    assert told["advised over fastest"].value == pytest.approx(best / advised_ms)
    assert told["advised over fastest"].value == pytest.approx(share, abs=0.02)
    assert told["over AR + cache"].value == pytest.approx(200 / advised_ms)
    assert told["expected, tokens/s (modelled)"].value == 9.0
    assert told["fastest there"].text == (
        "the same" if verdict == "right" else "other, prefetch=layer"
    )
    assert "6 requests" in sheet.note
