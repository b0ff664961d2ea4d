"""A run's requests to a recording on disk.

The greedy ids come from a finished run of the same requests where there is one (greedy output
depends on no selector), else from plain cached decoding here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from specfit.base.config import RunConfig, hashed_part
from specfit.base.entry import print_error
from specfit.base.types import SpecfitError
from specfit.decoding.replay.plain import plain_decoding
from specfit.decoding.resolve import LiveRunSpec
from specfit.models.target.config_file import stop_ids
from specfit.report.run_summary import failed_sentence
from specfit.storage import identity, provenance
from specfit.storage.find import finished_runs
from specfit.storage.recording.batches import RecordingParts
from specfit.storage.recording.files import (
    MANIFEST,
    Recording,
    Shape,
    read_manifest,
    write_recording,
)
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.recording.stats import Tally
from specfit.storage.recording.tables import VERSION
from specfit.storage.rows import load_run
from specfit.workflows.execute import requests_digest
from specfit.workflows.recording.batches import record_calibration, record_requests
from specfit.workflows.recording.teacher_forcing import Recorder
from specfit.workflows.waiting import build_runtime

Say = Callable[[str], None]


class Watch(Protocol):
    """Sees a recording grow: a countdown."""

    def starts(self, total: int, done: int) -> None: ...

    def advances(self, count: int) -> None: ...


def recording_identity(spec: LiveRunSpec) -> identity.Identity:
    """What decides tokens and pools: no slots, selector, profile or clock."""
    config = spec.config
    dataset = asdict(config.dataset)
    for key in ("limit", "max_new_tokens"):
        del dataset[key]
    parts = {
        "version": VERSION,
        "target": spec.target_digest,
        "drafter": spec.drafter_digest,
        "pool": [config.drafter.top_k, config.drafter.max_depth],
        "rows": [spec.workload.digests[i] for i in shard_rows(spec)],
        "dataset": dataset,
        "calibration": spec.questions.digest,
        "model": {
            "dtype": config.model.dtype,
            "num_layers": spec.geometry.layers,
            "routing": config.model.routing,
        }
        | spec.foreign_tokenizer,
        "max_new_tokens": config.new_tokens,
        "prefill_chunk": config.prefill_chunk,
        "threads": config.threads,
    }
    return hashed_part(parts | ({"features": True} if config.record.features else {}))


def recording_folder(spec: LiveRunSpec) -> Path:
    who = recording_identity(spec)
    return Path(spec.config.results_dir) / "recordings" / identity.digest(who)


def find_or_record(spec: LiveRunSpec, say: Say) -> Path:
    """The folder of this recording, made when missing."""
    folder = recording_folder(spec)
    if not (folder / MANIFEST).is_file():
        say(f"recording {folder.name} first")
        make_recording(spec, folder, recording_identity(spec), say)
    return folder


def refuse_made_up(config: RunConfig) -> None:
    """Raises SpecfitError where routes or drafts are no model's: there is nothing to record."""
    made_up = ""
    if config.model.routing != "weights":
        made_up = f"model.routing={config.model.routing}"
    elif config.drafter.name == "oracle":
        made_up = "drafter=oracle"
    if made_up:
        raise SpecfitError(
            f"a recording holds what a router and a draft head say, and {made_up} makes that up; "
            "record a model with a head of its own"
        )


def shard_rows(spec: LiveRunSpec) -> list[int]:
    total, shard = len(spec.workload.ids), spec.config.record.shard
    if shard is None:
        return list(range(total))
    try:
        index, of = (int(part) for part in shard.split("/"))
    except ValueError:
        index, of = 0, 0
    if not 0 <= index < of:
        raise SpecfitError(f"record.shard is {shard!r}; it is i/n with i from 0 to n - 1")
    return list(range(index, total, of))


def make_recording(
    spec: LiveRunSpec,
    folder: Path,
    who: identity.Identity,
    say: Say,
    known: Mapping[str, Sequence[int]] | None = None,
    watch: Watch | None = None,
) -> Tally:
    """Records and writes; goes on after the batches that an interrupted process has kept.

    `known` are greedy ids by request, where the caller has them; ids that the passes give
    differently are counted. `watch` is called after each batch; without it, `say` gets a sentence.
    The tally is of the requests; the calibration's is in the notes.
    """
    refuse_made_up(spec.config)
    parts = RecordingParts(folder, who)
    with parts.locked(lambda: say("waiting for the same recording")):
        if (folder / MANIFEST).is_file() and not spec.config.force:
            made = read_manifest(folder)["notes"].get("requests")  # by another, meanwhile
            return Tally.total([made] if made else [])
        if spec.config.force:
            parts.drop()
        making = _Making(spec, folder, who, parts, known)
        making.run(say, watch)
        recording = making.whole()
        write_recording(folder, recording)
        parts.drop()
    return Tally.total([recording.notes["requests"]])


