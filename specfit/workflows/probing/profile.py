"""A machine as a profile, and the modelled clock with that profile against the machine itself.

The first half of the requests makes the profile, the second is billed by it. Both halves take turns
on the machine: there and back, so that what drifts evenly drifts for both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from specfit.base.config import RunConfig
from specfit.base.types import SpecfitError
from specfit.decoding.resolve import LiveRunSpec, pack_folder
from specfit.experts.disk_bandwidth import disk_parts, measure_disk
from specfit.hardware import fit_profile
from specfit.hardware.bandwidth import Bandwidth, gbps_at, latency_us, measure_link
from specfit.hardware.clock import ModelledClock
from specfit.hardware.clock_error import Comparison, Observed, compare
from specfit.hardware.fit_profile import fit_draft, fit_forward, mean_ns, prefill_token_ns
from specfit.hardware.profile import Billing, Profile
from specfit.selection.cost import CostModel
from specfit.workflows.probing.trials import Bench, Group, Trial, roomy, settled

SYSTEMS = ("ar", "ar_cache", "eagle3", "eagle3_cache", "specfit")
SMALL_TREE = 2  # nodes of a trial that tells a tree's fixed part from its nodes'


@dataclass(frozen=True)
class Probed:
    profile: Profile
    spread: Mapping[str, tuple[float, float]]  # least, greatest value with one request left out
    link: Sequence[Bandwidth]
    compared: Sequence[Comparison]
    load_per_core: float | None  # of the machine meanwhile, this process included
    core_share: float | None = None  # CPU seconds over seconds of the decodes; None on a GPU

    def document(self) -> dict[str, object]:
        """What a probe's file holds; `profile` is what `gpu.profile` reads."""
        values = {k: value for k, value in asdict(self.profile).items() if k != "memory_bytes"}
        values["gpu_names"] = list(self.profile.gpu_names)
        return {
            "profile": values,
            "profile_digest": self.profile.digest(),
            "made": time.strftime("%Y-%m-%d", time.gmtime()),
            "load_per_core": self.load_per_core,
            "core_share": self.core_share,
            "spread": {name: list(pair) for name, pair in self.spread.items()},
            "link": [asdict(row) for row in self.link],
            "modelled_against_measured": [
                asdict(c) | {"error": c.error, "decode_error": c.decode_error}
                for c in self.compared
            ],
        }


def probe_machine(config: RunConfig, slots: int | str) -> Probed:
    """`slots` are those of the cached systems that the modelled clock is held against."""
    spec = settled(config, "ar_cache", roomy(config))
    if config.offload.ram_slots or (on_disk(spec) and spec.device.type == "cuda"):
        raise SpecfitError(
            "a probe fits one link, and experts that come from disk through RAM have two; leave "
            "offload.ram_slots out, and probe the disk with device=cpu"
        )
    packs = pack_folder(config, spec.checkpoint.folder)
    link = measure_link(spec.device) if packs is None else measure_disk(packs)
    fitted, checked = Bench(fit_trials(config)), Bench(check_trials(config, slots))
    half = checked.requests // 2
    if half == 0:
        raise SpecfitError("a probe needs two requests that can be asked; raise limit")
    for index in range(half):
        fitted.there(index)
        weighed = checked.trials["specfit"].spec
        rough = cost_of(profile_from(fitted.seen, spec, link), weighed)
        checked.trials["specfit"] = Trial(weighed, rough)
        checked.there(half + index)
        checked.back(half + index)
        fitted.back(index)
    profile = profile_from(fitted.seen, spec, link)
    spread = fit_profile.spread(fitted.seen, lambda seen: constants(seen, spec, link))
    own = Billing.own(spec.billing.own_layers, spec.billing.own_expert_bytes)
    clock = ModelledClock(profile, own)
    compared = [
        compare(name, seen, clock, checked.trials[name].spec.kind.reads_routes)
        for name, seen in checked.seen.items()
    ]
    share = None if spec.device.type == "cuda" else own_share([fitted, checked])
    return Probed(profile, spread, link, compared, load_per_core(), share)


def load_per_core() -> float | None:
    """Processes that wanted a core, per core, in the last minute or the last five, whichever were
    more; None if not counted."""
    if not hasattr(os, "getloadavg"):
        return None
    return max(os.getloadavg()[:2]) / (os.cpu_count() or 1)


def own_share(benches: Sequence[Bench]) -> float:
    """CPU time over elapsed time of every decode, at most 1: less where others had the core."""
    elapsed_ns = sum(bench.elapsed_ns for bench in benches)
    return min(1.0, sum(bench.cpu_ns for bench in benches) / elapsed_ns)


# -- what is tried -------------------------------------------------------------------------------


