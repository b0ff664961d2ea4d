"""A draft head's `config.json` to and from `HeadConfig`, refusing what the head does not do.

Three formats are read. speculators' is nested and explicit; SafeAILab's and SpecForge's are flat
Llama configs, which are turned into the first and then read like it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from specfit.base.types import SpecfitError
from specfit.models.drafter.head import HeadConfig

ARCHITECTURES = ("Eagle3DraftModel", "Eagle3Speculator")
# True-valued flags that are supported or change nothing at inference. Any other is refused.
KNOWN_FLAGS = {
    "norm_before_residual",
    "norm_before_fc",
    "fc_norm",
    "norm_output",
    "embed_requires_grad",
    "has_own_embed_tokens",  # the tensors say so themselves
    "has_own_lm_head",
}
KNOWN_LAYER_FLAGS = {"attention_bias", "mlp_bias", "use_cache", "tie_word_embeddings"}
# HF class defaults, for files that store only what differs from them.
LAYER_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {"rms_norm_eps": 1e-6, "max_position_embeddings": 2048},
    "qwen3": {"rms_norm_eps": 1e-6, "max_position_embeddings": 32768, "head_dim": 128},
}
DEFAULT_DRAFT_VOCABULARY = 32000


def default_aux_layers(layers: int) -> tuple[int, int, int]:
    """Input-of-layer ids a file that names none means."""
    return (2, layers // 2, layers - 3)


def read_config(
    fields: Mapping[str, Any], target_config: Any, lm_head_rows: int | None
) -> HeadConfig:
    """JSON fields of a head -> HeadConfig, checked against the target's config."""
    if "speculators_model_type" not in fields and "hidden_size" in fields:
        fields = flat_as_nested(fields, target_config.vocab_size, lm_head_rows)
    layer = fields.get("transformer_layer_config")
    if fields.get("speculators_model_type") != "eagle3" or not isinstance(layer, Mapping):
        raise SpecfitError(
            "The draft head's config.json is no EAGLE-3 config: expected speculators_model_type "
            "'eagle3' and a transformer_layer_config, or a flat Llama config with draft_vocab_size."
        )
    _refuse_unknown_flags(fields, KNOWN_FLAGS)
    _refuse_unknown_flags(layer, KNOWN_LAYER_FLAGS)
    kind = layer.get("model_type", "llama")
    if kind not in LAYER_DEFAULTS:
        raise SpecfitError(f"The draft head's layer is {kind!r}; expected 'llama' or 'qwen3'.")
    layer = {**LAYER_DEFAULTS[kind], **layer}
    _check_against_target(fields, layer, target_config)
    width, heads = layer["hidden_size"], layer["num_attention_heads"]
    draft_rows = fields.get("draft_vocab_size", DEFAULT_DRAFT_VOCABULARY)
    if lm_head_rows is not None and lm_head_rows != draft_rows:
        raise SpecfitError(
            f"The draft head's tensor lm_head.weight has {lm_head_rows} rows; expected the "
            f"{draft_rows} of draft_vocab_size."
        )
    return HeadConfig(
        hidden_size=width,
        intermediate_size=layer["intermediate_size"],
        num_attention_heads=heads,
        num_key_value_heads=layer.get("num_key_value_heads") or heads,
        head_dim=layer.get("head_dim") or width // heads,
        vocab_size=target_config.vocab_size,
        draft_vocab_size=draft_rows,
        aux_layer_ids=_aux_layers(fields, target_config.num_hidden_layers),
        norm_before_residual=_norm_before_residual(fields),
        target_hidden_size=target_config.hidden_size,
        layer_type=kind,
        rms_norm_eps=layer["rms_norm_eps"],
        rope_theta=_rope_theta(layer),
        max_position_embeddings=layer["max_position_embeddings"],
        attention_bias=bool(layer.get("attention_bias")),
        mlp_bias=bool(layer.get("mlp_bias")),
        sliding_window=_sliding_window(layer),
        norm_before_fc=bool(fields.get("norm_before_fc")),
        fc_norm=bool(fields.get("fc_norm")),
        norm_output=bool(fields.get("norm_output")),
    )


def flat_as_nested(
    fields: Mapping[str, Any], vocabulary: int, lm_head_rows: int | None
) -> dict[str, Any]:
    """A flat config (SafeAILab, SpecForge, SGLang) in the terms of the nested one.

    Flat files count aux layers by their output, which is the next layer's input; they mean no
    norm before the residual; `truncated_vocab_size` is one publisher's word for the draft rows.
    """
    if "eagle_aux_hidden_state_layer_ids" in fields:
        raise SpecfitError(
            "The draft head's flat config names eagle_aux_hidden_state_layer_ids at its top level, "
            "where formats differ by one layer; expected them inside eagle_config."
        )
    eagle = fields.get("eagle_config") or {}
    _refuse_unknown_flags(eagle, {"use_aux_hidden_state", *KNOWN_FLAGS})
    if eagle.get("use_aux_hidden_state") is False:
        raise SpecfitError(
            "The draft head sets use_aux_hidden_state=false, as EAGLE-1 and 2 do; expected an "
            "EAGLE-3 head, which reads three layers of the target."
        )
    outputs = eagle.get("eagle_aux_hidden_state_layer_ids")
    rows = fields.get("draft_vocab_size") or fields.get("truncated_vocab_size") or lm_head_rows
    flags = {name: fields[name] for name in KNOWN_FLAGS if name in fields}
    layer = {name: fields[name] for name in fields if name not in KNOWN_FLAGS | {"eagle_config"}}
    return {
        "speculators_model_type": "eagle3",
        "norm_before_residual": False,
        **flags,
        "draft_vocab_size": rows or vocabulary,
        "target_hidden_size": fields.get("target_hidden_size"),
        "eagle_aux_hidden_state_layer_ids": outputs and [index + 1 for index in outputs],
        "transformer_layer_config": layer,
    }


