"""Figure 4: ratios at each slot count."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure

from specfit.report.artifacts.slots import (
    bounds,
    gains_of,
    paint,
    percent,
    points,
    slots_paper_sheet,
    slots_sheet,
    trend_ratio,
    trends_sheet,
)
from specfit.report.paper_values import claims_of, trends
from specfit.report.styles import PAPER, Workload
from tests.report.artifacts.members import decoding, member, texts


def by_slots() -> list[Any]:
    return [
        member("ar", 0, decoding(1, 20)),
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
    assert texts(paper, "slots") == ["48", "48", "24", "12", "0", "48", "24", "12"]
    assert texts(paper, "verdict") == [
        "same direction",
        "as the control",  # AR is faster with a cache, too
        "not tested",
        "same direction",
        "same direction",
        "as the control",
        "not tested",
        "as the control",
    ]


def test_a_trend_is_a_ratio_of_gains_with_a_verdict_of_its_own() -> None:
    """SpecFit gains 4/3 at 48 slots and 2 at 12; AR + cache 4/5 and 1: it rises for both."""
    by_pair = {(t.quantity, t.more, t.fewer): t for t in trends()}
    assert by_pair["speed", 48, 12].value == pytest.approx(1.292 / 1.216)
    ours = trend_ratio(by_pair["speed", 48, 12], by_slots(), "specfit")
    control = trend_ratio(by_pair["speed", 48, 12], by_slots(), "ar_cache")
    assert ours and control
    assert (ours.value, control.value) == pytest.approx((2 / (4 / 3), 1 / (4 / 5)))
    assert trend_ratio(by_pair["speed", 48, 24], by_slots(), "specfit") is None
    sheet = trends_sheet(by_slots(), "modelled")
    told = dict(zip(texts(sheet, "quantity"), texts(sheet, "verdict"), strict=True))
    name = "SpecFit: tokens/s (modelled) over EAGLE-3's"
    assert told[f"{name}, 24 slots over 48 slots"] == "not tested"
    assert told[f"{name}, 12 slots over 48 slots"] == "as the control"
    assert told[f"{name}, no cache over 12 slots"] == "open", "2 both times"
    assert told["SpecFit: cycle time (modelled) over EAGLE-3's, 12 slots over 48 slots"] == (
        "as the control"
    )


def test_the_papers_diamonds_are_its_gains_over_eagle3_alone() -> None:
    """Its SpecFit at 48 slots over SpecFit without a cache is a claim, and no point here."""
    sheet = Figure()
    paint(sheet, points(by_slots()))
    shown = [line for line in sheet.axes[0].lines if line.get_marker() == PAPER.marker]
    gains = {line.get_ydata()[0] for line in shown if line.get_markerfacecolor() == "white"}
    told = [c for c in claims_of("figure_4") if c.quantity == "speed" and c.slots != 24]
    assert gains == {percent(c.value) for c in told if c.against != "specfit_uncached"}
    assert len(gains) == len(told) - 1


def test_a_bound_is_eagle3_without_its_copies() -> None:
    (many, few) = bounds(by_slots())
    assert (many.slots, few.slots) == (48, 12)
    assert many.ratios["speed"].value == pytest.approx(12 / 10)
    assert few.ratios["cycle"].value == pytest.approx(22 / 24)


def test_the_papers_marks_are_its_gains_over_eagle3() -> None:
    """One for each slot count; the ratio over SpecFit without a cache is no gain over EAGLE-3."""
    found = gains_of(Workload("cnn_dailymail", "cnn_dailymail"), "speed")
    assert [(one.slots, one.value) for one in found] == [
        (48, 1.216),
        (24, 1.243),
        (12, 1.292),
        (0, 1.316),
    ]
    assert gains_of(Workload("gsm8k", "gsm8k"), "speed") == []
