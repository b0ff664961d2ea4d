"""`python -m specfit.advise`: what to run on a machine, and whether speculation pays there.

Records a few requests of the workload once (of an embedded one: development text), replays every
setting over them under the profile, and prints one screen. With gpu=local the profile is this
machine's own probe, made when missing.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specfit.base.config import RunConfig, from_hydra
from specfit.base.types import SpecfitError
from specfit.hardware.memory import GB, refuse_planned
from specfit.hardware.reference_models import BILLED_MODELS
from specfit.workflows.waiting import import_libraries

if TYPE_CHECKING:
    from specfit.decoding.resolve import LiveRunSpec
    from specfit.decoding.spec import RunSpec
    from specfit.storage.recording.files import Recording
    from specfit.workflows.advice import Advice, Sources, Tried

REQUESTS = 12
DECIDED = (
    *("selector", "objective", "cost", "level_cost_ms", "routes", "policy", "bypass", "prefetch"),
    *("prefetch_blocks", "miss", "calibration.at", "recording"),
)
"""Keys that the advice decides."""
OURS = (*DECIDED, "cache_slots", "limit", "max_new_tokens", "force")
"""With those that only shorten it: not part of the command it gives."""
PLAIN_POLICY = "lru"
UNCLEAR = 0.02  # a gain below this is too small to change a setting for


def advise(composed: Any) -> int:
    from hydra.core.hydra_config import HydraConfig

    config = from_hydra(composed)
    said = [item.lstrip("+~") for item in HydraConfig.get().overrides.task]
    refuse_decided(said)
    refuse_too_little_memory(config)
    import_libraries()
    from specfit.workflows.advice import Sources, advise_on, settings, sources_of, try_all
    from specfit.workflows.progress import Countdown, headline, say

    config = with_profile(config, say)
    folder = config.routes.path  # of a predictor of one's own
    config = replace(config, routes=replace(config.routes, path=""))
    traced = config.model.source == "traced"
    if traced:
        spec, recording = half_real(config, say)
        sources = Sources("last_token", "last_token", folder)
    else:
        live = spec = facts_of(config, [item.partition("=")[0] for item in said])
        sources = sources_of(live, folder)
    say(headline(spec))
    for note in spec.notes:
        say(note)
    if not traced:
        recording = recorded(live, sources, say)
    wanted = settings(spec.slots, sources, spec.profile.overlap)
    with Countdown() as countdown:
        countdown.starts(len(wanted), 0)
        tried = try_all(spec.config, recording, wanted, countdown.advances)
    advice = advise_on(tried)
    typed = [item for item in said if key_group(item) not in OURS]
    if traced:  # there is nothing to run
        typed = [
            f"recording={recording.recording_id}",
            *(k for k in typed if key_group(k) == "gpu"),
        ]
    for line in screen(advice, spec, len(recording.requests), typed):
        say(line)
    return 0


def refuse_decided(said: Sequence[str]) -> None:
    """`routes.path` only says where a predictor of one's own lies."""
    for item in said:
        if key_group(item) in DECIDED and not item.startswith("routes.path="):
            raise SpecfitError(f"{item}: advise tries every setting and decides that; leave it out")


def refuse_too_little_memory(config: RunConfig) -> None:
    """Of a machine that is planned with. Raises SpecfitError where the experts of the model that
    times stand for have no room in its host memory."""
    planned_gb, billed = config.gpu.host_memory_gb, BILLED_MODELS.get(config.gpu.billed)
    if planned_gb is not None and billed is not None:
        refuse_planned(billed.store_bytes, planned_gb)


def key_group(override: str) -> str:
    """`routes.level_ms=1` belongs to routes; `calibration.at=own` stands for itself."""
    key = override.partition("=")[0]
    return key if key in OURS else key.partition(".")[0]


def with_profile(config: RunConfig, say: Any) -> RunConfig:
    """On the modelled clock: by the profile that is named, else by this machine's own probe."""
    if config.gpu.link_gbps is not None and config.gpu.fixed_ms is not None:
        return with_clock(config)
    from specfit.base.config import apply_profile
    from specfit.decoding.resolve import find_device
    from specfit.report.clock_check import busy_lines
    from specfit.workflows.probing.probe import probe_to_file
    from specfit.workflows.run_time import probed_file

    path = probed_file(Path(config.results_dir), find_device(config.device)[1])
    if path is None:
        say("no probe of this machine yet: probing it first")
        path = probe_to_file(config, say)
    else:
        for line in busy_lines(path):
            say(line)
    gpu = type(config.gpu)(name="local", profile=str(path))
    apply_profile(gpu)
    return with_clock(replace(config, gpu=gpu))


