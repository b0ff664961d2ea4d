"""What is settled about one run before anything is loaded, and who the run is.

`resolve` makes these spec from a checkpoint and a dataset, `recorded` from a recording's manifest.
Neither torch nor transformers is needed here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from omegaconf import OmegaConf

from specfit.base import paths
from specfit.base.config import GpuConfig, RunConfig, hashed_part
from specfit.base.interfaces import Clock, Drafter, PrefetchHooks, RouteSource, Target
from specfit.base.types import Request, RequestError, Score, SpecfitError
from specfit.data.examples import joined_digest
from specfit.hardware.profile import Billing, Profile
from specfit.models.target.family import Geometry
from specfit.selection.registry import SelectorSpec
from specfit.storage import identity
from specfit.storage.recording.files import Recording, file_digest
from specfit.storage.tables import MachineState

PACKAGE = "package:"

SHIPPED_TOKENIZERS = {"84ef14ae3930d5d4": "package:weights/embedded/target"}
"""Digest -> the name under which ids have always known it."""


def locate(path: str) -> Path:
    """`package:weights/...` lies inside the installed package; anything else is a folder."""
    if path.startswith(PACKAGE):
        return paths.PACKAGE / path.removeprefix(PACKAGE)
    return Path(path)


class Workload(Protocol):
    """The requests of a run, in order: made from texts, or read from a recording."""

    @property
    def ids(self) -> Sequence[str]: ...

    @property
    def digests(self) -> Sequence[str]:
        """Of the examples behind the requests."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Sentences the person who started the run should read."""
        ...

    def request(self, index: int) -> Request:
        """Raises RequestError for what is wrong with this one."""
        ...

    def text(self, request: Request, output_ids: Sequence[int]) -> str: ...

    def score(self, request: Request, text: str, stop_reason: str | None) -> Score: ...


def answerable(workload: Workload) -> list[Request]:
    """Without those that something is wrong with."""
    result = []
    for index in range(len(workload.ids)):
        try:
            result.append(workload.request(index))
        except RequestError:
            continue
    return result


class Questions(Protocol):
    """What b_k and beta are fitted on (app. B)."""

    @property
    def digest(self) -> str: ...

    def requests(self) -> Iterator[Request]:
        """Candidates in order; those that cannot be asked are left out."""
        ...


class Runtime(Protocol):
    """What a decoder is assembled from: a target on its engine, or a recording in their place."""

    @property
    def target(self) -> Target: ...

    def drafter(self) -> Drafter: ...

    def exact_routes(self) -> RouteSource: ...

    def learned_routes(self, file: Path, drafter: Drafter) -> RouteSource:
        """What the predictor in `file` says of this drafter's nodes. Raises SpecfitError."""
        ...

    def clock(self) -> Clock: ...

    def prefetch_hooks(self) -> PrefetchHooks | None:
        """What brings in predicted experts; None where every copy is on demand."""
        ...

    def request_begins(self) -> None:
        """The machine's state is watched from here on."""
        ...

    def state(self) -> MachineState:
        """What it was like since then, on the wall clock; unknown on the modelled one."""
        ...

    @property
    def locked_share(self) -> float | None:
        """Page-locked share of the host's experts; None where nothing is locked on purpose."""
        ...

    @property
    def disk_reads(self) -> str | None:
        """direct or dropped, as `DiskStore` reads; None where experts are not on disk."""
        ...

    @property
    def expert_format(self) -> str | None:
        """How experts are stored; None where that is model.dtype, or not known."""
        ...


