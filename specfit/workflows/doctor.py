"""`python -m specfit.doctor`: what a run needs and what this machine has, before any fetch.

Reads two config.json and the headers of what is here, from folders or from the hub, and asks the
machine. Whether a run would be refused is asked of the code that refuses it. It ends with the
largest slot count that fits and one ready command, or with what is not ready and exit code 2.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specfit.base.config import DrafterConfig, ModelConfig, RunConfig, SelectorConfig, from_hydra
from specfit.base.published import QWEN3_30B_A3B
from specfit.base.types import RequestError, SpecfitError

if TYPE_CHECKING:
    from specfit.workflows.run_time import RunTime

GB = 1e9
TIGHT_BYTES = 8_000_000_000
"""Of host memory beside the experts, below which a desktop is short of it."""
DISPLAY_GB = 1.0
ASSUMED_FIXED_MS = 70.0  # of a forward, where no probe has measured it


@dataclass
class Findings:
    """What stands against the run, each sentence once, in the order found."""

    problems: list[str] = field(default_factory=list)

    def tries(self, check: Callable[[], Any]) -> Any:
        """The check's result; None where it refuses, and then its sentence is kept."""
        try:
            return check()
        except (SpecfitError, RequestError) as error:
            text = " ".join(str(error).split())
        except OSError as error:
            from specfit.base.entry import cannot_use

            text = cannot_use(error)
        if text not in self.problems:
            self.problems.append(text)
        return None


@dataclass(frozen=True)
class Named:
    """The config.json fields of a model and a head, and the bytes a fetch would bring. None:
    unknown, of a head also that there is none."""

    target: dict[str, Any] | None
    head: dict[str, Any] | None
    fetch_bytes: int | None
    notes: tuple[str, ...]
    is_head_unknown: bool = False
    expert_bytes: int | None = None  # as its scheme stores one; None: in model.dtype
    is_here: bool = True  # every file of both: what a run checks can be checked


def diagnose(config: RunConfig, typed: Sequence[str] = ()) -> Generator[str, None, list[str]]:
    """The lines of the report; returns what is not ready. `typed` are the overrides of the command
    line, which the ready command keeps."""
    from specfit.decoding.resolve import find_device
    from specfit.decoding.spec import profile_of
    from specfit.experts.pool_cache import slots_cliff
    from specfit.hardware.clock import choose_clock

    against = Findings()
    profile = profile_of(config.gpu)
    device, device_name = find_device(config.device)
    clock = choose_clock(config.gpu.clock, profile, device_name)
    yield f"device {device.type} ({device_name}); clock {clock}; profile {profile.name}"
    named = look_up(config, against)
    yield from named.notes
    link_gbps = None
    if device.type == "cuda":
        lines, link_gbps = link_lines(device)
        yield from lines
    else:
        yield "link and page-locking: not tried, there is no CUDA device"
        yield from surroundings_lines(None)
    sizing = against.tries(lambda: size(config, named, clock, device, profile))
    slots = None
    if sizing is not None:
        if sizing.pack_bytes:
            yield from pack_lines(config, sizing.pack_bytes, against)
            if sizing.store_bytes:  # what comes from disk to a GPU comes through RAM
                yield from host_lines(sizing.store_bytes, True, against)
        elif (planned := config.gpu.host_memory_gb) is not None:
            yield from planned_host_lines(sizing.store_bytes, planned, against)
        else:
            yield from host_lines(sizing.store_bytes, device.type == "cuda", against)
        is_typed = "cache_slots" in keys_of(typed)
        slots = yield from device_lines(config, sizing, is_typed, against)
        needs = sizing.needs
        cliff = slots_cliff(slots, needs.layers, top_k_of(named), needs.expert_bytes)
        if cliff is not None:
            yield f"warning: {cliff}"
        if not is_typed:  # of the run that is proposed
            config = replace(config, cache_slots=slots)
    check_run(config, named, against)
    if not named.is_here:
        yield disk_line(named, sizing)
    if link_gbps is not None and profile.link_gbps is None:
        fixed = profile.fixed_ms or ASSUMED_FIXED_MS
        profile = replace(profile, link_gbps=link_gbps, fixed_ms=fixed)
    if sizing is not None and slots is not None:
        yield from hour_lines(config, named, sizing, profile, slots, clock)
        yield from format_table(config, named, sizing, profile, against)
    if not against.problems:
        yield f"ready: {command(config, slots, typed)}"
    return against.problems


# -- what a run would refuse ---------------------------------------------------------------------


