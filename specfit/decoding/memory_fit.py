"""What a run needs on its device and what is there: one table, which `doctor` prints, runs obey and
`cache_slots=fit` is settled by. Bytes free are asked for, never assumed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from specfit.base.config import RunConfig
from specfit.base.types import SpecfitError
from specfit.experts.ram_store import ram_blocks
from specfit.hardware.memory import GB, DeviceNeeds, host_memory
from specfit.hardware.profile import Profile
from specfit.hardware.reference_models import BILLED_MODELS
from specfit.models.drafter.eagle import HEAD_CHUNK
from specfit.models.drafter.head import EagleHead
from specfit.models.drafter.head_config import read_config
from specfit.models.target.family import Geometry, first_layers, geometry_of
from specfit.models.target.loading import dense_bytes
from specfit.storage.atomic import write_json
from specfit.storage.identity import digest

TEMPLATE_TOKENS = 256
"""Instruction and chat template around a document."""

DOCUMENT_TOKENS = 1024
"""Of a workload that sets no limit of its own."""

BASE_WORKSPACE = 300_000_000
"""Library workspaces and what an allocator cannot use; activations are added to it."""

FREE = "free"
"""Bytes that this process could take when it asked: they differ from one moment to the next."""

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Sizing:
    """A model's needs at one workload, and the device's bytes for them (None = not known)."""

    needs: DeviceNeeds
    store_bytes: int  # of host memory beside the device: the model's own, whatever is billed
    staging_blocks: int
    context: int  # KV rows that are held
    free: int | None
    where: str  # what `free` is of
    unknown: tuple[str, ...] = ()  # rows whose bytes are not known: none is counted
    pack_bytes: int = 0  # of disk, where the experts lie there instead
    ram_bytes: int = 0  # of the device's memory, where that is host RAM: what lies before its slots

    def rows(self, slots: int) -> dict[str, int]:
        parts = self.needs.rows(slots, self.staging_blocks, self.context)
        return parts | ({"RAM slots": self.ram_bytes} if self.ram_bytes else {})

    def needed(self, slots: int) -> int:
        return sum(self.rows(slots).values())

    def largest(self) -> int:
        """Most slots that fit; -1 where even none do. The bytes free are known."""
        assert self.free is not None, "asked only where the free bytes are known"
        room = self.free - self.ram_bytes
        return self.needs.largest_slots(room, self.staging_blocks, self.context)

    def fit(self, requested: int) -> tuple[int, str]:
        """`cache_slots=fit`: the count, and a sentence like `43: 48 needs 25.9 GB, 24.6 free`.

        `wanted` is the count people ask for; the sentence speaks of it, or of what fits instead.
        """
        if self.free is None:
            raise SpecfitError(
                "cache_slots=fit needs a GPU whose free memory can be read, offload.tier=disk or a "
                "profile with memory_bytes (gpu=rtx4090); use a number"
            )
        slots = self.largest()
        if slots < 0:
            raise self.refusal(0)
        spoken = requested if slots < requested else slots
        free = f"{self.free / GB:.1f} {self.where}"
        return (
            slots,
            f"cache_slots=fit is {slots}: {spoken} needs {_gb(self.needed(spoken))}, {free}",
        )

    def lines(self, slots: int) -> list[str]:
        """The table, which the doctor and a run on a GPU print."""
        head = f"device bytes at {slots} slots per layer, {self.context} KV rows:"
        parts = [
            f"  {name:14}{' unknown' if name in self.unknown else f'{size / GB:8.2f} GB'}"
            for name, size in self.rows(slots).items()
        ]
        there = "" if self.free is None else f" of {self.free / GB:.2f} {self.where}"
        label = "together" if not self.unknown else "at least"
        return [head, *parts, f"  {label:14}{self.needed(slots) / GB:8.2f} GB{there}"]

    def refuse_too_many(self, slots: int) -> None:
        if self.free is not None and self.needed(slots) > self.free:
            raise self.refusal(slots)

    def refusal(self, slots: int) -> SpecfitError:
        assert self.free is not None
        most = self.largest()
        if most >= 0:
            right = f"use cache_slots={most} or fit"
        else:
            right = "free device memory, or lower model.num_layers or prefill_chunk"
            right += " or offload.ram_slots" if self.ram_bytes else ""
        return SpecfitError(
            f"{slots} slots per layer need {_gb(self.needed(slots))} of device memory, "
            f"{self.free / GB:.1f} {self.where}; {right}"
        )


def _gb(size: int) -> str:
    return f"{size / GB:.1f} GB"


# -- one count for a sweep, and for a run that goes on ---------------------------------------------

SETTLED = "fitted_slots.json"


def settled_fit(sizing: Sizing, requested: int, results: Path) -> tuple[int, str]:
    """`Sizing.fit`, settled once per results folder where it depends on the bytes free just then.

    Otherwise jobs of one sweep get 44, 43 and 43 slots, and a run that goes on gets another id.
    Raises SpecfitError where the settled count no longer fits.
    """
    if sizing.free is None or sizing.where != FREE:
        return sizing.fit(requested)
    path = results / SETTLED
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    asked = [asdict(sizing.needs), sizing.staging_blocks, sizing.context]
    name = digest(asked + ([sizing.ram_bytes] if sizing.ram_bytes else []))[:16]
    if name in known:
        slots = int(known[name])
        sizing.refuse_too_many(slots)
        return slots, f"cache_slots=fit is {slots}, as settled in {path}; remove it to settle anew"
    slots, sentence = sizing.fit(requested)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, known | {name: slots})
    return slots, sentence


# -- what a model needs --------------------------------------------------------------------------


def sizing_of(
    config: RunConfig,
    target: Fields,
    head: Fields | None,
    clock: str,
    device: torch.device,
    profile: Profile,
    expert_bytes: int | None = None,
) -> Sizing:
    """From the fields of two config.json: no weight is read. `expert_bytes`: of one expert as it
    is stored; None: in model.dtype.

    The head is counted for every system, drafting or not, so that all of a comparison get the
    same slots.
    """
    geometry = geometry_of(target)
    if config.model.num_layers is not None:
        geometry = geometry_of({**target, "num_hidden_layers": config.model.num_layers})
    needs = needs_of(config, target, head, geometry)
    if expert_bytes is not None:
        needs = replace(needs, expert_bytes=expert_bytes)
    context = workload_context(config, geometry.context)
    made = head_of(head, geometry) if head is not None else None
    working = 0 if made is None else made.working_bytes(context, HEAD_CHUNK, needs_itemsize(config))
    return placed(needs, context, config, clock, device, profile, working)


def placed(
    needs: DeviceNeeds,
    context: int,
    config: RunConfig,
    clock: str,
    device: torch.device,
    profile: Profile,
    head_workspace: int = 0,
) -> Sizing:
    """A modelled run is sized as what it is billed as, on its profile's card."""
    store, staging = needs.store_bytes, profile.copies_in_flight + 1
    ahead = area_blocks(config, needs.layers)
    if clock == "modelled":
        billed = BILLED_MODELS.get(config.gpu.billed, needs)
        staging += ahead * billed.layers // needs.layers
        needs, where = replace(billed, experts=needs.experts), f"in profile {profile.name}"
        free = profile.memory_bytes
        if free is not None and config.gpu.display_gb:
            free -= int(config.gpu.display_gb * GB)
            where += f" without {config.gpu.display_gb:g} GB for a display"
        return Sizing(needs, store, staging, context, free, where)
    staging += ahead
    pack = 0
    if config.offload.tier == "disk":
        # What comes through RAM does so by as many blocks as there are beside the device's slots.
        blocks = ram_blocks(needs.layers, config.offload.ram_slots, staging)
        pack, store = store, blocks * needs.expert_bytes
        if device.type == "cpu":
            ram, free = store if config.offload.ram_slots else 0, host_memory().usable
            return Sizing(needs, 0, staging, 2 * context, free, FREE, (), pack, ram)
    # The cache of keys and values doubles when it is full, so it may hold twice what is used.
    # While it grows, the tensor before it is held too.
    workspace = needs.workspace_bytes + context * needs.kv_bytes_per_token + head_workspace
    needs = replace(needs, workspace_bytes=workspace)
    return Sizing(needs, store, staging, 2 * context, device_free(device), FREE, (), pack)


