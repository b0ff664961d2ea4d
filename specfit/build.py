"""Facts to parts: the loaded model, the engine around it, the decoder for one selector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from specfit.core import SpecfitError
from specfit.decoder import Decoder
from specfit.drafter.checkpoint import load_head
from specfit.drafter.eagle import EagleDrafter
from specfit.drafter.head import EagleHead
from specfit.hardware.clock import ModelledClock, WallClock
from specfit.offload.cache import ExpertCache
from specfit.offload.experts import ExpertEngine
from specfit.offload.transfer import CpuCopyEngine
from specfit.protocols import Clock, RouteSource, Selector
from specfit.resolve import Resolved, locate
from specfit.routes.atlas import AtlasRoutes
from specfit.routes.noisy import NoisyRoutes
from specfit.selection.cost import CostModel
from specfit.selection.registry import Choice
from specfit.target.checkpoint import Checkpoint
from specfit.target.loading import LoadedModel, load_model
from specfit.target.offloaded import OffloadedTarget


@dataclass(frozen=True)
class Machine:
    """A target on its engine; decoders of several selectors may share it, one after the other."""

    target: OffloadedTarget
    engine: ExpertEngine
    head: EagleHead | None
    loaded: LoadedModel


def build_machine(facts: Resolved, slots: int, drafts: bool) -> Machine:
    """Raises SpecfitError for a damaged checkpoint, a head that does not fit, too little memory."""
    torch.set_num_threads(facts.config.threads)
    loaded = _loaded(
        str(facts.checkpoint.folder),
        facts.config.model.dtype,
        str(facts.device),
        facts.config.model.num_layers,
    )
    head = _head(facts, loaded) if drafts else None
    in_flight = facts.profile.copies_in_flight
    shape = loaded.geometry
    cache = ExpertCache(shape.layers, shape.experts, slots, staging_blocks=in_flight + 1)
    copies = CpuCopyEngine(in_flight)
    engine = ExpertEngine(loaded.store, cache, copies, loaded.activation, facts.device)
    aux_layers = head.config.aux_layer_ids if head is not None else ()
    chunk = facts.config.prefill_chunk
    target = OffloadedTarget(loaded, engine, aux_layers, chunk, facts.device)
    return Machine(target, engine, head, loaded)


@lru_cache(maxsize=1)
def _loaded(folder: str, dtype: str, device: str, num_layers: int | None) -> LoadedModel:
    """Jobs of one sweep in one process read the checkpoint once."""
    checkpoint = Checkpoint(Path(folder))
    return load_model(checkpoint, getattr(torch, dtype), torch.device(device), num_layers)


def _head(facts: Resolved, loaded: LoadedModel) -> EagleHead:
    weights = loaded.model.state_dict()
    head = load_head(locate(facts.config.drafter.path), loaded.model.config, weights.__getitem__)
    return head.to(device=facts.device, dtype=loaded.store.dtype)


def build_clock(facts: Resolved, machine: Machine) -> Clock:
    if facts.clock == "modelled":
        return ModelledClock(facts.profile, facts.billing)
    synchronise = torch.cuda.synchronize if facts.device.type == "cuda" else _nothing
    return WallClock(synchronise, machine.target.expert_bytes)


def _nothing() -> None:
    """A CPU has done what it was asked when the call returns."""


def build_selector(facts: Resolved, cost: CostModel | None) -> Selector:
    wanted = facts.config.selector
    choice = Choice(wanted.name, wanted.k, wanted.adaptive_depth, facts.geometry.experts, cost)
    return facts.kind.make(choice)


def build_decoder(facts: Resolved, machine: Machine, selector: Selector, clock: Clock) -> Decoder:
    drafter = build_drafter(facts, machine) if selector.drafts else None
    routes = build_routes(facts, machine) if selector.reads_routes else None
    return Decoder(machine.target, drafter, routes, selector, clock)


def build_drafter(facts: Resolved, machine: Machine) -> EagleDrafter:
    assert machine.head is not None, "a machine built without a head cannot draft"
    shape = facts.config.drafter
    return EagleDrafter(machine.head, shape.max_depth, shape.top_k, facts.device)


def build_routes(facts: Resolved, machine: Machine) -> RouteSource:
    return ROUTES[_known_routes(facts.config.routes.name)](facts, machine)


def _known_routes(name: str) -> str:
    if name not in ROUTES:
        raise SpecfitError(f"routes.name is {name!r}; use one of {', '.join(ROUTES)}")
    return name


def exact_routes(facts: Resolved, machine: Machine) -> RouteSource:
    """Also what calibration reads, whatever the run's own source: noise is in selection only."""
    return AtlasRoutes(machine.target)


def _noisy(facts: Resolved, machine: Machine) -> RouteSource:
    accuracy, seed = facts.config.routes.accuracy, facts.config.seed
    return NoisyRoutes(exact_routes(facts, machine), facts.geometry.experts, accuracy, seed)


ROUTES: dict[str, Callable[[Resolved, Machine], RouteSource]] = {
    "atlas": exact_routes,
    "noisy": _noisy,
}
