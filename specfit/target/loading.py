"""From a checkpoint folder to the transformers class without experts, and the host store."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.activations import ACT2FN

from specfit.core import SpecfitError
from specfit.offload.experts import ExpertEngine
from specfit.offload.store import ExpertStore
from specfit.target.checkpoint import Checkpoint
from specfit.target.family import Family, Geometry, family_of, geometry_of


class DetachedExperts(nn.Module):
    """Stands where transformers keeps a layer's expert weights; holds none."""

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.engine: ExpertEngine | None = None

    def forward(
        self, hidden: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
    ) -> torch.Tensor:
        """[T, H], [T, k], [T, k] -> [T, H]"""
        assert self.engine is not None, "attach an engine before the first forward"
        return self.engine.run(self.layer, hidden, top_k_index, top_k_weights)


class LoadedModel:
    """Dense weights on the device (`model`), expert weights in the host store (`store`)."""

    def __init__(self, model: Any, store: ExpertStore, geometry: Geometry, digest: str) -> None:
        self.model, self.store, self.geometry, self.digest = model, store, geometry, digest

    @property
    def activation(self) -> Any:
        return ACT2FN[self.model.config.hidden_act]

    def attach(self, engine: ExpertEngine) -> None:
        for layer in self.model.model.layers:
            layer.mlp.experts.engine = engine


def load_model(
    checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device, num_layers: int | None
) -> LoadedModel:
    """Raises SpecfitError naming the tensor that is missing, damaged or of another shape."""
    family, geometry = family_of(checkpoint.config), geometry_of(checkpoint.config)
    config = AutoConfig.from_pretrained(checkpoint.folder, local_files_only=True)
    if num_layers is not None:
        if not 0 < num_layers <= geometry.layers:
            raise SpecfitError(
                f"model.num_layers is {num_layers}, the checkpoint has {geometry.layers}"
            )
        config.num_hidden_layers = num_layers
        geometry = geometry_of({**checkpoint.config, "num_hidden_layers": num_layers})
    model = _skeleton(config)
    _fill_dense(model, checkpoint, dtype, device)
    store = _fill_store(checkpoint, family, geometry, dtype)
    return LoadedModel(model.eval().requires_grad_(False), store, geometry, checkpoint.digest())


def _skeleton(config: Any) -> Any:
    config._attn_implementation = "sdpa"  # eager attention is silently wrong with a boolean mask
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    for index, layer in enumerate(model.model.layers):
        layer.mlp.experts = DetachedExperts(index)
    return model


def _fill_dense(
    model: Any, checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device
) -> None:
    tied = bool(checkpoint.config.get("tie_word_embeddings"))
    weights = {
        name: checkpoint.tensor(name, tuple(parameter.shape)).to(device=device, dtype=dtype)
        for name, parameter in model.state_dict().items()
        if not (tied and name == "lm_head.weight")
    }
    if tied:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights, assign=True)
    # Rotary frequencies are not in the checkpoint, and a meta module has none: make it anew.
    with torch.device(device):
        model.model.rotary_emb = type(model.model.rotary_emb)(model.config)


def _fill_store(
    checkpoint: Checkpoint, family: Family, geometry: Geometry, dtype: torch.dtype
) -> ExpertStore:
    store = ExpertStore(
        geometry.layers, geometry.experts, geometry.hidden, geometry.intermediate, dtype
    )
    inward = (geometry.intermediate, geometry.hidden)
    shapes = (inward, inward, inward[::-1])
    for layer in range(geometry.layers):
        for expert in range(geometry.experts):
            names = family.expert_parts(layer, expert)
            parts = (checkpoint.tensor(n, s) for n, s in zip(names, shapes, strict=True))
            store.write(layer, expert, parts)
    store.freeze()
    return store
