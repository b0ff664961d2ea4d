"""The table of formats from a document written by hand."""

from __future__ import annotations

from itertools import product

import pytest

from specfit.report.artifacts.formats import formats_sheet
from specfit.report.artifacts.real_geometry import HalfReal

NS = {"ar_cache": 4e9, "eagle3_cache": 2e9, "specfit": 1e9}


def test_gains_are_ratios_of_times_at_the_formats_own_slots() -> None:
    cells = []
    for (name, slots), graft, system in product(
        (("bf16", 40), ("fp8", 90)), ("within_8", "walk_2"), NS
    ):
        ns = NS[system] / (2 if (name, graft) == ("fp8", "walk_2") else 1)
        changes = {"gpu.billed": name, "gpu.fixed_ms": 20.0, "gpu.link_gbps": 12.0}
        totals = {"demand_experts": 100, "hit_experts": slots}
        cells.append(
            {"graft": graft, "seed": 0, "acceptance": None, "system": system, "slots": slots}
            | {"study": "formats", "changes": changes, "format": name, "totals": totals}
            | {"ns": [ns / 2, ns / 2]}
        )
    document = {"info": {"dataset": "embedded_gsm8k"}, "committed": [8, 8], "cells": cells}
    document |= {"degenerate": [False, False], "expert_bytes": {"bf16": 9e6, "fp8": 5e6}}
    first, second = formats_sheet(
        [HalfReal.of(document)],
    ).rows
    assert first[1:4] == ("bf16", first[2], 40) and second[3] == 90
    assert [entry.value for entry in first[6:]] == pytest.approx([4, 60, 2, 4, 2])
    assert (second[6].low, second[6].high) == (4, 8) and second[7].value == pytest.approx(10)
