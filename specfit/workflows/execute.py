"""Runs one resolved config over its requests and leaves rows. No parsing and no printing here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from specfit.base.types import CycleRecord, Request, RequestError, RequestRecord, SpecfitError
from specfit.data.examples import clusters_of, joined_digest
from specfit.decoding.calibration.files import (
    Calibration,
    calibrated_cost,
    calibration_id_of,
)
from specfit.decoding.cycle import Cycle
from specfit.decoding.decoder import Decoder
from specfit.decoding.expert_cache_factory import CLAIRVOYANT, prefetch_blocks
from specfit.decoding.factory import build_decoder, build_selector, routes_named, show_residency
from specfit.decoding.replay.routes import KnownRoutes
from specfit.decoding.spec import BuildRuntime, RunSpec
from specfit.hardware.reference_models import fits
from specfit.storage import identity, provenance
from specfit.storage.atomic import check_writable
from specfit.storage.manifest import Manifest, RunInfo
from specfit.storage.request_files import Part, Residency
from specfit.storage.run_folder import RunStore
from specfit.storage.tables import MachineState, RequestFlags

WARM_UP_TOKENS = 8
REPLAY_PATIENCE_S = 10.0


class Watcher:
    """Sees a run go by: a progress bar, a logger, a trace. Here it does nothing."""

    def calibrates(self) -> None:
        """Forced trees are run, which may take a minute."""

    def probes(self) -> None:
        """One state more has been probed."""

    def resumes(self, parts: Iterator[Part]) -> None:
        """Before `starts`: the requests that another process has finished, read when asked for."""

    def starts(self, total: int, done: int) -> None:
        """Of `total` requests `done` were finished before."""

    def sees_cycle(self, cycle: Cycle) -> None: ...

    def finishes_request(self, part: Part) -> None: ...


class Watchers(Watcher):
    """Several as one, in this order."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers

    def calibrates(self) -> None:
        for watcher in self._watchers:
            watcher.calibrates()

    def probes(self) -> None:
        for watcher in self._watchers:
            watcher.probes()

    def resumes(self, parts: Iterator[Part]) -> None:
        finished = list(parts)
        for watcher in self._watchers:
            watcher.resumes(iter(finished))

    def starts(self, total: int, done: int) -> None:
        for watcher in self._watchers:
            watcher.starts(total, done)

    def sees_cycle(self, cycle: Cycle) -> None:
        for watcher in self._watchers:
            watcher.sees_cycle(cycle)

    def finishes_request(self, part: Part) -> None:
        for watcher in self._watchers:
            watcher.finishes_request(part)


@dataclass(frozen=True)
class Outcome:
    folder: Path
    calibration: Calibration | None
    ran_now: bool
    calibration_s: float = 0.0  # waited for it
    is_finished: bool = True


def execute(
    spec: RunSpec,
    build: BuildRuntime,
    watcher: Watcher,
    on_wait: Callable[[], None] | None = None,
    below: str = "",
    until: int | None = None,
) -> Outcome:
    """The run's folder, finished; a finished run is found, an interrupted one goes on. With
    `until` it stops once so many requests are done, and goes on when it is asked again.

    Rows go to results_dir/runs, or to results_dir/`below` where a replay keeps its own.
    """
    check_named(spec)
    results = Path(spec.config.results_dir)
    if spec.config.force or not (results / (below or "runs") / run_id_of(spec)).is_dir():
        check_writable(results)  # before anything is loaded
    calibration = None
    begun = time.monotonic()
    if spec.kind.needs_cost:
        calibration = calibrated_cost(
            spec, build, results / below, watcher.calibrates, watcher.probes
        )
    calibration_s = time.monotonic() - begun
    who = spec.identity(calibration.calibration_id if calibration else None)
    run_id = identity.run_id(who)
    store = RunStore(results / (below or "runs"), run_id, REPLAY_PATIENCE_S if below else 0.0)
    if store.is_finished() and not spec.config.force:
        return Outcome(store.folder, calibration, ran_now=False)
    # Everything that can be refused is, before anything is written.
    job = Job(spec, build, calibration)
    beginning = None if below or spec.config.force else beginning_of(spec, who, store)
    manifest = _manifest(spec, who, run_id)
    if beginning is not None and (made := beginning.manifest) is not None:
        manifest = replace(manifest, provenance=[*made.provenance, *manifest.provenance])
    begun_by = store.manifest.provenance if until is not None and store.manifest else []
    if begun_by[-1:] == manifest.provenance:  # the next turn of this process
        manifest = replace(manifest, provenance=[])
    lock: AbstractContextManager[RunStore] = store.locked(on_wait)
    with lock:
        store.begin(manifest, _run_yaml(spec), spec.config.force)
        if not store.is_finished():
            if beginning is not None and not store.finished_requests():
                store.take_over(beginning)
            job.run(store, watcher, until)
            if until is None or until >= len(spec.workload.ids):
                store.finish()
    return Outcome(store.folder, calibration, True, calibration_s, store.is_finished())


