"""Runs one resolved config over its requests and leaves rows. No parsing and no printing here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from omegaconf import OmegaConf

from specfit.build import Machine, build_clock, build_decoder, build_machine, build_selector
from specfit.calibrate import Calibration, find_or_make
from specfit.core import CycleRecord, Request, RequestError, RequestRecord, SpecfitError
from specfit.cycle import Cycle
from specfit.decoder import Decoder
from specfit.hardware.billed import fits
from specfit.resolve import Resolved
from specfit.results import identity, provenance
from specfit.results.manifest import Manifest, RunInfo
from specfit.results.parts import Part
from specfit.results.schema import RequestFlags
from specfit.results.store import RunStore
from specfit.workloads.examples import Example
from specfit.workloads.scorers import scorer_named

WARM_UP_TOKENS = 8


class Watcher(Protocol):
    """Sees a run go by: a progress bar, a logger, a trace."""

    def starts(self, total: int, done: int) -> None: ...

    def sees_cycle(self, cycle: Cycle) -> None: ...

    def finishes_request(self, part: Part) -> None: ...


@dataclass(frozen=True)
class Outcome:
    folder: Path
    calibration: Calibration | None
    ran_now: bool


def execute(
    facts: Resolved, watcher: Watcher, on_wait: Callable[[], None] | None = None
) -> Outcome:
    """The run's folder, finished; a finished run is found, an interrupted one goes on."""
    calibration = find_or_make(facts) if facts.kind.needs_cost else None
    who = facts.identity(calibration.calibration_id if calibration else None)
    run_id = identity.run_id(who)
    store = RunStore(Path(facts.config.results_dir) / "runs", run_id)
    if store.is_finished() and not facts.config.force:
        return Outcome(store.folder, calibration, ran_now=False)
    job = Job(facts, calibration)  # everything that can be refused is, before anything is written
    lock: AbstractContextManager[RunStore] = store.locked(on_wait)
    with lock:
        store.begin(_manifest(facts, who, run_id), _run_yaml(facts), facts.config.force)
        if not store.is_finished():
            job.run(store, watcher)
            store.finish()
    return Outcome(store.folder, calibration, ran_now=True)