def check_run(config: RunConfig, named: Named, against: Findings) -> None:
    """Asks the code that a run itself asks, as far as the files are here; reads no weight of the
    target."""
    from specfit.storage.atomic import check_writable

    against.tries(lambda: check_writable(Path(config.results_dir)))
    if not named.is_here:
        return
    from specfit.workflows.execute import check_named, run_id_of
    from specfit.workflows.live_run import resolved

    spec = against.tries(lambda: resolved(config))
    if spec is None:
        return
    against.tries(lambda: check_pair(spec))
    against.tries(lambda: spec.tokenizer)
    against.tries(lambda: check_named(spec))
    against.tries(lambda: run_id_of(spec))  # digests all, calibration questions too
    against.tries(lambda: check_requests(spec))


def check_pair(spec: Any) -> None:
    """Raises SpecfitError for a target or a head that cannot be loaded, or not together."""
    from specfit.decoding.live import refuse_unlivable
    from specfit.decoding.oracle_texts import is_scripted
    from specfit.models.drafter.checkpoint import check_head as check_file
    from specfit.models.routes.predictor import load_predictor
    from specfit.models.target.dummy import RandomCheckpoint
    from specfit.models.target.loading import check_loadable

    refuse_unlivable(spec)
    if isinstance(spec.checkpoint, RandomCheckpoint):
        return
    model = check_loadable(spec.checkpoint, spec.config.model.num_layers)[-1]
    if spec.kind.drafts and not is_scripted(spec):
        check_file(spec.drafter_folder, model.config)
    if spec.reads_routes and spec.config.routes.name == "learned":
        pair = {"target": spec.target_digest, "drafter": spec.drafter_digest}
        load_predictor(spec.routes_file, pair, spec.device)


def check_requests(spec: Any) -> None:
    """Raises RequestError, with the first one's reason, where no request can be made."""
    reasons = []
    for index in range(len(spec.workload.ids)):
        try:
            spec.workload.request(index)
            return
        except RequestError as error:
            reasons.append(str(error))
    from specfit.report.run_summary import failed_sentence

    raise RequestError(f"no request can be made; {failed_sentence(reasons)}")


# -- what is named -------------------------------------------------------------------------------


def look_up(config: RunConfig, against: Findings) -> Named:
    from specfit.models.target.config_file import target_fields

    notes: list[str] = []
    target, fetch = fields_of("model", config.model, notes, against)
    raw = target or {}
    if target is not None and config.model.source != "random":
        fields, said = target, f"the config.json of model={config.model.name}"
        target = against.tries(lambda: target_fields(fields, said))
    own_bytes = None if target is None else quantised_bytes(config, raw, target, against)
    head, more = fields_of("drafter", config.drafter, notes, against)
    has_head = bool(config.drafter.path or config.drafter.repository)
    whole = None if fetch is None or more is None else fetch + more
    is_unknown = has_head and head is None
    return Named(target, head, whole, tuple(notes), is_unknown, own_bytes, whole == 0)


def quantised_bytes(
    config: RunConfig, raw: Any, target: dict[str, Any], against: Findings
) -> int | None:
    """Of one expert of a quantised model, by the config alone; None where it is in floating point.

    `raw`: the fields of its config.json, `target`: those that are checked.
    """
    import torch

    from specfit.models.target.family import geometry_of
    from specfit.models.target.quantise import PLAIN
    from specfit.models.target.schemes.registry import scheme_of
    from specfit.workflows.doctor_formats import expert_bytes

    model, shape = config.model, against.tries(lambda: geometry_of(target))
    if shape is None:
        return None
    if model.format not in (None, PLAIN):
        named = str(model.format)
        return against.tries(lambda: expert_bytes(named, shape.hidden, shape.intermediate))
    scheme = against.tries(lambda: scheme_of(raw, f"the config.json of model={model.name}"))
    if scheme is None or scheme.nominal() is None:
        return None
    return scheme.nominal_format(shape, getattr(torch, model.dtype)).block_bytes


def fields_of(
    key: str, group: ModelConfig | DrafterConfig, notes: list[str], against: Findings
) -> tuple[dict[str, Any] | None, int | None]:
    """config.json and the bytes still to fetch, None where unknown; no weight is fetched."""
    from specfit.decoding.resolve import locate, open_checkpoint, repository_of
    from specfit.models.schema import read_json
    from specfit.models.target.fetch import absent_files, in_cache, metadata, to_fetch

    if isinstance(group, ModelConfig) and group.source == "random":
        checkpoint = against.tries(lambda: open_checkpoint(group))
        return (None if checkpoint is None else checkpoint.config), 0
    repository = repository_of(key, group)
    if repository is None:
        path = group.path
        return (against.tries(lambda: read_json(locate(path) / "config.json")) if path else None), 0
    cached = in_cache(repository)
    if cached is not None and not absent_files(cached):
        notes.append(f"{key}: {repository.name} is complete in the hub's cache")
        return against.tries(lambda: read_json(cached / "config.json")), 0
    size = against.tries(lambda: to_fetch(repository))
    if size is None:  # not reached, or too small a disk: that sentence is kept
        return None, None
    notes.append(f"{key}: {repository.name} is not fetched yet; a run fetches it")
    result = metadata(repository, ["config.json"])
    return (None if result is None else result["config.json"]), max(1, size)