def run_id_of(spec: RunSpec) -> str:
    """The id that `execute` will give, known before anything is loaded."""
    calibration = calibration_id_of(spec) if spec.kind.needs_cost else None
    return identity.run_id(spec.identity(calibration))


def beginning_of(spec: RunSpec, who: identity.Identity, store: RunStore) -> RunStore | None:
    """The longest finished run of fewer of the same requests: what comes after a request changes
    nothing of it, so `limit=4` goes on after `limit=2`. None where this run has begun, where times
    are measured, and where later requests do count: Belady's policy and an oracle's script."""
    config = spec.config
    is_apart = spec.clock != "modelled" or config.policy == CLAIRVOYANT
    if is_apart or config.drafter.name == "oracle" or store.manifest is not None:
        return None
    digests = list(spec.workload.digests)
    for count in range(len(digests) - 1, 0, -1):
        named = {"rows": joined_digest(digests[:count])}
        fewer = {"config": who["config"] | {"limit": count}, "digests": who["digests"] | named}
        shorter = RunStore(store.runs, identity.run_id(who | fewer))
        if shorter.folder.is_dir() and shorter.has_every_residency():
            return shorter
    return None


def check_named(spec: RunSpec) -> None:
    """What the config names by a word or a path is there: asked before anything is written."""
    _ = spec.workload.ids
    if spec.reads_routes:
        routes_named(spec.config.routes.name)
    if spec.kind.drafts:
        _ = spec.drafter_digest


def look_ahead(target: Any, decoder: Decoder, workload: Any) -> None:
    """Tells a replay's cache the future (policy=belady): decodes everything once, unrecorded, since
    what is demanded depends on no eviction. The selector has seen it all; build a new one."""
    target.cache.look_ahead()
    for index in range(len(workload.ids)):
        with suppress(RequestError):
            for _ in decoder.decode(workload.request(index)):
                pass
    target.cache.know_future()


