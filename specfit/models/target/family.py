"""What differs between MoE families: where a checkpoint keeps its experts. The rest is shared.

All of them are run by their own `transformers` class, whose router says (ids, weights) and whose
experts are detached; norms, rotary embeddings and router rules are therefore that class's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specfit.base.types import SpecfitError


@dataclass(frozen=True)
class Family:
    """Checkpoint names of one `model_type`. An expert is down(act(gate(x)) * up(x))."""

    model_type: str
    block: str  # what a layer's MoE is called in the checkpoint: mlp, block_sparse_moe
    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"
    attention: str = "sdpa"  # what its class calls, by transformers' name
    windowed: bool = False  # some of its layers attend to a sliding window
    scheme: str | None = None  # `quant_method` of its checkpoints, where no other is read

    def expert_parts(self, layer: int, expert: int) -> tuple[str, str, str]:
        """Names of gate [I, H], up [I, H], down [H, I]."""
        prefix = f"model.layers.{layer}.{self.block}.experts.{expert}"
        return (
            f"{prefix}.{self.gate}.weight",
            f"{prefix}.{self.up}.weight",
            f"{prefix}.{self.down}.weight",
        )

    def is_expert(self, name: str) -> bool:
        return f".{self.block}.experts." in name

    def stored_name(self, name: str) -> str:
        """A parameter's name in transformers, where every family says `mlp` -> in the file."""
        return re.sub(r"^(model\.layers\.\d+)\.mlp\.", rf"\1.{self.block}.", name)


FAMILIES = {
    family.model_type: family
    for family in (
        Family("qwen3_moe", "mlp"),
        Family("olmoe", "mlp"),
        Family("mixtral", "block_sparse_moe", gate="w1", up="w3", down="w2"),
        Family(
            "gpt_oss",
            "mlp",
            attention="specfit_sinks",  # of `gpt_oss.py`, which needs torch
            windowed=True,
            scheme="mxfp4",
        ),
    )
}

RECURRENT = ("qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_6_moe", "kimi_linear")
"""Families of linear attention: a layer's state is of one text, not of every node of a tree."""


@dataclass(frozen=True)
class Geometry:
    """The numbers of a target that the engine, the rows and the bill need."""

    layers: int
    experts: int
    top_k: int
    hidden: int
    intermediate: int
    vocabulary: int
    context: int


def family_of(config: Mapping[str, Any]) -> Family:
    model_type = config.get("model_type")
    if isinstance(model_type, str) and model_type in RECURRENT:
        raise SpecfitError(
            f"model_type {model_type!r} has layers of linear attention, whose recurrent state a "
            "tree of draft tokens cannot share; it is not supported"
        )
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise SpecfitError(
            f"model_type {model_type!r} is not supported; known: {', '.join(sorted(FAMILIES))}"
        )
    return FAMILIES[model_type]


def first_layers(config: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """The config of the same model without the layers after these."""
    cut = {**config, "num_hidden_layers": layers}
    if cut.get("layer_types") is not None:
        cut["layer_types"] = list(cut["layer_types"])[:layers]
    return cut


def geometry_of(config: Mapping[str, Any]) -> Geometry:
    """Accepts `num_experts` (hub files) and `num_local_experts` (newer transformers)."""

    def number(*keys: str) -> int:
        for key in keys:
            if type(config.get(key)) is int:
                return int(config[key])
        raise SpecfitError(f"the target's config.json has no integer {keys[0]}")

    if config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1:
        raise SpecfitError("targets with dense layers among the MoE layers are not supported")
    context = number("max_position_embeddings")
    window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    if window and window < context and not family_of(config).windowed:
        raise SpecfitError(
            f"the target attends to a sliding window of {window} tokens, which this engine does "
            "not do; it supports full attention"
        )
    experts, top_k = number("num_experts", "num_local_experts"), number("num_experts_per_tok")
    if not 0 < top_k <= experts:
        raise SpecfitError(f"the target's num_experts_per_tok is {top_k} of {experts} experts")
    return Geometry(
        layers=number("num_hidden_layers"),
        experts=experts,
        top_k=top_k,
        hidden=number("hidden_size"),
        intermediate=number("moe_intermediate_size", "intermediate_size"),
        vocabulary=number("vocab_size"),
        context=context,
    )
