"""RunSpec to a live runtime: the loaded model and the engine around it."""

from __future__ import annotations

import gc
import sys
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import torch

from specfit.base.interfaces import Clock, Drafter
from specfit.base.types import SpecfitError
from specfit.decoding.expert_cache_factory import (
    make_cache,
    make_ram_cache,
    pin_most_used,
    prefetch_blocks,
    refuse_replays_only,
)
from specfit.decoding.head_check import settle_feedback
from specfit.decoding.oracle_texts import is_scripted, scripts_of
from specfit.decoding.resolve import LiveRunSpec, pack_folder
from specfit.decoding.spec import RunSpec
from specfit.experts.copies import CopyEngine, CpuCopyEngine, LinkUse
from specfit.experts.cuda_copies import StreamedCopyEngine, Streams
from specfit.experts.disk_copies import DiskCopyEngine
from specfit.experts.disk_weights import DiskStore
from specfit.experts.engine import ExpertEngine
from specfit.experts.host_weights import ExpertStore, HostStore
from specfit.experts.kernels.choice import choose_arithmetic
from specfit.experts.pinned import CudaRegistrar
from specfit.experts.prefetch import Prefetcher
from specfit.experts.queued_streams import QueuedStreams
from specfit.experts.ram_store import RamStore
from specfit.hardware.clock import ModelledClock, WallClock
from specfit.hardware.cpu_state import CpuWatch
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
from specfit.models.target.fused_layer import LayerKernels
from specfit.models.target.graphs import Capture, CudaCapture
from specfit.models.target.loading import LoadedModel, load_model
from specfit.models.target.offloaded import OffloadedTarget
from specfit.storage.tables import MachineState


@dataclass(frozen=True)
class Runtime:
    """A target on its engine; decoders of several selectors may share it, one after the other."""

    target: OffloadedTarget
    engine: ExpertEngine
    head: EagleHead | None
    loaded: LoadedModel
    spec: LiveRunSpec
    watch: Watch
    scripts: Scripts | None = None  # what an oracle drafts
    cpu: CpuWatch = field(default_factory=CpuWatch)

    def drafter(self) -> Drafter:
        shape = self.spec.config.drafter
        if self.scripts is not None:
            words, seed = self.spec.geometry.vocabulary, self.spec.config.seed
            depth, width = shape.max_depth, shape.top_k
            return OracleDrafter(self.scripts, shape.hits, depth, width, words, seed)
        assert self.head is not None, "a machine built without a head cannot draft"
        return EagleDrafter(self.head, shape.max_depth, shape.top_k, self.spec.device)

    def exact_routes(self) -> AtlasRoutes:
        """Also what calibration reads, whatever the run's own source is: noise is selection's."""
        return AtlasRoutes(self.target)

    def learned_routes(self, file: Path, drafter: Drafter) -> LearnedRoutes:
        if not isinstance(drafter, EagleDrafter):
            raise SpecfitError(
                "routes=learned reads the features of a draft head, which drafter=oracle has not; "
                "use drafter=embedded or another head"
            )
        pair = {"target": self.spec.target_digest, "drafter": self.spec.drafter_digest}
        return LearnedRoutes(load_predictor(file, pair, self.spec.device), drafter)

    @property
    def locked_share(self) -> float | None:
        report = self.engine.store.lock_report
        return None if report is None else report.locked_bytes / report.total_bytes

    @property
    def disk_reads(self) -> str | None:
        """How misses are read from disk: direct, or with their pages dropped; None from RAM."""
        store = self.loaded.store
        return store.reads if isinstance(store, DiskStore) else None

    @property
    def expert_format(self) -> str | None:
        """Name of the format that experts are stored in; None for model.dtype itself."""
        format = self.loaded.format
        return None if format.is_plain else format.name

    def prefetch_hooks(self) -> Prefetcher | None:
        return self.engine.cache.prefetcher

    def request_begins(self) -> None:
        self.engine.copies.link = LinkUse()
        self.watch.start()
        if self.spec.clock == "wall":
            self.cpu.start()

    def state(self) -> MachineState:
        reading, cpu = self.watch.stop(), self.cpu.stop()
        if self.spec.clock != "wall":
            return MachineState()
        gbps = self.engine.copies.link.gbps
        return MachineState(**asdict(reading), achieved_h2d_gbps=gbps, **asdict(cpu))

    def clock(self) -> Clock:
        if self.spec.clock == "modelled":
            route_ms = self.spec.config.routes.level_ms
            return ModelledClock(self.spec.profile, self.spec.billing, route_ms)
        synchronise = _nothing
        if self.spec.device.type == "cuda":
            from specfit.experts.cuda_streams import border

            synchronise = border(self.spec.device)
        return WallClock(synchronise, self.target.expert_bytes)


