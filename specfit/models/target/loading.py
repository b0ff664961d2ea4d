"""From a checkpoint folder to the transformers class without experts, and the host store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.activations import ACT2FN

from specfit.base.types import SpecfitError
from specfit.experts.disk_weights import DiskStore
from specfit.experts.engine import ExpertEngine
from specfit.experts.expert_format import ExpertFormat
from specfit.experts.host_weights import ExpertStore, HostStore
from specfit.experts.pack import PackShape, PackWriter
from specfit.models.target import gpt_oss
from specfit.models.target.attention import use_attention
from specfit.models.target.checkpoint import Checkpoint
from specfit.models.target.family import Family, Geometry, family_of, first_layers, geometry_of
from specfit.models.target.shards import DTYPES, Entry, Shard

READERS = 4
"""Threads that read experts; one request in flight does not fill a fast disk."""

EXPERT_FUNCTIONS = {"gpt_oss": gpt_oss.expert_functions}
"""By family, of a config: what gate and up go through before their product. In others it is the
config's activation, and nothing."""

TIED = "tie_word_embeddings"
NOT_WEIGHTS = ("rotary_emb.inv_freq",)  # in old files; computed from the config instead


class DetachedExperts(nn.Module):
    """Stands where transformers keeps a layer's expert weights; holds none."""

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.engine: ExpertEngine | None = None

    def forward(
        self, hidden: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
    ) -> torch.Tensor:
        """[T, H], [T, k], [T, k] -> [T, H]."""
        assert self.engine is not None, "attach an engine before the first forward"
        weights = top_k_weights.to(hidden.dtype)  # Mixtral's router gives float32
        return self.engine.run(self.layer, hidden, top_k_index, weights)


class LoadedModel:
    """Dense weights on the device (`model`), expert weights in the host store (`store`)."""

    def __init__(self, model: Any, store: HostStore, geometry: Geometry, digest: str) -> None:
        self.model, self.store, self.geometry, self.digest = model, store, geometry, digest

    @property
    def activation(self) -> Any:
        return self._functions[0]

    @property
    def lift(self) -> Any:
        """What the up projection goes through before the product; None: nothing."""
        return self._functions[1]

    @property
    def family(self) -> Family:
        return family_of({"model_type": self.model.config.model_type})

    @property
    def _functions(self) -> tuple[Any, Any]:
        config = self.model.config
        own = EXPERT_FUNCTIONS.get(self.family.model_type)
        return (ACT2FN[config.hidden_act], None) if own is None else own(config)

    @property
    def windows(self) -> list[int | None]:
        """Of each layer, the columns back that it attends to, itself included; None: all."""
        return [window_of(layer) for layer in self.model.model.layers]

    @property
    def format(self) -> ExpertFormat:
        return self.store.format

    def attach(self, engine: ExpertEngine | None) -> None:
        """None lets go of an engine and its slots."""
        for layer in self.model.model.layers:
            layer.mlp.experts.engine = engine


def load_model(
    checkpoint: Checkpoint,
    dtype: torch.dtype,
    device: torch.device,
    num_layers: int | None,
    packs: Path | None = None,
) -> LoadedModel:
    """Raises SpecfitError naming the tensor that is missing, damaged or of another shape.

    `packs`: the experts stay on disk, in a pack in this folder, which is made where it is missing.
    """
    family, geometry, model = check_loadable(checkpoint, num_layers)
    use_attention(model, device)
    _fill_dense(model, checkpoint, family, dtype, device)
    format = checkpoint.expert_format(geometry, dtype)
    if packs is None:
        store: HostStore = _fill_store(checkpoint, geometry, format)
    else:
        shape = PackShape(checkpoint.digest(), geometry.layers, geometry.experts, format)
        store = packed(packs, shape, lambda writer: _fill_pack(checkpoint, writer))
    return LoadedModel(model.eval().requires_grad_(False), store, geometry, checkpoint.digest())