def with_clock(config: RunConfig) -> RunConfig:
    config = replace(config, gpu=replace(config.gpu, clock="modelled"))
    config.freeze()
    return config


def facts_of(config: RunConfig, said: Sequence[str]) -> LiveRunSpec:
    """A few requests, at the slots that were asked for, else at those that fit, where known."""
    from specfit.decoding.resolve import find_device, resolve

    if config.limit is None:
        config = replace(config, limit=REQUESTS)
    knows = config.gpu.memory_bytes is not None or find_device(config.device)[0].type == "cuda"
    if "cache_slots" not in said and knows:
        config = replace(config, cache_slots="fit")
    split = "development" if config.dataset.source == "embedded" else "evaluation"
    spec = resolve(config, split)
    return replace(spec, config=replace(config, cache_slots=spec.slots))


def half_real(config: RunConfig, say: Any) -> tuple[RunSpec, Recording]:
    """A few requests of the donor under the trace's routes, and what a replay of them is."""
    from specfit.decoding.replay.spec import resolve_replay
    from specfit.storage.recording.files import write_recording
    from specfit.workflows.recording.tracing import donor_recording, traced

    split = "development" if config.dataset.source == "embedded" else "evaluation"
    few = replace(
        config, limit=config.limit or REQUESTS, record=replace(config.record, split=split)
    )
    recording = traced(few, donor_recording(few))
    folder = Path(config.results_dir) / "recordings" / recording.recording_id
    write_recording(folder, recording)
    say(f"recording {recording.recording_id}: {folder}")
    spec = resolve_replay(few, recording)
    return replace(spec, config=replace(spec.config, cache_slots=spec.slots)), recording


def recorded(spec: LiveRunSpec, sources: Sources, say: Any) -> Recording:
    """The requests' pools, and what the predictor says of them; made when missing."""
    from specfit.storage.recording.files import read_once
    from specfit.workflows.recording.recorder import find_or_record

    recording = read_once(find_or_record(spec, say))
    predicted(spec, sources, recording, say)
    return recording


def predicted(spec: LiveRunSpec, sources: Sources, recording: Recording, say: Any) -> None:
    """Adds the predictions that the settings read; any recording of this pair, made when missing.

    `spec` names the pair; its workload may be another than the recording's.
    """
    from specfit.workflows.advice import applied
    from specfit.workflows.recording.predicting import add_predictions

    if sources.drafting == "learned":
        config = applied(spec.config, sources.words("learned"))
        add_predictions(replace(spec, config=config), recording, say)


# -- the screen ----------------------------------------------------------------------------------


def screen(advice: Advice, spec: RunSpec, requests: int, typed: Sequence[str]) -> list[str]:
    from specfit.report.explained import sentence
    from specfit.workflows.advice import explained

    best, plain = advice.best, advice.plain
    place = f"{spec.config.dataset.name}, {spec.config.model.name}"
    basis = f"modelled by profile {spec.profile.name}, n = {requests} requests"
    lines = ["", f"{place}, room for {spec.slots} experts of each layer ({basis})", ""]
    lines += [*rests_on(spec), ""]
    lines += table(advice, spec.billing.layer_scale)
    door = "replay" if spec.config.model.source == "traced" else "run"
    command = f"python -m specfit.{door} {shlex.join([*typed, *best.setting.overrides])}"
    lines += ["", "best:", f"  {command}"]
    if any(item.startswith("prefetch=") for item in best.setting.overrides):
        lines.append("  (one slot of each layer is the area that early copies come into)")
    other = advice.drafting if best is plain else plain
    pair = explained(named(best), named(other))
    lines += ["", f"why: {sentence(pair)}"]
    return lines + warnings(advice) + cliff(spec)


def named(one: Tried) -> Tried:
    """With how its experts move in its name: there are several AR + cache."""
    return replace(one, setting=replace(one.setting, name=f"{one.setting.name} ({moves(one)})"))


