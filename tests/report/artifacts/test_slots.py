"""Figure 4: ratios at each slot count."""

from __future__ import annotations

from typing import Any

import pytest

from specfit.report.artifacts.slots import points, slots_paper_sheet, slots_sheet
from specfit.report.paper_values import claims_of
from tests.report.artifacts.members import decoding, member, texts


def by_slots() -> list[Any]:
    return [
        member("eagle3", 0, decoding(3, 30)),
        member("specfit", 0, decoding(2, 10)),
        member("eagle3_cache", 48, decoding(3, 12)),
        member("ar_cache", 48, decoding(1, 5)),
        member("specfit", 48, decoding(2, 6)),
        member("eagle3_cache", 12, decoding(3, 24)),
        member("ar_cache", 12, decoding(1, 8)),
        member("specfit", 12, decoding(2, 8)),
        member("specfit", 12, decoding(1, 4), calibration_at="own", run_id="own"),
    ]


def test_gain_is_over_eagle3_at_the_same_slots_and_over_vanilla_without_a_cache() -> None:
    found = {(p.system, p.slots): p.ratios for p in points(by_slots())}
    assert list(found) == [
        ("ar_cache", 48),
        ("ar_cache", 12),
        ("specfit", 48),
        ("specfit", 12),
        ("specfit_own", 12),
        ("specfit", 0),
    ]
    assert found["specfit", 48]["speed"].value == pytest.approx((2 / 6) / (3 / 12))
    assert found["specfit", 12]["cycle"].value == pytest.approx(8 / 24)
    assert found["specfit_own", 12]["committed"].value == pytest.approx(1 / 3)
    assert found["specfit", 0]["speed"].value == pytest.approx((2 / 10) / (3 / 30))


def test_slots_have_a_row_each_and_the_papers_beside_them() -> None:
    sheet = slots_sheet(points(by_slots()), "modelled")
    assert texts(sheet, "tokens/s (modelled)")[2:] == [
        "+33.3 %",
        "+100.0 %",
        "+100.0 %",
        "+100.0 %",
    ]
    paper = slots_paper_sheet(claims_of("figure_4"), by_slots())
    assert texts(paper, "slots") == ["48", "24", "12", "0", "48", "24", "12"]
    assert texts(paper, "verdict") == [
        "same direction",
        "not tested",
        "same direction",
        "same direction",
        "as the control",
        "not tested",
        "as the control",
    ]
