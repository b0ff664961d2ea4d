"""What a run says about itself: manifest.json, enough to find it and to caption its numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from specfit.storage.atomic import write_json
from specfit.storage.pack import packed_run

MANIFEST = "manifest.json"
OLDER_STAND_INS = {"embedded_gsm8k": "gsm8k", "embedded_news": "cnn_dailymail"}
"""What a dataset stands for in rows that are older than `RunInfo.stands_for`."""


@dataclass(frozen=True)
class RunInfo:
    """The run in words. Digests are those of its identity; `recording` is set for a replay."""

    run_id: str
    model: str
    dataset: str
    selector: str
    cache_slots: int
    profile: str
    clock: str  # "wall" or "modelled"
    device: str  # the device's name
    requests_digest: str
    target_digest: str
    profile_digest: str
    dtype: str
    threads: int
    repeat: int = 0
    drafter: str | None = None
    routes: str | None = None
    billed: str | None = None
    link_gbps: float | None = None
    calibration_at: str | None = None
    recording: str | None = None
    stands_for: str | None = None  # the paper's workload that the dataset is or replaces

    @property
    def timed(self) -> str:
        """The word that goes with every time of this run."""
        return "modelled" if self.clock == "modelled" else "measured"


@dataclass(frozen=True)
class Manifest:
    """`provenance` has one entry per process that worked on the run: a continued run has more."""

    info: RunInfo
    identity: Mapping[str, Any]
    request_ids: Sequence[str]
    provenance: Sequence[Mapping[str, Any]] = ()
    finished: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert len(set(self.request_ids)) == len(self.request_ids), "request ids are distinct"

    def same_run(self, other: Manifest) -> bool:
        return (self.identity, list(self.request_ids)) == (other.identity, list(other.request_ids))

    def continued_by(self, other: Manifest) -> Manifest:
        """By another process, or by the same one in its next turn, which is not told twice."""
        if self.provenance[-1:] == other.provenance:
            return self
        return replace(self, provenance=[*self.provenance, *other.provenance])

    def write(self, folder: Path) -> None:
        write_json(folder / MANIFEST, asdict(self))


def read_manifest(folder: Path) -> Manifest | None:
    """Of a folder or of a packed run; None where there is none. Keys of a later version are left
    out, not refused."""
    path = folder / MANIFEST
    packed = None if path.exists() else packed_run(folder)
    if not path.exists() and packed is None:
        return None
    raw = json.loads(path.read_text(encoding="utf-8") if packed is None else packed[1].manifest)
    return Manifest(
        run_info(raw["info"]),
        raw["identity"],
        raw["request_ids"],
        raw["provenance"],
        raw["finished"],
        raw.get("extra", {}),
    )


def run_info(stored: Mapping[str, Any]) -> RunInfo:
    """From its stored form, of any age."""
    known = {f.name for f in fields(RunInfo)}
    values = {key: value for key, value in stored.items() if key in known}
    return RunInfo(**values | {"stands_for": stand_in(stored)})


def stand_in(stored: Mapping[str, Any]) -> str | None:
    """What the dataset of a stored info stands for."""
    named: str | None = stored.get("stands_for", OLDER_STAND_INS.get(stored["dataset"]))
    return named
