"""Facts and a machine to a decoder for one selector; the machine may be live or recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specfit.base.interfaces import Clock, Drafter, RouteSource, Selector, Target
from specfit.base.plugins import named
from specfit.base.types import SpecfitError
from specfit.decoding.decoder import Decoder
from specfit.decoding.replay.playback import Playback
from specfit.decoding.replay.routes import KnownRoutes, check_same_pair
from specfit.decoding.spec import Facts, Machine
from specfit.hardware.profile import Billing, Profile
from specfit.models.drafter.temperature import TemperedDrafter
from specfit.models.routes.last_token import LastTokenRoutes
from specfit.models.routes.noisy import NoisyRoutes
from specfit.models.routes.token_table import TokenTableRoutes, load_table
from specfit.selection.baselines.moe_speq import LinkCosts
from specfit.selection.cost import CostModel
from specfit.selection.levels import LevelCost
from specfit.selection.mean_by_size import BySize
from specfit.selection.registry import Choice
from specfit.selection.selectors import SpecFit


def build_selector(facts: Facts, cost: CostModel | None, sizes: BySize | None = None) -> Selector:
    wanted, pool = facts.config.selector, facts.config.drafter.pool_nodes
    if facts.kind.unlimited and wanted.k < pool:
        raise SpecfitError(
            f"selector={wanted.name} has no size limit, so selector.k is the pool's size: it is "
            f"{wanted.k}, and a pool has up to {pool} nodes; set selector.k={pool}"
        )
    choice = Choice(
        wanted.name,
        wanted.k,
        wanted.adaptive_depth,
        facts.geometry.experts,
        cost,
        facts.config.objective,
        facts.config.lambda_tokens_per_s,
        sizes,
        link_costs(facts.profile, facts.billing),
        facts.config.cost,
        level_cost(facts),
    )
    return facts.kind.make(choice)


def level_cost(facts: Facts) -> LevelCost | None:
    ms = facts.config.level_cost_ms
    return LevelCost(ms * 1e6, facts.config.drafter.max_depth) if ms else None


def link_costs(profile: Profile, billing: Billing) -> LinkCosts | None:
    """What the modelled clock bills a cycle, per own expert; None where the profile lacks it."""
    if profile.link_gbps is None or profile.fixed_ms is None:
        return None
    scale, latency_ns = billing.layer_scale, profile.copy_latency_us * 1e3
    every_cycle_ms = profile.tree_ms + profile.extension_ms  # of a rule that always drafts
    return LinkCosts(
        fixed_ns=(profile.fixed_ms + profile.commit_ms + every_cycle_ms) * 1e6,
        draft_level_ns=profile.draft_level_ms * 1e6,
        node_ns=profile.node_ms * 1e6,
        expert_ns=scale * profile.expert_us * 1e3,
        copy_ns=scale * (billing.expert_bytes / profile.link_gbps + latency_ns),
    )


def build_decoder(facts: Facts, machine: Machine, selector: Selector, clock: Clock) -> Decoder:
    drafter = machine.drafter() if selector.drafts else None
    routes, foresight = None, machine.foresight()
    if selector.reads_routes or foresight is not None:
        routes = routes_named(facts.config.routes.name)(facts, machine, drafter)
    show_residency(selector, machine.target)
    temperature = facts.config.drafter.temperature
    if drafter is not None and temperature != 1.0:  # routes go on reading the head itself
        drafter = TemperedDrafter(drafter, temperature)
    return Decoder(machine.target, drafter, routes, selector, clock, foresight)


def show_residency(selector: Selector, target: Target) -> None:
    """To a rule whose cost tells absent experts from resident ones."""
    if isinstance(selector, SpecFit):
        selector.watch(lambda: target.resident())


RouteMaker = Callable[[Facts, Machine, Drafter | None], RouteSource]


def routes_named(name: str) -> RouteMaker:
    """Ours, or package.module:name of somebody else's."""
    what = "a function (facts, machine, drafter) -> RouteSource"
    return named("routes.name", name, ROUTES, callable, what)


def _atlas(facts: Facts, machine: Machine, drafter: Drafter | None) -> RouteSource:
    return machine.exact_routes()


def _noisy(facts: Facts, machine: Machine, drafter: Drafter | None) -> RouteSource:
    accuracy, seed = facts.config.routes.accuracy, facts.config.seed
    return NoisyRoutes(machine.exact_routes(), facts.geometry.experts, accuracy, seed)


def _recorded(facts: Facts, machine: Machine, drafter: Drafter | None) -> RouteSource:
    recording = facts.known_recording()
    if recording is None:
        raise SpecfitError("routes=recording needs recording=<id or folder>; see specfit.record")
    dtype = facts.config.model.dtype
    check_same_pair(recording.identity, facts.target_digest, facts.drafter_digest, dtype)
    return KnownRoutes(Playback(recording.requests), machine.exact_routes())


def _learned(facts: Facts, machine: Machine, drafter: Drafter | None) -> RouteSource:
    if drafter is None:
        raise SpecfitError(
            f"routes=learned reads a drafter's features, and selector={facts.config.selector.name} "
            "drafts nothing; use routes=token_table or routes=last_token"
        )
    return machine.learned_routes(_file(facts), drafter)


def _token_table(facts: Facts, machine: Machine, drafter: Drafter | None) -> RouteSource:
    return TokenTableRoutes(load_table(_file(facts), facts.target_digest))


def _last_token(facts: Facts, machine: Machine, drafter: Drafter | None) -> RouteSource:
    return LastTokenRoutes()


def _file(facts: Facts) -> Path:
    if facts.routes_file is None:
        raise SpecfitError(
            f"routes={facts.config.routes.name} reads a file; set routes.path to its folder"
        )
    return facts.routes_file


ROUTES: dict[str, RouteMaker] = {
    "atlas": _atlas,
    "noisy": _noisy,
    "recording": _recorded,
    "learned": _learned,
    "token_table": _token_table,
    "last_token": _last_token,
}
"""Name in a config -> what makes the source of one decoder, from its machine and its drafter."""