class _Making:
    """One process at work on a recording: batches that are there, batches to come."""

    def __init__(
        self,
        spec: LiveRunSpec,
        folder: Path,
        who: identity.Identity,
        parts: RecordingParts,
        known: Mapping[str, Sequence[int]] | None,
    ) -> None:
        self._spec, self._parts, self._kept = spec, parts, parts.kept()
        shape = _shape(spec)  # refuses what a recording cannot hold, before anything is loaded
        machine = build_runtime(spec, spec.slots, True)
        shape = replace(shape, expert_format=machine.expert_format)
        self._recorder = Recorder(spec, machine, features=spec.config.record.features)
        self._source: str | None = None
        if known is None:
            known, self._source = _known_outputs(spec)
        self._known = known
        self._empty = Recording(
            folder.name,
            who,
            _config(spec),
            shape,
            tuple(sorted(stop_ids(spec.checkpoint.folder, spec.checkpoint.config))),
            spec.device_name,
            (),
            (),
            [provenance.collect().as_dict()],
        )

    def run(self, say: Say, watch: Watch | None) -> None:
        spec = self._spec
        rows = shard_rows(spec)
        done = {one.row for part in self._kept for one in part.requests}
        left = [row for row in rows if row not in done]
        if done:
            say(f"{len(done)} of {len(rows)} requests were recorded before; going on after them")
        if watch is not None:
            watch.starts(len(rows), len(done))
        for start in range(0, len(left), spec.config.record.batch):
            batch = left[start : start + spec.config.record.batch]
            result = record_requests(spec, self._recorder, batch, self._known)
            self._keep(f"{batch[0]:06d}", result, [], self._source)
            if watch is not None:
                watch.advances(len(batch))
            else:
                recorded = len(rows) - len(left) + start + len(batch)
                say(f"recorded {recorded} of {len(rows)} requests")
        why = failed_sentence(
            one.status for part in self._kept for one in part.requests if one.status != "ok"
        )
        if why is not None:
            name = self._empty.recording_id
            print_error(SpecfitError(f"recording {name}, {len(rows)} requests: {why}"))
        if not any(part.calibration for part in self._kept):
            questions = list(record_calibration(spec, self._recorder))
            self._keep("calibration", [], questions, None)
            say(f"recorded {len(questions)} calibration questions")

    def _keep(
        self,
        name: str,
        requests: Sequence[RecordedRequest],
        calibration: Sequence[RecordedRequest],
        ids_from: str | None,
    ) -> None:
        tally, self._recorder.tally = self._recorder.tally, Tally()
        notes = replace(tally, ids_from=ids_from).as_dict()
        part = replace(self._empty, requests=requests, calibration=calibration, notes=notes)
        self._parts.keep(name, part)
        self._kept.append(part)

    def whole(self) -> Recording:
        """The requests in the workload's order, and everybody who worked on them."""
        kept = self._kept
        requests = sorted((one for part in kept for one in part.requests), key=lambda one: one.row)
        calibration = [one for part in kept for one in part.calibration]
        made_by = [entry for part in kept for entry in part.provenance]
        notes: dict[str, Any] = {
            "requests": Tally.total([part.notes for part in kept if part.requests]).as_dict(),
            "calibration": Tally.total([part.notes for part in kept if part.calibration]).as_dict(),
        }
        if self._spec.clock == "modelled":
            empty = self._empty
            plain = plain_decoding(self._spec, requests, empty.stop_ids, empty.shape.expert_bytes)
            notes["ar_cache"] = asdict(plain)
        return replace(
            self._empty,
            requests=requests,
            calibration=calibration,
            provenance=[entry for at, entry in enumerate(made_by) if entry not in made_by[:at]],
            notes=notes,
        )


def _config(spec: LiveRunSpec) -> dict[str, Any]:
    settled = spec.settled()
    del settled["record"], settled["recording"]
    model: Any = settled["model"]
    model["tokenizer"] = spec.tokenizer_identity  # a replay has the run's id
    return settled


def _shape(spec: LiveRunSpec) -> Shape:
    geometry = asdict(spec.geometry)
    names = ("layers", "experts", "top_k", "hidden", "intermediate", "vocabulary", "context")
    known = {name: geometry[name] for name in names}
    return Shape(**known, expert_bytes=spec.billing.own_expert_bytes)


def _known_outputs(spec: LiveRunSpec) -> tuple[dict[str, Sequence[int]], str | None]:
    """Greedy ids by request of a finished run with the same requests and target, and its id."""
    runs = Path(spec.config.results_dir) / "runs"
    config = spec.config
    requested = {
        "requests_digest": requests_digest(spec),
        "target_digest": spec.target_digest,
        "dtype": config.model.dtype,
        "threads": config.threads,
        "device": spec.device_name,
    }
    for folder, manifest in finished_runs(runs, **requested):
        rows = load_run(folder).requests
        known: dict[str, Sequence[int]] = {
            str(name): [int(token) for token in ids]
            for name, ids, status in zip(
                rows["request_id"], rows["output_ids"], rows["status"], strict=True
            )
            if status == "ok"
        }
        return known, manifest.info.run_id
    return {}, None
