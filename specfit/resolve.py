"""From a config to facts: what it names is looked up, numbers are settled, the run gets its id.

Nothing here loads a weight; a finished run is found from these facts alone.
"""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

import specfit
from specfit.config import DatasetConfig, GpuConfig, RunConfig
from specfit.core import SpecfitError
from specfit.hardware.billed import billing
from specfit.hardware.clock import choose_clock
from specfit.hardware.profile import Billing, Profile
from specfit.results import identity
from specfit.results.provenance import cpu_name
from specfit.selection.registry import Kind, kind_of
from specfit.target.checkpoint import Checkpoint, folder_digest, read_json
from specfit.target.family import Geometry, geometry_of
from specfit.workloads import examples as sources
from specfit.workloads.examples import Example
from specfit.workloads.prompts import Prompting

PACKAGE = "package:"


def locate(path: str) -> Path:
    """`package:weights/...` lies inside the installed package; anything else is a folder."""
    if path.startswith(PACKAGE):
        return Path(specfit.__file__).parent / path.removeprefix(PACKAGE)
    return Path(path)


@dataclass(frozen=True)
class Resolved:
    """One run's facts. `notes` are sentences the person who started it should read."""

    config: RunConfig
    checkpoint: Checkpoint
    geometry: Geometry
    kind: Kind
    slots: int
    profile: Profile
    billing: Billing
    clock: str
    device: torch.device
    device_name: str
    notes: tuple[str, ...]

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        return tuple(load_examples(self.config.dataset, self.config.request_limit))

    @cached_property
    def tokenizer(self) -> Any:
        return AutoTokenizer.from_pretrained(self.checkpoint.folder, local_files_only=True)

    def prompting(self, dataset: DatasetConfig, max_new_tokens: int) -> Prompting:
        return Prompting(
            self.tokenizer,
            dataset.document or "prompt",
            dataset.reference,
            dataset.template,
            dataset.max_document_tokens,
            max_new_tokens,
            stop_ids(self.checkpoint),
            self.geometry.context,
        )

    @cached_property
    def target_digest(self) -> str:
        return self.checkpoint.digest()

    @cached_property
    def drafter_digest(self) -> str:
        return folder_digest(locate(self.config.drafter.path))

    def identity(self, calibration_id: str | None) -> identity.Identity:
        """What the run id hashes: the settled config without what this selector never reads."""
        config = asdict(self.config)
        config["cache_slots"] = self.slots
        config["limit"] = len(self.examples)
        config["max_new_tokens"] = self.config.new_tokens
        del config["calibration"]  # its id stands for it
        digests = {
            "target": self.target_digest,
            "rows": sources.digest(self.examples),
            "profile": self.profile.digest(),
        }
        if self.kind.drafts:
            digests["drafter"] = self.drafter_digest
        else:
            del config["drafter"]
        if not self.kind.reads_routes:
            del config["routes"]
        if calibration_id is not None:
            digests["calibration"] = calibration_id
        return identity.run_identity(config, digests, self.clock, self.device_name)


def resolve(config: RunConfig) -> Resolved:
    """Raises SpecfitError for whatever the config names and is not there or does not fit."""
    checkpoint = Checkpoint(locate(config.model.path))
    geometry = geometry_of(checkpoint.config)
    if config.model.num_layers is not None:
        geometry = geometry_of({**checkpoint.config, "num_hidden_layers": config.model.num_layers})
    kind = kind_of(config.selector.name)
    slots, notes = settle_slots(config, geometry.experts)
    profile = profile_of(config.gpu)
    device, device_name = find_device(config.device)
    dtype_bytes = getattr(torch, config.model.dtype).itemsize
    own_bytes = 3 * geometry.hidden * geometry.intermediate * dtype_bytes
    bill = billing(config.gpu.billed, geometry.layers, own_bytes)
    clock = choose_clock(config.gpu.clock, profile, device_name)
    if config.gpu.advice and clock == "modelled":
        notes += (f"profile {profile.name}: {config.gpu.advice}",)
    return Resolved(
        config, checkpoint, geometry, kind, slots, profile, bill, clock, device, device_name, notes
    )


def settle_slots(config: RunConfig, experts: int) -> tuple[int, tuple[str, ...]]:
    """Slots per layer, and what there is to say about them."""
    asked = config.cache_slots
    if config.is_uncached:
        name = config.selector.name
        return 0, (f"{name} is the paper's uncached system: cache_slots is 0; see {name}_cache",)
    if asked == "all":
        return experts, ()
    if asked == "fit":
        raise SpecfitError(
            "cache_slots=fit needs a GPU whose free memory can be read; use a number"
        )
    assert isinstance(asked, int)
    if asked > experts:
        raise SpecfitError(f"cache_slots is {asked}, but a layer has {experts} experts; use all")
    return asked, ()


def profile_of(gpu: GpuConfig) -> Profile:
    values = asdict(gpu)
    for key in ("clock", "billed", "advice"):
        del values[key]
    values["gpu_names"] = tuple(values["gpu_names"])
    return Profile(**values)


def find_device(asked: str) -> tuple[torch.device, str]:
    if asked == "cuda" and not torch.cuda.is_available():
        raise SpecfitError("device=cuda, but no CUDA device or driver was found; use device=cpu")
    if asked == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu"), cpu_name() or platform.machine()
    return torch.device("cuda"), torch.cuda.get_device_name()


def load_examples(dataset: DatasetConfig, limit: int | None) -> list[Example]:
    needed = [name for name in (dataset.document, dataset.reference) if name is not None]
    if dataset.source == "embedded":
        assert limit is not None, "embedded workloads have no end of their own"
        return sources.embedded(dataset.name, "evaluation", limit)
    if dataset.path is not None:
        return sources.from_jsonl(Path(dataset.path), needed, limit)
    if dataset.hub is not None:
        return sources.from_hub(dataset.hub, needed, limit)
    raise SpecfitError(f"dataset={dataset.name} needs dataset.path=<a JSON-lines file>")


def stop_ids(checkpoint: Checkpoint) -> frozenset[int]:
    """The list in the generation config; a target without one cannot end a request."""
    found = read_json(checkpoint.folder / "generation_config.json").get("eos_token_id")
    if found is None:
        raise SpecfitError(f"{checkpoint.folder}/generation_config.json names no eos_token_id")
    return frozenset([found] if isinstance(found, int) else found)
