"""The measured comparison from rows written by hand: baselines pooled, the steadiest try chosen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from specfit.report.artifacts.measured import (
    Block,
    blocks_of,
    figure_measured,
    name_of,
    pooled,
    table_measured,
)
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.sandwich import apart, label_of_try, split_try
from specfit.report.table_format import Sheet
from specfit.storage.request_files import Part
from specfit.storage.suite import Cell, Suite, find_suite
from specfit.storage.tables import MachineState, RequestFlags
from tests.fakes.rows import part, rows_of, store_run

FLAGS = RequestFlags(fits=True, routing="weights", drafter_forced=False, disk_reads="direct")
STATE = MachineState(cpu_clock_mhz=2500.0, cpu_throttles=0, cpu_steal_share=0.01)
MS = {"eagle3_cache": 10.0, "ar": 20.0, "ar_cache": 8.0, "specfit": 5.0, "again": 10.2}
"""Of a decode cycle that commits two tokens, by cell; AR's rows stand in at the same two."""


def decoding(ms: float, state: MachineState = STATE, **changes: Any) -> list[Part]:
    """Two requests of two decode cycles; a prefill takes 4 ms."""
    changes |= {"verify_ns": round(ms * 1e6) - 1_000_000, "transfer_wait_ns": 0}
    flags = changes.pop("flags", FLAGS)
    return [part(n, (1, 2, 2), machine=state, flags=flags, **changes) for n in ("a", "b")]


def store(
    results: Path, label: str, ms: float, kind: str = "run", repeat: int = 0, **changes: Any
) -> Cell:
    """A finished cell; its selector is the label's name."""
    name = split_try(label.removesuffix("/modelled"))[0].split("/")[2]
    selector = {"again": "eagle3_cache", "learned": "specfit", "ar_early": "ar_cache"}.get(
        name, name
    )
    run_id = f"{int(sha256(f'{label} {kind}'.encode()).hexdigest(), 16):064x}"[:12]
    about = {"selector": selector, "cache_slots": 24, "clock": "wall", "repeat": repeat}
    about |= {"dataset": "embedded_news", "profile": "probe-x", "device": "one processor"}
    if kind == "replay":
        about |= {"clock": "modelled", "device": "a replay"}
    folder = {"run": "runs", "replay": "replays"}[kind]
    store_run(results / folder, decoding(ms, **changes), run_id, **about)
    return Cell(label, kind, f"selector={selector}", run_id)


def probe(results: Path) -> Cell:
    link = {"memory": "disk x2", "size_bytes": 49152, "copy_us": 95.0, "gbps": 1.03}
    path = results / "bench" / "probe-disk.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"link": [link]}))
    return Cell("disk", "bench", "on_disk=1", "probe-disk")


def made(results: Path, ms: Mapping[str, float] = MS, tries: int = 1) -> ResultsReader:
    """One block in so many tries, each with these cycle times, and two modelled cells."""
    cells = [probe(results)]
    for number in range(tries):
        for name, time in ms.items():
            repeat = 2 * number + (name == "again")
            label = label_of_try(f"news/24/{name}", number)
            cells.append(store(results, label, time, repeat=repeat))
    for name, time in {"eagle3_cache": 11.0, "ar_cache": 8.0, "specfit": 5.0}.items():
        cells.append(store(results, f"news/24/{name}/modelled", time, "replay"))
    Suite("measured", "full", (), tuple(cells)).write(results)
    return ResultsReader(results)


def row(sheet: Sheet, system: str) -> dict[str, Any]:
    at = sheet.columns.index("system")
    (found,) = [cells for cells in sheet.cells() if cells[at].text == system]
    return dict(zip(sheet.columns, found, strict=True))


def test_gains_are_over_both_runs_of_the_baseline(tmp_path: Path) -> None:
    sheet = table_measured(made(tmp_path)).sheets[""]
    ours = row(sheet, "SpecFit")
    assert ours["tokens/s (measured)"].value == pytest.approx(400.0)
    assert ours["over EAGLE-3 + cache (measured)"].value == pytest.approx(10.1 / 5)
    assert ours["over EAGLE-3 + cache (modelled)"].value == pytest.approx(11 / 5)
    assert ours["over AR + cache (measured)"].value == pytest.approx(8 / 5)
    assert (ours["n"].value, ours["link"].text, ours["block"].text) == (
        2,
        "disk",
        "settled (2.0 %)",
    )
    base = row(sheet, "EAGLE-3 + cache")
    assert base["tokens/s (measured)"].value == pytest.approx(2000 / 10.1)
    assert base["over EAGLE-3 + cache (measured)"].value is None
    assert row(sheet, "AR")["over EAGLE-3 + cache (modelled)"].value is None, "no such run"


def test_every_number_stands_with_its_clock_n_and_device(tmp_path: Path) -> None:
    table = table_measured(made(tmp_path))
    text = table.files["table_measured.md"].decode()
    assert table.title == "Measured on one processor: experts on disk"
    assert "n = 2 requests" in text and "clock wall (times are measured)" in text
    timed = [c for s in table.sheets.values() for c in s.columns if "tokens/s" in c or "over " in c]
    assert timed and all("measured" in c or "modelled" in c for c in timed)
    assert "unequal" not in text
    assert "| disk | disk x2 | 48.0 | 95.0 | 1.03 |" in text


