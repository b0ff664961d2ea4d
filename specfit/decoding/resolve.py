"""From a config to spec: what it names is looked up, numbers are settled, the run gets its id.

Nothing here loads a weight; a finished run is found from these spec alone.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

import specfit
from specfit.base.config import DatasetConfig, DrafterConfig, ModelConfig, RunConfig
from specfit.base.published import PUBLISHED
from specfit.base.types import SpecfitError
from specfit.data.examples import Rows
from specfit.data.prompts import Prompting
from specfit.decoding.memory_fit import Sizing, settled_fit, sizing_of
from specfit.decoding.spec import (
    SHIPPED_TOKENIZERS,
    RunSpec,
    locate,
    profile_advice,
    profile_of,
    refuse_ram_slots,
    settle_slots,
)
from specfit.decoding.workload import (
    PROBE_TOKENS,
    TextQuestions,
    TextWorkload,
    calibration_dataset,
    calibration_rows,
    evaluated_rows,
)
from specfit.hardware.clock import choose_clock
from specfit.hardware.profile import Profile
from specfit.hardware.reference_models import billing
from specfit.hardware.system_info import bus_id, surroundings
from specfit.models.drafter import oracle
from specfit.models.schema import read_json
from specfit.models.target.attention import backend_name, settle_backend
from specfit.models.target.checkpoint import (
    FETCH_AGAIN,
    Checkpoint,
    folder_digest,
    tokenizer_digest,
)
from specfit.models.target.config_file import stop_ids
from specfit.models.target.dummy import RandomCheckpoint
from specfit.models.target.family import family_of, geometry_of
from specfit.models.target.fetch import Repository, snapshot
from specfit.models.target.quantise import PLAIN, quantised_copy
from specfit.selection.registry import selector_spec
from specfit.storage import identity
from specfit.storage.provenance import cpu_name
from specfit.storage.recording.files import Recording, find_recording, read_once


def repository_of(key: str, group: ModelConfig | DrafterConfig) -> Repository | None:
    """Where a group's files come from if no path is set. `key` is the group's: model, drafter."""
    if group.path or group.repository is None:
        return None
    return Repository(key, group.repository, group.revision)


def folder_of(key: str, group: ModelConfig | DrafterConfig) -> Path:
    """The folder that a group names, fetched from the hub where it names a repository."""
    repository = repository_of(key, group)
    if repository is not None:
        return snapshot(repository)
    if not group.path:
        raise SpecfitError(f"{key}={group.name} names no files; set {key}.path to a folder")
    return locate(group.path)


@dataclass(frozen=True)
class LiveRunSpec(RunSpec):
    """RunSpec of a run of a checkpoint on a device."""

    checkpoint: Checkpoint
    device: torch.device
    split: str = "evaluation"  # a run's; a recording may be of text that predictors are trained on

    @cached_property
    def workload(self) -> TextWorkload:
        dataset = self.config.dataset
        prompting = self.prompting(dataset, self.config.new_tokens)
        return TextWorkload(self.rows, prompting, dataset.scorer)

    @cached_property
    def questions(self) -> TextQuestions:
        prompting = self.prompting(calibration_dataset(self.config), PROBE_TOKENS)
        return TextQuestions(calibration_rows(self.config, self.rows.examples), prompting)

    @cached_property
    def _recording(self) -> Recording:
        config = self.config
        assert config.recording is not None
        return read_once(find_recording(config.recording, Path(config.results_dir)))

    def known_recording(self) -> Recording | None:
        config = self.config
        reads = self.reads_routes and config.routes.name == "recording"
        return self._recording if reads and config.recording is not None else None

    @property
    def place(self) -> str:
        return f"device {self.device.type} ({self.device_name})"

    def machine_facts(self) -> dict[str, str]:
        return {"attention": backend_name()} if self.device.type == "cuda" else {}

    @cached_property
    def rows(self) -> Rows:
        return evaluated_rows(self.config.dataset, self.config.request_limit, self.split)

    @cached_property
    def tokenizer(self) -> Any:
        named = self.config.model.tokenizer
        folder = self.checkpoint.folder if named is None else locate(named)
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # each tokenizer backend fails in its own way
            raise SpecfitError(
                f"{folder} has no tokenizer that can be read ({type(error).__name__}); "
                "it needs tokenizer.json and tokenizer_config.json"
            ) from None
        if tokenizer.chat_template is None:
            raise SpecfitError(f"{folder} has no chat template; it needs chat_template.jinja")
        if len(tokenizer) > self.geometry.vocabulary:
            raise SpecfitError(
                f"the tokenizer of {folder} has {len(tokenizer)} tokens, the target's vocabulary "
                f"{self.geometry.vocabulary}; they are not of one model"
            )
        return tokenizer

    @cached_property
    def tokenizer_identity(self) -> str | None:
        named = self.config.model.tokenizer
        if named is None:
            return None  # the target's own, which is in the target's digest
        digest = tokenizer_digest(locate(named))
        return SHIPPED_TOKENIZERS.get(digest, f"sha256:{digest}")

    def prompting(self, dataset: DatasetConfig, max_new_tokens: int) -> Prompting:
        return Prompting(
            self.tokenizer,
            dataset.document or "prompt",
            dataset.reference,
            dataset.template,
            dataset.max_document_tokens,
            max_new_tokens,
            stop_ids(self.checkpoint.folder, self.checkpoint.config),
            self.geometry.context,
            dataset.system,
            dataset.chat_template_kwargs,
        )

    @cached_property
    def target_digest(self) -> str:
        return self.checkpoint.digest()

    @cached_property
    def drafter_folder(self) -> Path:
        folder = folder_of("drafter", self.config.drafter)
        if not folder.is_dir():
            raise SpecfitError(f"no draft head at {folder}; set drafter.path to its folder")
        return folder

    @cached_property
    def drafter_digest(self) -> str:
        if self.config.drafter.name == "oracle":
            return identity.digest([oracle.KIND, list(self.config.drafter.hits)])
        return folder_digest(self.drafter_folder)


def resolve(config: RunConfig, split: str = "evaluation") -> LiveRunSpec:
    """Raises SpecfitError for whatever the config names and is not there or does not fit."""
    checkpoint = open_checkpoint(config.model)
    family_of(checkpoint.config)
    geometry = geometry_of(checkpoint.config)
    if config.model.num_layers is not None:
        if config.model.num_layers > geometry.layers:
            raise SpecfitError(
                f"model.num_layers is {config.model.num_layers}; the checkpoint has "
                f"{geometry.layers}"
            )
        geometry = geometry_of({**checkpoint.config, "num_hidden_layers": config.model.num_layers})
    kind = selector_spec(config.selector.name)
    profile = profile_of(config.gpu)
    device, device_name = find_device(config.device)
    clock = choose_clock(config.gpu.clock, profile, device_name)
    refuse_ram_slots(config, geometry.experts, clock)
    slots, notes = _fitting_slots(config, checkpoint, clock, device, profile)
    bill = billing(config.gpu.billed, geometry.layers, expert_bytes(config, checkpoint))
    if clock == "modelled":
        notes += (*profile_advice(config.gpu), *other_format(config.gpu.billed, checkpoint))
    parts = geometry, kind, slots, profile, bill, clock, device_name, notes, checkpoint, device
    return LiveRunSpec(config, *parts, split=split)


def other_format(billed: str, checkpoint: Checkpoint) -> tuple[str, ...]:
    """One sentence where quantised experts are billed as a published model's in bf16."""
    shape, method = PUBLISHED.get(billed), checkpoint.scheme.method
    if shape is None or shape.stored_expert_bytes is not None or method == "none":
        return ()
    alike = [name for name in PUBLISHED if name.startswith(f"{billed}-")]
    return (
        f"experts are stored in {method}, and each copy is billed as {billed}'s in bf16; "
        f"gpu.billed={' or '.join(alike)} bills a smaller one",
    )