def check_loadable(checkpoint: Checkpoint, num_layers: int | None) -> tuple[Family, Geometry, Any]:
    """Everything about a folder that a load would refuse, from its config and its shards' headers;
    no weight is read. Returns the family, what is loaded of it, and its skeleton."""
    checkpoint.check_complete()
    family = checkpoint.family
    config = AutoConfig.from_pretrained(checkpoint.folder, local_files_only=True)
    if num_layers is not None:
        stored = geometry_of(checkpoint.config).layers
        if not 0 < num_layers <= stored:
            raise SpecfitError(f"model.num_layers is {num_layers}, the checkpoint has {stored}")
        cut = first_layers(config.to_dict(), num_layers)
        config.num_hidden_layers = num_layers
        if cut.get("layer_types") is not None:
            config.layer_types = cut["layer_types"]
    geometry = geometry_of(checkpoint.config | {"num_hidden_layers": config.num_hidden_layers})
    model = skeleton(config)
    _refuse_unknown_tensors(model, checkpoint, family, geometry)
    names = set(checkpoint.names())
    for name, parameter in model.state_dict().items():
        if name == "lm_head.weight" and name not in names and checkpoint.config.get(TIED):
            continue
        for part in checkpoint.parts_of(family.stored_name(name), tuple(parameter.shape)):
            checkpoint.place_of(part)
    format = checkpoint.expert_format(geometry, torch.float32)
    for layer in range(geometry.layers):
        for expert in range(geometry.experts):
            for part in checkpoint.expert(format, layer, expert):
                checkpoint.place_of(part)
    return family, geometry, model


def window_of(layer: Any) -> int | None:
    window = getattr(layer.self_attn, "sliding_window", None)
    return None if window is None else int(window)


def skeleton(config: Any) -> Any:
    """The model on the meta device, every layer's experts detached: shapes without bytes."""
    config.quantization_config = None  # read by a scheme, not by transformers
    # Not eager: transformers' eager attention is silently wrong with a boolean mask.
    config._attn_implementation = family_of({"model_type": config.model_type}).attention
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    for index, layer in enumerate(model.model.layers):
        layer.mlp.experts = DetachedExperts(index)
    return model


def dense_bytes(fields: Mapping[str, Any], dtype: torch.dtype) -> int:
    """Device bytes of what is not an expert, from a config.json's fields alone."""
    options = {name: value for name, value in fields.items() if name != "model_type"}
    model = skeleton(AutoConfig.for_model(family_of(fields).model_type, **options))
    weights = {id(tensor): tensor.numel() for tensor in model.parameters()}  # tied ones once
    return sum(weights.values()) * dtype.itemsize


# -- dense weights -------------------------------------------------------------------------------


def _fill_dense(
    model: Any, checkpoint: Checkpoint, family: Family, dtype: torch.dtype, device: torch.device
) -> None:
    """One tensor at a time through host memory, converted on the device."""
    tied = _is_tied(checkpoint)
    weights: dict[str, torch.Tensor] = {}
    for name, parameter in model.state_dict().items():
        if tied and name == "lm_head.weight":
            continue
        stored = checkpoint.matrix(family.stored_name(name), tuple(parameter.shape), dtype)
        weights[name] = stored.to(device).to(dtype)
    if tied:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    elif checkpoint.config.get("tie_word_embeddings"):
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    model.load_state_dict(weights, assign=True)
    # Rotary frequencies are not in the checkpoint, and a meta module has none: make it anew.
    with torch.device(device):
        model.model.rotary_emb = type(model.model.rotary_emb)(model.config)


def _is_tied(checkpoint: Checkpoint) -> bool:
    """Whether the output head is the embedding: the config says so, and no other head is stored.

    Where one is, it wins over the flag, as in transformers.
    """
    if not checkpoint.config.get("tie_word_embeddings"):
        return False
    if "lm_head.weight" not in checkpoint.names():
        return True
    shape = (checkpoint.config["vocab_size"], checkpoint.config["hidden_size"])
    stored = checkpoint.tensor("lm_head.weight", shape)
    same = torch.equal(stored, checkpoint.tensor("model.embed_tokens.weight", shape))
    if not same:
        print(
            f"specfit: {checkpoint.folder} says tie_word_embeddings=true and stores another "
            "lm_head.weight; the stored one is used, as transformers does",
            file=sys.stderr,
        )
    return same


