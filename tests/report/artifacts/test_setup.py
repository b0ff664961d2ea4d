"""The set-up table: what is known how, and what was asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from specfit.report.artifacts.setup import (
    fits_sheet,
    profile_sheet,
    setup_sheet,
    versions_sheet,
    workload_sheet,
)
from specfit.storage.calibration_files import states_of
from tests.report.artifacts.members import decoding, member, texts

CONFIG: dict[str, Any] = {
    "drafter": {"name": "embedded", "top_k": 2, "max_depth": 5},
    "selector": {"k": 7},
    "dataset": {"scorer": "exact"},
    "max_new_tokens": 128,
    "gpu": {
        "name": "paper_main",
        "link_gbps": 25.0,
        "node_ms": 0.6,
        "copies_in_flight": 2,
        "overlap": True,
        "memory_bytes": None,
        "notes": {"link_gbps": "inferred", "node_ms": "assumed", "copies_in_flight": "published"},
    },
}
MEMBER = member("specfit", 48, decoding(2, 6), digests={"calibration": "fit"}, drafter="embedded")
CONFIGS = {MEMBER.rows.info.run_id: CONFIG}


def test_constants_say_how_they_are_known_and_what_somebody_set() -> None:
    sheet = profile_sheet(CONFIGS, {"paper_main": {"link_gbps": 12.0, "node_ms": 0.6}})
    assert texts(sheet, "constant") == ["link", "node", "copies in flight"]
    assert texts(sheet, "unit") == ["GB/s", "ms", ""]
    assert texts(sheet, "paper_main") == ["25", "0.6", "2"]
    assert texts(sheet, "paper_main: known as") == ["set", "assumed", "published"]


def test_workloads_are_counted_from_their_rows() -> None:
    sheet = workload_sheet([MEMBER, MEMBER], CONFIGS)
    (row,) = sheet.cells()
    assert [cell.text for cell in row] == [
        *("embedded_news", "synthetic reports (our stand-in for CNN/DailyMail)"),
        *("2", "10.0", "10", "0", "128", "5.00", "exact"),
    ]


def test_a_cards_memory_is_shown_in_gigabytes() -> None:
    gpu = {"name": "card", "memory_bytes": 25_757_220_864, "notes": {"memory_bytes": "published"}}
    sheet = profile_sheet({"run": {"gpu": gpu}, "other": CONFIG}, {})
    assert texts(sheet, "card") == ["25.757", "-", "-", "-"], "a column for each profile"
    assert texts(sheet, "paper_main") == ["-", "25", "0.6", "2"]
    row = sheet.cells()[0]
    assert [cell.text for cell in row] == ["memory", "GB", "25.757", "published", "-", "-"]


def test_a_constant_that_runs_set_otherwise_has_every_value() -> None:
    other = {"gpu": CONFIG["gpu"] | {"node_ms": 1.2}}
    sheet = profile_sheet({"run": CONFIG, "other": other}, {"paper_main": {"node_ms": 0.6}})
    assert texts(sheet, "paper_main") == ["25", "0.6 / 1.2", "2"]
    assert texts(sheet, "paper_main: known as")[1] == "assumed / set"


def test_the_states_of_a_fit_are_counted_or_kept() -> None:
    probes = [{"request_id": name, "position": at} for name in "ab" for at in (0, 1)] * 3
    assert states_of({"probes": probes}) == states_of({"states": 4}) == 4


def test_fits_and_the_papers_set_up_stand_beside_ours(tmp_path: Path) -> None:
    probes = [{"request_id": name, "position": at} for name in "abc" for at in (0, 1, 2)] * 2
    document = {
        "profile": "paper_main",
        "clock": "modelled",
        "identity": {"cache_slots": 48, "model": {"num_layers": 8}},
        "probe_count": 18,
        "probes": probes,
        "cost": {"intercepts_ns": [1e6, 2e6], "expert_ns": 500_000.0},
        "leave_one_state_out": {"mean_relative": 0.0849},
    }
    folder = tmp_path / "calibrations"
    folder.mkdir()
    (folder / "fit.json").write_text(json.dumps(document))
    fits = fits_sheet([MEMBER], tmp_path)
    assert texts(fits, "b_0 .. b_K, ms") == ["1.0, 2.0"]
    assert texts(fits, "beta, us per expert") == ["500"] and texts(fits, "error, %") == ["8.49"]
    ours = dict(
        zip(
            texts(setup_sheet([MEMBER], CONFIGS, tmp_path), "what"),
            texts(setup_sheet([MEMBER], CONFIGS, tmp_path), "ours"),
            strict=True,
        )
    )
    assert ours["target"] == "embedded, float32: 8 MoE layers"
    assert ours["calibration"] == "18 probes of 9 states"
    assert ours["pool"] == "top-2, depth at most 5, largest seen 6 nodes"


def test_code_and_machine_are_listed_once() -> None:
    entry = {"commit": "c" * 40, "diff_hash": "x", "versions": {"python": "3.11", "triton": None}}
    held = replace(MEMBER.manifest, provenance=[entry])
    sheet = versions_sheet([held, held])
    assert texts(sheet, "commit") == ["cccccccccccc + changes"]
    assert texts(sheet, "versions") == ["python 3.11"] and texts(sheet, "runs") == ["2"]
