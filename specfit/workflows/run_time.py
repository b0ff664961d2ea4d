"""How long a run takes, said before it starts: by arithmetic, or from finished runs. Never a row.

By arithmetic, where the machine is known by numbers: a probe's, or a profile's. Rates of routing
are those of public traces of Qwen3-30B-A3B (ShareGPT prompts); accepted tokens are a round figure.
From finished runs, where many cells are planned: what was waited per request for those most like
the cell, on any machine. Loading and calibrations are in neither.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specfit.base.config import RunConfig
from specfit.base.published import PUBLISHED
from specfit.base.types import RequestError, SpecfitError
from specfit.decoding.spec import RunSpec, profile_of
from specfit.hardware.profile import Profile
from specfit.report.clock_check import FOLDER
from specfit.report.run_summary import counted
from specfit.selection.registry import selector_spec
from specfit.storage.find import finished_runs
from specfit.storage.manifest import Manifest
from specfit.storage.pack import packed_run
from specfit.storage.suite import REFERENCE
from specfit.workflows.progress import span

if TYPE_CHECKING:
    from specfit.workflows.suites.planning import Planned, Work

# -- by arithmetic -------------------------------------------------------------------------------

UNION_GROWTH = (1.0, 1.55, 1.98, 2.35, 2.66, 2.94, 3.17, 3.40)
"""Distinct experts of one layer at 1 .. 8 rows, in units of one row's k (8, 12.4, 15.8 .. 27.2)."""

HIT_SHARES = np.array([0.0, 1 / 16, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2, 1.0])
HIT_RATES = np.array([0.0, 0.33, 0.61, 0.74, 0.83, 0.93, 0.97, 1.0])
"""Share of a layer's experts that have a slot, and the hit rate of single tokens there."""


@dataclass(frozen=True)
class System:
    """One way to decode, in the round figures that an estimate needs."""

    name: str
    rows: int  # of a verify forward, root included
    levels: int  # drafted per cycle
    committed: float  # tokens per cycle
    cached: bool
    atlas_levels: int = 0  # forwards off the clock per cycle
    selects: bool = False


SYSTEMS = (
    System("ar", 1, 0, 1.0, cached=False),
    System("ar_cache", 1, 0, 1.0, cached=True),
    System("eagle3", 8, 5, 2.5, cached=False),
    System("eagle3_cache", 8, 5, 2.5, cached=True),
    System("specfit", 5, 4, 2.3, cached=True, atlas_levels=4, selects=True),
)


def system_like(name: str, drafts: bool, reads_routes: bool) -> System:
    """The system of that name, or the one that another selector's cycle resembles most."""
    named = {system.name: system for system in SYSTEMS}
    nearest = "specfit" if reads_routes else "eagle3_cache" if drafts else "ar_cache"
    return named.get(name) or replace(named[nearest], name=name)


@dataclass(frozen=True)
class Experts:
    """A model's routed experts, as the clock counts them."""

    layers: int
    per_layer: int
    top_k: int  # of one row
    expert_bytes: int


@dataclass(frozen=True)
class Requests:
    """What is decoded; every answer is taken to be as long as it may."""

    count: int
    prompt_tokens: float  # on average
    new_tokens: int


@dataclass(frozen=True)
class RunTime:
    """Of one run, in seconds: on the run's clock, and until it is finished."""

    timed_s: float
    elapsed_s: float

    def __add__(self, other: RunTime) -> RunTime:
        return RunTime(self.timed_s + other.timed_s, self.elapsed_s + other.elapsed_s)


def run_time(
    system: System, model: Experts, profile: Profile, slots: int, requests: Requests
) -> RunTime:
    """The profile has a link and a fixed cost."""
    assert profile.fixed_ms is not None
    share = slots / model.per_layer if system.cached else 0.0
    missed = 1.0 - float(np.interp(share, HIT_SHARES, HIT_RATES))

    def experts_ms(rows: int) -> float:
        used = min(model.per_layer, model.top_k * UNION_GROWTH[rows - 1])
        return _experts_ms(model, profile, used, used * missed)

    verify = profile.fixed_ms + profile.node_ms * (system.rows - 1) + experts_ms(system.rows)
    cycle = verify + system.levels * profile.draft_level_ms
    cycle += profile.selection_ms if system.selects else 0.0
    atlas = system.atlas_levels * (profile.fixed_ms + experts_ms(4))
    cycles = requests.new_tokens / system.committed
    nearly_all = _experts_ms(model, profile, model.per_layer, model.per_layer * (1.0 - share))
    prefill = profile.fixed_ms + profile.prefill_token_ms * requests.prompt_tokens + nearly_all
    timed = (prefill + cycles * cycle) * requests.count / 1e3
    return RunTime(timed, timed + cycles * atlas * requests.count / 1e3)


