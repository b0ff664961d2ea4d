"""The README's device table is made from results/device, and says so where there is nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scripts.document.device import HEADER, NONE, README, rewritten, table

CHECKED: dict[str, Any] = {
    "device": "NVIDIA H200",
    "small": False,
    "started": "2026-01-02T03:04:05Z",
    "sections": {
        "equality": {"verdict": "passed", "figures": {}},
        "kernels": {
            "verdict": "failed",
            "figures": {
                "timings": [
                    {"rows": 1, "share_of_memory": 0.2},
                    {"rows": 8, "share_of_memory": 0.45},
                ]
            },
        },
        "probe": {
            "verdict": "passed",
            "figures": {"modelled_against_measured": [{"error": 0.02}, {"error": -0.07}]},
        },
        "dummy": {
            "verdict": "passed",
            "figures": {
                "load_s": 71.2,
                "ar": {"achieved_h2d_gbps": 52.3, "cycle_ms": 81.6, "tokens_per_second": 12.25},
                "ar_48": {"tokens_per_second": 30.0},
                "specfit_48": "not run: out of time",
                "copies_at_share_of_pinned": 0.97,
                "uncached_bound_ms": 84.0,
                "resident_beside_ms": 13.1,
                "resident_goal_ms": 15.0,
            },
        },
    },
}


def test_the_readme_is_up_to_date() -> None:
    text = README.read_text(encoding="utf-8")
    assert rewritten(text) == text, "python scripts/document/device.py brings it up to date"


def test_without_a_device_it_says_so(tmp_path: Path) -> None:
    assert table(tmp_path) == NONE
    for change in ({"small": True}, {"device": "cpu"}):
        (tmp_path / "device_x.json").write_text(json.dumps(CHECKED | change))
        assert table(tmp_path) == NONE, "a rehearsal is no device"


def test_one_row_per_device(tmp_path: Path) -> None:
    (tmp_path / "device_b.json").write_text(json.dumps(CHECKED))
    bare = {"device": "Bare GPU", "small": False, "started": "2026-02-01", "sections": {}}
    (tmp_path / "device_a.json").write_text(json.dumps(bare))
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table(tmp_path).split("\n")
    ]
    assert lines[0] == list(HEADER) and len(lines) == 4
    assert lines[2] == [
        *("Bare GPU", "2026-02-01", "-", "- (-)", "-", "- (-)", "-", "- ms (-)"),
        *("- ms (-)", "-, -, -, -"),
    ]
    assert lines[3] == [
        *("NVIDIA H200", "2026-01-02", "passed", "45% (failed)", "-7.0 %", "52.3 (97%)", "71 s"),
        *("82 ms (84)", "13.1 ms (15)", "12.25, 30.00, -, -"),
    ]