def _refuse_unknown_tensors(
    model: Any, checkpoint: Checkpoint, family: Family, geometry: Geometry
) -> None:
    """A weight that nothing reads means another architecture than the config says."""
    held = set(checkpoint.names())
    known: set[str] = set()
    for name, parameter in model.state_dict().items():
        known |= checkpoint.names_of(family.stored_name(name), tuple(parameter.shape))
    format = checkpoint.expert_format(geometry, torch.float32)
    inward = geometry.intermediate, geometry.hidden
    for layer in range(geometry.layers):
        for expert in range(geometry.experts):
            known.update(part.name for part in checkpoint.expert(format, layer, expert))
            names = checkpoint.scheme.expert_names(family, layer, expert)
            for name, shape in zip(names, (inward, inward, inward[::-1]), strict=False):
                known |= checkpoint.check_beside(name, shape)
    beyond = tuple(
        f"model.layers.{layer}."
        for layer in range(geometry.layers, geometry_of(checkpoint.config).layers)
    )
    for name in held:
        if name not in known and not name.startswith(beyond) and not name.endswith(NOT_WEIGHTS):
            raise SpecfitError(
                f"{checkpoint.folder} holds tensor {name}, for which its config "
                f"({family.model_type}, {geometry.layers} layers) has no place"
            )


# -- experts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Read:
    """One part of one expert: where it lies and where it goes."""

    shard: Shard
    entry: Entry
    place: torch.Tensor
    convert: Callable[[torch.Tensor], torch.Tensor] | None = None

    def run(self) -> None:
        if self.convert is not None:
            self.place.copy_(self.convert(self.shard.read(self.entry)))
        elif DTYPES[self.entry.dtype] == self.place.dtype:
            self.shard.read_into(self.entry, self.place)
        else:
            self.place.copy_(self.shard.read(self.entry))


def _fill_store(checkpoint: Checkpoint, geometry: Geometry, format: ExpertFormat) -> ExpertStore:
    """Reads every part straight into its block, in the order of the files."""
    store = ExpertStore(geometry.layers, geometry.experts, format)
    blocks = [(layer, expert) for layer in range(store.layers) for expert in range(store.experts)]
    reads = sorted(
        (read for block in blocks for read in _reads(checkpoint, store, *block)),
        key=lambda r: (r.shard.path.name, r.entry.offset),
    )
    with ThreadPoolExecutor(READERS) as pool:
        for _ in pool.map(_Read.run, reads):  # the first that fails raises here
            pass
    for block in blocks:
        store.mark_written(*block)
    store.freeze()
    return store


def packed(folder: Path, shape: PackShape, fill: Callable[[PackWriter], None]) -> DiskStore:
    """The pack of this shape in the folder, made by `fill` where there is none."""
    path = folder / shape.file_name
    if not path.exists():
        writer = PackWriter(path, shape)
        try:
            fill(writer)
        except BaseException:
            writer.abandon()
            raise
    return DiskStore(path, shape)


def _fill_pack(checkpoint: Checkpoint, writer: PackWriter) -> None:
    """Block by block, so that one block is in memory and no more."""
    for layer in range(writer.layers):
        for expert in range(writer.experts):
            for read in _reads(checkpoint, writer, layer, expert):
                read.run()
            writer.mark_written(layer, expert)
    writer.freeze()


def _reads(
    checkpoint: Checkpoint, store: ExpertStore | PackWriter, layer: int, expert: int
) -> Iterator[_Read]:
    places = store.places(layer, expert)
    parts = checkpoint.expert(store.format, layer, expert)
    for part, place in zip(parts, places, strict=True):
        yield _Read(*checkpoint.place_of(part), place, part.convert)
