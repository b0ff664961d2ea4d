"""Batches of requests or calibration questions through a recorder, as they will lie on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from specfit.base.types import RequestError
from specfit.decoding.calibration.trials import POSITIONS, QUESTIONS
from specfit.decoding.resolve import LiveRunSpec
from specfit.storage.recording.requests import RecordedRequest
from specfit.workflows.recording.teacher_forcing import Greedy, Recorder


def record_requests(
    spec: LiveRunSpec, recorder: Recorder, rows: Sequence[int], known: Mapping[str, Sequence[int]]
) -> list[RecordedRequest]:
    """Those `rows` of the workload; a request that cannot be made is a row with its status.

    `known` are greedy ids by request.
    """
    workload = spec.workload
    failed: dict[int, str] = {}
    greedy: dict[int, Greedy] = {}
    for row in rows:
        try:
            request = workload.request(row)
            greedy[row] = recorder.greedy(request, known.get(request.request_id))
        except RequestError as error:
            failed[row] = str(error)
    result = dict(
        zip(greedy, recorder.record(list(greedy.values())) if greedy else [], strict=True)
    )
    recorded = []
    for row in rows:
        name, digest = workload.ids[row], workload.digests[row]
        if row in failed:
            recorded.append(RecordedRequest(row, name, digest, failed[row]))
            continue
        one = _recorded(row, digest, greedy[row], *result[row])
        text = workload.text(greedy[row].request, greedy[row].output_ids)
        score = workload.score(greedy[row].request, text, greedy[row].stop_reason)
        scored = replace(one, score=score.value, score_control=score.control)
        recorded.append(replace(scored, output_text=text))
    return recorded


def record_calibration(spec: LiveRunSpec, recorder: Recorder) -> Iterator[RecordedRequest]:
    """Every question that the prober walks, the too short ones included: they warm the cache."""

    def answers() -> Iterator[tuple[int, Greedy]]:
        long = 0
        for row, request in enumerate(spec.questions.requests()):
            answer = recorder.greedy(request)
            long += len(answer.output_ids) > POSITIONS[-1]
            yield row, answer
            if long == QUESTIONS:
                return

    walked = answers()
    while batch := list(islice(walked, spec.config.record.batch)):
        result = recorder.record([answer for _, answer in batch], most=POSITIONS[-1])
        for (row, answer), (prompt, pools) in zip(batch, result, strict=True):
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
