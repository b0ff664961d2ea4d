"""Short decodes on the wall clock with everything that was asked of the cache kept: a probe's
eyes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np

from specfit.assembly import build_decoder, build_selector
from specfit.build import build_machine
from specfit.config import GpuConfig, RunConfig, SelectorConfig
from specfit.core import Request, RequestError
from specfit.hardware import estimate
from specfit.hardware.clock import ModelledClock, WallClock
from specfit.hardware.estimate import fit_forward, per_unit_ns, prefill_token_ns
from specfit.hardware.link import Bandwidth, gbps_at, latency_us, measure_link
from specfit.hardware.profile import Billing, Profile
from specfit.hardware.rebill import Comparison, Observed, compare
from specfit.offload.transfer import CpuCopyEngine
from specfit.resolve import Resolved, resolve
from specfit.scripted import is_scripted, make_script
from specfit.selection.cost import CostModel

SYSTEMS = ("ar", "ar_cache", "eagle3", "eagle3_cache", "specfit")
WARM_UP_TOKENS = 6
TIMER = time.process_time_ns
"""On a CPU: its own seconds, equal to the wall's on an idle machine with one thread, and not
disturbed by what else a busy one does."""

Group = dict[str, list[Observed]]


def settled(config: RunConfig, selector: str, slots: int | str) -> Resolved:
    """The config as this machine, on the wall clock, with another selector."""
    plain = GpuConfig(
        name="local",
        clock="wall",
        billed="self",
        kernel=config.gpu.kernel,
        link_gbps_cap=config.gpu.link_gbps_cap,
        copies_in_flight=config.gpu.copies_in_flight,
    )
    chosen = SelectorConfig(
        selector, k=0 if selector.startswith("ar") else 7, adaptive_depth=selector == "specfit"
    )
    return resolve(replace(config, gpu=plain, selector=chosen, cache_slots=slots))


def watch(facts: Resolved, which: slice, cost: CostModel | None) -> list[Observed]:
    """Decode these requests, after a few untimed tokens of the first."""
    requests = _requests(facts)[which]
    machine = build_machine(facts, facts.slots, facts.kind.drafts)
    clock = machine.clock()
    if isinstance(machine.engine.copies, CpuCopyEngine):
        machine.engine.copies.timer = TIMER
        clock = WallClock(_nothing, machine.target.expert_bytes, TIMER)
    decoder = build_decoder(facts, machine, build_selector(facts, cost), clock)
    empty = machine.target.residency()
    for _ in decoder.decode(replace(requests[0], max_new_tokens=WARM_UP_TOKENS)):
        pass
    machine.target.restore(empty)
    return [
        Observed(cycle.record, cycle.traces)
        for request in requests
        for cycle in decoder.decode(request)
    ]


def _nothing() -> None:
    """A CPU has done what it was asked when the call returns."""


def _requests(facts: Resolved) -> list[Request]:
    found = []
    for index in range(len(facts.workload.ids)):
        try:
            found.append(facts.workload.request(index))
        except RequestError:
            continue
    return found


def prepare(config: RunConfig, run: Callable[[Resolved], None], say: Callable[[str], None]) -> None:
    """An oracle needs its script before anything is measured."""
    facts = settled(config, "eagle3_cache", "all")
    if is_scripted(facts):
        make_script(facts, run, say)


# -- a profile -----------------------------------------------------------------------------------


def observe(config: RunConfig, which: slice) -> Group:
    """What a profile is fitted to: resident, streamed, and with a selector that searches."""
    flat = CostModel(np.ones(8), 1.0)
    trials: dict[str, tuple[str, int | str, CostModel | None]] = {
        "resident_ar": ("ar_cache", "all", None),
        "resident_tree": ("eagle3_cache", "all", None),
        "streamed_ar": ("ar", 0, None),
        "streamed_tree": ("eagle3", 0, None),
        "searched": ("specfit", "all", flat),
    }
    return {
        name: watch(settled(config, selector, slots), which, cost)
        for name, (selector, slots, cost) in trials.items()
    }


def constants(
    group: Group, link: list[Bandwidth], block_bytes: int, overlap: bool
) -> dict[str, float]:
    """Values of a profile, in its units."""
    every = [cycle for cycles in group.values() for cycle in cycles]
    cost = fit_forward(every, overlap)
    drafted = [*group["resident_tree"], *group["streamed_tree"], *group["searched"]]
    gbps, latency = gbps_at(link, block_bytes), latency_us(link)
    if not overlap:  # the engine's own copies: what the link does not explain is latency
        latency = (cost.copy_ns - block_bytes / gbps) / 1e3
        if latency < 0:
            gbps, latency = block_bytes / max(cost.copy_ns, 1.0), 0.0
    return {
        "link_gbps": gbps,
        "copy_latency_us": latency,
        "fixed_ms": cost.fixed_ns / 1e6,
        "node_ms": cost.node_ns / 1e6,
        "expert_us": cost.expert_ns / 1e3,
        "prefill_token_ms": prefill_token_ns(every, cost) / 1e6,
        "draft_level_ms": per_unit_ns(
            drafted, lambda c: c.record.draft_ns, lambda c: c.record.drafted_levels
        )
        / 1e6,
        "selection_ms": per_unit_ns(group["searched"], lambda c: c.record.select_ns, _one) / 1e6,
        "commit_ms": per_unit_ns(every, lambda c: c.record.commit_ns, _one) / 1e6,
    }


def _one(_: Observed) -> int:
    return 1


def fit_profile(
    config: RunConfig, which: slice
) -> tuple[Profile, dict[str, tuple[float, float]], list[Bandwidth]]:
    """(profile, least and greatest value with one request left out, the link by size)."""
    facts = settled(config, "ar_cache", "all")
    overlap = facts.device.type == "cuda"
    link = measure_link(facts.device)
    block = facts.billing.own_expert_bytes
    group = observe(config, which)

    def values(cycles: Group) -> dict[str, float]:
        return constants(cycles, link, block, overlap)

    found = values(group)
    spread = estimate.spread(group, values)  # type: ignore[arg-type]
    slug = "-".join("".join(c if c.isalnum() else " " for c in facts.device_name.lower()).split())
    profile = Profile(
        name=f"probe-{slug}",
        gpu_names=(facts.device_name,),
        overlap=overlap,
        copies_in_flight=facts.profile.copies_in_flight,
        notes=dict.fromkeys(found, "measured"),
        **found,  # type: ignore[arg-type]
    )
    return profile, spread, link


# -- the modelled clock against this machine -----------------------------------------------------


def validate(
    config: RunConfig, profile: Profile, slots: int | str, which: slice
) -> list[Comparison]:
    """Every system decodes on the wall clock; the same cycles are billed by the profile."""
    compared = []
    for selector in SYSTEMS:
        facts = settled(config, selector, slots)
        cycles = watch(facts, which, cost_of(profile, facts) if facts.kind.needs_cost else None)
        own = Billing.own(facts.billing.own_layers, facts.billing.own_expert_bytes)
        clock = ModelledClock(profile, own)
        compared.append(compare(selector, cycles, clock, facts.kind.reads_routes))
    return compared


def cost_of(profile: Profile, facts: Resolved) -> CostModel:
    """What the profile says a cycle costs; which tree it picks matters here less than that the same
    trees are measured and billed."""
    assert profile.link_gbps is not None and profile.fixed_ms is not None
    levels = facts.config.drafter.max_depth * profile.draft_level_ms
    base_ms = profile.fixed_ms + levels + profile.selection_ms
    sizes = np.arange(facts.config.selector.k + 1)
    copy_ns = facts.billing.own_expert_bytes / profile.link_gbps + profile.copy_latency_us * 1e3
    intercepts = np.asarray((base_ms + profile.node_ms * sizes) * 1e6, dtype=np.float64)
    return CostModel(intercepts, profile.expert_us * 1e3 + copy_ns)


def document(
    profile: Profile,
    spread: dict[str, tuple[float, float]],
    link: list[Bandwidth],
    compared: list[Comparison],
) -> dict[str, object]:
    """What a probe's file holds; `profile` is what `gpu.profile` reads."""
    values = {key: value for key, value in asdict(profile).items() if key != "memory_bytes"}
    values["gpu_names"] = list(profile.gpu_names)
    return {
        "profile": values,
        "spread": {key: list(pair) for key, pair in spread.items()},
        "link": [asdict(row) for row in link],
        "modelled_against_measured": [
            asdict(c) | {"error": c.error, "decode_error": c.decode_error} for c in compared
        ],
    }
