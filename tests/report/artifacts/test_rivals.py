"""Every selection rule side by side, from rows that can be worked out in the head."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specfit.report.artifacts.rivals import (
    Field,
    accepted_per_copy,
    anatomy_sheet,
    main_sheet,
    named,
    over_sheet,
    rule_of,
)
from tests.report.artifacts.members import decoding, member, texts

EAGLE, SPECFIT = ("eagle3_cache", 7, ""), ("specfit", 7, "")


def sized(selector: str, slots: int, committed: int, ms: float, k: int = 7, **config: Any) -> Any:
    """Verified nodes are committed - 1; each cycle moves 4 experts."""
    said = {"selector": {"name": selector, "k": k}} | config
    name = f"{selector[:6]}{k}-{slots}-{''.join(config)}"
    return member(selector, slots, decoding(committed, ms), said, run_id=name)


def field() -> Field:
    return Field(
        [
            sized("chain_k", 48, 2, 8, k=5),
            sized("chain_k", 48, 2, 5, k=2),
            sized("specfit", 48, 2, 4),
            sized("specfit", 48, 2, 4, objective="lambda"),
            sized("eagle3_cache", 48, 3, 12),
            sized("eagle3_cache", 12, 3, 24),
            sized("specfit", 12, 2, 8),
            sized("ar", 0, 1, 10, k=0),
        ]
    )


def test_rules_are_told_apart_by_size_and_objective() -> None:
    found = field()
    assert [(named(rule), rule[1]) for rule in found.rules] == [
        ("AR", 0),
        ("EAGLE-3 + cache", 7),
        ("SpecFit", 7),
        ("SpecFit, lambda", 7),
        ("chain", 2),
        ("chain", 5),
    ]
    assert found.slots == [48, 12]


def test_one_row_per_rule_and_three_columns_per_slot_count() -> None:
    sheet = main_sheet([field()], EAGLE, "modelled")
    assert texts(sheet, "48 slots: tokens/s (modelled)") == [
        "100",
        "250",
        "500",
        "500",
        "400",
        "250",
    ]
    over = texts(sheet, "48: against EAGLE-3 + cache")
    assert over == ["0.40x", "1.00x", "2.00x", "2.00x", "1.60x", "1.00x"]
    small = texts(sheet, "12: against EAGLE-3 + cache")
    assert small == ["0.80x", "1.00x", "2.00x", "-", "-", "-"], "AR without a cache stands at both"
    assert texts(sheet, "48: accepted / 1,000 experts")[:3] == ["0.00", "500", "250"]
    assert set(texts(sheet, "workload")) == {"synthetic reports (our stand-in for CNN/DailyMail)"}


def test_one_rule_over_each_other() -> None:
    sheet = over_sheet([field()], SPECFIT)
    assert "SpecFit" not in texts(sheet, "against"), "not over itself"
    assert texts(sheet, "48 slots") == ["5.00x", "2.00x", "1.00x", "1.25x", "2.00x"]
    assert texts(sheet, "12 slots") == ["2.50x", "2.00x", "-", "-", "-"]


def test_a_cycle_of_each_rule() -> None:
    sheet = anatomy_sheet([field()], 12, "modelled")
    assert texts(sheet, "cycle time, ms (modelled)") == ["10.0", "24.0", "8.00", "-", "-", "-"]
    assert texts(sheet, "verified / cycle") == ["0.00", "2.00", "1.00", "-", "-", "-"]


def test_experts_are_counted_as_they_are_billed() -> None:
    """One own copy of 100 bytes stands for six of the billed model's 9.4 MB."""
    size = 3 * 2048 * 768 * 2
    parts = [
        replace(part, cycles=[replace(cycle, billed_bytes=24 * size) for cycle in part.cycles])
        for part in decoding(3, 12)
    ]
    billed = member("eagle3_cache", 48, parts, billed="qwen3-30b-a3b")
    assert accepted_per_copy(billed.rows).value == pytest.approx(500 / 6)


def test_a_depth_rule_that_is_not_the_usual_one_is_named() -> None:
    def depth(selector: str, adaptive: bool) -> Any:
        return member(
            selector, 48, config={"selector": {"k": 7, "adaptive_depth": adaptive}}, run_id=selector
        )

    told = [depth("specfit", True), depth("specfit", False), depth("evict", True)]
    told += [depth("evict", False), depth("ar", True)]  # AR drafts nothing and reads no such value
    assert [named(rule_of(m)) for m in told] == [
        "SpecFit",
        "SpecFit, full depth",
        "EVICT, early stop",
        "EVICT",
        "AR",
    ]