def fit_trials(config: RunConfig) -> dict[str, Trial]:
    """A profile is fitted to parts in the state in which runs have them: resident and streamed
    experts, no node, few and many, with a selector that searches; on a CPU also copies into slots,
    whose memory is colder than a staging block's."""
    most = roomy(config)
    trials = {
        "resident_ar": Trial(settled(config, "ar_cache", most)),
        "resident_few": Trial(settled(config, "eagle3_cache", most, SMALL_TREE)),
        "resident_tree": Trial(settled(config, "eagle3_cache", most)),
        "streamed_ar": Trial(settled(config, "ar", 0)),
        "streamed_tree": Trial(settled(config, "eagle3", 0)),
        "searched": Trial(settled(config, "specfit", most), CostModel(np.ones(8), 1.0)),
    }
    spec = trials["resident_ar"].spec
    if spec.device.type != "cuda":
        few = spec.geometry.experts // 4
        trials["evicting_ar"] = Trial(settled(config, "ar_cache", few))
        trials["evicting_tree"] = Trial(settled(config, "eagle3_cache", few))
    return trials


def check_trials(config: RunConfig, slots: int | str) -> dict[str, Trial]:
    return {name: Trial(settled(config, name, slots)) for name in SYSTEMS}


def overlaps(spec: LiveRunSpec) -> bool:
    """Whether copies travel while experts compute."""
    return spec.device.type == "cuda" or on_disk(spec)


def on_disk(spec: LiveRunSpec) -> bool:
    return spec.config.offload.tier == "disk"


# -- a profile -----------------------------------------------------------------------------------


def profile_from(seen: Group, spec: LiveRunSpec, link: Sequence[Bandwidth]) -> Profile:
    slug = "-".join("".join(c if c.isalnum() else " " for c in spec.device_name.lower()).split())
    result = constants(seen, spec, link)
    tier, cap = "-disk" if on_disk(spec) else "", spec.config.gpu.link_gbps_cap
    capped = "" if cap is None else f"-{cap:g}gbps"
    return Profile(
        name=f"probe-{slug}{tier}{capped}",
        gpu_names=(spec.device_name,),
        overlap=overlaps(spec),
        copies_in_flight=spec.profile.copies_in_flight,
        notes=dict.fromkeys(result, "measured"),
        **result,  # type: ignore[arg-type]
    )


def constants(
    seen: Mapping[str, Sequence[Observed]], spec: LiveRunSpec, link: Sequence[Bandwidth]
) -> dict[str, float]:
    """Values of a profile, in its units."""
    overlap, block_bytes = overlaps(spec), spec.billing.own_expert_bytes
    every = [cycle for cycles in seen.values() for cycle in cycles]
    cost, draft = fit_forward(every, overlap), fit_draft(every)
    if on_disk(spec):
        gbps, latency = disk_parts(link, block_bytes, spec.profile.copies_in_flight)
    else:
        gbps, latency = gbps_at(link, block_bytes), latency_us(link)
    if not overlap:  # the engine's own copies: what the link does not explain is latency
        latency = (cost.miss_ns - block_bytes / gbps) / 1e3
        if latency < 0:
            gbps, latency = block_bytes / max(cost.miss_ns, 1.0), 0.0
    return {
        "link_gbps": gbps,
        "copy_latency_us": latency,
        "fixed_ms": cost.fixed_ns / 1e6,
        "tree_ms": cost.tree_ns / 1e6,
        "node_ms": cost.node_ns / 1e6,
        "expert_us": cost.expert_ns / 1e3,
        "miss_us": cost.miss_ns / 1e3 if overlap else 0.0,
        "prefill_token_ms": prefill_token_ns(every, cost, overlap) / 1e6,
        "extension_ms": draft.extension_ns / 1e6,
        "draft_level_ms": draft.level_ns / 1e6,
        "selection_ms": mean_ns(seen["searched"], lambda c: c.record.select_ns) / 1e6,
        "commit_ms": mean_ns(every, lambda c: c.record.commit_ns) / 1e6,
    }


def cost_of(profile: Profile, spec: LiveRunSpec) -> CostModel:
    """What the profile says a cycle costs; which tree it picks matters here less than that the same
    trees are measured and billed."""
    assert profile.link_gbps is not None and profile.fixed_ms is not None
    levels = spec.config.drafter.max_depth * profile.draft_level_ms + profile.extension_ms
    base_ms = profile.fixed_ms + levels + profile.selection_ms
    sizes = np.arange(spec.config.selector.k + 1)
    copy_ns = spec.billing.own_expert_bytes / profile.link_gbps + profile.copy_latency_us * 1e3
    nodes_ms = profile.node_ms * sizes + np.where(sizes > 0, profile.tree_ms, 0.0)
    intercepts = np.asarray((base_ms + nodes_ms) * 1e6, dtype=np.float64)
    return CostModel(intercepts, (profile.expert_us + profile.miss_us) * 1e3 + copy_ns)
