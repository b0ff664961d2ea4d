"""Route sources side by side, from rows and tallies that can be worked out in the head."""

from __future__ import annotations

from typing import Any

import pytest

from specfit.report.artifacts.routes import (
    EXACT,
    clock_sheet,
    costs_sheet,
    kept_sheet,
    recall_sheets,
    settings,
    size_sheet,
    source_of,
    union_sheet,
)
from specfit.report.suite_runs import SuiteRun
from tests.report.artifacts.members import decoding, member, texts

LEARNED, SOFT = ("learned", "union"), ("learned", "expected_union")


def run(routes: str, ms: float, slots: int = 48, cost: str = "union", **changes: Any) -> SuiteRun:
    config = {"routes": {"name": routes}} | ({"cost": cost} if cost != "union" else {})
    name = f"{routes[:5]}{cost[0]}{slots}".ljust(12, "0")
    return member("specfit", slots, decoding(2, ms, **changes), config, run_id=name)


def eagle(ms: float, slots: int = 48) -> SuiteRun:
    return member("eagle3_cache", slots, decoding(2, ms), {})


def members() -> list[SuiteRun]:
    """At 48 slots 200 tokens/s, exact 400, learned 300 and 320; at 12 the exact gain is 4 %."""
    return [
        eagle(10),
        run("atlas", 5),
        run("learned", 20 / 3, route_ns=500_000, verify_ns=round(20e6 / 3) - 1_500_000),
        run("learned", 6.25, cost="expected_union"),
        eagle(10.4, 12),
        run("atlas", 10, 12),
        run("learned", 8, 12),
    ]


def test_sources_and_settings() -> None:
    assert source_of(members()[3]) == SOFT
    found = settings(members())
    assert [(s.workload.dataset, s.slots) for s in found] == [
        ("embedded_news", 48),
        ("embedded_news", 12),
    ]
    assert set(found[0].by_source) == {EXACT, LEARNED, SOFT}


def test_the_share_of_the_gain_kept() -> None:
    at_48, at_12 = settings(members())
    assert at_48.has_share and not at_12.has_share, "4 % is no gain to have a share of"
    assert at_48.kept(LEARNED).value == pytest.approx(0.5), "(1.5 - 1) / (2 - 1)"
    assert at_48.kept(SOFT).value == pytest.approx(0.6)
    assert at_48.kept(EXACT).value == pytest.approx(1.0)
    assert at_12.behind(LEARNED).value == pytest.approx(50.0), "250 - 200 tokens/s"


def test_one_row_per_source() -> None:
    sheet = kept_sheet(settings(members()), "modelled")
    assert texts(sheet, "routes") == [
        "exact (off the clock)",
        "learned, top-k",
        "learned, expected union",
    ]
    assert texts(sheet, "48 slots: tokens/s (modelled)") == ["400", "300", "320"]
    assert texts(sheet, "48: over EAGLE-3 + cache") == ["+100.0 %", "+50.0 %", "+60.0 %"]
    assert texts(sheet, "48: kept") == ["1", "0.500", "0.600"]
    assert texts(sheet, "12: kept") == ["0 tokens/s", "+50.00 tokens/s", "-"]


def test_the_two_costs_and_the_clock() -> None:
    found = settings(members())
    costs = costs_sheet(found)
    assert texts(costs, "tokens/s") == ["1.067x"] and texts(costs, "slots") == ["48"]
    clock = clock_sheet(found, "modelled")
    shown = dict(zip(texts(clock, "routes"), texts(clock, "ms per cycle (modelled)"), strict=True))
    assert shown["exact (off the clock)"] == "0.00"
    first = texts(clock, "routes").index("learned, top-k")
    assert texts(clock, "ms per cycle (modelled)")[first] == "0.500"
    assert texts(clock, "% of decode")[first] == "7.50"


def document() -> dict[str, Any]:
    """Two depths, two layers, selections of 0 and 1 nodes."""
    tally = {
        "hits": [[4, 2], [8, 4]],
        "routed": [[8, 8], [16, 16]],
        "told": [[10, 10], [12, 18]],
        "true": [[10, 10], [15, 15]],
        "layer_error": [[0, 0], [0.4, 0.2]],
        "error": [0, 0.5],
        "selections": [2, 2],
    }
    expected = tally | {"hits": [[0, 0], [0, 0]], "routed": [[0, 0], [0, 0]]}
    info = {"dataset": "embedded_news"}
    return {"info": info, "sources": {"learned": tally, "expected": expected}}


def test_recall_by_depth_and_by_layer() -> None:
    sheets = recall_sheets([document()])
    assert texts(sheets["depth"], "routes") == ["learned, top-k"], "chances name no set"
    assert texts(sheets["depth"], "all") == ["37.5"]
    assert [texts(sheets["depth"], f"depth {d}")[0] for d in (0, 1)] == ["37.5", "37.5"]
    assert [texts(sheets["layer"], f"layer {i}")[0] for i in (0, 1)] == ["50.0", "25.0"]


def test_the_union_as_a_source_sees_it() -> None:
    sheet = union_sheet([document()])
    assert texts(sheet, "0 nodes")[0] == "+0.0 / 0.0 / 0.0"
    assert texts(sheet, "1 nodes")[0] == "+0.0 / 25.0 / 15.0", "bias, all layers, one layer"


def test_sizes_are_in_megabytes() -> None:
    size = {"of": "x", "held_bytes": 22_000_000, "read_bytes": 4_000_000, "flop": 44_000_000}
    sheet = size_sheet([{"sizes": [size]}])
    assert [cell.text for cell in sheet.cells()[0]] == ["x", "22.0", "4.00", "44.0"]
