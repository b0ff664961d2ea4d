"""A run's requests to a recording on disk.

The greedy ids come from a finished run of the same requests where there is one (greedy output
depends on no selector), else from plain cached decoding here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from specfit.build import build_machine
from specfit.core import RequestError, SpecfitError
from specfit.execution import requests_digest
from specfit.probing import POSITIONS, QUESTIONS
from specfit.resolve import Resolved, stop_ids
from specfit.results import identity, provenance
from specfit.results.find import finished_runs
from specfit.results.recorded import RecordedRequest
from specfit.results.recording import Recording, Shape, write_recording
from specfit.results.recording_layout import VERSION
from specfit.results.rows import load_run
from specfit.teaching import Greedy, Recorder, Tally

Say = Callable[[str], None]


def recording_identity(facts: Resolved) -> identity.Identity:
    """What decides tokens and pools: no slots, selector, profile or clock."""
    config = facts.config
    dataset = asdict(config.dataset)
    for key in ("limit", "max_new_tokens"):
        del dataset[key]
    parts = {
        "version": VERSION,
        "target": facts.target_digest,
        "drafter": facts.drafter_digest,
        "pool": [config.drafter.top_k, config.drafter.max_depth],
        "rows": [facts.workload.digests[i] for i in shard_rows(facts)],
        "dataset": dataset,
        "calibration": facts.questions.digest,
        "model": {
            "dtype": config.model.dtype,
            "num_layers": facts.geometry.layers,
            "routing": config.model.routing,
        },
        "max_new_tokens": config.new_tokens,
        "prefill_chunk": config.prefill_chunk,
        "threads": config.threads,
    }
    return identity.hashed_part(parts | ({"features": True} if config.record.features else {}))


def shard_rows(facts: Resolved) -> list[int]:
    total, shard = len(facts.workload.ids), facts.config.record.shard
    if shard is None:
        return list(range(total))
    try:
        index, of = (int(part) for part in shard.split("/"))
    except ValueError:
        index, of = 0, 0
    if not 0 <= index < of:
        raise SpecfitError(f"record.shard is {shard!r}; it is i/n with i from 0 to n - 1")
    return list(range(index, total, of))


def make_recording(facts: Resolved, folder: Path, who: identity.Identity, say: Say) -> Tally:
    """Records and writes; `say` hears about each batch."""
    config = facts.config
    shape = _shape(facts)  # refuses what a recording cannot hold, before anything is loaded
    recorder = Recorder(
        facts, build_machine(facts, facts.slots, True), features=config.record.features
    )
    known = _known_outputs(facts, recorder.tally)
    requests = []
    rows = shard_rows(facts)
    for start in range(0, len(rows), config.record.batch):
        requests += _batch(facts, recorder, rows[start : start + config.record.batch], known)
        say(f"recorded {len(requests)} of {len(rows)} requests")
    calibration = list(_calibration(facts, recorder))
    say(f"recorded {len(calibration)} calibration questions")
    recording = Recording(
        folder.name,
        who,
        _config(facts),
        shape,
        tuple(sorted(stop_ids(facts.checkpoint))),
        facts.device_name,
        requests,
        calibration,
        [provenance.collect().as_dict()],
        asdict(recorder.tally),
    )
    write_recording(folder, recording)
    return recorder.tally


def _config(facts: Resolved) -> dict[str, Any]:
    settled = facts.settled()
    del settled["record"], settled["recording"]
    return settled


def _shape(facts: Resolved) -> Shape:
    geometry = asdict(facts.geometry)
    names = ("layers", "experts", "top_k", "hidden", "intermediate", "vocabulary", "context")
    known = {name: geometry[name] for name in names}
    return Shape(**known, expert_bytes=facts.billing.own_expert_bytes)


def _known_outputs(facts: Resolved, tally: Tally) -> dict[str, Sequence[int]]:
    """Greedy ids of a finished run with the same requests and target, by request."""
    runs = Path(facts.config.results_dir) / "runs"
    config = facts.config
    wanted = {
        "requests_digest": requests_digest(facts),
        "target_digest": facts.target_digest,
        "dtype": config.model.dtype,
        "threads": config.threads,
        "device": facts.device_name,
    }
    for folder, manifest in finished_runs(runs, **wanted):
        rows = load_run(folder).requests
        tally.ids_from = manifest.info.run_id
        return {
            str(name): [int(token) for token in ids]
            for name, ids, status in zip(
                rows["request_id"], rows["output_ids"], rows["status"], strict=True
            )
            if status == "ok"
        }
    return {}


def _batch(
    facts: Resolved, recorder: Recorder, rows: Sequence[int], known: dict[str, Sequence[int]]
) -> list[RecordedRequest]:
    workload = facts.workload
    failed: dict[int, str] = {}
    greedy: dict[int, Greedy] = {}
    for row in rows:
        try:
            request = workload.request(row)
        except RequestError as error:
            failed[row] = str(error)
            continue
        greedy[row] = recorder.greedy(request, known.get(request.request_id))
    found = dict(zip(greedy, recorder.record(list(greedy.values())) if greedy else [], strict=True))
    recorded = []
    for row in rows:
        name, digest = workload.ids[row], workload.digests[row]
        if row in failed:
            recorded.append(RecordedRequest(row, name, digest, failed[row]))
            continue
        one = _recorded(row, digest, greedy[row], *found[row])
        text = workload.text(greedy[row].request, greedy[row].output_ids)
        score = workload.score(greedy[row].request, text)
        recorded.append(replace(one, output_text=text, score=score))
    return recorded


def _calibration(facts: Resolved, recorder: Recorder) -> Iterator[RecordedRequest]:
    """Every question that the prober walks, the too short ones included: they warm the cache."""

    def answers() -> Iterator[tuple[int, Greedy]]:
        long = 0
        for row, request in enumerate(facts.questions.requests()):
            answer = recorder.greedy(request)
            long += len(answer.output_ids) > POSITIONS[-1]
            yield row, answer
            if long == QUESTIONS:
                return

    walked = answers()
    while batch := list(islice(walked, facts.config.record.batch)):
        found = recorder.record([answer for _, answer in batch], most=POSITIONS[-1])
        for (row, answer), (prompt, pools) in zip(batch, found, strict=True):
            yield _recorded(row, "", answer, prompt, pools)


def _recorded(
    row: int, digest: str, greedy: Greedy, prompt_routes: np.ndarray, pools: Any
) -> RecordedRequest:
    request = greedy.request
    return RecordedRequest(
        row,
        request.request_id,
        digest,
        "ok",
        request,
        np.asarray(greedy.output_ids, dtype=np.int64),
        greedy.stop_reason,
        prompt_routes=prompt_routes,
        pools=pools,
    )