def size(config: RunConfig, named: Named, clock: str, device: Any, profile: Any) -> Any:
    """The table; from the published shapes where the config.json cannot be had."""
    from specfit.decoding.memory_fit import placed, sizing_of, workload_context
    from specfit.decoding.spec import refuse_ram_slots
    from specfit.hardware.reference_models import BILLED_MODELS
    from specfit.models.target.family import geometry_of

    if named.target is not None:
        own_bytes = named.expert_bytes
        refuse_ram_slots(config, geometry_of(named.target).experts, clock)
        table = sizing_of(config, named.target, named.head, clock, device, profile, own_bytes)
        is_billed = clock == "modelled" and config.gpu.billed in BILLED_MODELS
        unknown = ("draft head",) if named.is_head_unknown and not is_billed else ()
        return replace(table, unknown=unknown)
    if config.model.name not in BILLED_MODELS:
        raise SpecfitError(
            f"model={config.model.name} has no config.json at hand; set model.path to its folder"
        )
    context, needs = workload_context(config, sys.maxsize), BILLED_MODELS[config.model.name]
    refuse_ram_slots(config, needs.experts, clock)
    return placed(needs, context, config, clock, device, profile)


# -- what is there -------------------------------------------------------------------------------


def device_lines(
    config: RunConfig, sizing: Any, is_typed: bool, against: Findings
) -> Generator[str, None, int]:
    """The device table; returns the slot count to use."""
    from specfit.decoding.spec import settle_slots

    experts = sizing.needs.experts
    requested = min(config.calibration.slots, experts)
    if is_typed and config.cache_slots != "fit":
        settled = against.tries(
            lambda: settle_slots(config, experts, lambda: sizing.fit(requested))
        )
        requested = requested if settled is None else settled[0]
    shown = requested if sizing.free is None else max(0, min(requested, sizing.largest()))
    yield from sizing.lines(shown)
    if sizing.free is None:
        yield "largest slot count that fits: unknown, no GPU's free memory can be read here"
        return shown
    if sizing.unknown:
        yield f"largest slot count that fits: unknown without {', '.join(sizing.unknown)}"
        return shown
    fit = against.tries(lambda: sizing.fit(requested))
    if fit is None:
        return shown
    yield f"largest slot count that fits: {fit[0]}; {fit[1]}"
    if not config.gpu.display_gb and sizing.where.startswith("in profile"):
        beside = replace(sizing, free=sizing.free - int(DISPLAY_GB * GB)).largest()
        yield f"where a desktop's display takes {DISPLAY_GB:g} GB: {beside}; gpu.display_gb=1"
    return shown


def host_lines(store_bytes: int, locks: bool, against: Findings) -> Iterator[str]:
    from specfit.experts.host_weights import refuse_without_memory
    from specfit.hardware.memory import host_memory

    memory = host_memory()
    usable = memory.usable
    there = "unknown" if usable is None else f"{usable / GB:.1f} GB usable"
    limit = memory.limit_left
    if limit is not None and limit == usable:
        there += " (the cgroup's limit)"
    before = len(against.problems)
    against.tries(lambda: refuse_without_memory(store_bytes))
    verdict = ": TOO LITTLE, the run would refuse" if len(against.problems) > before else ""
    yield f"host memory: experts {store_bytes / GB:.1f} GB, {there}{verdict}"
    if locks:
        yield lock_trial(store_bytes)


def planned_host_lines(store_bytes: int, planned_gb: float, against: Findings) -> Iterator[str]:
    """Of a machine that is planned with: its whole RAM is known, not what runs beside."""
    from specfit.hardware.memory import refuse_planned, with_room

    left = planned_gb * GB - with_room(store_bytes)
    line = f"host memory: experts {store_bytes / GB:.1f} GB, {planned_gb:g} GB planned with"
    if left < 0:
        line += ": TOO LITTLE"
        against.tries(lambda: refuse_planned(store_bytes, planned_gb))
    elif left < TIGHT_BYTES:
        line += (
            f": tight, {left / GB:.1f} GB are left for the system, and page-locking that much may "
            "need its limits raised"
        )
    yield line


