"""From a config to what moves: a machine's cache, its policy, its prefetch area, its host lane."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from specfit.base.interfaces import Clock, Target
from specfit.base.plugins import named
from specfit.base.types import SpecfitError
from specfit.decoding.decoder import Decoder
from specfit.decoding.spec import Facts
from specfit.experts.cache import ExpertCache
from specfit.experts.eviction import POLICIES, Rank
from specfit.experts.host_experts import HostLane
from specfit.experts.policy_cache import Movement, MovingCache
from specfit.experts.prefetch import Prefetcher
from specfit.hardware.idle_link import IdleLink
from specfit.selection.selectors import NoDraft

CLAIRVOYANT = "belady"
PINNED = "static"
QUESTIONS, COMMITTED = 3, 48
"""Calibration questions, and tokens of each answer, that say which experts are used most: as many
as calibration probes."""


def is_plain(facts: Facts) -> bool:
    """Nothing but the paper's backend is asked for (app. B)."""
    config = facts.config
    return (config.policy, config.bypass, config.prefetch, config.miss) == (
        "lru",
        False,
        "off",
        "transfer",
    )


def make_cache(facts: Facts, slots: int) -> ExpertCache:
    """Raises SpecfitError for a policy that is not there, or a profile that lacks a number."""
    shape, blocks = facts.geometry, facts.profile.copies_in_flight + 1
    if is_plain(facts):
        return ExpertCache(shape.layers, shape.experts, slots, staging_blocks=blocks)
    config = facts.config
    movement = Movement(
        policy_named(config.policy),
        config.bypass or config.policy == PINNED,
        _prefetcher(facts),
        _host(facts),
    )
    return MovingCache(shape.layers, shape.experts, slots, blocks, movement)


def policy_named(name: str) -> Rank:
    """Ours, or package.module:name of somebody else's."""
    what = "a function that ranks residents (Rank in specfit/experts/eviction.py)"
    return named("policy", name, POLICIES, callable, what)


def prefetch_blocks(facts: Facts) -> int:
    """Blocks of the area beside the slots; 0 without prefetching."""
    if facts.config.prefetch == "off":
        return 0
    return facts.config.prefetch_blocks or facts.geometry.layers


def _prefetcher(facts: Facts) -> Prefetcher | None:
    config = facts.config
    if config.prefetch == "off":
        return None
    shape = facts.geometry
    link = IdleLink.of(facts.profile, facts.billing, config.routes.level_ms)
    return Prefetcher(config.prefetch, prefetch_blocks(facts), shape.layers, shape.experts, link)


def _host(facts: Facts) -> HostLane | None:
    mode, profile = facts.config.miss, facts.profile
    if mode == "transfer":
        return None
    if not profile.host_expert_us or profile.link_gbps is None:
        raise SpecfitError(
            f"miss={mode} runs missed experts on the host, and gpu={profile.name} does not say how "
            "long one takes there; set gpu.host_expert_us, or use miss=transfer"
        )
    if facts.clock == "wall":
        raise SpecfitError(
            f"miss={mode} is modelled so far and runs nothing on the host; use gpu.clock=modelled "
            "or miss=transfer"
        )
    copy = round(facts.billing.expert_bytes / profile.link_gbps)
    return HostLane(mode, round(profile.host_expert_us * 1e3), copy)


def pin_most_used(facts: Facts, target: Target, cache: ExpertCache, clock: Clock) -> None:
    """policy=static: decode the first calibration questions token by token, untimed and from an
    empty cache, and tell the cache how many of their forwards used each expert."""
    if facts.config.policy != PINNED:
        return
    assert isinstance(cache, MovingCache), "a policy that pins is not the default one"
    empty = target.residency()
    decoder = Decoder(target, None, None, NoDraft("ar_cache"), clock)
    for request in islice(facts.questions.requests(), QUESTIONS):
        for _ in decoder.decode(replace(request, max_new_tokens=COMMITTED)):
            pass
    uses = cache.uses()
    target.restore(empty)
    cache.count(uses)
