"""The tables and the figure of formats from a document written by hand."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from specfit.report.artifacts.formats import (
    figure_4_sheet,
    fit_sheet,
    in_words,
    map_sheet,
    paint,
    settings,
)
from specfit.report.artifacts.half_real import SLOTS, HalfReal

NS = {"ar_cache": 4e9, "eagle3_cache": 2e9, "specfit": 1e9}
FIT = {"bf16": 40, "fp8": 90, "int4": 128}
PLACES = tuple(product((20.0, 70.0), (12.0, 60.0)))


def document() -> dict[str, Any]:
    """FP8 is twice as fast under one grafting; drafting pays nowhere at 60 GB/s; EAGLE-3 is the
    fastest at 70 ms; and at s slots, SpecFit's time is s ns less than EAGLE-3's billion."""
    cells = []
    for name, graft, system in product(FIT, ("within_8", "walk_2"), NS):
        known = {"graft": graft, "seed": 0, "acceptance": None, "system": system, "format": name}
        for fixed, link in PLACES:
            ns = NS[system] / (2 if (name, graft) == ("fp8", "walk_2") else 1)
            ns *= 8 if link == 60 and system != "ar_cache" else 1
            ns *= 3 if fixed == 70 and system == "specfit" else 1
            changes = {"gpu.billed": name, "gpu.fixed_ms": fixed, "gpu.link_gbps": link}
            totals = {"demand_experts": 100, "hit_experts": min(FIT[name], 100)}
            own = {"slots": FIT[name], "study": "map", "changes": changes, "totals": totals}
            cells.append(known | own | {"ns": [ns / 2, ns / 2]})
        for slots in SLOTS:
            ns = 1e9 / (1 + slots) if system == "specfit" else 1e9
            own = {"slots": slots, "study": "slots", "changes": {"gpu.billed": name}, "totals": {}}
            cells.append(known | own | {"ns": [ns / 2, ns / 2]})
    found = {"info": {"dataset": "embedded_gsm8k"}, "committed": [8, 8], "cells": cells}
    found |= {"profile": {"fixed_ms": 70.0, "link_gbps": 25.0}, "degenerate": [False, False]}
    return found | {"expert_bytes": {"bf16": 9e6, "fp8": 5e6, "int4": 2e6}}


@pytest.fixture(scope="module")
def half() -> HalfReal:
    return HalfReal.of(document())


def test_gains_are_ratios_of_times_at_the_formats_own_slots(half: HalfReal) -> None:
    rows = fit_sheet([half]).rows
    assert len(rows) == 3 * 2, "60 GB/s is on the map alone"
    first, second = rows[0], rows[2]
    assert first[1:4] == ("bf16", first[2], 40) and second[1:4] == ("FP8", second[2], 90)
    assert [entry.value for entry in first[6:]] == pytest.approx([4, 60, 2, 4, 2])
    assert (second[6].low, second[6].high) == (4, 8) and second[7].value == pytest.approx(10)


def test_figure_4_has_every_format_at_its_slots(half: HalfReal) -> None:
    sheet = figure_4_sheet([half])
    assert sheet.columns[2:6] == tuple(
        f"over EAGLE-3 + cache, {name}" for name in ("48 slots", "24 slots", "12 slots", "no cache")
    )
    assert [row[1] for row in sheet.rows] == ["bf16", "FP8", "int4"]
    for row in sheet.rows:
        assert [cell.value for cell in row[2:6]] == pytest.approx([49, 25, 13, 1])
    assert "70 ms and 25 GB/s" in sheet.note


def test_a_map_names_the_faster_of_the_drafting_systems(half: HalfReal) -> None:
    sheet = map_sheet([half])
    assert sheet.columns[4:] == ("12 GB/s", "60 GB/s") and sheet.rows[0][3].value == 20
    assert len(sheet.rows) == 3 * 2 and len(settings(half, "map")) == 3 * 4
    assert [cell.text for cell in sheet.rows[0][4:]] == ["S 4.00x", "S 0.50x"]
    assert [cell.text for cell in sheet.rows[1][4:]] == ["E 2.00x", "E 0.25x"]


def test_the_figure_is_painted_and_told_in_words(half: HalfReal) -> None:
    from matplotlib.figure import Figure

    sheet: Any = Figure(figsize=(9, 5)).subfigures(1, 1)
    paint(sheet, [half])
    maps = [axes for axes in sheet.figure.axes if axes.images]
    letters = [text.get_text()[0] for text in maps[0].texts]
    assert letters == ["S", "A", "E", "A"], "AR where nothing that drafts is faster"
    assert "bf16: 2 of 4 points, 0.25 to 4.00" in in_words([half])
