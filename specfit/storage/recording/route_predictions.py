"""What a trained route source says at every position of a recording, beside the recording.

results/recordings/<recording_id>/predicted/<digest of the source's file>/
    predicted.parquet   one row per (request, position)
    manifest.json       source, digests, provenance

A recording holds what the target does and the drafter drafts; predictions are of one predictor,
which may be trained after it, so that they are added to a recording and never change it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from specfit.base.types import SpecfitError
from specfit.storage import atomic
from specfit.storage.recording.files import MANIFEST, Recording, Shape, file_digest
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.recording.tables import BYTES
from specfit.storage.tables import REQUEST_ID, Column, Layout

VERSION = 1
KIND = "specfit predictions"
TABLE = "predicted.parquet"

PREDICTED = Layout(
    "One row per (request, position) of pools.parquet.",
    (
        REQUEST_ID,
        Column("position", pa.int32(), "Index of the root in output_ids."),
        Column("routes", BYTES, "Likeliest expert ids [1 + N, L, k], best first, one byte each."),
        Column(
            "chances",
            BYTES,
            "Chance of every expert [1 + N, L, E] where no row above uses it: a byte each, units "
            "of 2**-8.",
        ),
    ),
)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Of one position; row 0 is the root."""

    routes: NDArray[np.uint8]  # [1 + N, L, k]
    chances: NDArray[np.uint8]  # [1 + N, L, E]


Predictions = Mapping[str, Sequence[Predicted]]
"""Key of `keyed` -> what is predicted at position 0, 1, .."""

CALIBRATION = "calibration text "


def keyed(recording: Recording) -> list[tuple[str, RecordedRequest]]:
    """Every text of a recording under a name of its own: a request's is its id."""
    texts = [(CALIBRATION + one.request_id, one) for one in recording.calibration]
    return texts + [(one.request_id, one) for one in recording.requests]


def predictions_folder(recording: Recording, digest: str) -> Path:
    assert recording.folder is not None, "predictions are kept beside a recording on disk"
    return recording.folder / "predicted" / digest[:12]


def write_predictions(
    recording: Recording, digest: str, found: Predictions, about: Mapping[str, Any]
) -> Path:
    """`digest` of the predictor's file; replaces what is there. The folder appears whole."""
    folder = predictions_folder(recording, digest)
    rows = [(name, i, one) for name, ones in found.items() for i, one in enumerate(ones)]
    columns = {
        "request_id": pa.array([name for name, _, _ in rows], pa.string()),
        "position": pa.array([i for _, i, _ in rows], pa.int32()),
        "routes": pa.array([one.routes.tobytes() for _, _, one in rows], BYTES),
        "chances": pa.array([one.chances.tobytes() for _, _, one in rows], BYTES),
    }
    table = pa.table(columns, schema=PREDICTED.schema)

    def fill(temporary: Path) -> None:
        pq.write_table(
            table, temporary / TABLE, compression="zstd", use_dictionary=False, row_group_size=1024
        )
        said = {"kind": KIND, "version": VERSION, "recording_id": recording.recording_id}
        said |= {"source_digest": digest, "digest": file_digest(temporary / TABLE), **about}
        atomic.write_json(temporary / MANIFEST, said)

    folder.parent.mkdir(parents=True, exist_ok=True)
    atomic.remove_folder(folder)
    atomic.write_folder(folder, fill)
    return folder


def read_predictions(recording: Recording, digest: str) -> Predictions:
    """Raises SpecfitError where this predictor's are absent, damaged or of other pools."""
    folder = predictions_folder(recording, digest)
    _check(folder, recording.recording_id, digest)
    try:
        table = pq.read_table(folder / TABLE, schema=PREDICTED.schema)
        found: dict[str, list[Predicted]] = {}
        for row in table.to_pylist():
            ones = found.setdefault(row["request_id"], [])
            assert row["position"] == len(ones), "a position is missing"
            ones.append(_predicted(row, recording.shape))
        for key, one in keyed(recording):
            assert len(found.get(key, [])) == one.positions, "another pool"
        return found
    except (pa.ArrowException, OSError, ValueError, AssertionError) as error:
        raise _damaged(folder, str(error) or type(error).__name__) from None


def _predicted(row: Mapping[str, Any], shape: Shape) -> Predicted:
    wide = shape.layers * shape.experts
    chances = np.frombuffer(row["chances"], dtype=np.uint8)
    routes = np.frombuffer(row["routes"], dtype=np.uint8)
    return Predicted(
        routes.reshape(len(chances) // wide, shape.layers, shape.top_k),
        chances.reshape(-1, shape.layers, shape.experts),
    )


def _check(folder: Path, recording_id: str, digest: str) -> None:
    try:
        said = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecfitError(
            f"recording {recording_id} holds no predictions of this route source; add them with "
            f"`python -m specfit.record recording={recording_id} routes=learned`"
        ) from None
    except (ValueError, OSError) as error:
        raise _damaged(folder, f"{MANIFEST} cannot be read: {error}") from None
    wanted = {"kind": KIND, "version": VERSION, "recording_id": recording_id}
    wanted |= {"source_digest": digest}
    for key, value in wanted.items():
        if not isinstance(said, dict) or said.get(key) != value:
            raise _damaged(folder, f"its {key} is not {value}")
    table = folder / TABLE
    if not table.is_file() or file_digest(table) != said.get("digest"):
        raise _damaged(folder, f"{TABLE} is not the file its manifest describes")


def _damaged(folder: Path, why: str) -> SpecfitError:
    return SpecfitError(
        f"the predictions in {folder} are damaged ({why}); add them again with force=true"
    )