def test_the_steadiest_try_is_shown_and_an_unsettled_block_says_so(tmp_path: Path) -> None:
    results = tmp_path / "unsettled"
    table = table_measured(made(results, MS | {"again": 12.0}, tries=4))
    assert row(table.sheets[""], "SpecFit")["block"].text == "unsettled (18.2 %, 4 tries)"
    assert (
        "0 of 1 blocks are settled; unsettled: synthetic reports, disk, 24 slots" in table.notes[0]
    )
    assert len(table.sheets["blocks"].rows) == 4 and not table.sheets["clock"].rows

    results = tmp_path / "settled"
    reader = made(results, MS | {"again": 12.0})
    suite = find_suite("measured", results).suite
    second = [
        store(results, label_of_try(f"news/24/{name}", 1), ms / 2, repeat=2 + (name == "again"))
        for name, ms in MS.items()
    ]
    replace(suite, cells=(*suite.cells, *second)).write(results)
    sheets = table_measured(reader).sheets
    assert row(sheets[""], "SpecFit")["block"].text == "settled (2.0 %, 2 tries)"
    assert row(sheets[""], "SpecFit")["tokens/s (measured)"].value == pytest.approx(800.0)
    assert [cells[7].text for cells in sheets["blocks"].cells()] == [
        "-",
        "settled (2.0 %, 2 tries)",
    ]


def test_the_clock_is_held_against_totals_system_by_system(tmp_path: Path) -> None:
    sheet = table_measured(made(tmp_path)).sheets["clock"]
    base, ours = row(sheet, "EAGLE-3 + cache"), row(sheet, "SpecFit")
    measured_ms, modelled_ms = 4 + 2 * 10.1, 4 + 2 * 11.0  # a request: prefill and two cycles
    error = 100 * (modelled_ms / measured_ms - 1)
    least = "modelled over measured time, least, %"
    assert base[least].value == pytest.approx(error) and base["within 10 %"].text == "yes"
    assert ours[least].value == pytest.approx(0.0) and ours["blocks"].value == 1
    wrong = row(
        table_measured(made(tmp_path / "b", MS | {"ar_cache": 6.0})).sheets["clock"], "AR + cache"
    )
    assert wrong["within 10 %"].text == "no"


def test_counters_that_part_from_the_model_are_named(tmp_path: Path) -> None:
    reader = made(tmp_path)
    suite = find_suite("measured", tmp_path).suite
    other = store(
        tmp_path, "news/24/ar/modelled", 20.0, "replay", hit_experts=7, transferred_experts=3
    )
    replace(suite, cells=(*suite.cells, other)).write(tmp_path)
    sheet = table_measured(reader).sheets[""]
    assert row(sheet, "AR")["counters as modelled"].text == "0 of 2"
    assert row(sheet, "AR + cache")["counters as modelled"].text == "2 of 2"


def test_a_machine_that_changed_gives_no_ratio(tmp_path: Path) -> None:
    reader = made(tmp_path)
    suite = find_suite("measured", tmp_path).suite
    slow = store(tmp_path, "news/24/evict", 5.0, state=replace(STATE, cpu_clock_mhz=1800.0))
    replace(suite, cells=(*suite.cells, slow)).write(tmp_path)
    table = table_measured(reader)
    assert row(table.sheets[""], "EVICT")["over EAGLE-3 + cache (measured)"].value is None
    assert "CPU clock, MHz: 2500" in table.stamp.text


def test_the_link_of_a_disk_run_is_its_own_doing() -> None:
    """Reads in flight decide it, so it tells no machine from another."""
    from specfit.report.machines import unequal

    fast, slow = (
        rows_of(decoding(5.0, replace(STATE, achieved_h2d_gbps=gbps)), clock="wall")
        for gbps in (1.0, 0.5)
    )
    assert unequal(fast, slow) == ()
    host = [
        rows_of(
            decoding(5.0, replace(STATE, achieved_h2d_gbps=g), flags=RequestFlags()), clock="wall"
        )
        for g in (1.0, 0.5)
    ]
    assert any("link" in text for text in unequal(*host))


def test_two_runs_pooled_are_one_of_twice_the_cycles() -> None:
    first, last = (rows_of(decoding(ms), clock="wall") for ms in (10.0, 12.0))
    assert QUANTITIES["speed"].of(pooled(first, last)).value == pytest.approx(2000 / 11)
    assert apart(first, last) == pytest.approx(2 / 11)
    assert apart(first, rows_of([part("a", status="failed")], clock="wall")) == float("inf")


def test_labels_of_tries_are_read_back() -> None:
    for number in range(4):
        assert split_try(label_of_try("news/24/ar", number)) == ("news/24/ar", number)
    assert split_try("news/24/try") == ("news/24/try", 0)


def test_names_and_blocks_without_a_last_baseline(tmp_path: Path) -> None:
    assert name_of("learned") == "SpecFit, learned routes (on the clock)"
    assert name_of("evict") == "EVICT"
    made(tmp_path, {name: ms for name, ms in MS.items() if name != "again"})
    found: list[Block] = blocks_of(find_suite("measured", tmp_path))
    assert found == []


def test_the_figure_has_both_gains_in_both_clocks(tmp_path: Path) -> None:
    drawing = figure_measured(made(tmp_path))
    assert drawing.alt.endswith("synthetic reports, disk, 24 slots: +102.0 %.")
    assert "clock wall (times are measured) / modelled" in drawing.stamp.text
    assert drawing.files["figure_measured.svg"].startswith(b"<?xml")
