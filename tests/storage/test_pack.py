"""Packed runs say what their folders said, wherever runs are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from specfit.base.types import SpecfitError
from specfit.storage.calibration_files import find_fit
from specfit.storage.find import find_run, finished_runs
from specfit.storage.manifest import read_manifest
from specfit.storage.pack import PackedRun, open_pack, write_pack
from specfit.storage.rows import load_run, run_table, run_yaml
from tests.fakes.rows import part, store_run

NAMES = ("cycles.parquet", "requests.parquet")
PER_GROUP = 4  # few, so that few runs fill several row groups
RUNS = [f"{number:012x}" for number in range(2 * PER_GROUP + 3)]


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specfit.storage.pack.RUNS_PER_GROUP", PER_GROUP)


def pack(folder: Path, runs: Sequence[Path], names: Sequence[str] = NAMES) -> None:
    packed = []
    for run in runs:
        manifest = read_manifest(run)
        assert manifest is not None
        row = PackedRun(run.parent.name, run.name, json.dumps(asdict(manifest)), "seed: 0\n", 5, 7)
        packed.append((row, {name: run_table(run, name) for name in names}))
    write_pack(folder, packed, {"fit": {"calibration_id": "fit", "cost": 1}})


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of runs and replays; ids are shared between the two, as in a results folder."""
    folder = tmp_path_factory.mktemp("live")
    for number, run_id in enumerate(RUNS):
        requests = [part(f"q{number}", (1, 2, 1 + number % 4)), part("bad", status="empty prompt")]
        store_run(folder / "runs", requests, run_id, selector="ar" if number else "specfit")
    store_run(folder / "replays", [part("another", (1, 5))], RUNS[3])
    return folder


def test_every_packed_run_is_its_folder(live: Path, tmp_path: Path) -> None:
    folders = [*sorted((live / "runs").glob("[!.]*")), live / "replays" / RUNS[3]]
    pack(tmp_path, folders)
    for folder in folders:
        there = tmp_path / folder.parent.name / folder.name
        assert not there.exists() and read_manifest(there) == read_manifest(folder)
        ours, theirs = load_run(there), load_run(folder)
        pd.testing.assert_frame_equal(ours.cycles, theirs.cycles)
        pd.testing.assert_frame_equal(ours.requests, theirs.requests)
        assert ours.timings.empty and run_yaml(there) == "seed: 0\n"
    assert [m.info.run_id for _, m in finished_runs(tmp_path / "runs")] == RUNS
    assert [m.info.run_id for _, m in finished_runs(tmp_path / "runs", selector="specfit")] == [
        RUNS[0]
    ]


def test_a_run_is_found_by_its_id(live: Path, tmp_path: Path) -> None:
    pack(tmp_path / "reference", [live / "runs" / RUNS[5]])
    assert find_run(RUNS[5], tmp_path) == tmp_path / "reference" / "runs" / RUNS[5]
    with pytest.raises(SpecfitError, match="is no finished run"):
        find_run("ffff", tmp_path)


def test_a_run_may_be_packed_without_its_cycles(live: Path, tmp_path: Path) -> None:
    pack(tmp_path, [live / "runs" / RUNS[1]], NAMES[1:])
    rows = load_run(tmp_path / "runs" / RUNS[1])
    assert rows.cycles.empty and rows.ok_ids == ["q1"] and "cycle_ns" in rows.cycles


def test_calibrations_are_found(live: Path, tmp_path: Path) -> None:
    pack(tmp_path, [live / "runs" / RUNS[0]])
    assert find_fit("fit", tmp_path)["cost"] == 1
    with pytest.raises(SpecfitError, match="calibration other is not in"):
        find_fit("other", tmp_path)


def test_a_pack_that_was_written_again_is_read_again(live: Path, tmp_path: Path) -> None:
    pack(tmp_path, [live / "runs" / RUNS[0]])
    assert read_manifest(tmp_path / "runs" / RUNS[1]) is None
    pack(tmp_path, [live / "runs" / RUNS[1]])
    assert read_manifest(tmp_path / "runs" / RUNS[1]) is not None
    assert read_manifest(tmp_path / "runs" / RUNS[0]) is None


@pytest.mark.parametrize("name", ["runs.parquet", "cycles.parquet", "calibrations.jsonl"])
def test_a_damaged_pack_is_one_sentence(live: Path, tmp_path: Path, name: str) -> None:
    pack(tmp_path, [live / "runs" / RUNS[0]])
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SpecfitError, match=rf"{name} is damaged .*from the repository"):
        load_run(tmp_path / "runs" / RUNS[0])
        find_fit("fit", tmp_path)


def test_the_order_of_writing_does_not_show(live: Path, tmp_path: Path) -> None:
    folders = sorted((live / "runs").glob("[!.]*"))
    for name, order in (("a", folders), ("b", folders[::-1])):
        (tmp_path / name).mkdir()
        pack(tmp_path / name, order)
    for file in ("runs.parquet", *NAMES, "calibrations.jsonl"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert open_pack(tmp_path / "nowhere") is None