def _experts_ms(model: Experts, profile: Profile, used: float, copied: float) -> float:
    """Of a forward that uses and copies so many experts of each layer."""
    assert profile.link_gbps is not None
    copy_ms = model.expert_bytes / profile.link_gbps / 1e6
    if not profile.overlap:
        copy_ms += profile.copy_latency_us / 1e3
    lanes = copied * copy_ms, (used * profile.expert_us + copied * profile.miss_us) / 1e3
    return model.layers * (max(lanes) if profile.overlap else sum(lanes))


# -- of the run that is about to start -----------------------------------------------------------

PROMPTS_READ = 50
"""Prompts whose length is read; the others are taken to be like them."""

BASIS = "estimated with answers at their longest"


def expected(spec: RunSpec, done: int = 0) -> str:
    """One sentence about the requests from `done` on."""
    requests, kind = requests_of(spec, done), spec.kind
    system = system_like(spec.config.selector.name, kind.drafts, kind.reads_routes)
    here = probed_profile(Path(spec.config.results_dir), spec.device_name)
    if spec.clock == "modelled":
        billed = run_time(system, experts_of(spec, billed=True), spec.profile, spec.slots, requests)
        timed = f"; {span(billed.timed_s)} on the modelled clock (profile {spec.profile.name})"
    else:
        here = spec.profile if is_complete(spec.profile) else here
        if here is None:
            return (
                f"expected: unknown, profile {spec.profile.name} has no numbers for this machine "
                "(python -m specfit.probe measures them); time left is shown after a request"
            )
        timed = ""
    if here is None:
        waited = "a wait that is shown after the first"
    else:
        own = run_time(system, experts_of(spec), here, spec.slots, requests)
        waited = f"{span(own.elapsed_s)} to wait (by profile {here.name})"
    return f"expected for {counted(requests.count, 'request')}: {waited}{timed}; {BASIS}"


def expected_recording(spec: RunSpec, requests: int) -> str:
    """Of `record`: the decoding is plain, with a cache; the passes after it are not estimated."""
    here = probed_profile(Path(spec.config.results_dir), spec.device_name)
    after = "time left is shown after a batch"
    if here is None:
        return f"expected: unknown (python -m specfit.probe measures this machine); {after}"
    plain = system_like("ar_cache", drafts=False, reads_routes=False)
    decoded = replace(requests_of(spec, 0), count=requests)
    decoding_s = run_time(plain, experts_of(spec), here, spec.slots, decoded).elapsed_s
    return (
        f"expected for {counted(requests, 'request')}: {span(decoding_s)} to decode them (by "
        f"profile {here.name}; {BASIS}), and the passes over their pools; {after}"
    )


def experts_of(spec: RunSpec, billed: bool = False) -> Experts:
    """The target as it is, or as the model that the clock bills."""
    bill, shape = spec.billing, spec.geometry
    layers, size = bill.own_layers, bill.own_expert_bytes
    if billed:
        layers, size = bill.layers, bill.expert_bytes
    return Experts(layers, shape.experts, shape.top_k, size)


def requests_of(spec: RunSpec, done: int) -> Requests:
    total, lengths = len(spec.workload.ids), []
    for index in range(done, min(total, done + PROMPTS_READ)):
        try:
            lengths.append(len(spec.workload.request(index).prompt_ids))
        except RequestError:
            continue
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    return Requests(total - done, mean, spec.config.new_tokens)


def is_complete(profile: Profile) -> bool:
    return profile.link_gbps is not None and profile.fixed_ms is not None


def probed_profile(results: Path, device_name: str) -> Profile | None:
    """What a probe has left about this machine."""
    path = probed_file(results, device_name)
    return None if path is None else _profile_in(path)


def probed_file(results: Path, device_name: str) -> Path | None:
    """A probe's file about this machine; files that cannot be read say nothing."""
    for path in sorted((results / FOLDER).glob("*.json")):
        profile = _profile_in(path)
        if profile is not None and device_name in profile.gpu_names:
            return path
    return None


