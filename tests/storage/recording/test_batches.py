"""Batches of a recording that is being made: kept whole, read back, refused when not its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specfit.storage import identity
from specfit.storage.recording.batches import RecordingParts
from specfit.storage.recording.files import MANIFEST, read_recording, write_recording
from tests.storage.recording.test_files import recording, same_requests

WHO = {"target": "t", "rows": ["d0", "d1", "d2"]}


def parts_in(results: Path) -> RecordingParts:
    return RecordingParts(results / "recordings" / identity.digest(WHO), WHO)


def part(*rows: int, **changes: object):  # type: ignore[no-untyped-def]
    one = recording(*rows)
    return replace(one, identity=WHO, requests=one.requests[:-1], calibration=(), **changes)


def test_what_was_kept_comes_back_in_order(tmp_path: Path) -> None:
    parts = parts_in(tmp_path)
    with parts.locked():
        assert parts.kept() == []
        parts.keep("000002", part(2))
        parts.keep("000000", part(0, 1, notes={"tokens": 3}))
        first, second = parts_in(tmp_path).kept()
    assert [one.row for one in first.requests] == [0, 1] and first.notes == {"tokens": 3}
    for mine, theirs in zip(part(2).requests, second.requests, strict=True):
        same_requests(mine, theirs)


def test_damaged_foreign_and_half_batches_are_dropped(tmp_path: Path) -> None:
    parts = parts_in(tmp_path)
    parts.kept()
    for name in ("000000", "000001", "000002"):
        parts.keep(name, part(int(name)))
    (hidden,) = (tmp_path / "recordings").glob(".*.parts")
    (hidden / "000000" / "pools.parquet").write_bytes(b"cut")
    write_recording(hidden / "000001", replace(part(1), identity={"target": "other"}))
    (hidden / ".tmp-1-dead").mkdir()
    assert [one.requests[0].row for one in parts.kept()] == [2]
    assert [path.name for path in hidden.iterdir()] == ["000002"]


def test_parts_are_no_recording_of_their_own_and_go(tmp_path: Path) -> None:
    """Nothing that looks for recordings finds them; dropping leaves the lock alone."""
    parts = parts_in(tmp_path)
    with parts.locked():
        parts.kept()
        parts.keep("000000", part(0))
        recordings = tmp_path / "recordings"
        assert not list(recordings.glob("[!.]*")) and not list(recordings.glob(f"*/{MANIFEST}"))
        assert len(list(recordings.glob(f".*.parts/*/{MANIFEST}"))) == 1
        whole = recordings / identity.digest(WHO)
        write_recording(whole, part(0))
        parts.drop()
    assert [path.name[0] for path in sorted(recordings.iterdir())] == [".", whole.name[0]]
    assert read_recording(whole).identity == WHO