@dataclass(frozen=True)
class RunSpec(ABC):
    """One run's spec. `notes` are sentences the person who started it should read."""

    config: RunConfig
    geometry: Geometry
    kind: SelectorSpec
    slots: int
    profile: Profile
    billing: Billing
    clock: str
    device_name: str
    notes: tuple[str, ...]

    @property
    @abstractmethod
    def workload(self) -> Workload: ...

    @property
    @abstractmethod
    def questions(self) -> Questions: ...

    @property
    @abstractmethod
    def target_digest(self) -> str: ...

    @property
    @abstractmethod
    def drafter_digest(self) -> str: ...

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it runs, for a person."""
        ...

    @property
    def timed(self) -> str:
        """The word that goes with every time of this run."""
        return "modelled" if self.clock == "modelled" else "measured"

    @property
    def tokenizer_identity(self) -> str | None:
        """What stands for model.tokenizer in a run's id: its content, not where it lies."""
        return self.config.model.tokenizer

    @property
    def foreign_tokenizer(self) -> dict[str, str]:
        """For ids that came before model.tokenizer and were true of the shipped one."""
        named = self.tokenizer_identity
        return {} if named in (None, *SHIPPED_TOKENIZERS.values()) else {"tokenizer": str(named)}

    def known_recording(self) -> Recording | None:
        """The recording that a replay or routes=recording reads; None where nothing reads one."""
        return None

    def machine_facts(self) -> dict[str, str]:
        """What else the manifest says of the machine: the attention backend of a GPU."""
        return {}

    @property
    def recording_id(self) -> str | None:
        recording = self.known_recording()
        return None if recording is None else recording.recording_id

    @property
    def reads_routes(self) -> bool:
        """To select by them, or to bring in what they name."""
        return self.kind.reads_routes or self.config.prefetch != "off"

    @property
    def routes_file(self) -> Path | None:
        """What a trained or counted route source reads; None for a source without a file."""
        routes = self.config.routes
        if not (self.reads_routes and routes.path):
            return None
        file = locate(routes.path) / f"{routes.name}.safetensors"
        if not file.is_file():
            raise SpecfitError(
                f"no {file}, which routes={routes.name} reads; "
                "scripts/train/route_predictor.py makes it, and routes.path names its folder"
            )
        return file

    def settled(self) -> dict[str, object]:
        """The config with every number that was left to be settled."""
        return asdict(self.config) | {
            "cache_slots": self.slots,
            "limit": len(self.workload.ids),
            "max_new_tokens": self.config.new_tokens,
        }

    def identity(self, calibration_id: str | None) -> identity.Identity:
        """What the run id hashes: the settled config without what this selector never reads."""
        config = self.settled()
        del config["calibration"]  # its id stands for it
        model: Any = config["model"]
        model["tokenizer"] = self.tokenizer_identity
        digests = {
            "target": self.target_digest,
            "rows": joined_digest(self.workload.digests),
            "profile": self.profile.digest(),
        }
        if self.kind.drafts:
            digests["drafter"] = self.drafter_digest
        else:
            del config["drafter"]
        if not self.reads_routes:
            del config["routes"]
        elif self.config.routes.name == "recording" and self.recording_id is not None:
            digests["recording"] = self.recording_id
        elif self.routes_file is not None:
            digests["routes"] = file_digest(self.routes_file)
        if not self.kind.needs_cost:  # nothing is priced, so nothing is maximised
            for key in ("objective", "lambda_tokens_per_s", "cost", "level_cost_ms"):
                del config[key]
        if calibration_id is not None:
            digests["calibration"] = calibration_id
        return identity.run_identity(hashed_part(config), digests, self.clock, self.device_name)


BuildRuntime = Callable[[RunSpec, int, bool], Runtime]
"""RunSpec, slots per layer, whether it drafts -> a machine. `build` has the live one."""


def settle_slots(
    config: RunConfig, experts: int, fit: Callable[[], tuple[int, str]] | None = None
) -> tuple[int, tuple[str, ...]]:
    """Slots per layer, and sentences about them. `fit` counts what the device holds."""
    requested = config.cache_slots
    if config.is_uncached:
        name = config.selector.name
        return 0, (f"{name} is the paper's uncached system: cache_slots is 0; see {name}_cache",)
    if requested == "all":
        return experts, ()
    if requested == "fit":
        if fit is None:
            raise SpecfitError("cache_slots=fit needs a device to fit into; use a number")
        slots, note = fit()
        return slots, (note,)
    assert isinstance(requested, int)
    if requested > experts:
        raise SpecfitError(
            f"cache_slots is {requested}, but a layer has {experts} experts; use all"
        )
    return requested, ()


def refuse_ram_slots(config: RunConfig, experts: int, clock: str) -> None:
    """Raises SpecfitError for `offload.ram_slots` that this model or clock has no place for."""
    slots = config.offload.ram_slots
    if slots > experts:
        raise SpecfitError(
            f"offload.ram_slots is {slots}, but a layer has {experts} experts; use at most those"
        )
    if slots and clock == "modelled":
        raise SpecfitError(
            f"offload.ram_slots={slots} makes two links, from disk and from RAM, and the modelled "
            "clock bills one; use gpu.clock=wall, or leave offload.ram_slots out"
        )


def stored_profile(name: str) -> dict[str, Any]:
    """The values in the profile's own file; none of a profile that has no file in conf/gpu."""
    path = paths.CONF / "gpu" / f"{name}.yaml"
    stored: Any = OmegaConf.to_container(OmegaConf.load(path)) if path.exists() else {}
    return dict(stored)


def profile_advice(gpu: GpuConfig) -> tuple[str, ...]:
    """The profile's sentence for its reader, unless a value that it names has been set."""
    stored = stored_profile(gpu.name)
    named = re.findall(r"gpu\.(\w+)=", gpu.advice or "")
    is_obeyed = any(key in stored and stored[key] != getattr(gpu, key) for key in named)
    return () if not gpu.advice or is_obeyed else (f"profile {gpu.name}: {gpu.advice}",)


def profile_of(gpu: GpuConfig) -> Profile:
    values = {item.name: getattr(gpu, item.name) for item in fields(Profile)}
    return Profile(**values | {"gpu_names": tuple(gpu.gpu_names), "notes": dict(gpu.notes)})