def area_blocks(config: RunConfig, layers: int) -> int:
    """Blocks that predicted experts come into, beside the slots as staging is."""
    return 0 if config.prefetch == "off" else config.prefetch_blocks or layers


def needs_of(
    config: RunConfig, target: Fields, head: Fields | None, geometry: Geometry
) -> DeviceNeeds:
    dtype: torch.dtype = getattr(torch, config.model.dtype)
    size = needs_itemsize(config)
    heads = int(target["num_attention_heads"])
    kv_heads = int(target.get("num_key_value_heads") or heads)
    head_dim = int(target.get("head_dim") or geometry.hidden // heads)
    fields = first_layers(target, geometry.layers)
    rows = min(config.prefill_chunk or geometry.context, workload_context(config, geometry.context))
    # Each prefill row: its k expert outputs, some ten hidden states, and its line of the mask.
    activations = rows * ((geometry.top_k + 10) * geometry.hidden * size + rows)
    return DeviceNeeds(
        layers=geometry.layers,
        experts=geometry.experts,
        expert_bytes=3 * geometry.hidden * geometry.intermediate * size,
        dense_bytes=dense_bytes(fields, dtype),
        drafter_bytes=head_bytes(head, geometry, size) if head is not None else 0,
        kv_bytes_per_token=2 * geometry.layers * kv_heads * head_dim * size,
        workspace_bytes=BASE_WORKSPACE + activations,
    )


def head_bytes(head: Fields, geometry: Geometry, itemsize: int) -> int:
    """Of the whole head, its embedding included: whether that is the target's shows on loading."""
    return sum(weight.numel() for weight in head_of(head, geometry).parameters()) * itemsize


def head_of(head: Fields, geometry: Geometry) -> EagleHead:
    """Shapes without bytes."""
    target = SimpleNamespace(
        vocab_size=geometry.vocabulary,
        hidden_size=geometry.hidden,
        num_hidden_layers=geometry.layers,
    )
    with torch.device("meta"):
        return EagleHead(read_config(head, target, None))


def needs_itemsize(config: RunConfig) -> int:
    dtype: torch.dtype = getattr(torch, config.model.dtype)
    return dtype.itemsize


def workload_context(config: RunConfig, longest: int) -> int:
    """Tokens of the longest request, from the workload's own limits and the model's `longest`."""
    document = config.dataset.max_document_tokens or DOCUMENT_TOKENS
    return min(longest, document + TEMPLATE_TOKENS + config.new_tokens)


def device_free(device: torch.device) -> int | None:
    """Bytes this process may take on its GPU; None on a CPU.

    What its own allocator holds counts as free: a job of a sweep gives it to the next one.
    """
    if device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device))