def refuse_unlivable(spec: LiveRunSpec) -> None:
    """Raises SpecfitError for settings that only a replay or another device has."""
    refuse_replays_only(spec.config.policy)
    if spec.config.miss != "transfer" and spec.device.type == "cuda":
        raise SpecfitError(
            f"miss={spec.config.miss} is modelled so far and needs device=cpu; on a GPU use "
            "miss=transfer"
        )
    if spec.config.gpu.graphs and spec.device.type != "cuda":
        raise SpecfitError(
            "gpu.graphs=true captures CUDA graphs and needs device=cuda; use gpu.graphs=false"
        )
    if spec.config.gpu.graphs and spec.config.gpu.kernel == "loop":
        raise SpecfitError(
            "gpu.graphs=true captures fused layers, which gpu.kernel=loop leaves out; use "
            "gpu.kernel=auto"
        )


def build_runtime(spec: RunSpec, slots: int, drafts: bool) -> Runtime:
    """Raises SpecfitError for a damaged checkpoint, a head that does not fit, too little memory."""
    assert isinstance(spec, LiveRunSpec), "a live machine needs a checkpoint and a device"
    refuse_unlivable(spec)
    torch.set_num_threads(spec.config.threads)
    loaded = _loaded(spec)
    loaded.attach(None)  # the slots of the machine before go first
    scripts = scripts_of(spec) if drafts and is_scripted(spec) else None
    head = _head(spec, loaded) if drafts and scripts is None else None
    engine = build_engine(spec, loaded, slots)
    aux_layers = head.config.aux_layer_ids if head is not None else ()
    fused = fused_layers(spec)
    parts = loaded, engine, aux_layers, spec.config.prefill_chunk, spec.device, *fused
    if scripts is not None and spec.config.drafter.force:
        target: OffloadedTarget = ForcedTarget(*parts, scripts=scripts)
    else:
        target = OffloadedTarget(*parts)
    runtime = Runtime(target, engine, head, loaded, spec, Watch(_uuid(spec)), scripts)
    if head is not None and head.config.feedback_unknown:
        settled, sentence = settle_feedback(runtime)
        print(f"specfit: {sentence}", file=sys.stderr)
        runtime = replace(runtime, head=settled)
    ram = engine.ram.cache if engine.ram is not None else None
    pin_most_used(spec, target, engine.cache, runtime.clock(), ram)
    return runtime


def _uuid(spec: LiveRunSpec) -> str | None:
    """The driver's name of the GPU whose time is measured."""
    if spec.device.type != "cuda" or spec.clock != "wall":
        return None
    return f"GPU-{torch.cuda.get_device_properties(spec.device).uuid}"


def build_engine(spec: LiveRunSpec, loaded: LoadedModel, slots: int) -> ExpertEngine:
    """Raises SpecfitError where the slots do not fit the device."""
    in_flight, gpu = spec.profile.copies_in_flight, spec.config.gpu
    shape = loaded.geometry
    cache = make_cache(spec, slots)
    arithmetic = choose_arithmetic(
        gpu.kernel, loaded.activation, spec.device, loaded.format, loaded.lift
    )
    store = _behind_ram(spec, loaded.store)
    beside = 1 if cache.prefetcher is not None else 0
    report = store.lock_report
    if isinstance(loaded.store, DiskStore) and spec.device.type != "cuda":
        copies: CopyEngine = DiskCopyEngine(in_flight)
    else:
        bounces = report is not None and not report.is_whole
        threads = in_flight + beside if isinstance(store, RamStore) else int(bounces)
        copies = copy_engine(spec.device, in_flight, gpu.link_gbps_cap, beside, threads)
    engine = ExpertEngine(store, cache, copies, arithmetic, spec.device)
    if spec.config.model.routing == "markov":
        engine.stand_in = MarkovRoutes(shape.layers, shape.experts, shape.top_k, spec.config.seed)
    return engine


