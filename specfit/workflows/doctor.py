"""`python -m specfit.doctor`: what a run needs and what this machine has, before any fetch.

Reads two config.json and one index, from folders or from the hub, and asks the machine. No weight
is read, no run is begun. It ends with the largest slot count that fits and one ready command.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specfit.base.config import DrafterConfig, ModelConfig, RunConfig, SelectorConfig, from_hydra
from specfit.base.published import QWEN3_30B_A3B
from specfit.base.types import SpecfitError

if TYPE_CHECKING:
    from specfit.workflows.run_time import RunTime

GB = 1e9
ASSUMED_FIXED_MS = 70.0  # of a forward, where no probe has measured it


@dataclass(frozen=True)
class Named:
    """The config.json fields of a model and a head, and the bytes a fetch would bring (0: none)."""

    target: dict[str, Any] | None
    head: dict[str, Any] | None
    fetch_bytes: int
    notes: tuple[str, ...]


def diagnose(config: RunConfig) -> Iterator[str]:
    """The lines of the report."""
    from specfit.decoding.resolve import find_device
    from specfit.decoding.spec import profile_of
    from specfit.experts.pool_cache import slots_cliff
    from specfit.hardware.clock import choose_clock

    profile = profile_of(config.gpu)
    device, device_name = find_device(config.device)
    clock = choose_clock(config.gpu.clock, profile, device_name)
    yield f"device {device.type} ({device_name}); clock {clock}; profile {profile.name}"
    named = look_up(config)
    yield from named.notes
    link_gbps = None
    if device.type == "cuda":
        lines, link_gbps = link_lines(device)
        yield from lines
    else:
        yield "link and page-locking: not tried, there is no CUDA device"
        yield from surroundings_lines(None)
    sizing = size(config, named, clock, device, profile)
    yield from host_lines(sizing.store_bytes, device.type == "cuda")
    if named.fetch_bytes:
        yield from disk_lines(named.fetch_bytes)
    slots = yield from device_lines(config, sizing)
    cliff = slots_cliff(slots, sizing.needs.layers, top_k_of(named), sizing.needs.expert_bytes)
    if cliff is not None:
        yield f"warning: {cliff}"
    if link_gbps is not None and profile.link_gbps is None:
        fixed = profile.fixed_ms or ASSUMED_FIXED_MS
        profile = replace(profile, link_gbps=link_gbps, fixed_ms=fixed)
    yield from hour_lines(config, named, sizing, profile, slots, clock)
    yield f"ready: {command(config, slots)}"


# -- what is named -------------------------------------------------------------------------------


def look_up(config: RunConfig) -> Named:
    notes: list[str] = []
    from specfit.models.target.config_file import target_fields

    target, fetch = fields_of("model", config.model, notes)
    if target is not None and config.model.source != "random":
        target = target_fields(target, f"the config.json of model={config.model.name}")
    head, more = fields_of("drafter", config.drafter, notes)
    return Named(target, head, fetch + more, tuple(notes))


def fields_of(
    key: str, group: ModelConfig | DrafterConfig, notes: list[str]
) -> tuple[dict[str, Any] | None, int]:
    """config.json and the bytes still to fetch; no weight is fetched."""
    from specfit.decoding.resolve import locate, open_checkpoint, repository_of
    from specfit.models.schema import read_json
    from specfit.models.target.checkpoint import INDEX
    from specfit.models.target.fetch import absent_files, in_cache, metadata

    if isinstance(group, ModelConfig) and group.source == "random":
        return open_checkpoint(group).config, 0
    repository = repository_of(key, group)
    if repository is None:
        return (read_json(locate(group.path) / "config.json"), 0) if group.path else (None, 0)
    cached = in_cache(repository)
    if cached is not None and not absent_files(cached):
        notes.append(f"{key}: {repository.name} is complete in the hub's cache")
        return read_json(cached / "config.json"), 0
    result = metadata(repository, ["config.json"])
    if result is None:
        notes.append(f"{key}: {repository.name} is not in the hub's cache and the hub not reached")
        return None, 0
    index = metadata(repository, [INDEX]) or {}
    fields = result["config.json"]
    size = index.get(INDEX, {}).get("metadata", {}).get("total_size", 0)
    notes.append(f"{key}: {repository.name} is not fetched yet")
    return fields, int(size)


def size(config: RunConfig, named: Named, clock: str, device: Any, profile: Any) -> Any:
    """The table; from the published shapes where the config.json cannot be had."""
    from specfit.decoding.memory_fit import placed, sizing_of, workload_context
    from specfit.hardware.reference_models import BILLED_MODELS

    if named.target is not None:
        return sizing_of(config, named.target, named.head, clock, device, profile)
    if config.model.name not in BILLED_MODELS:
        raise SpecfitError(
            f"model={config.model.name} has no config.json at hand; set model.path to its folder"
        )
    context = workload_context(config, sys.maxsize)
    return placed(BILLED_MODELS[config.model.name], context, config, clock, device, profile)


# -- what is there -------------------------------------------------------------------------------


def device_lines(config: RunConfig, sizing: Any) -> Generator[str, None, int]:
    """The device table; returns the slot count to use."""
    requested = min(config.calibration.slots, sizing.needs.experts)
    shown = requested if sizing.free is None else max(0, min(requested, sizing.largest()))
    yield from sizing.lines(shown)
    if sizing.free is None:
        yield "largest slot count that fits: unknown, no GPU's free memory can be read here"
        return shown
    slots, sentence = sizing.fit(requested)
    yield f"largest slot count that fits: {slots}; {sentence}"
    return slots


def host_lines(store_bytes: int, locks: bool) -> Iterator[str]:
    from specfit.hardware.memory import host_memory

    memory = host_memory()
    usable = memory.usable
    there = "unknown" if usable is None else f"{usable / GB:.1f} GB usable"
    limit = memory.limit_left
    if limit is not None and limit == usable:
        there += " (the cgroup's limit)"
    verdict = "" if usable is None or store_bytes < usable else ": TOO LITTLE, the run would refuse"
    yield f"host memory: experts {store_bytes / GB:.1f} GB, {there}{verdict}"
    if locks:
        yield lock_trial(store_bytes)


def lock_trial(requested: int, seconds: float = 8.0) -> str:
    """Locks fresh memory chunk by chunk until `wanted`, a refusal or the time is reached."""
    from specfit.experts.pinned import CudaRegistrar, try_locking

    trial = try_locking(CudaRegistrar(), requested, seconds)
    gib = trial.locked_bytes / 2**30
    if trial.refused is not None:
        return f"page-locking: {trial.sentence()}"
    if trial.is_whole:
        return f"page-locking: all {gib:.0f} GiB could be locked"
    return f"page-locking: {gib:.0f} GiB locked in {seconds:.0f} s, no refusal"


def disk_lines(fetch_bytes: int) -> Iterator[str]:
    from specfit.models.target.fetch import hub_disk

    folder, free = hub_disk()
    verdict = "" if fetch_bytes < free else ": TOO LITTLE; set HF_HOME to another disk"
    yield f"disk: {fetch_bytes / GB:.1f} GB to fetch, {free / GB:.1f} free at {folder}{verdict}"


def link_lines(device: Any) -> tuple[list[str], float]:
    from specfit.hardware.pcie import read_link
    from specfit.hardware.system_info import bus_id, surroundings

    reading = read_link(device)
    around = surroundings(bus_id(device))
    lines = [
        f"link under load: {reading.pinned_gbps:.1f} GB/s page-locked, "
        f"{reading.pageable_gbps:.1f} pageable; {reading.state}"
    ]
    lines += reading.findings(around.is_wsl, around.on_wrong_node)
    return [*lines, *around.notes()], reading.pinned_gbps


def surroundings_lines(gpu_bus_id: str | None) -> list[str]:
    from specfit.hardware.system_info import surroundings

    return surroundings(gpu_bus_id).notes()


# -- what it will take ---------------------------------------------------------------------------


def top_k_of(named: Named) -> int:
    return int((named.target or {}).get("num_experts_per_tok", QWEN3_30B_A3B.top_k))


def hour_lines(
    config: RunConfig, named: Named, sizing: Any, profile: Any, slots: int, clock: str
) -> Iterator[str]:
    """One line per system, then the suite of all five on this workload."""
    from specfit.decoding.memory_fit import workload_context
    from specfit.workflows.run_time import SYSTEMS, Experts, Requests, RunTime, run_time

    if profile.link_gbps is None or profile.fixed_ms is None:
        yield (
            f"hours: unknown, profile {profile.name} has no numbers for this machine; "
            "python -m specfit.probe measures them"
        )
        return
    requests = config.request_limit or 1
    top_k = top_k_of(named)
    prompt = workload_context(config, sys.maxsize) - config.new_tokens
    needs, work = sizing.needs, Requests(requests, prompt, config.new_tokens)
    model = Experts(needs.layers, needs.experts, top_k, needs.expert_bytes)
    total = RunTime(0.0, 0.0)
    asked = f"{requests} requests of {config.new_tokens} tokens"
    yield f"hours of {asked}, an estimate ({clock} clock):"
    for system in SYSTEMS:
        time = run_time(system, model, profile, slots, work)
        total += time
        yield _hours(system.name, time)
    yield _hours("all five", total)


def _hours(name: str, time: RunTime) -> str:
    return f"  {name:14}{time.timed_s / 3600:7.2f} timed {time.elapsed_s / 3600:7.2f} elapsed"


def command(config: RunConfig, slots: int) -> str:
    gpu = "" if config.gpu.name == "local" else f" gpu={config.gpu.name}"
    return (
        f"python -m specfit.run model={config.model.name} drafter={config.drafter.name} "
        f"dataset={config.dataset.name} selector=specfit cache_slots={slots}{gpu}"
    )


def doctor(composed: Any) -> int:
    config = from_hydra(composed)
    for line in check_head(config) if config.drafter.check else diagnose(config):
        print(line, flush=True)
    return 0


def check_head(config: RunConfig) -> Iterator[str]:
    """`drafter.check=true`: loads the pair and tries every usual misreading of the head."""
    from specfit.decoding.head_check import check
    from specfit.decoding.live import build_runtime
    from specfit.decoding.resolve import resolve

    if config.drafter.name == "oracle":
        raise SpecfitError("drafter.check reads a draft head, which drafter=oracle has not")
    selector = SelectorConfig("eagle3_cache", config.drafter.pool_nodes)
    spec = resolve(replace(config, selector=selector))
    yield from check(build_runtime(spec, spec.slots, drafts=True))
