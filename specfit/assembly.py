"""Facts and a machine to a decoder for one selector; the machine may be live or recorded."""

from __future__ import annotations

from collections.abc import Callable

from specfit.core import SpecfitError
from specfit.decoder import Decoder
from specfit.facts import Facts, Machine
from specfit.protocols import Clock, RouteSource, Selector
from specfit.recorded.playback import Playback
from specfit.recorded.routes import KnownRoutes, check_same_pair
from specfit.routes.noisy import NoisyRoutes
from specfit.selection.cost import CostModel
from specfit.selection.registry import Choice


def build_selector(facts: Facts, cost: CostModel | None) -> Selector:
    wanted = facts.config.selector
    choice = Choice(wanted.name, wanted.k, wanted.adaptive_depth, facts.geometry.experts, cost)
    return facts.kind.make(choice)


def build_decoder(facts: Facts, machine: Machine, selector: Selector, clock: Clock) -> Decoder:
    drafter = machine.drafter() if selector.drafts else None
    routes = build_routes(facts, machine) if selector.reads_routes else None
    return Decoder(machine.target, drafter, routes, selector, clock)


def build_routes(facts: Facts, machine: Machine) -> RouteSource:
    return routes_named(facts.config.routes.name)(facts, machine)


def routes_named(name: str) -> Callable[[Facts, Machine], RouteSource]:
    if name not in ROUTES:
        raise SpecfitError(f"routes.name is {name!r}; use one of {', '.join(ROUTES)}")
    return ROUTES[name]


def _atlas(facts: Facts, machine: Machine) -> RouteSource:
    return machine.exact_routes()


def _noisy(facts: Facts, machine: Machine) -> RouteSource:
    accuracy, seed = facts.config.routes.accuracy, facts.config.seed
    return NoisyRoutes(machine.exact_routes(), facts.geometry.experts, accuracy, seed)


def _recorded(facts: Facts, machine: Machine) -> RouteSource:
    recording = facts.known_recording()
    if recording is None:
        raise SpecfitError("routes=recording needs recording=<id or folder>; see specfit.record")
    dtype = facts.config.model.dtype
    check_same_pair(recording.identity, facts.target_digest, facts.drafter_digest, dtype)
    return KnownRoutes(Playback(recording.requests), machine.exact_routes())


ROUTES: dict[str, Callable[[Facts, Machine], RouteSource]] = {
    "atlas": _atlas,
    "noisy": _noisy,
    "recording": _recorded,
}