def _behind_ram(spec: LiveRunSpec, store: HostStore) -> HostStore:
    """A disk's blocks come through RAM on a GPU, and wherever RAM has slots for them."""
    is_cuda = spec.device.type == "cuda"
    if not isinstance(store, DiskStore) or not (is_cuda or spec.config.offload.ram_slots):
        return store
    registrar = CudaRegistrar() if is_cuda else None
    made = RamStore(store, make_ram_cache(spec), prefetch_blocks(spec), registrar)
    if made.lock_report is not None and not made.lock_report.is_whole:
        print(f"specfit: {made.lock_report.sentence()}", file=sys.stderr)
    return made


def fused_layers(spec: LiveRunSpec) -> tuple[LayerKernels | None, Capture | None]:
    """On a GPU with Triton: the kernels that layers are fused with, and how graphs are captured."""
    gpu = spec.config.gpu
    capture = CudaCapture(spec.device) if gpu.graphs else None
    if spec.device.type != "cuda" or gpu.kernel == "loop" or find_spec("triton") is None:
        return None, capture
    from specfit.models.target.layer_kernels import TritonLayerKernels

    return TritonLayerKernels(), capture


def copy_engine(
    device: torch.device,
    in_flight: int,
    link_gbps_cap: float | None,
    beside: int = 0,
    threads: int = 0,
) -> CopyEngine:
    """`beside`: streams for copies that nobody has demanded yet; `threads`: to fill the streams,
    one where some blocks are not page-locked, one a stream where blocks are read first."""
    if device.type != "cuda":
        return CpuCopyEngine(in_flight, link_gbps_cap)
    from specfit.experts.cuda_streams import CudaStreams

    streams: Streams = CudaStreams(device, in_flight + beside, link_gbps_cap)
    return StreamedCopyEngine(QueuedStreams(streams, threads) if threads else streams, in_flight)


_kept: dict[tuple[object, ...], LoadedModel] = {}


def _loaded(spec: LiveRunSpec) -> LoadedModel:
    """Jobs of one sweep in one process read the checkpoint once; another one replaces it."""
    model, device = spec.config.model, spec.device
    packs = pack_folder(spec.config, spec.checkpoint.folder)
    key = spec.checkpoint.folder, spec.target_digest, model.dtype, device, model.num_layers, packs
    if key not in _kept:
        _kept.clear()  # before the next is read: two stores may not fit
        gc.collect()
        dtype = getattr(torch, model.dtype)
        if isinstance(spec.checkpoint, RandomCheckpoint):
            loaded = load_random(spec.checkpoint, dtype, device, model.num_layers, packs)
        else:
            loaded = load_model(spec.checkpoint, dtype, device, model.num_layers, packs)
        if isinstance(loaded.store, ExpertStore) and device.type == "cuda":
            _lock(loaded.store)
        elif isinstance(loaded.store, DiskStore) and loaded.store.notice:
            print(f"specfit: {loaded.store.notice}", file=sys.stderr)
        _kept[key] = loaded
    return _kept[key]


def _lock(store: ExpertStore) -> None:
    """Page-lock the experts where they lie; what is refused is said, and goes a slower way."""
    report = store.lock(CudaRegistrar())
    if not report.is_whole:
        print(f"specfit: {report.sentence()}", file=sys.stderr)


def _head(spec: LiveRunSpec, loaded: LoadedModel) -> EagleHead:
    weights = loaded.model.state_dict()
    feedback = spec.config.drafter.norm_feedback
    head = load_head(spec.drafter_folder, loaded.model.config, weights.__getitem__, feedback)
    return head.to(device=spec.device, dtype=loaded.format.dtype)


def _nothing() -> None:
    """A CPU has done what it was asked when the call returns."""
