"""Requests of a finished run as a person reads them: prompt, answer, reference, accepted drafts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from specfit.base.types import RequestError, SpecfitError
from specfit.storage.rows import RunRows
from specfit.workflows.studies.stored import stored_run

OPEN, CLOSE = "[", "]"
"""Around what the draft head proposed and the target accepted."""


def texts_of(spec: Any, run: RunRows, count: int) -> Iterator[str]:
    """The first `count` requests; `spec` is a LiveRunSpec of the run's own config."""
    if not count:
        return
    yield ""
    yield f"{OPEN}..{CLOSE}: drafted and accepted; the rest is the target's own token of each cycle"
    for index, name in enumerate(run.request_ids[:count]):
        row = run.requests.iloc[index]
        yield f"\n-- {name}: {row['status']}"
        try:
            request = spec.workload.request(index)
        except RequestError:
            continue
        prompt = spec.tokenizer.decode(request.prompt_ids, skip_special_tokens=True)
        yield f"prompt: {prompt.strip()}"
        if row["status"] == "ok":
            yield f"answer: {marked(run, name, spec.tokenizer)}"
        if request.reference is not None:
            yield f"reference: {request.reference}"


def marked(run: RunRows, name: str, tokenizer: Any) -> str:
    """The answer, with the accepted drafts of each cycle in brackets."""
    cycles = run.cycles[run.cycles["request_id"] == name]
    row = run.requests[run.requests["request_id"] == name].iloc[0]
    ids = [int(token) for token in row["output_ids"]]
    parts: list[str] = []
    at = 0
    for accepted, committed in zip(
        cycles["accepted_tokens"], cycles["committed_tokens"], strict=True
    ):
        drafted = ids[at : at + min(int(accepted), int(committed))]
        own = ids[at + len(drafted) : at + int(committed)]
        parts += _piece(drafted, tokenizer, OPEN, CLOSE) + _piece(own, tokenizer, "", "")
        at += int(committed)
    return "".join(parts)


def _piece(ids: Sequence[int], tokenizer: Any, before: str, after: str) -> list[str]:
    return [f"{before}{tokenizer.decode(ids, skip_special_tokens=True)}{after}"] if ids else []


def show(named: str, results: Path, count: int) -> None:
    """Prints `count` requests of a finished run. Raises SpecfitError."""
    from specfit.decoding.resolve import resolve
    from specfit.storage.find import find_run
    from specfit.storage.rows import load_run
    from specfit.workflows.progress import say

    folder = find_run(named, results)
    run = load_run(folder)
    if run.sums is not None and not run.sums.empty:
        raise SpecfitError(
            f"run {run.info.run_id} is committed without its outputs; run it again to read them"
        )
    config = replace(stored_run(folder), results_dir=str(results), recording=None)
    info = run.info
    place = f"{info.selector}, {info.cache_slots} slots, {info.dataset}, {info.model}"
    say(f"run {info.run_id}: {place}")
    for line in texts_of(resolve(config), run, count):
        say(line)
