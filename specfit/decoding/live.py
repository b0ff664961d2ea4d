"""Facts to a live machine: the loaded model and the engine around it."""

from __future__ import annotations

import gc
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from specfit.base.interfaces import Clock, Drafter
from specfit.base.types import SpecfitError
from specfit.decoding.expert_cache_factory import CLAIRVOYANT, make_cache, pin_most_used
from specfit.decoding.oracle_texts import is_scripted, scripts_of
from specfit.decoding.resolve import Resolved
from specfit.decoding.spec import Facts
from specfit.experts.copies import CopyEngine, CpuCopyEngine, LinkUse
from specfit.experts.cuda_copies import StreamedCopyEngine
from specfit.experts.engine import ExpertEngine
from specfit.experts.kernels.choice import choose_arithmetic
from specfit.experts.pinned import CudaRegistrar
from specfit.experts.prefetch import Prefetcher
from specfit.hardware.clock import ModelledClock, WallClock
from specfit.hardware.nvml import Watch
from specfit.models.drafter.checkpoint import load_head
from specfit.models.drafter.eagle import EagleDrafter
from specfit.models.drafter.head import EagleHead
from specfit.models.drafter.oracle import OracleDrafter, Scripts
from specfit.models.routes.atlas import AtlasRoutes
from specfit.models.routes.learned import LearnedRoutes
from specfit.models.routes.markov import MarkovRoutes
from specfit.models.routes.predictor import load_predictor
from specfit.models.target.dummy import RandomCheckpoint, load_random
from specfit.models.target.forced import ForcedTarget
from specfit.models.target.loading import LoadedModel, load_model
from specfit.models.target.offloaded import OffloadedTarget
from specfit.storage.tables import MachineState


@dataclass(frozen=True)
class Machine:
    """A target on its engine; decoders of several selectors may share it, one after the other."""

    target: OffloadedTarget
    engine: ExpertEngine
    head: EagleHead | None
    loaded: LoadedModel
    facts: Resolved
    watch: Watch
    scripts: Scripts | None = None  # what an oracle drafts

    def drafter(self) -> Drafter:
        shape = self.facts.config.drafter
        if self.scripts is not None:
            words, seed = self.facts.geometry.vocabulary, self.facts.config.seed
            depth, width = shape.max_depth, shape.top_k
            return OracleDrafter(self.scripts, shape.hits, depth, width, words, seed)
        assert self.head is not None, "a machine built without a head cannot draft"
        return EagleDrafter(self.head, shape.max_depth, shape.top_k, self.facts.device)

    def exact_routes(self) -> AtlasRoutes:
        """Also what calibration reads, whatever the run's own source is: noise is selection's."""
        return AtlasRoutes(self.target)

    def learned_routes(self, file: Path, drafter: Drafter) -> LearnedRoutes:
        if not isinstance(drafter, EagleDrafter):
            raise SpecfitError(
                "routes=learned reads the features of a draft head, which drafter=oracle has not; "
                "use drafter=embedded or another head"
            )
        pair = {"target": self.facts.target_digest, "drafter": self.facts.drafter_digest}
        return LearnedRoutes(load_predictor(file, pair, self.facts.device), drafter)

    @property
    def locked_share(self) -> float | None:
        report = self.loaded.store.lock_report
        return None if report is None else report.locked_bytes / report.total_bytes

    def foresight(self) -> Prefetcher | None:
        return self.engine.cache.prefetcher

    def request_begins(self) -> None:
        self.engine.copies.link = LinkUse()
        self.watch.start()

    def state(self) -> MachineState:
        reading = self.watch.stop()
        if self.facts.clock != "wall":
            return MachineState()
        return MachineState(**asdict(reading), achieved_h2d_gbps=self.engine.copies.link.gbps)

    def clock(self) -> Clock:
        if self.facts.clock == "modelled":
            route_ms = self.facts.config.routes.level_ms
            return ModelledClock(self.facts.profile, self.facts.billing, route_ms)
        on_cuda = self.facts.device.type == "cuda"
        return WallClock(torch.cuda.synchronize if on_cuda else _nothing, self.target.expert_bytes)


