"""Predictions beside a recording: a replay under a learned route source is the run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from specfit.base.types import SpecfitError
from specfit.storage.recording.files import Recording, read_recording, write_recording
from specfit.storage.recording.route_predictions import (
    Predicted,
    keyed,
    predictions_folder,
    read_predictions,
    write_predictions,
)
from tests.fakes import table_model
from tests.fakes.table_model import EXPERTS, LAYERS, TOP_K


def made_up(recording: Recording) -> dict[str, list[Predicted]]:
    rng = np.random.default_rng(0)
    found = {}
    for key, request in keyed(recording):
        rows = [1 + len(request.pools.tree(i)) for i in range(request.positions)]  # type: ignore[union-attr]
        found[key] = [
            Predicted(
                rng.integers(0, EXPERTS, (n, LAYERS, TOP_K)).astype(np.uint8),
                rng.integers(0, 256, (n, LAYERS, EXPERTS)).astype(np.uint8),
            )
            for n in rows
        ]
    return found


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    folder = tmp_path / "recordings" / "scripted"
    write_recording(folder, table_model.recording(table_model.requests(0, 5)))
    return read_recording(folder)


def test_written_and_read(recording: Recording) -> None:
    found = made_up(recording)
    write_predictions(recording, "abc" * 20, found, {"source": "learned"})
    again = read_predictions(recording, "abc" * 20)
    assert list(again) == list(found)
    for name, ones in found.items():
        for a, b in zip(ones, again[name], strict=True):
            assert np.array_equal(a.routes, b.routes) and np.array_equal(a.chances, b.chances)


def test_what_is_absent_or_damaged_is_said(recording: Recording) -> None:
    with pytest.raises(SpecfitError, match="record recording=scripted routes=learned"):
        read_predictions(recording, "abc")
    write_predictions(recording, "abc", made_up(recording), {})
    with pytest.raises(SpecfitError, match="holds no predictions of this route source"):
        read_predictions(recording, "abd")
    folder = predictions_folder(recording, "abc")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"recording_id": "other"}))
    with pytest.raises(SpecfitError, match="its recording_id is not scripted"):
        read_predictions(recording, "abc")
    write_predictions(recording, "abc", made_up(recording), {})
    table = folder / "predicted.parquet"
    table.write_bytes(table.read_bytes() + b"x")
    with pytest.raises(SpecfitError, match="is not the file its manifest describes"):
        read_predictions(recording, "abc")
    short = made_up(recording)
    short["q0"].pop()
    write_predictions(recording, "abc", short, {})
    with pytest.raises(SpecfitError, match="another pool"):
        read_predictions(recording, "abc")
