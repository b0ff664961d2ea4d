"""The measured table of formats from rows written by hand: a block a format."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specfit.report.artifacts.measured_formats import blocks_of, blocks_sheet, speeds_sheet
from specfit.report.suite_runs import SuiteRun
from tests.report.artifacts.members import decoding, member, texts


def block(format: str | None, last_ms: float) -> list[SuiteRun]:
    """A cycle commits 2 tokens: in 20 ms by EAGLE-3, in 40 ms by AR, in 10 ms by SpecFit."""
    made = []
    runs = (("eagle3_cache", 20, 0), ("ar_cache", 40, 0), ("specfit", 10, 0))
    for system, ms, repeat in (*runs, ("eagle3_cache", last_ms, 1)):
        one = member(
            system,
            24,
            decoding(2, ms),
            config={"model": {"dtype": "bfloat16"}},
            run_id=f"{system}{repeat}{format}"[:12].ljust(12, "0"),
            clock="wall",
        )
        one.rows.requests["expert_format"] = format
        made.append(replace(one, repeat=repeat))
    return made


@pytest.fixture
def members() -> list[SuiteRun]:
    return [*block(None, 20.5), *block("fp8-128x128", 40)]


def test_systems_are_compared_within_a_format(members: list[SuiteRun]) -> None:
    sheet = speeds_sheet(blocks_of(members))
    assert texts(sheet, "experts as") == ["bfloat16"] * 3 + ["fp8-128x128"] * 3
    assert texts(sheet, "over EAGLE-3 + cache")[0] == "-", "over itself"
    gains = [row[4].value for row in sheet.cells()[1:3]]
    assert gains == pytest.approx([0.5, 2])
    assert [row[5].value for row in sheet.cells()[2:4]] == pytest.approx([4, 2])


def test_a_block_whose_baselines_differ_is_unsettled(members: list[SuiteRun]) -> None:
    sheet = blocks_sheet(blocks_of(members))
    assert [row[2].value for row in sheet.cells()] == pytest.approx([0.5 / 20.5, 0.5])
    assert texts(sheet, "block") == ["settled", "unsettled"]
    assert texts(sheet, "texts agree") == ["yes", "yes"]