class Job:
    """A decoder and the requests it serves, in order; each request is kept when it is done."""

    def __init__(self, facts: Resolved, calibration: Calibration | None) -> None:
        config = facts.config
        self._facts = facts
        self._examples: Sequence[Example] = facts.examples
        self._prompting = facts.prompting(config.dataset, config.new_tokens)
        self._score = scorer_named(config.dataset.scorer)
        self._machine: Machine = build_machine(facts, facts.slots, facts.kind.drafts)
        selector = build_selector(facts, calibration.cost if calibration else None)
        clock = build_clock(facts, self._machine)
        self.decoder: Decoder = build_decoder(facts, self._machine, selector, clock)

    def run(self, store: RunStore, watcher: Watcher) -> None:
        done = store.finished_requests()
        self._warm_up()
        residency = store.last_residency()
        if residency is not None:
            self._machine.engine.restore(residency)
        watcher.starts(len(self._examples), len(done))
        for example in self._examples[len(done) :]:
            part = self._serve(example, watcher)
            store.add(part)
            watcher.finishes_request(part)

    def _warm_up(self) -> None:
        """The wall clock starts after one untimed request; the cache is emptied after it."""
        if self._facts.clock != "wall":
            return
        empty = self._machine.engine.residency()
        prompting = self._facts.prompting(self._facts.config.dataset, WARM_UP_TOKENS)
        for example in self._examples:
            try:
                request = prompting.request(example)
            except RequestError:
                continue
            for _ in self.decoder.decode(request):
                pass
            break
        self._machine.engine.restore(empty)

    def _serve(self, example: Example, watcher: Watcher) -> Part:
        try:
            request = self._prompting.request(example)
        except RequestError as error:
            return self._failed(example, error)
        cycles = []
        for cycle in self.decoder.decode(request):
            cycles.append(cycle)
            watcher.sees_cycle(cycle)
        return self._finished(request, cycles)

    def replay_one(self, request_id: str, residency: dict | None, watcher: Watcher) -> None:  # type: ignore[type-arg]
        """Decode one request again from the residency it started with; no row is touched."""
        example = next(e for e in self._examples if e.example_id == request_id)
        if residency is not None:
            self._machine.engine.restore(residency)
        self._serve(example, watcher)

    # -- rows ------------------------------------------------------------------------------------

    def _finished(self, request: Request, cycles: Sequence[Cycle]) -> Part:
        records: list[CycleRecord] = [cycle.record for cycle in cycles]
        output_ids = [token for cycle in cycles for token in cycle.tokens]
        text = self._facts.tokenizer.decode(output_ids, skip_special_tokens=True)
        score = None
        if self._score is not None and request.reference is not None:
            score = self._score(text, request.reference)
        row = RequestRecord(
            request_id=request.request_id,
            prompt_tokens=len(request.prompt_ids),
            cut_tokens=request.cut_tokens,
            output_ids=output_ids,
            output_text=text,
            score=score,
            prefill_ns=records[0].cycle_ns,
            decode_ns=sum(record.cycle_ns for record in records[1:]),
            cycles=len(records),
            status="ok",
        )
        context = len(request.prompt_ids) + len(output_ids)
        timings = [cycle.timing for cycle in cycles]
        return Part(row, records, timings, self._machine.engine.residency(), self._flags(context))

    def _failed(self, example: Example, error: RequestError) -> Part:
        row = RequestRecord(
            example.example_id, None, None, None, None, None, None, None, None, status=str(error)
        )
        return Part(row, [], [], self._machine.engine.residency(), self._flags(0))

    def _flags(self, context: int) -> RequestFlags:
        facts = self._facts
        return RequestFlags(
            fits=fits(facts.profile, facts.config.gpu.billed, facts.slots, context),
            routing=facts.config.model.routing,
            drafter_forced=False if facts.kind.drafts else None,
        )


# -- what the folder says ------------------------------------------------------------------------


def _manifest(facts: Resolved, who: identity.Identity, run_id: str) -> Manifest:
    config, kind = facts.config, facts.kind
    ids = [example.example_id for example in facts.examples]
    if len(set(ids)) != len(ids):
        raise SpecfitError(f"dataset {config.dataset.name} repeats a request id; ids are distinct")
    info = RunInfo(
        run_id=run_id,
        model=config.model.name,
        dataset=config.dataset.name,
        selector=config.selector.name,
        cache_slots=facts.slots,
        profile=facts.profile.name,
        clock=facts.clock,
        device=facts.device_name,
        requests_digest=requests_digest(facts),
        target_digest=facts.target_digest,
        profile_digest=facts.profile.digest(),
        dtype=config.model.dtype,
        threads=config.threads,
        repeat=config.repeat,
        drafter=config.drafter.name if kind.drafts else None,
        routes=config.routes.name if kind.reads_routes else None,
        billed=facts.billing.name,
        link_gbps=facts.profile.link_gbps,
        calibration_at=config.calibration.at if kind.needs_cost else None,
    )
    return Manifest(info, who, ids, [provenance.collect().as_dict()])


def requests_digest(facts: Resolved) -> str:
    """Over the prompts that could be made; a failing example fails for every selector alike."""
    prompting = facts.prompting(facts.config.dataset, facts.config.new_tokens)
    requests = []
    for example in facts.examples:
        try:
            requests.append(prompting.request(example))
        except RequestError:
            continue
    return identity.requests_digest(requests)


def _run_yaml(facts: Resolved) -> str:
    settled = asdict(facts.config) | {
        "cache_slots": facts.slots,
        "limit": len(facts.examples),
        "max_new_tokens": facts.config.new_tokens,
    }
    return str(OmegaConf.to_yaml(settled))