def rests_on(spec: RunSpec) -> list[str]:
    """Whose texts, acceptance and routing a forecast has, and whose times."""
    config = spec.config
    target, head, billed = config.model.name, config.drafter.name, spec.billing.name
    whose = f"model {target}, head {head}"
    if config.model.path.startswith("package:") and config.model.source == "checkpoint":
        whose = "the packaged 14 M model and its head"
    lines = [f"texts, acceptance and routing: {whose}, on {config.dataset.name}"]
    if billed not in ("self", target):
        lines.append(
            f"times alone stand for {billed}, by profile {spec.profile.name}; a real {billed} "
            "accepts and routes otherwise, and no GPU has confirmed them"
        )
    planned = config.gpu.host_memory_gb
    billed_model = BILLED_MODELS.get(config.gpu.billed)
    if planned is not None and billed_model is not None:
        needed = billed_model.store_bytes / GB
        lines.append(f"host memory: the {needed:.1f} GB of experts fit in {planned:g} GB")
    return lines


def cliff(spec: RunSpec) -> list[str]:
    """Where the device has room for less than one token's experts."""
    from specfit.experts.pool_cache import slots_cliff

    shape = spec.geometry
    sentence = slots_cliff(spec.slots, shape.layers, shape.top_k, spec.billing.own_expert_bytes)
    return [] if sentence is None else [f"warning: {sentence}"]


def table(advice: Advice, copies_each: int = 1) -> list[str]:
    """Copies are counted as billed: one of ours stands for `copies_each`."""
    from specfit.report.explained import aligned
    from specfit.report.run_summary import number
    from specfit.workflows.advice import speed_over

    base = next(one for one in advice.tried if one.setting.name == "AR + cache")
    head = ("system", "how experts move", "tokens/s", f"over {base.setting.name}, {moves(base)}")
    rows = [(*head, "committed/cycle", "experts/token")]
    ordered = sorted(advice.tried, key=lambda one: -one.found.tokens_per_second)
    for one in ordered:
        found, ratio = one.found, speed_over(one, base).value
        rows.append(
            (
                one.setting.name,
                moves(one) if one.setting.can_run else bound_note(one, advice),
                number(found.tokens_per_second),
                "-" if ratio is None else f"{ratio:.2f}x",
                number(found.total("committed_tokens") / found.total("cycles")),
                number(
                    copies_each
                    * found.total("transferred_experts")
                    / found.total("committed_tokens")
                ),
            )
        )
    return ["  " + line for line in aligned(rows, left=(0, 1))]


def bound_note(one: Tried, advice: Advice) -> str:
    """Exact routes bound what SpecFit can reach with the same policy and no early copies; other
    policies, and copies that come early, may be faster."""
    same = [
        other
        for other in advice.tried
        if other.setting.name == "SpecFit"
        and not any(item.startswith(("policy=", "prefetch=")) for item in other.setting.overrides)
    ]
    speed = one.found.tokens_per_second
    if all(other.found.tokens_per_second <= speed for other in same):
        return "cannot be run: a bound on SpecFit with lru and no early copies"
    return "cannot be run: routes that no predictor has"


def moves(one: Tried) -> str:
    """Cache policy, and what is copied early by which routes: it tells rows of one system apart."""
    chosen = dict(item.split("=", 1) for item in one.setting.overrides)
    parts = [chosen.get("policy", PLAIN_POLICY)]
    early = chosen.get("prefetch", "off")
    parts.append("on demand" if early == "off" else f"early by {early}")
    parts += [f"routes {chosen['routes']}"] if "routes" in chosen else []
    return ", ".join(parts)


def warnings(advice: Advice) -> list[str]:
    gain = advice.gain
    assert gain.value is not None, "both decoded"
    name, best = advice.drafting.setting.name, advice.best
    if not best.setting.drafts:
        return [
            f"warning: no speculation is faster here; the best that drafts, {name}, runs at "
            f"{gain.value:.2f} times the speed of plain decoding"
        ]
    unclear = gain.low is None or gain.low <= 1 or gain.value < 1 + UNCLEAR
    if not unclear:
        return []
    return [
        f"warning: speculation hardly pays here ({gain.value:.2f} times plain decoding, not clear "
        "of 1 on these requests); plain decoding is the simpler choice"
    ]
