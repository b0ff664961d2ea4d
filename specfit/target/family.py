"""What differs between MoE families: where a checkpoint keeps its experts. The rest is shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specfit.core import SpecfitError


@dataclass(frozen=True)
class Family:
    """Checkpoint names of one `model_type`; `{layer}` and `{expert}` are filled in."""

    model_type: str
    expert_prefix: str
    gate: str
    up: str
    down: str

    def expert_parts(self, layer: int, expert: int) -> tuple[str, str, str]:
        """Names of gate [I, H], up [I, H], down [H, I]."""
        prefix = self.expert_prefix.format(layer=layer, expert=expert)
        return tuple(f"{prefix}.{part}.weight" for part in (self.gate, self.up, self.down))  # type: ignore[return-value]

    def is_expert(self, name: str) -> bool:
        return self.expert_prefix.split(".{expert}")[0].rsplit(".", 1)[-1] in name.split(".")


FAMILIES = {
    family.model_type: family
    for family in (
        Family(
            "qwen3_moe",
            "model.layers.{layer}.mlp.experts.{expert}",
            "gate_proj",
            "up_proj",
            "down_proj",
        ),
    )
}


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


def family_of(config: dict[str, Any]) -> Family:
    model_type = config.get("model_type")
    if model_type not in FAMILIES:
        raise SpecfitError(
            f"model_type {model_type!r} is not supported; known: {', '.join(sorted(FAMILIES))}"
        )
    return FAMILIES[model_type]


def geometry_of(config: dict[str, Any]) -> Geometry:
    """Accepts `num_experts` (hub files) and `num_local_experts` (newer transformers)."""

    def number(*keys: str) -> int:
        for key in keys:
            if isinstance(config.get(key), int):
                return int(config[key])
        raise SpecfitError(f"the target's config.json has no integer {keys[0]}")

    if config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1:
        raise SpecfitError("targets with dense layers among the MoE layers are not supported")
    return Geometry(
        layers=number("num_hidden_layers"),
        experts=number("num_experts", "num_local_experts"),
        top_k=number("num_experts_per_tok"),
        hidden=number("hidden_size"),
        intermediate=number("moe_intermediate_size", "intermediate_size"),
        vocabulary=number("vocab_size"),
        context=number("max_position_embeddings"),
    )