def build_machine(facts: Facts, slots: int, drafts: bool) -> Machine:
    """Raises SpecfitError for a damaged checkpoint, a head that does not fit, too little memory."""
    assert isinstance(facts, Resolved), "a live machine needs a checkpoint and a device"
    if facts.config.policy == CLAIRVOYANT:
        raise SpecfitError(
            "policy=belady knows the future, which a replay has and a run has not; use "
            "specfit.replay, or another policy"
        )
    torch.set_num_threads(facts.config.threads)
    loaded = _loaded(facts)
    loaded.attach(None)  # the slots of the machine before go first
    scripts = scripts_of(facts) if drafts and is_scripted(facts) else None
    head = _head(facts, loaded) if drafts and scripts is None else None
    engine = build_engine(facts, loaded, slots)
    aux_layers = head.config.aux_layer_ids if head is not None else ()
    parts = loaded, engine, aux_layers, facts.config.prefill_chunk, facts.device
    if scripts is not None and facts.config.drafter.force:
        target: OffloadedTarget = ForcedTarget(*parts, scripts=scripts)
    else:
        target = OffloadedTarget(*parts)
    machine = Machine(target, engine, head, loaded, facts, Watch(_uuid(facts)), scripts)
    pin_most_used(facts, target, engine.cache, machine.clock())
    return machine


def _uuid(facts: Resolved) -> str | None:
    """The driver's name of the GPU whose time is measured."""
    if facts.device.type != "cuda" or facts.clock != "wall":
        return None
    return f"GPU-{torch.cuda.get_device_properties(facts.device).uuid}"


def build_engine(facts: Resolved, loaded: LoadedModel, slots: int) -> ExpertEngine:
    """Raises SpecfitError where the slots do not fit the device."""
    in_flight, gpu = facts.profile.copies_in_flight, facts.config.gpu
    shape = loaded.geometry
    cache = make_cache(facts, slots)
    if facts.config.miss != "transfer" and facts.device.type == "cuda":
        raise SpecfitError(
            f"miss={facts.config.miss} is modelled so far and needs device=cpu; on a GPU use "
            "miss=transfer"
        )
    arithmetic = choose_arithmetic(gpu.kernel, loaded.activation, facts.device)
    beside = 1 if cache.prefetcher is not None else 0
    copies = copy_engine(facts.device, in_flight, gpu.link_gbps_cap, beside)
    engine = ExpertEngine(loaded.store, cache, copies, arithmetic, facts.device)
    if facts.config.model.routing == "markov":
        engine.stand_in = MarkovRoutes(shape.layers, shape.experts, shape.top_k, facts.config.seed)
    return engine


def copy_engine(
    device: torch.device, in_flight: int, link_gbps_cap: float | None, beside: int = 0
) -> CopyEngine:
    """`beside`: streams for copies that nobody has demanded yet."""
    if device.type != "cuda":
        return CpuCopyEngine(in_flight, link_gbps_cap)
    from specfit.experts.cuda_streams import CudaStreams

    return StreamedCopyEngine(CudaStreams(device, in_flight + beside, link_gbps_cap), in_flight)


_kept: dict[tuple[object, ...], LoadedModel] = {}


def _loaded(facts: Resolved) -> LoadedModel:
    """Jobs of one sweep in one process read the checkpoint once; another one replaces it."""
    model, device = facts.config.model, facts.device
    key = facts.checkpoint.folder, facts.target_digest, model.dtype, device, model.num_layers
    if key not in _kept:
        _kept.clear()  # before the next is read: two stores may not fit
        gc.collect()
        dtype = getattr(torch, model.dtype)
        if isinstance(facts.checkpoint, RandomCheckpoint):
            loaded = load_random(facts.checkpoint, dtype, device, model.num_layers)
        else:
            loaded = load_model(facts.checkpoint, dtype, device, model.num_layers)
        if device.type == "cuda":
            _lock(loaded)
        _kept[key] = loaded
    return _kept[key]


def _lock(loaded: LoadedModel) -> None:
    """Page-lock the experts where they lie; what is refused is said, and goes a slower way."""
    report = loaded.store.lock(CudaRegistrar())
    if not report.is_whole:
        print(f"specfit: {report.sentence()}", file=sys.stderr)


def _head(facts: Resolved, loaded: LoadedModel) -> EagleHead:
    weights = loaded.model.state_dict()
    head = load_head(facts.drafter_folder, loaded.model.config, weights.__getitem__)
    return head.to(device=facts.device, dtype=loaded.store.dtype)


def _nothing() -> None:
    """A CPU has done what it was asked when the call returns."""
