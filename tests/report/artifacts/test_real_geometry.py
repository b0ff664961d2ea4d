"""A half-real document written by hand: ranges over seeds and graftings, loops, break-even."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from specfit.report.artifacts import real_geometry as half_real
from specfit.report.artifacts import real_geometry_bounds, real_geometry_slots
from specfit.report.artifacts.half_real import HalfReal, embedded_gain
from specfit.report.artifacts.real_geometry import cloud, crossing
from specfit.report.degenerate import is_degenerate, is_loop
from specfit.report.table_format import to_markdown

SYSTEMS = ("ar_cache", "eagle3_cache", "specfit", "evict_early", "chain_3")
GRAFTS = {"within_8": (2, 4), "walk_2": (1, 3)}  # SpecFit's speed-up over EAGLE-3 by seed
LOOP = 2
"""The request that is degenerate: SpecFit gains ten times as much there."""


def cell(graft: str, seed: int, system: str, slots: int, ns: list[float], **other: Any) -> Any:
    totals = {"cycles": 30, "verified_nodes": 9, "demand_experts": 100, "hit_experts": 80}
    said = {"graft": graft, "seed": seed, "acceptance": None, "system": system, "slots": slots}
    said |= {"changes": {}, "study": "grid", "ns": ns, "cycles": [5, 10, 10], "totals": totals}
    return said | other


def times(system: str, speedup: float) -> list[float]:
    if system == "specfit":
        return [60 / speedup, 60 / speedup, 6 / speedup]
    return [60.0, 60.0, 60.0]


def document(**changes: Any) -> dict[str, Any]:
    cells = [cell("embedded", 0, s, n, times(s, 1.5)) for s, n in product(SYSTEMS, half_real.SLOTS)]
    for graft, speedups in GRAFTS.items():
        for (seed, speedup), s, n in product(enumerate(speedups), SYSTEMS, half_real.SLOTS):
            cells.append(cell(graft, seed, s, n, times(s, speedup)))
    for one in cells:
        one["wait_ns"] = [20.0, 20.0, 20.0]
    for graft, s, n in product(("embedded", *GRAFTS), half_real.LEADING, half_real.SLOTS[:-1]):
        totals = {"demand_experts": 100, "hit_experts": 95}
        how = {"study": "policies", "changes": {"policy": "belady"}, "totals": totals}
        cells.append(cell(graft, 0, s, n, times(s, 2), **how))
    for graft, value, s, n in product(GRAFTS, (2.0, 3.0), half_real.LEADING, half_real.ENDS):
        ns = [60.0 / (value - 1.5 if s == "specfit" else 1.0)] * 3
        dial = {
            "acceptance": value,
            "study": "dial",
            "cycles": [10 / value, 10 / value, 10 / value],
        }
        cells.append(cell(graft, 0, s, n, ns, **dial))
    return {
        "info": {"dataset": "embedded_gsm8k"},
        "committed": [10, 10, 10],
        "degenerate": [number == LOOP for number in range(3)],
        "cells": cells,
    } | changes


def row(sheet: Any, start: str) -> Any:
    return next(line for line in sheet.rows if line[1] == start)


def test_brackets_are_ranges_over_seeds_and_over_graftings() -> None:
    half = HalfReal.of(document()).without_degenerate()
    sheet = half_real.figure_4_sheet([half], "t")
    of_one = row(sheet, "real, within_8")[3]
    assert (of_one.value, of_one.low, of_one.high) == (3, 2, 4)
    of_all = row(sheet, "real, all graftings")[3]
    assert (of_all.value, of_all.low, of_all.high) == (2.5, 1, 4)
    assert row(sheet, "embedded")[3].value == pytest.approx(1.5)
    assert row(sheet, "embedded")[2] == 2, "the loop is left out"


def test_a_loop_moves_the_ratio_and_is_counted() -> None:
    half = HalfReal.of(document())
    whole = row(half_real.figure_4_sheet([half], "t"), "embedded")
    assert whole[2] == 3 and whole[3].value == pytest.approx(1.5 * 180 / 126)
    assert "1 of 3 (synthetic word problems)" in half_real.degenerate_line([half])


def test_misses_are_of_demanded_experts() -> None:
    sheet = half_real.misses_sheet([HalfReal.of(document())])
    assert row(sheet, "embedded")[2].value == pytest.approx(20)


def test_the_bound_is_eagle3_without_waiting_and_old_documents_have_none() -> None:
    half = HalfReal.of(document())
    line = row(half_real.figure_4_sheet([half], "t"), "EAGLE-3, resident; real, all graftings")
    assert line[3].value == pytest.approx(180 / 120)
    old = document()
    for one in old["cells"]:
        one.pop("wait_ns", None)
    labels = [line[1] for line in half_real.figure_4_sheet([HalfReal.of(old)], "t").rows]
    assert not [label for label in labels if "resident" in label]


def test_trends_break_even_and_belady_under_real_routes() -> None:
    """No gain changes with slots here; AR + cache and EAGLE-3 take the same time for a token."""
    half = HalfReal.of(document())
    trends = real_geometry_bounds.trends_sheet([half])
    assert [cell.value for cell in row(trends, "real, within_8")[2:6]] == pytest.approx([1] * 4)
    assert row(trends, "embedded")[-1] == "no", "at none of the steps"
    line = row(real_geometry_bounds.bounds_sheet([half]), "within_8")
    assert line[3].value == pytest.approx(1), "30 tokens in 30 cycles"
    assert line[5].value == pytest.approx(1), "AR + cache is as slow"
    assert line[6].value == pytest.approx(63 / 180), "twice as fast, the loop twenty times"
    assert line[7].value == pytest.approx(15), "95 of 100 hit, not 80"


def test_gains_along_the_dial_and_where_they_pass_one() -> None:
    half = HalfReal.of(document())
    dial = half_real.dial_sheet([half])
    assert [line[2].value for line in dial.rows[:2]] == pytest.approx([2.0, 3.0])
    assert [line[3].value for line in dial.rows[:2]] == pytest.approx([0.5, 1.5])
    even = half_real.break_even_sheet([half]).rows[0]
    assert even[2].value == pytest.approx(2.5) and even[4].text == "-", "EAGLE-3 equals AR always"


@pytest.mark.parametrize(
    ("gains", "at"), [([0.5, 1.5, 2], 1.5), ([2, 3, 4], None), ([2, 0, 2], 2.5), ([1, 1, 1], None)]
)
def test_crossing(gains: list[float], at: float | None) -> None:
    assert crossing([1, 2, 3], gains) == at


def test_points_of_the_lead_figure() -> None:
    found = cloud(HalfReal.of(document()), 48)
    assert found.committed.tolist() == [2, 1, 1]
    assert found.embedded.tolist() == pytest.approx([1.5, 1.5, 15])
    assert found.real.tolist() == pytest.approx([2.5, 2.5, 25])
    assert found.degenerate.tolist() == [False, False, True]
    assert "synthetic word problems, 48 slots" in half_real.acceptance_in_words([found])


def test_every_sheet_is_spelled() -> None:
    half = HalfReal.of(document())
    for make in (half_real.figure_4_sheet,):
        assert "all graftings" in to_markdown(make([half], "t"))
    assert "k = 3" in to_markdown(half_real.rivals_sheet([half]))
    assert half_real.named("evict_early") == "EVICT, early stop"


def test_loops_are_told_from_text() -> None:
    rng = np.random.default_rng(0)
    text = rng.integers(0, 500, 60).tolist()
    assert not is_loop(text)
    assert is_loop([*text[:20], *[1, 2, 3] * 12])
    assert not is_loop([*text[:50], *[1, 2, 3] * 12]), "less than half"
    assert not is_loop([*text[:10], 5, 5, 6, 7, 8])
    assert is_degenerate(text, "length") and not is_degenerate(text, "eos")


# -- figure 4 --------------------------------------------------------------------------------------


def test_lines_of_the_figure_are_the_rows_of_the_table() -> None:
    half = HalfReal.of(document()).without_degenerate()
    lines = {(line.base, line.routes): line for line in real_geometry_slots.gain_lines(half)}
    assert len(lines) == 2 * (len(GRAFTS) + 2), "embedded, each grafting, all; over two systems"
    sheet = half_real.figure_4_sheet([half], "t")
    for start, routes in (("embedded", "embedded"), ("real, walk_2", "walk_2")):
        shown = row(sheet, start)[3:]
        drawn = [*lines["eagle3_cache", routes].gains, *lines["ar_cache", routes].gains]
        assert [(c.value, c.low, c.high) for c in drawn] == [
            (c.value, c.low, c.high) for c in shown
        ]
    told = real_geometry_slots.in_words(list(lines.values()))
    assert "embedded: 1.50x at 48 slots" in told and "all graftings: 2.50x at 48 slots" in told


def test_the_figure_has_a_panel_for_each_workload_and_base() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    other = document(info={"dataset": "embedded_news"})
    halves = [HalfReal.of(document()), HalfReal.of(other)]
    sheet = Figure(layout="constrained")
    real_geometry_slots.paint(
        sheet, [line for half in halves for line in real_geometry_slots.gain_lines(half)]
    )
    assert len(sheet.axes) == 4
    labels = [text.get_text() for text in sheet.legends[0].get_texts()]
    assert labels[-1] == "paper" and {"embedded", "real, walk_2", "all graftings"} <= set(labels)
    markers = [line.get_marker() for panel in sheet.axes[:2] for line in panel.lines]
    assert "d" in markers, "the paper's gains"
    assert all("d" not in [x.get_marker() for x in panel.lines] for panel in sheet.axes[2:])


def test_embedded_intervals_know_the_clusters() -> None:
    """The wider of requests and clusters, where the document says the clusters."""
    ns = {"eagle3_cache": [60.0] * 12, "specfit": [40.0] * 6 + [60.0] * 6, "ar_cache": [60.0] * 12}
    cells = [cell("embedded", 0, system, 48, times) for system, times in ns.items()]
    plain = document(cells=cells, committed=[10] * 12, degenerate=[False] * 12)
    clustered = plain | {"clusters": ["a"] * 6 + ["b"] * 6}
    found, wide = (
        embedded_gain(HalfReal.of(one), "specfit", "eagle3_cache", 48) for one in (plain, clustered)
    )
    assert found.value == wide.value and wide.high - wide.low > found.high - found.low
