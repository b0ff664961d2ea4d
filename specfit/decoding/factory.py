"""RunSpec and a machine to a decoder for one selector; the machine may be live or recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specfit.base.interfaces import Clock, Drafter, RouteSource, Selector, Target
from specfit.base.plugins import named
from specfit.base.types import SpecfitError
from specfit.decoding.decoder import Decoder
from specfit.decoding.replay.playback import Playback
from specfit.decoding.replay.routes import KnownRoutes, check_same_pair
from specfit.decoding.spec import RunSpec, Runtime
from specfit.hardware.profile import Billing, Profile
from specfit.models.drafter.temperature import TemperedDrafter
from specfit.models.routes.last_token import LastTokenRoutes
from specfit.models.routes.noisy import NoisyRoutes
from specfit.models.routes.token_table import TokenTableRoutes, load_table
from specfit.selection.baselines.moe_speq import LinkCosts
from specfit.selection.cost import CostModel, LevelCost
from specfit.selection.mean_by_size import BySize
from specfit.selection.registry import SelectorArgs
from specfit.selection.selectors import SpecFit


def build_selector(spec: RunSpec, cost: CostModel | None, sizes: BySize | None = None) -> Selector:
    requested, pool = spec.config.selector, spec.config.drafter.pool_nodes
    if spec.kind.unlimited and requested.k < pool:
        raise SpecfitError(
            f"selector={requested.name} has no size limit, so selector.k is the pool's size: it is "
            f"{requested.k}, and a pool has up to {pool} nodes; set selector.k={pool}"
        )
    args = SelectorArgs(
        requested.name,
        requested.k,
        requested.adaptive_depth,
        spec.geometry.experts,
        cost,
        spec.config.objective,
        spec.config.lambda_tokens_per_s,
        sizes,
        link_costs(spec.profile, spec.billing),
        spec.config.cost,
        level_cost(spec),
    )
    return spec.kind.make(args)


def level_cost(spec: RunSpec) -> LevelCost | None:
    ms = spec.config.level_cost_ms
    return LevelCost(ms * 1e6, spec.config.drafter.max_depth) if ms else None


def link_costs(profile: Profile, billing: Billing) -> LinkCosts | None:
    """What the modelled clock bills a cycle, per own expert; None where the profile lacks it."""
    if profile.link_gbps is None or profile.fixed_ms is None:
        return None
    scale = billing.layer_scale
    miss_ns = (profile.copy_latency_us + profile.miss_us) * 1e3  # beside its bytes
    every_cycle_ms = profile.tree_ms + profile.extension_ms  # of a rule that always drafts
    return LinkCosts(
        fixed_ns=(profile.fixed_ms + profile.commit_ms + every_cycle_ms) * 1e6,
        draft_level_ns=profile.draft_level_ms * 1e6,
        node_ns=profile.node_ms * 1e6,
        expert_ns=scale * profile.expert_us * 1e3,
        copy_ns=scale * (billing.expert_bytes / profile.link_gbps + miss_ns),
    )


def build_decoder(spec: RunSpec, runtime: Runtime, selector: Selector, clock: Clock) -> Decoder:
    drafter = runtime.drafter() if selector.drafts else None
    routes, prefetch_hooks = None, runtime.prefetch_hooks()
    if selector.reads_routes or prefetch_hooks is not None:
        routes = routes_named(spec.config.routes.name)(spec, runtime, drafter)
    show_residency(selector, runtime.target)
    temperature = spec.config.drafter.temperature
    if drafter is not None and temperature != 1.0:  # routes go on reading the head itself
        drafter = TemperedDrafter(drafter, temperature)
    return Decoder(runtime.target, drafter, routes, selector, clock, prefetch_hooks)


def show_residency(selector: Selector, target: Target) -> None:
    """To a rule whose cost tells absent experts from resident ones."""
    if isinstance(selector, SpecFit):
        selector.watch(lambda: target.resident())


RouteMaker = Callable[[RunSpec, Runtime, Drafter | None], RouteSource]


def routes_named(name: str) -> RouteMaker:
    """Ours, or package.module:name of another package."""
    what = "a function (spec, runtime, drafter) -> RouteSource"
    return named("routes.name", name, ROUTES, callable, what)


def _atlas(spec: RunSpec, runtime: Runtime, drafter: Drafter | None) -> RouteSource:
    return runtime.exact_routes()


def _noisy(spec: RunSpec, runtime: Runtime, drafter: Drafter | None) -> RouteSource:
    accuracy, seed = spec.config.routes.accuracy, spec.config.seed
    return NoisyRoutes(runtime.exact_routes(), spec.geometry.experts, accuracy, seed)


def _recorded(spec: RunSpec, runtime: Runtime, drafter: Drafter | None) -> RouteSource:
    recording = spec.known_recording()
    if recording is None:
        raise SpecfitError("routes=recording needs recording=<id or folder>; see specfit.record")
    dtype = spec.config.model.dtype
    check_same_pair(recording.identity, spec.target_digest, spec.drafter_digest, dtype)
    return KnownRoutes(Playback(recording.requests), runtime.exact_routes())


def _learned(spec: RunSpec, runtime: Runtime, drafter: Drafter | None) -> RouteSource:
    if drafter is None:
        raise SpecfitError(
            f"routes=learned reads a drafter's features, and selector={spec.config.selector.name} "
            "drafts nothing; use routes=token_table or routes=last_token"
        )
    return runtime.learned_routes(_file(spec), drafter)


def _token_table(spec: RunSpec, runtime: Runtime, drafter: Drafter | None) -> RouteSource:
    return TokenTableRoutes(load_table(_file(spec), spec.target_digest))


def _last_token(spec: RunSpec, runtime: Runtime, drafter: Drafter | None) -> RouteSource:
    return LastTokenRoutes()


def _file(spec: RunSpec) -> Path:
    if spec.routes_file is None:
        raise SpecfitError(
            f"routes={spec.config.routes.name} reads a file; set routes.path to its folder"
        )
    return spec.routes_file


ROUTES: dict[str, RouteMaker] = {
    "atlas": _atlas,
    "noisy": _noisy,
    "recording": _recorded,
    "learned": _learned,
    "token_table": _token_table,
    "last_token": _last_token,
}
"""Name in a config -> what makes the source of one decoder, from its machine and its drafter."""