def _profile_in(path: Path) -> Profile | None:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))["profile"]
        return Profile(**values | {"gpu_names": tuple(values["gpu_names"])})
    except (OSError, ValueError, KeyError, TypeError, SpecfitError):
        return None


# -- of a model that is not here ------------------------------------------------------------------


def unfetched(config: RunConfig) -> RunTime | None:
    """Of a run whose published model is still to be fetched, on the machine of its profile; None
    where the files are here, or the model or the profile has no known numbers."""
    from specfit.decoding.resolve import repository_of
    from specfit.models.target.fetch import is_fetched

    repository = repository_of("model", config.model)
    is_here = repository is None or is_fetched(repository)
    shape, profile = PUBLISHED.get(config.model.name), profile_of(config.gpu)
    if is_here or shape is None or not is_complete(profile):
        return None
    kind, slots = selector_spec(config.selector.name), config.cache_slots
    model = Experts(shape.layers, shape.experts, shape.top_k, shape.expert_bytes())
    cached_slots = slots if isinstance(slots, int) else shape.experts
    system = system_like(config.selector.name, kind.drafts, kind.reads_routes)
    return run_time(system, model, profile, cached_slots, longest_requests(config))


def longest_requests(config: RunConfig) -> Requests:
    """By the workload's own limits; no prompt is read."""
    from specfit.decoding.memory_fit import workload_context

    prompt = workload_context(config, sys.maxsize) - config.new_tokens
    return Requests(config.request_limit or 1, prompt, config.new_tokens)


# -- from finished runs --------------------------------------------------------------------------

FOLDERS = {"run": "runs", "replay": "replays"}


@dataclass(frozen=True)
class Finished:
    """A finished run, per request. `kind` is run or replay."""

    kind: str
    model: str
    dataset: str
    selector: str
    cache_slots: int
    max_new_tokens: int
    seconds: float
    size_bytes: float


@dataclass(frozen=True)
class Estimate:
    minutes: float
    size_bytes: float


def finished_below(results: Path) -> list[Finished]:
    """Live ones, and reference rows: a fresh clone can tell what awaits it."""
    places = [(below, kind) for below in (results, results / REFERENCE) for kind in FOLDERS]
    return [
        _read(kind, *run) for below, kind in places for run in finished_runs(below / FOLDERS[kind])
    ]


def _read(kind: str, folder: Path, manifest: Manifest) -> Finished:
    info, requests = manifest.info, max(1, len(manifest.request_ids))
    packed = packed_run(folder)
    if packed is None:
        elapsed = pq.read_table(folder / "timings.parquet", columns=["elapsed_ns"])["elapsed_ns"]
        elapsed_ns, size_bytes = pc.sum(elapsed).as_py() or 0, folder_bytes(folder)
    else:
        elapsed_ns, size_bytes = packed[1].elapsed_ns, packed[1].size_bytes
    return Finished(
        kind,
        info.model,
        info.dataset,
        info.selector,
        info.cache_slots,
        int(manifest.identity.get("config", {}).get("max_new_tokens", 0)),
        elapsed_ns / 1e9 / requests,
        size_bytes / requests,
    )


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def estimate(one: Planned, finished: Sequence[Finished]) -> Estimate | None:
    """From the finished runs that are most like it; None where none is."""
    if one.work is None or one.cell.kind not in FOLDERS:
        return None
    alike = closest(one.work, [f for f in finished if f.kind == one.cell.kind])
    if not alike:
        return None
    requests = one.work.requests
    seconds, size_bytes = (
        requests * (sum(column) / len(alike))
        for column in zip(*((other.seconds, other.size_bytes) for other in alike), strict=True)
    )
    return Estimate(seconds / 60, size_bytes)


def closest(work: Work, finished: Iterable[Finished]) -> list[Finished]:
    """Of the same model and output limit, those that agree on most of what sets the time: the
    workload first, then the selector, then the slots."""
    config = work.config

    def likeness(other: Finished) -> tuple[bool, bool, bool]:
        return (
            other.dataset == config.dataset.name,
            other.selector == config.selector.name,
            other.cache_slots == work.cache_slots,
        )

    same_kind = config.model.name, config.new_tokens
    same = [other for other in finished if (other.model, other.max_new_tokens) == same_kind]
    best = max(map(likeness, same), default=None)
    return [other for other in same if likeness(other) == best]