class Job:
    """A decoder and the requests it serves, in order; each request is kept when it is done."""

    def __init__(self, spec: RunSpec, build: BuildRuntime, calibration: Calibration | None) -> None:
        self._spec, self._workload = spec, spec.workload
        runtime = build(spec, spec.slots, spec.kind.drafts)
        self._cost = calibration.cost if calibration else None
        self._sizes = calibration.sizes if calibration else None
        self._runtime, self._clusters = runtime, _clusters(spec)
        self._target, self._locked_share = runtime.target, runtime.locked_share
        self._disk_reads = runtime.disk_reads
        self._expert_format = runtime.expert_format
        selector = build_selector(spec, self._cost, self._sizes)
        self.decoder: Decoder = build_decoder(spec, runtime, selector, runtime.clock())

    def run(self, store: RunStore, watcher: Watcher, until: int | None = None) -> None:
        done = store.finished_requests()
        self._begin(store.cycles_before(), store.last_residency())
        total = len(self._workload.ids)
        if done:
            watcher.resumes(store.finished_parts())
        watcher.starts(total, len(done))
        for index in range(len(done), total if until is None else min(until, total)):
            part = self._serve(index, watcher)
            store.add(part)
            watcher.finishes_request(part)

    def _begin(self, before: Sequence[CycleRecord], residency: Residency | None) -> None:
        """As the next request finds a run that has these cycles and this residency behind it."""
        self._warm_up()
        if self._spec.config.policy == CLAIRVOYANT:
            look_ahead(self._runtime.target, self.decoder, self._workload)
        # A new one: the old saw the warm-up, if there was one.
        self.decoder.selector = build_selector(self._spec, self._cost, self._sizes)
        show_residency(self.decoder.selector, self._target)
        for record in before:
            self.decoder.selector.observe(record)
        if residency is not None:
            self._target.restore(dict(residency))

    def _warm_up(self) -> None:
        """The wall clock starts after one untimed request; the cache is emptied after it."""
        if self._spec.clock != "wall":
            return
        empty = self._target.residency()
        for index in range(len(self._workload.ids)):
            try:
                request = self._workload.request(index)
                for _ in self.decoder.decode(replace(request, max_new_tokens=WARM_UP_TOKENS)):
                    pass
            except RequestError:
                continue
            break
        self._target.restore(empty)

    def _serve(self, index: int, watcher: Watcher) -> Part:
        try:
            request = self._workload.request(index)
        except RequestError as error:
            return self._failed(self._workload.ids[index], error)
        cycles = []
        self._runtime.request_begins()
        try:
            for cycle in self.decoder.decode(request):
                cycles.append(cycle)
                watcher.sees_cycle(cycle)
        except RequestError as error:
            self._runtime.state()  # watched no longer
            return self._failed(request.request_id, error)
        return self._finished(request, cycles, self._runtime.state())

    def replay_one(self, request_id: str, store: RunStore, watcher: Watcher) -> Part:
        """Decode one request again as the run had it before; no row is touched."""
        self._begin(store.cycles_before(request_id), store.residency_before(request_id))
        return self._serve(list(self._workload.ids).index(request_id), watcher)

    # -- rows ------------------------------------------------------------------------------------

    def _finished(self, request: Request, cycles: Sequence[Cycle], state: MachineState) -> Part:
        records: list[CycleRecord] = [cycle.record for cycle in cycles]
        output_ids = [token for cycle in cycles for token in cycle.tokens]
        text = self._workload.text(request, output_ids)
        score = self._workload.score(request, text, records[-1].stop_reason)
        row = RequestRecord(
            request_id=request.request_id,
            prompt_tokens=len(request.prompt_ids),
            cut_tokens=request.cut_tokens,
            output_ids=output_ids,
            output_text=text,
            score=score.value,
            prefill_ns=records[0].cycle_ns,
            decode_ns=sum(record.cycle_ns for record in records[1:]),
            cycles=len(records),
            status="ok",
            rouge1=score.rouge1,
            rouge2=score.rouge2,
            rougel=score.rougel,
            rougelsum=score.rougelsum,
            score_control=score.control,
            cluster=self._clusters.get(request.request_id),
        )
        context = len(request.prompt_ids) + len(output_ids)
        timings = [cycle.timing for cycle in cycles]
        residency = self._target.residency()
        return Part(
            row, records, timings, residency, self._flags(context, self._fallbacks()), state
        )

    def _failed(self, request_id: str, error: RequestError) -> Part:
        row = RequestRecord(
            request_id, None, None, None, None, None, None, None, None, status=str(error)
        )
        return Part(row, [], [], self._target.residency(), self._flags(0))

    def _flags(self, context: int, fallbacks: int | None = None) -> RequestFlags:
        spec = self._spec
        ahead = prefetch_blocks(spec) * spec.billing.layer_scale
        return RequestFlags(
            fits=fits(spec.profile, spec.config.gpu.billed, spec.slots, context, ahead),
            routing=spec.config.model.routing,
            drafter_forced=spec.config.drafter.force if spec.kind.drafts else None,
            link_gbps_cap=spec.config.gpu.link_gbps_cap if spec.clock == "wall" else None,
            locked_share=self._locked_share,
            disk_reads=self._disk_reads,
            expert_format=self._expert_format,
            route_fallbacks=fallbacks,
        )

    def _fallbacks(self) -> int | None:
        """Of the request that has just ended."""
        routes = self.decoder.routes
        return routes.fallbacks if isinstance(routes, KnownRoutes) else None


def _clusters(spec: RunSpec) -> Mapping[str, str]:
    """Of generated texts alone."""
    dataset, workload = spec.config.dataset, spec.workload
    if dataset.source != "embedded":
        return {}
    return clusters_of(dataset.name, list(workload.ids), list(workload.digests))


# -- what the folder says ------------------------------------------------------------------------


def _manifest(spec: RunSpec, who: identity.Identity, run_id: str) -> Manifest:
    config, kind = spec.config, spec.kind
    ids = list(spec.workload.ids)
    if len(set(ids)) != len(ids):
        raise SpecfitError(f"dataset {config.dataset.name} repeats a request id; ids are distinct")
    info = RunInfo(
        run_id=run_id,
        model=config.model.name,
        dataset=config.dataset.name,
        selector=config.selector.name,
        cache_slots=spec.slots,
        profile=spec.profile.name,
        clock=spec.clock,
        device=spec.device_name,
        requests_digest=requests_digest(spec),
        target_digest=spec.target_digest,
        profile_digest=spec.profile.digest(),
        dtype=config.model.dtype,
        threads=config.threads,
        repeat=config.repeat,
        drafter=config.drafter.name if kind.drafts else None,
        routes=config.routes.name if spec.reads_routes else None,
        billed=spec.billing.name,
        link_gbps=spec.profile.link_gbps,
        calibration_at=config.calibration.at if kind.needs_cost else None,
        recording=spec.recording_id,
        stands_for=config.dataset.stands_for,
    )
    begun = [provenance.collect().as_dict()]
    return Manifest(info, who, ids, begun, extra=spec.machine_facts())


def requests_digest(spec: RunSpec) -> str:
    """Over the prompts that could be made; a failing example fails for every selector alike."""
    requests = []
    for index in range(len(spec.workload.ids)):
        try:
            requests.append(spec.workload.request(index))
        except RequestError:
            continue
    return identity.requests_digest(requests)


def _run_yaml(spec: RunSpec) -> str:
    return str(OmegaConf.to_yaml(spec.settled()))