def _refuse_unknown_flags(fields: Mapping[str, Any], known: set[str]) -> None:
    for name, value in fields.items():
        if value is True and name not in known and name != "use_sliding_window":
            raise SpecfitError(
                f"The draft head's config sets {name}=true, which this head does not implement; "
                f"running it anyway would draft wrongly."
            )


def _check_against_target(
    fields: Mapping[str, Any], layer: Mapping[str, Any], target_config: Any
) -> None:
    if layer.get("num_hidden_layers", 1) != 1:
        raise SpecfitError(f"The draft head has {layer['num_hidden_layers']} layers; expected 1.")
    if layer.get("hidden_act", "silu") != "silu":
        raise SpecfitError(f"The draft head's hidden_act is {layer['hidden_act']!r}, not 'silu'.")
    for name in ("hidden_size", "intermediate_size", "num_attention_heads"):
        if name not in layer:
            raise SpecfitError(f"The draft head's transformer_layer_config lacks {name}.")
    aux_width = fields.get("target_hidden_size") or layer["hidden_size"]
    if aux_width != target_config.hidden_size:
        raise SpecfitError(
            f"The draft head reads target features of width {aux_width}; the target's hidden_size "
            f"is {target_config.hidden_size}."
        )
    if layer.get("vocab_size", target_config.vocab_size) != target_config.vocab_size:
        raise SpecfitError(
            f"The draft head is made for a vocabulary of {layer['vocab_size']}; the target's is "
            f"{target_config.vocab_size}."
        )
    if fields.get("norm_before_fc") and fields.get("fc_norm"):
        raise SpecfitError("The draft head sets norm_before_fc and fc_norm; expected one of them.")


def _aux_layers(fields: Mapping[str, Any], layers: int) -> tuple[int, ...]:
    ids = fields.get("eagle_aux_hidden_state_layer_ids")
    if ids is None:
        return default_aux_layers(layers)
    # id L would be the final hidden state, which transformers hands out after its norm
    if len(set(ids)) != len(ids) or not all(0 <= i < layers for i in ids):
        raise SpecfitError(
            f"The draft head reads the inputs of layers {list(ids)}; expected distinct ids from 0 "
            f"to {layers - 1}."
        )
    return tuple(ids)


def _norm_before_residual(fields: Mapping[str, Any]) -> bool:
    if "norm_before_residual" not in fields:
        # speculators' own default is false, vLLM's true: whichever is taken, say so
        warnings.warn(
            "The draft head's config lacks norm_before_residual; false is assumed, as "
            "speculators does. If almost nothing is accepted, try true.",
            stacklevel=2,
        )
    return bool(fields.get("norm_before_residual", False))


def _rope_theta(layer: Mapping[str, Any]) -> float:
    """transformers 5 `rope_parameters` or 4 `rope_theta` + `rope_scaling`; never the target's."""
    rope = layer.get("rope_parameters") or {}
    scaling = layer.get("rope_scaling") or {}
    kind = rope.get("rope_type") or scaling.get("rope_type") or scaling.get("type") or "default"
    if kind != "default":
        raise SpecfitError(f"The draft head's RoPE is of type {kind!r}; expected 'default'.")
    return float(rope.get("rope_theta") or layer.get("rope_theta") or 10000.0)


def _sliding_window(layer: Mapping[str, Any]) -> int | None:
    if layer.get("use_sliding_window") and "layer_types" not in layer:
        raise SpecfitError(
            "The draft head sets use_sliding_window=true and does not say for which layer; "
            "expected layer_types."
        )
    kinds = layer.get("layer_types") or ["full_attention"]
    return layer.get("sliding_window") if kinds[0] == "sliding_attention" else None


def config_to_json(config: HeadConfig, dtype: str, verifier: Mapping[str, Any]) -> dict[str, Any]:
    """HeadConfig -> the fields of a speculators `config.json`. Default aux ids are written null."""
    layer: dict[str, Any] = {
        "model_type": config.layer_type,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "hidden_act": config.hidden_act,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_theta},
        "max_position_embeddings": config.max_position_embeddings,
        "attention_bias": config.attention_bias,
        "mlp_bias": config.mlp_bias,
        "vocab_size": config.vocab_size,
    }
    if config.sliding_window is not None:
        layer["layer_types"] = ["sliding_attention"]
        layer["sliding_window"] = config.sliding_window
    layers = verifier.get("num_hidden_layers")
    default = layers is not None and config.aux_layer_ids == default_aux_layers(layers)
    return {
        "architectures": [ARCHITECTURES[0]],
        "speculators_model_type": "eagle3",
        "dtype": dtype,
        "draft_vocab_size": config.draft_vocab_size,
        "target_hidden_size": config.target_hidden_size,
        "eagle_aux_hidden_state_layer_ids": None if default else list(config.aux_layer_ids),
        "norm_before_residual": config.norm_before_residual,
        "norm_before_fc": config.norm_before_fc,
        "fc_norm": config.fc_norm,
        "norm_output": config.norm_output,
        "embed_requires_grad": False,
        "transformer_layer_config": layer,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [
                {
                    "proposal_type": "greedy",
                    "speculative_tokens": 5,
                    "verifier_accept_k": 1,
                    "accept_tolerance": 0.0,
                }
            ],
            "verifier": {
                "name_or_path": verifier["name_or_path"],
                "architectures": list(verifier["architectures"]),
            },
        },
    }
