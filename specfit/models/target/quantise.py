"""Writes a quantised copy of a checkpoint: the layouts that people download, made from bfloat16.

Attention and experts are quantised, by rounding to the nearest; embeddings, norms, routers and the
output head stay. No data is looked at, so it is for tests and for timing, not for good text.
"""

from __future__ import annotations

import json
import shutil
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from specfit.base.config import FORMATS
from specfit.base.types import SpecfitError
from specfit.experts.expert_format import Layout
from specfit.experts.layouts.fp8 import Fp8Layout
from specfit.experts.layouts.int4 import Int4Layout
from specfit.models.schema import read_json
from specfit.models.target.checkpoint import INDEX, SINGLE, TOKENIZER_FILES, Checkpoint
from specfit.models.target.config_file import GENERATION, QUANTISED
from specfit.models.target.family import Family, geometry_of
from specfit.models.target.schemes.registry import SCHEMES

IGNORED = ["lm_head", "re:.*mlp.gate$"]


@dataclass(frozen=True)
class Kind:
    """A `quantization_config` and the layout that it stands for."""

    config: Mapping[str, Any]
    layout: Layout


def fp8(tile: tuple[int, int] = (128, 128), scales: torch.dtype = torch.bfloat16) -> Kind:
    """Qwen's own."""
    config = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"}
    return Kind(config | {"weight_block_size": list(tile)}, Fp8Layout(tile, scales))


def compressed_fp8(strategy: str) -> Kind:
    """By channel or tensor, as most third parties write it."""
    weights = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": strategy}
    tile = (1 if strategy == "channel" else 0, 0)
    return Kind(_groups("float-quantized", weights), Fp8Layout(tile, torch.bfloat16))


def compressed_int4(group: int) -> Kind:
    weights = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group"}
    weights["group_size"] = group
    return Kind(_groups("pack-quantized", weights), Int4Layout(group, torch.bfloat16))


def gptq(group: int) -> Kind:
    config = {"quant_method": "gptq", "bits": 4, "group_size": group, "sym": True}
    config |= {"desc_act": False, "checkpoint_format": "gptq"}
    return Kind(config, Int4Layout(group, torch.float16))


def awq(group: int) -> Kind:
    config = {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True}
    return Kind(config | {"version": "gemm"}, Int4Layout(group, torch.float16, zeros=True))


def _groups(format: str, weights: Mapping[str, Any]) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": dict(weights), "format": format}
    named = {"quant_method": "compressed-tensors", "format": format, "ignore": IGNORED}
    return {**named, "config_groups": {"group_0": group}, "quantization_status": "compressed"}


PLAIN = FORMATS[0]
"""`model.format` of a checkpoint as it is, which is then in floating point."""

GROUPS = (128, 64, 32)
"""Sizes that int4 checkpoints have, the usual one first."""


def kind_of(name: str, hidden: int, intermediate: int) -> Kind:
    """For experts of these sizes. Raises SpecfitError where no group size fits them."""
    sizes = hidden, intermediate
    group = next((g for g in GROUPS if not any(size % g for size in sizes)), None)
    if group is None and not name.startswith("fp8"):
        raise SpecfitError(
            f"the model's sizes {sizes[0]} and {sizes[1]} are no multiples of {GROUPS[-1]}, which "
            f"the groups of {name} need; use fp8"
        )
    return KINDS[name](group or GROUPS[0])


KINDS: dict[str, Callable[[int], Kind]] = {
    "fp8": lambda _group: fp8(),
    "fp8-channel": lambda _group: compressed_fp8("channel"),
    "fp8-tensor": lambda _group: compressed_fp8("tensor"),
    "int4": compressed_int4,
    "gptq": gptq,
    "awq": awq,
}
"""By the name that the command gives them, of the group size of int4."""


def quantised_copy(source: Path, name: str, cache: Path) -> Path:
    """The copy of `source` in a folder of `cache`, made where there is none yet.

    Raises SpecfitError as `quantise_checkpoint` does, and where the disk refuses.
    """
    checkpoint = Checkpoint(source)
    folder = cache / f"{checkpoint.digest()}-{name}"
    if folder.is_dir():
        return folder
    working = cache / f"{folder.name}.{uuid.uuid4().hex[:8]}.partial"
    print(f"specfit: a copy of {source} in {name} is made in {folder}", file=sys.stderr)
    try:
        shape = geometry_of(checkpoint.config)
        quantise_checkpoint(source, working, kind_of(name, shape.hidden, shape.intermediate))
        working.replace(folder)
    except OSError as error:
        if not folder.is_dir():  # another process was not first
            raise SpecfitError(f"{folder} could not be written ({error.strerror})") from None
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return folder


def quantise_checkpoint(source: Path, folder: Path, kind: Kind) -> None:
    """Shard by shard, under the names of `source`. Raises SpecfitError where `source` is quantised
    itself or `folder` exists."""
    checkpoint = Checkpoint(source)
    fields = read_json(source / "config.json")
    if QUANTISED in fields:
        raise SpecfitError(f"{source} is quantised already; use a checkpoint in floating point")
    if folder.exists():
        raise SpecfitError(f"{folder} exists; name a folder that does not")
    folder.mkdir(parents=True)
    weight_map: dict[str, str] = {}
    for name in sorted({checkpoint.shard_of(tensor) for tensor in checkpoint.names()}):
        tensors = _quantised(checkpoint, name, kind)
        save_file(tensors, folder / name, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(tensors, name)
    if set(weight_map.values()) != {SINGLE}:
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    for beside in (GENERATION, *TOKENIZER_FILES):
        if (source / beside).is_file():
            shutil.copyfile(source / beside, folder / beside)
    config = fields | {QUANTISED: dict(kind.config)}
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def _quantised(checkpoint: Checkpoint, shard: str, kind: Kind) -> dict[str, torch.Tensor]:
    scheme = SCHEMES[kind.config["quant_method"]](kind.config, str(checkpoint.folder))
    opened = checkpoint.shard(shard)
    tensors: dict[str, torch.Tensor] = {}
    for name, entry in opened.entries.items():
        tensor = opened.read(entry)
        if _is_quantised(checkpoint.family, name):
            tensors |= scheme.written(name, tensor, kind.layout)
        else:
            tensors[name] = tensor
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _is_quantised(family: Family, name: str) -> bool:
    attention = ".self_attn." in name and name.endswith("_proj.weight")
    return attention or (family.is_expert(name) and name.endswith(".weight"))
