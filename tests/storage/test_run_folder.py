"""Whole or not at all, in order, once: whatever happens to the process."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from specfit.base.types import SpecfitError
from specfit.storage.manifest import read_manifest
from specfit.storage.request_files import part_name, read_residency
from specfit.storage.rows import load_run
from specfit.storage.run_folder import RunStore
from specfit.storage.tables import FILES
from tests.fakes.killing import IDS, RUN_ID, fill_store, part_of
from tests.fakes.rows import info, manifest, part, store_run

ROOT = Path(__file__).resolve().parents[2]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def start(runs: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.fakes.killing", "store", str(runs), *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_run_from_first_request_to_rows(tmp_path: Path) -> None:
    store = RunStore(tmp_path, RUN_ID)
    assert not store.is_finished() and store.finished_requests() == []
    assert store.last_residency() is None
    assert fill_store(str(tmp_path)) == IDS
    assert store.is_finished() and store.finished_requests() == IDS
    assert (store.folder / "run.yaml").read_text() == "seed: 0\n"
    rows = load_run(store.folder)
    assert rows.info == info() and rows.request_ids == IDS == rows.ok_ids
    assert rows.cycles["request_id"].tolist() == [name for name in IDS for _ in range(3)]
    assert set(rows.cycles["run_id"]) == {RUN_ID}
    assert len(rows.timings) == len(rows.cycles)


def test_residency_is_what_each_request_left(tmp_path: Path) -> None:
    fill_store(str(tmp_path))
    store = RunStore(tmp_path, RUN_ID)
    assert store.residency_before(IDS[0]) is None
    for before, name in itertools.pairwise(IDS):
        left = part(before, (1, 2 + IDS.index(before), 1)).residency
        found = store.residency_before(name)
        assert found is not None and set(found) == set(left)
        assert all(np.array_equal(found[key], left[key]) for key in left)
    last = store.last_residency()
    assert last is not None and len(last["ids"]) == 1 + 6 + 1


def test_the_same_run_twice_is_byte_equal(tmp_path: Path) -> None:
    for runs in (tmp_path / "a", tmp_path / "b"):
        fill_store(str(runs))
    assert bytes_of(tmp_path / "a" / RUN_ID) == bytes_of(tmp_path / "b" / RUN_ID)


def test_a_killed_run_goes_on_after_its_last_finished_request(tmp_path: Path) -> None:
    process = start(tmp_path / "killed", IDS[3])
    process.communicate(timeout=60)
    assert process.returncode == 9
    store = RunStore(tmp_path / "killed", RUN_ID)
    assert not store.is_finished()
    assert store.finished_requests() == IDS[:3]
    assert fill_store(str(tmp_path / "killed")) == IDS[3:]
    assert fill_store(str(tmp_path / "whole")) == IDS
    assert bytes_of(store.folder) == bytes_of(tmp_path / "whole" / RUN_ID)
    assert not list(store.folder.rglob(".tmp-*")), "what the dead process left is swept"
    found = read_manifest(store.folder)
    assert found is not None and len(found.provenance) == 2, "both processes are named"


def test_two_processes_at_once_make_one_result(tmp_path: Path) -> None:
    both = [start(tmp_path / "both") for _ in range(2)]
    did = [process.communicate(timeout=60)[0].split("\n")[:-1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(did, key=len) == [[""], IDS], "one works, the other finds it finished"
    fill_store(str(tmp_path / "alone"))
    assert bytes_of(tmp_path / "both" / RUN_ID) == bytes_of(tmp_path / "alone" / RUN_ID)


def test_a_part_beyond_a_missing_one_is_done_again(tmp_path: Path) -> None:
    store = RunStore(tmp_path, RUN_ID)
    with store.locked():
        store.begin(manifest(IDS), "")
        for name in IDS[:3]:
            store.add(part(name))
        lost = store.folder / "parts" / part_name(1, IDS[1])
        lost.rename(tmp_path / "lost")
        store.begin(manifest(IDS), "")
        assert store.finished_requests() == IDS[:1]
        assert len(list((store.folder / "parts").iterdir())) == 1


def test_requests_come_in_order_and_a_run_ends_whole(tmp_path: Path) -> None:
    store = RunStore(tmp_path, RUN_ID)
    with store.locked():
        store.begin(manifest(["a", "b"]), "")
        with pytest.raises(AssertionError, match="next request is a"):
            store.add(part("b"))
        store.add(part("a"))
        with pytest.raises(AssertionError, match="not finished"):
            store.finish()
    assert not store.is_finished()
    with pytest.raises(AssertionError, match="inside"):
        store.add(part("b"))
    with pytest.raises(SpecfitError, match="no finished run"):
        load_run(store.folder)


def test_failed_requests_are_rows_and_keep_their_place(tmp_path: Path) -> None:
    folder = store_run(tmp_path, [part("a"), part("b", status="too long"), part("c")])
    rows = load_run(folder)
    assert rows.request_ids == ["a", "b", "c"] and rows.ok_ids == ["a", "c"]
    assert rows.requests["output_ids"].isna().tolist() == [False, True, False]


def test_every_request_failed_is_still_a_run(tmp_path: Path) -> None:
    rows = load_run(store_run(tmp_path, [part("a", status="too long")]))
    assert rows.ok_ids == [] and len(rows.cycles) == 0


def test_begin_on_a_finished_run_changes_nothing_and_force_starts_over(tmp_path: Path) -> None:
    folder = store_run(tmp_path, [part("a")])
    before = bytes_of(folder)
    store = RunStore(tmp_path, RUN_ID)
    with store.locked():
        store.begin(manifest(["a"]), "changed")
        assert store.is_finished() and bytes_of(folder) == before
        store.begin(manifest(["a"]), "changed", force=True)
        assert not store.is_finished() and store.finished_requests() == []
        store.add(part("a", (1, 9)))
        store.finish()
    assert bytes_of(folder) != before
    assert (folder / "run.yaml").read_text() == "changed"


def test_another_run_under_the_same_id_is_refused(tmp_path: Path) -> None:
    store = RunStore(tmp_path, RUN_ID)
    with store.locked():
        store.begin(manifest(["a", "b"]), "")
        with pytest.raises(SpecfitError, match="force=true"):
            store.begin(manifest(["a", "c"]), "")


def test_a_finished_run_keeps_rows_once_and_residency(tmp_path: Path) -> None:
    folder = store_run(tmp_path, [part("a"), part("b")])
    parts = sorted((folder / "parts").iterdir())
    assert [sorted(f.name for f in one.iterdir()) for one in parts] == [["residency.npz"]] * 2
    assert set(read_residency(parts[0])) == {"ids", "used"}


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "x" * 500, "ünï çode", "a\nb", "-r"]
)
def test_part_names_are_safe_for_any_request_id(name: str, tmp_path: Path) -> None:
    safe = part_name(3, name)
    assert safe.isascii() and len(safe) < 64 and "/" not in safe and safe.startswith("000003-")
    (tmp_path / safe).mkdir()
    assert part_name(3, name) == safe != part_name(3, name + "x")


def test_what_waits_in_memory_gives_the_same_files(tmp_path: Path) -> None:
    """A patient store writes no part before its time; an impatient one went before it."""
    fill_store(str(tmp_path / "whole"))
    patient = RunStore(tmp_path / "patient", RUN_ID, patience_s=3600.0)
    with RunStore(tmp_path / "patient", RUN_ID).locked() as first:
        first.begin(manifest(IDS, RUN_ID), "seed: 0\n")
        first.add(part_of(IDS[0]))
    with patient.locked():
        patient.begin(manifest(IDS, RUN_ID), "seed: 0\n")
        for name in IDS[1:]:
            patient.add(part_of(name))
        assert patient.finished_requests() == IDS[:1], "on disk"
        patient.finish()
    assert bytes_of(patient.folder) == bytes_of(tmp_path / "whole" / RUN_ID)
    assert len(list((patient.folder / "parts").iterdir())) == 1


def test_patience_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are written in order, all that waited, once the time has passed."""
    now = [0.0]
    monkeypatch.setattr("specfit.storage.run_folder.time.monotonic", lambda: now[0])
    store = RunStore(tmp_path, RUN_ID, patience_s=10.0)
    with store.locked():
        store.begin(manifest(IDS, RUN_ID), "")
        for at, name in enumerate(IDS[:4]):
            now[0] = 4.0 * at
            store.add(part_of(name))
        assert store.finished_requests() == IDS[:4]
        now[0] += 9.0
        store.add(part_of(IDS[4]))
        assert store.finished_requests() == IDS[:4]
        store.finish()
    assert load_run(store.folder).ok_ids == IDS