def pack_lines(config: RunConfig, pack_bytes: int, against: Findings) -> Iterator[str]:
    """The experts on disk: where, how many bytes, and whether there is room for them."""
    from specfit.decoding.resolve import locate, pack_folder
    from specfit.experts.pack import refuse_without_room

    local = locate(config.model.path) if config.model.path else None
    folder = None
    if local is not None:
        folder = against.tries(lambda: pack_folder(config, local))
    if folder is None:
        yield f"disk: a pack of {pack_bytes / GB:.2f} GB beside the checkpoint"
        return
    there = sorted(folder.glob("*.experts")) if folder.is_dir() else []
    if not there:
        against.tries(lambda: refuse_without_room(folder, pack_bytes))
    made = f"; packs there: {', '.join(path.name for path in there)}" if there else ""
    yield f"disk: a pack of {pack_bytes / GB:.2f} GB of experts in {folder}{made}"


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


def disk_line(named: Named, sizing: Any = None) -> str:
    """Where the hub does not say what a fetch brings, a known model's own bytes stand for it."""
    from specfit.models.target.fetch import hub_disk

    folder, free = hub_disk()
    if named.fetch_bytes is not None:
        needed = f"{named.fetch_bytes / GB:.1f}"
    elif sizing is not None and named.target is None and not sizing.unknown:
        needs = sizing.needs
        whole = needs.store_bytes + needs.dense_bytes + needs.drafter_bytes
        needed = f"about {whole / GB:.0f}"
    else:
        needed = "an unknown number of"
    return f"disk: {needed} GB to fetch, {free / GB:.1f} free at {folder}"


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
    from specfit.report.run_summary import counted
    from specfit.workflows.run_time import SYSTEMS, RunTime, longest_requests, run_time

    if profile.link_gbps is None or profile.fixed_ms is None:
        yield (
            f"hours: unknown, profile {profile.name} has no numbers for this machine; "
            "python -m specfit.probe measures them"
        )
        return
    model, work = experts_of(named, sizing), longest_requests(config)
    total = RunTime(0.0, 0.0)
    of = f"{counted(work.count, 'request')} of {work.new_tokens} tokens"
    yield f"hours of {of}, an estimate ({clock} clock):"
    for system in SYSTEMS:
        time = run_time(system, model, profile, slots, work)
        total += time
        yield _hours(system.name, time)
    yield _hours("all five", total)


def experts_of(named: Named, sizing: Any) -> Any:
    from specfit.workflows.run_time import Experts

    needs = sizing.needs
    return Experts(needs.layers, needs.experts, top_k_of(named), needs.expert_bytes)


def format_table(
    config: RunConfig, named: Named, sizing: Any, profile: Any, against: Findings
) -> Iterator[str]:
    """The sized model with its experts in each format; nothing where its shape is unknown."""
    from specfit.base.published import PUBLISHED
    from specfit.models.target.family import geometry_of
    from specfit.workflows.doctor_formats import format_lines
    from specfit.workflows.run_time import longest_requests

    shape: Any = PUBLISHED.get(config.gpu.billed, PUBLISHED.get(config.model.name))
    if named.target is not None and (shape is None or sizing.needs.layers != shape.layers):
        fields = named.target
        shape = against.tries(lambda: geometry_of(fields))
    if shape is None:
        return
    model, work = experts_of(named, sizing), longest_requests(config)
    yield from format_lines(shape.hidden, shape.intermediate, sizing, model, profile, work)


def _hours(name: str, time: RunTime) -> str:
    return f"  {name:14}{time.timed_s / 3600:7.2f} timed {time.elapsed_s / 3600:7.2f} elapsed"


def keys_of(typed: Sequence[str]) -> set[str]:
    return {item.lstrip("+~").partition("=")[0] for item in typed}


def command(config: RunConfig, slots: int | None, typed: Sequence[str]) -> str:
    """What was typed, whole, and the slots where they were left open."""
    keys, words = keys_of(typed), list(typed)
    if "selector" not in keys:
        words.append(f"selector={config.selector.name}")
    if "cache_slots" not in keys and slots is not None:
        words.append(f"cache_slots={slots}")
    return f"python -m specfit.run {shlex.join(words)}"


def doctor(composed: Any) -> int:
    """Exit code: 0 where the run is ready, 2 where it would be refused."""
    from hydra.core.hydra_config import HydraConfig

    config = from_hydra(composed)
    if config.drafter.check:
        for line in check_head(config):
            print(line, flush=True)
        return 0
    lines = diagnose(config, list(HydraConfig.get().overrides.task))
    while True:
        try:
            print(next(lines), flush=True)
        except StopIteration as end:
            problems: list[str] = end.value
            break
    if not problems:
        return 0
    print("not ready:")
    for number, problem in enumerate(problems, 1):
        print(f"  {number}) {problem}")
    return 2


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
