"""A map written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from specfit.report.artifacts.paying import atlas_of, profile_sheet, share_sheet
from specfit.report.table_format import to_markdown


def point(fixed: float, link: float, system: str, ns: list[int], **other: Any) -> dict[str, Any]:
    said = {"fixed_ms": fixed, "link_gbps": link, "slots": 8, "prefetch": "off", "system": system}
    return said | {"decode_ns": ns} | other


def spot(fixed: float, link: float, ar: list[int], eagle: list[int], specfit: list[int]) -> Any:
    systems = {"ar_cache": ar, "eagle3_cache": eagle, "specfit": specfit}
    return [point(fixed, link, name, ns) for name, ns in systems.items()]


SECOND = 10**9
DOCUMENT = {
    "info": {"dataset": "embedded_news"},
    "grid": {"fixed_ms": [5.0, 70.0], "link_gbps": [25.0], "slots": [8]},
    "profiles": {
        "paper_main": {"fixed_ms": 70.0, "link_gbps": 25.0},
        "elsewhere": {"fixed_ms": 6.0, "link_gbps": 7.0},
    },
    "committed_tokens": [10, 10, 20],
    "points": [
        *spot(70.0, 25.0, [4 * SECOND] * 3, [3 * SECOND] * 3, [2 * SECOND] * 3),
        *spot(5.0, 25.0, [SECOND] * 3, [2 * SECOND] * 3, [9 * SECOND, SECOND // 9, SECOND]),
    ],
}


def test_the_best_and_its_gain_over_plain_decoding() -> None:
    atlas = atlas_of(DOCUMENT)
    assert (atlas.workload.dataset, atlas.fixed_ms, atlas.slots) == (
        "embedded_news",
        (5.0, 70.0),
        (8,),
    )
    spots = atlas.panels["off", 8].spots
    paid, lost = spots[70.0, 25.0], spots[5.0, 25.0]
    assert (paid.best, paid.drafting, paid.gain.value, paid.is_clear) == (
        "specfit",
        "specfit",
        2,
        True,
    )
    assert paid.speeds["ar_cache"].value == pytest.approx(40 / 12)
    assert (lost.best, lost.drafting, lost.gain.value) == ("ar_cache", "eagle3_cache", 0.5)


def test_an_interval_around_one_is_undecided() -> None:
    changed = [p for p in DOCUMENT["points"] if p["system"] != "eagle3_cache"]  # type: ignore[index]
    spots = atlas_of(DOCUMENT | {"points": changed}).panels["off", 8].spots
    assert not spots[5.0, 25.0].is_clear and spots[5.0, 25.0].best == "ar_cache"


def test_tables_name_places_and_count_them() -> None:
    atlas = atlas_of(DOCUMENT)
    lines = to_markdown(profile_sheet([atlas], "modelled")).splitlines()
    (line,) = [line for line in lines if "paper_main" in line]
    assert "SpecFit | 2.00x" in line and "on demand | 8" in line
    assert "elsewhere" not in "\n".join(lines), "it lies off the grid"
    shares = to_markdown(share_sheet([atlas]))
    assert "| on demand | 8 | 1 | 0 | 1 | 0 |" in shares
    assert "0.50x at 5 ms, 25 GB/s" in shares and "2.00x at 70 ms, 25 GB/s" in shares
