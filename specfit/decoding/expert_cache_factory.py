"""From a config to what moves: a machine's cache, its policy, its prefetch area, its host lane."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from specfit.base.interfaces import Clock, Target
from specfit.base.plugins import named
from specfit.base.types import SpecfitError
from specfit.decoding.decoder import Decoder
from specfit.decoding.spec import RunSpec
from specfit.experts.cache import ExpertCache
from specfit.experts.eviction import POLICIES, Rank
from specfit.experts.host_experts import HostLane
from specfit.experts.policy_cache import Movement, MovingCache
from specfit.experts.pool_cache import PoolCache
from specfit.experts.prefetch import Prefetcher
from specfit.hardware.idle_link import IdleLink
from specfit.selection.selectors import NoDraft

CLAIRVOYANT = "belady"
POOL = "pool"
REPLAYS_ONLY = {
    CLAIRVOYANT: "policy=belady knows the future, which a replay has and a run has not",
    POOL: "policy=pool shares one memory between all layers, and a run's slots belong to layers",
}
PINNED = "static"
QUESTIONS, COMMITTED = 3, 48
"""Calibration questions, and tokens of each answer, that say which experts are used most: as many
as calibration probes."""


def is_plain(spec: RunSpec) -> bool:
    """Whether this is the paper's backend (app. B)."""
    config = spec.config
    return (config.policy, config.bypass, config.prefetch, config.miss) == (
        "lru",
        False,
        "off",
        "transfer",
    )


def make_cache(spec: RunSpec, slots: int) -> ExpertCache:
    """Raises SpecfitError for a policy that is not there, or a profile that lacks a number."""
    shape, blocks = spec.geometry, spec.profile.copies_in_flight + 1
    if is_plain(spec):
        return ExpertCache(shape.layers, shape.experts, slots, staging_blocks=blocks)
    config = spec.config
    if config.policy == POOL:
        if config.bypass or config.prefetch != "off" or config.miss != "transfer":
            raise SpecfitError(
                "policy=pool is on demand alone so far; leave out prefetch, bypass and miss"
            )
        return PoolCache(shape.layers, shape.experts, slots, staging_blocks=blocks)
    movement = Movement(
        policy_named(config.policy),
        config.bypass or config.policy == PINNED,
        _prefetcher(spec),
        _host(spec),
    )
    return MovingCache(shape.layers, shape.experts, slots, blocks, movement)


def make_ram_cache(spec: RunSpec) -> MovingCache:
    """Of the disk tier: `offload.ram_slots` of each layer under the run's own policy. It never
    evicts what the layer has just asked for, so a slot whose copy travels is no victim."""
    shape, blocks = spec.geometry, spec.profile.copies_in_flight + 1
    movement = Movement(policy_named(spec.config.policy), bypass=True)
    return MovingCache(shape.layers, shape.experts, spec.config.offload.ram_slots, blocks, movement)


def policy_named(name: str) -> Rank:
    """Ours, or package.module:name of another package."""
    what = "a function that ranks residents (Rank in specfit/experts/eviction.py)"
    return named("policy", name, POLICIES, callable, what)


def refuse_replays_only(policy: str) -> None:
    """Raises SpecfitError for a policy that a run of a model cannot have."""
    if policy in REPLAYS_ONLY:
        raise SpecfitError(f"{REPLAYS_ONLY[policy]}; use specfit.replay, or another policy")


def prefetch_blocks(spec: RunSpec) -> int:
    """Blocks of the area beside the slots; 0 without prefetching."""
    if spec.config.prefetch == "off":
        return 0
    return spec.config.prefetch_blocks or spec.geometry.layers


def _prefetcher(spec: RunSpec) -> Prefetcher | None:
    config = spec.config
    if config.prefetch == "off":
        return None
    shape = spec.geometry
    link = IdleLink.of(spec.profile, spec.billing, config.routes.level_ms)
    return Prefetcher(config.prefetch, prefetch_blocks(spec), shape.layers, shape.experts, link)


def _host(spec: RunSpec) -> HostLane | None:
    mode, profile = spec.config.miss, spec.profile
    if mode == "transfer":
        return None
    if not profile.host_expert_us or profile.link_gbps is None:
        raise SpecfitError(
            f"miss={mode} runs missed experts on the host, and gpu={profile.name} does not say how "
            "long one takes there; set gpu.host_expert_us, or use miss=transfer"
        )
    if spec.clock == "wall":
        raise SpecfitError(
            f"miss={mode} is modelled so far and runs nothing on the host; use gpu.clock=modelled "
            "or miss=transfer"
        )
    copy = round(spec.billing.expert_bytes / profile.link_gbps)
    return HostLane(mode, round(profile.host_expert_us * 1e3), copy)


def pin_most_used(
    spec: RunSpec,
    target: Target,
    cache: ExpertCache,
    clock: Clock,
    ram: MovingCache | None = None,
) -> None:
    """policy=static: decode the first calibration questions token by token, untimed and from an
    empty cache, and tell the cache how many of their forwards used each expert; RAM's as well."""
    if spec.config.policy != PINNED:
        return
    assert isinstance(cache, MovingCache), "a policy that pins is not the default one"
    empty = target.residency()
    decoder = Decoder(target, None, None, NoDraft("ar_cache"), clock)
    for request in islice(spec.questions.requests(), QUESTIONS):
        for _ in decoder.decode(replace(request, max_new_tokens=COMMITTED)):
            pass
    uses = cache.uses()
    target.restore(empty)
    cache.count(uses)
    if ram is not None:
        ram.count(uses)