def open_checkpoint(model: ModelConfig) -> Checkpoint:
    if model.source == "traced":
        raise SpecfitError(
            f"model={model.name} is routes without weights and only replays; record it with "
            "`python -m specfit.record`, then use specfit.replay"
        )
    if model.source == "random":
        return RandomCheckpoint(locate(model.path), model.shape, model.format)
    repository = repository_of("model", model)
    remedy = repository.command if repository is not None else FETCH_AGAIN
    folder = folder_of("model", model)
    if model.format in (None, PLAIN):
        checkpoint = Checkpoint(folder, remedy)
        if model.format == PLAIN and checkpoint.scheme.method != "none":
            raise SpecfitError(
                f"model.format={PLAIN} needs a checkpoint in floating point, {folder} is quantised "
                f"with {checkpoint.scheme.method}; leave model.format out"
            )
        return checkpoint
    return Checkpoint(quantised_copy(folder, model.format, cache_folder("checkpoints")))


def expert_bytes(config: RunConfig, checkpoint: Checkpoint) -> int:
    """Of one expert, as it is stored and copied."""
    dtype: torch.dtype = getattr(torch, config.model.dtype)
    return checkpoint.expert_format(geometry_of(checkpoint.config), dtype).block_bytes


def _fitting_slots(
    config: RunConfig, checkpoint: Checkpoint, clock: str, device: torch.device, profile: Profile
) -> tuple[int, tuple[str, ...]]:
    """Slots per layer; on a GPU held against the bytes free there before a weight is read."""

    def sizing() -> Sizing:
        named = config.drafter.path or config.drafter.repository
        folder = folder_of("drafter", config.drafter) if named else None
        head = read_json(folder / "config.json") if folder is not None else None
        own_bytes = expert_bytes(config, checkpoint)
        return sizing_of(config, checkpoint.config, head, clock, device, profile, own_bytes)

    experts = geometry_of(checkpoint.config).experts
    requested = min(config.calibration.slots, experts)

    def fit() -> tuple[int, str]:
        return settled_fit(sizing(), requested, Path(config.results_dir))

    slots, notes = settle_slots(config, experts, fit)
    if clock == "wall" and (config.offload.tier == "disk" or device.type == "cuda"):
        table = sizing()
        table.refuse_too_many(slots)
    if clock == "wall" and device.type == "cuda":
        notes += (*table.lines(slots), *surroundings(bus_id(device)).notes())
        notes += (f"attention: {backend_name()}",)
    return slots, notes


def find_device(requested: str) -> tuple[torch.device, str]:
    if requested == "cuda" and not torch.cuda.is_available():
        raise SpecfitError("device=cuda, but no CUDA device or driver was found; use device=cpu")
    if requested == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu"), cpu_name() or platform.machine()
    settle_backend()
    return torch.device("cuda"), torch.cuda.get_device_name()


PACKAGE = Path(specfit.__file__).resolve().parent


def pack_folder(config: RunConfig, checkpoint: Path) -> Path | None:
    """Where the pack of experts lies or will; None where experts are in host memory.

    Beside a checkpoint of one's own; in a cache for one that is part of the package or read-only.
    """
    offload = config.offload
    if offload.tier == "host":
        return None
    if config.gpu.link_gbps_cap is not None:
        raise SpecfitError(
            "gpu.link_gbps_cap slows copies from host memory down; with offload.tier=disk the disk "
            "is the link, so drop one of the two"
        )
    if offload.pack is not None:
        return Path(offload.pack)
    if os.access(checkpoint, os.W_OK) and PACKAGE not in checkpoint.resolve().parents:
        return checkpoint
    return cache_folder("experts")


def cache_folder(name: str) -> Path:
    """Of files that this package makes and can make again."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "specfit" / name
