"""What a probe found about the modelled clock is told with times of its profile, and only there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specfit.report.clock_check import FOLDER, clock_checks, clock_sentence, probed_places
from specfit.report.run_summary import closing_table
from tests.fakes.rows import part, rows_of

OURS = rows_of([part("a", (1, 4, 4))])
UNKNOWN = "modelled clock: not checked on a device of this profile"


def probe(results: Path, name: str, digest: str, **errors: float) -> dict[str, Any]:
    document = {
        "profile": {"name": name, "gpu_names": [f"Card {name}"]},
        "profile_digest": digest,
        "made": "2026-01-02",
        "modelled_against_measured": [
            {"system": system, "cycles": 100, "error": error} for system, error in errors.items()
        ],
    }
    (results / FOLDER).mkdir(exist_ok=True)
    (results / FOLDER / f"{name}.json").write_text(json.dumps(document))
    return document


def test_nothing_probed_is_said(tmp_path: Path) -> None:
    assert clock_sentence(tmp_path, "d") == UNKNOWN


def test_the_error_of_every_system_is_said_for_that_profile(tmp_path: Path) -> None:
    probe(tmp_path, "a", "digest-a", ar=0.031, eagle3_cache=-0.125)
    assert clock_sentence(tmp_path, "digest-a") == (
        "modelled clock checked on Card a: ar +3.1 %, eagle3_cache -12.5 % of measured totals "
        "(probe of 2026-01-02, n = 200 cycles)"
    )


def test_a_busy_machine_is_said(tmp_path: Path) -> None:
    stored = probe(tmp_path, "a", "digest-a", ar=0.031)
    for load, words in ((0.6, ""), (5.04, "; the machine was busy, 5.0 processes per core")):
        path = tmp_path / FOLDER / "a.json"
        path.write_text(json.dumps(stored | {"load_per_core": load}))
        assert clock_sentence(tmp_path, "digest-a").endswith(f"n = 100 cycles{words})")


def test_another_profile_hears_how_probed_ones_did(tmp_path: Path) -> None:
    probe(tmp_path, "a", "digest-a", ar=0.03, specfit=-0.12)
    probe(tmp_path, "b", "digest-b", ar=0.05)
    said = clock_sentence(tmp_path, "digest-of-paper-main")
    off = "with a probe's own profile, on Card a, Card b: off by -12.0 to +5.0 %"
    assert said == f"{UNKNOWN} ({off})"


def test_files_of_another_kind_say_nothing(tmp_path: Path) -> None:
    stored = probe(tmp_path, "a", "d", ar=0.03)
    for name, text in {"x": "{", "y": "[]", "z": json.dumps(stored | {"profile": {}})}.items():
        (tmp_path / FOLDER / f"{name}.json").write_text(text)
    del stored["profile_digest"]  # as an earlier version wrote it
    (tmp_path / FOLDER / "old.json").write_text(json.dumps(stored))
    assert [check.device for check in clock_checks(tmp_path)] == ["Card a"]


def test_the_closing_table_of_modelled_times_has_it(tmp_path: Path) -> None:
    assert OURS.info.clock == "modelled"
    lines = {line.label: line.value for line in closing_table(OURS, results=tmp_path)}
    assert lines["clock check"] == UNKNOWN
    assert "clock check" not in {line.label for line in closing_table(OURS)}


def test_only_a_probe_of_the_whole_billed_model_is_a_place_on_its_map(tmp_path: Path) -> None:
    for name, model in (("a", "big"), ("b", "big-dummy"), ("c", "big, 2 layers"), ("d", "small")):
        stored = probe(tmp_path, name, "x", ar=0.0)
        stored["profile"] |= {"fixed_ms": 30, "link_gbps": 24.5}
        path = tmp_path / FOLDER / f"{name}.json"
        path.write_text(json.dumps(stored | {"model": model}))
    probe(tmp_path, "older", "y", ar=0.0)
    assert probed_places(tmp_path, "big") == {"a": (30.0, 24.5), "b": (30.0, 24.5)}
    assert probed_places(tmp_path, None) == {}
