"""A draft head's `config.json` to and from `HeadConfig`, refusing what the head does not do.

Three formats are read. speculators' is nested and explicit; SafeAILab's and SpecForge's are flat
Llama configs, which are turned into the first and then read like it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any

from pydantic import Field
from transformers import LlamaConfig, Qwen3Config

from specfit.base.types import SpecfitError
from specfit.models.drafter.head import HeadConfig
from specfit.models.schema import HARMLESS, File, by_class, by_model, unknown_key

ARCHITECTURES = ("Eagle3DraftModel", "Eagle3Speculator")
FILE = "the draft head's config.json"
LAYER = f"{FILE}: transformer_layer_config"
# Whose defaults a layer's file means by what it leaves out.
LAYER_CLASSES: dict[str, Any] = {"llama": LlamaConfig, "qwen3": Qwen3Config}
# Keys of a layer that its class does not declare and that are read here.
LAYER_ALSO = {
    "layer_types": list[str],
    "sliding_window": int,
    "use_sliding_window": bool,
    "mlp_bias": bool,
}
# Of a flat file: keys that are not its layer's.
FLAGS = ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "embed_requires_grad")


# Of a flat file: norms that this head always has, the embedding's and the one before lm_head.
ALWAYS = ("use_input_layernorm_in_first_layer", "use_last_layernorm")


class _Head(File):
    """speculators' file around the layer, with the defaults of its own class."""

    speculators_model_type: str
    transformer_layer_config: dict[str, Any]
    draft_vocab_size: int = 32000
    target_hidden_size: int | None = None
    eagle_aux_hidden_state_layer_ids: list[int] | None = None
    norm_before_residual: bool | None = None
    norm_before_fc: bool = False
    fc_norm: bool = False
    norm_output: bool = False
    # of no meaning here: training, what the tensors say themselves, and what made the file
    embed_requires_grad: bool = False
    has_own_embed_tokens: bool | None = None
    has_own_lm_head: bool | None = None
    tie_word_embeddings: bool = False
    speculators_config: dict[str, Any] = Field(default_factory=dict)
    speculators_version: str | None = None
    auto_map: dict[str, Any] | None = None


class _Eagle(File):
    """`eagle_config` of a flat file."""

    use_aux_hidden_state: bool = True
    eagle_aux_hidden_state_layer_ids: list[int] | None = None
    norm_before_residual: bool | None = None
    norm_before_fc: bool = False
    fc_norm: bool = False
    norm_output: bool = False
    use_input_layernorm_in_first_layer: bool = True
    use_last_layernorm: bool = True


class _Rope(File):
    """RoPE of transformers 5; of 4, `rope_scaling`."""

    rope_type: str | None = None
    type: str | None = None
    rope_theta: float | None = None


def default_aux_layers(layers: int) -> tuple[int, int, int]:
    """Input-of-layer ids a file that names none means."""
    return (2, layers // 2, layers - 3)


def read_config(
    fields: Mapping[str, Any], target_config: Any, lm_head_rows: int | None
) -> HeadConfig:
    """JSON fields of a head -> HeadConfig, checked against the target's config.

    Raises SpecfitError naming the key that is unknown, of another type or does not fit.
    """
    is_flat = "speculators_model_type" not in fields and "hidden_size" in fields
    if is_flat:
        fields = flat_as_nested(fields, target_config.vocab_size, lm_head_rows)
    layer = fields.get("transformer_layer_config")
    if fields.get("speculators_model_type") != "eagle3" or not isinstance(layer, Mapping):
        raise SpecfitError(
            "The draft head's config.json is no EAGLE-3 config: expected speculators_model_type "
            "'eagle3' and a transformer_layer_config, or a flat Llama config with draft_vocab_size."
        )
    head = by_model(_Head, {k: v for k, v in fields.items() if k not in HARMLESS}, FILE)
    kind = layer.get("model_type", "llama")
    if kind not in LAYER_CLASSES:
        raise SpecfitError(f"The draft head's layer is {kind!r}; expected 'llama' or 'qwen3'.")
    theta, window = _rope_theta(layer), _sliding_window(layer)
    layer = by_class(LAYER_CLASSES[kind], {"num_hidden_layers": 1, **layer}, LAYER, LAYER_ALSO)
    _check_against_target(head, layer, target_config)
    if lm_head_rows is not None and lm_head_rows != head.draft_vocab_size:
        raise SpecfitError(
            f"The draft head's tensor lm_head.weight has {lm_head_rows} rows; expected the "
            f"{head.draft_vocab_size} of draft_vocab_size."
        )
    return HeadConfig(
        hidden_size=layer["hidden_size"],
        intermediate_size=layer["intermediate_size"],
        num_attention_heads=layer["num_attention_heads"],
        num_key_value_heads=layer["num_key_value_heads"],
        head_dim=layer["head_dim"],
        vocab_size=target_config.vocab_size,
        draft_vocab_size=head.draft_vocab_size,
        aux_layer_ids=_aux_layers(head, target_config.num_hidden_layers),
        norm_before_residual=_norm_before_residual(head),
        target_hidden_size=target_config.hidden_size,
        layer_type=kind,
        rms_norm_eps=layer["rms_norm_eps"],
        rope_theta=theta,
        max_position_embeddings=layer["max_position_embeddings"],
        attention_bias=layer["attention_bias"],
        mlp_bias=layer.get("mlp_bias", False),
        sliding_window=window,
        norm_before_fc=head.norm_before_fc,
        fc_norm=head.fc_norm,
        norm_output=head.norm_output,
        feedback_unknown=is_flat and head.norm_output,
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
    nested = fields.get("eagle_config") or {}
    if not isinstance(nested, Mapping):
        raise SpecfitError(f"{FILE} sets eagle_config={nested!r}; expected an object")
    eagle = by_model(_Eagle, nested, f"{FILE}: eagle_config")
    if not eagle.use_aux_hidden_state:
        raise SpecfitError(
            "The draft head sets use_aux_hidden_state=false, as EAGLE-1 and 2 do; expected an "
            "EAGLE-3 head, which reads three layers of the target."
        )
    for name in ALWAYS:
        if fields.get(name, getattr(eagle, name)) is not True:
            raise SpecfitError(
                f"{FILE} sets {name}={json.dumps(fields.get(name, False))}; this head always has "
                "that norm, so expected true or no such key"
            )
    outputs = eagle.eagle_aux_hidden_state_layer_ids
    names = ("draft_vocab_size", "truncated_vocab_size")
    rows = [fields[name] for name in names if fields.get(name) is not None]
    flags = {name: nested[name] for name in FLAGS if nested.get(name) is not None}
    for name in FLAGS:
        if fields.get(name) is not None:
            if flags.get(name, fields[name]) != fields[name]:
                raise SpecfitError(f"{FILE} sets {name} twice, to different values; remove one")
            flags[name] = fields[name]
    own = {*FLAGS, *names, "eagle_config", "target_hidden_size", "speculators_config"}
    own |= {"has_own_embed_tokens", "has_own_lm_head", "auto_map", *ALWAYS}
    return {
        "speculators_model_type": "eagle3",
        "norm_before_residual": False,
        **flags,
        "draft_vocab_size": [*rows, lm_head_rows or vocabulary][0],
        "target_hidden_size": fields.get("target_hidden_size"),
        "eagle_aux_hidden_state_layer_ids": outputs and [index + 1 for index in outputs],
        "transformer_layer_config": {k: v for k, v in fields.items() if k not in own},
    }


def _check_against_target(head: _Head, layer: Mapping[str, Any], target_config: Any) -> None:
    if layer["num_hidden_layers"] != 1:
        raise SpecfitError(f"The draft head has {layer['num_hidden_layers']} layers; expected 1.")
    if layer["hidden_act"] != "silu":
        raise SpecfitError(f"The draft head's hidden_act is {layer['hidden_act']!r}, not 'silu'.")
    aux_width = head.target_hidden_size or layer["hidden_size"]
    if aux_width != target_config.hidden_size:
        raise SpecfitError(
            f"The draft head reads target features of width {aux_width}; the target's hidden_size "
            f"is {target_config.hidden_size}."
        )
    if layer["vocab_size"] != target_config.vocab_size:
        raise SpecfitError(
            f"The draft head is made for a vocabulary of {layer['vocab_size']}; the target's is "
            f"{target_config.vocab_size}."
        )
    if head.draft_vocab_size > target_config.vocab_size:
        raise SpecfitError(
            f"The draft head's draft_vocab_size is {head.draft_vocab_size}, above the target's "
            f"vocabulary of {target_config.vocab_size}."
        )
    if head.norm_before_fc and head.fc_norm:
        raise SpecfitError("The draft head sets norm_before_fc and fc_norm; expected one of them.")
    heads, shared = layer["num_attention_heads"], layer["num_key_value_heads"]
    if heads % shared or layer["head_dim"] % 2:
        raise SpecfitError(
            f"The draft head has {heads} heads of {layer['head_dim']} over {shared} key/value "
            "heads; expected a multiple of them, and an even head_dim."
        )


def _aux_layers(head: _Head, layers: int) -> tuple[int, ...]:
    ids = head.eagle_aux_hidden_state_layer_ids
    if ids is None:
        return default_aux_layers(layers)
    # id L would be the final hidden state, which transformers hands out after its norm
    if not ids or len(set(ids)) != len(ids) or not all(0 <= i < layers for i in ids):
        raise SpecfitError(
            f"The draft head reads the inputs of layers {list(ids)}; expected distinct ids from 0 "
            f"to {layers - 1}."
        )
    return tuple(ids)


def _norm_before_residual(head: _Head) -> bool:
    if head.norm_before_residual is None:
        # speculators' own default is false, vLLM's true: whichever is taken, say so
        warnings.warn(
            "The draft head's config lacks norm_before_residual; false is assumed, as "
            "speculators does. If almost nothing is accepted, try true.",
            stacklevel=2,
        )
    return bool(head.norm_before_residual)


def _rope_theta(layer: Mapping[str, Any]) -> float:
    """transformers 5 `rope_parameters` or 4 `rope_theta` + `rope_scaling`; never the target's.

    Every key of both is looked at: a scaling that stands beside plain parameters still scales.
    """
    bases = []
    for name in ("rope_parameters", "rope_scaling"):
        said = layer.get(name)
        if said is None:
            continue
        where = f"{LAYER}.{name}"
        if not isinstance(said, Mapping):
            raise SpecfitError(f"{where} is {said!r}; expected an object")
        for kind in (said.get("rope_type"), said.get("type")):
            if isinstance(kind, str) and kind != "default":
                raise SpecfitError(
                    f"The draft head's RoPE is of type {kind!r} ({name}); expected 'default'."
                )
        if said.get("partial_rotary_factor") not in (None, 1.0):
            raise unknown_key(where, "partial_rotary_factor", said["partial_rotary_factor"])
        rest = {key: value for key, value in said.items() if key != "partial_rotary_factor"}
        bases.append(by_model(_Rope, rest, where).rope_theta)
    alone = layer.get("rope_theta")
    if alone is not None and (isinstance(alone, bool) or not isinstance(alone, int | float)):
        raise SpecfitError(f"{LAYER} sets rope_theta={alone!r}; expected a number")
    named = {float(base) for base in (*bases, alone) if base is not None}
    if len(named) > 1:
        raise SpecfitError(f"{LAYER} sets two different rope_theta, {sorted(named)}; remove one")
    return named.pop() if named else 10000.0  # the default of both classes


def _sliding_window(layer: Mapping[str, Any]) -> int | None:
    kinds = layer.get("layer_types")
    if layer.get("use_sliding_window") and kinds is None:
        raise SpecfitError(
            "The draft head sets use_sliding_window=true and does not say for which layer; "
            "expected layer_types."
        )
    if kinds is None:
        return None
    known = ("full_attention", "sliding_attention")
    if not isinstance(kinds, list) or len(kinds) != 1 or kinds[0] not in known:
        raise SpecfitError(
            f"{LAYER} sets layer_types={kinds!r}; expected one of {' or '.join(known)} in a list"
        )
    if kinds[0] == "full_attention":
        return None
    if type(layer.get("sliding_window")) is not int:
        raise SpecfitError(f"{LAYER} has a sliding_attention layer and no sliding_window; add it")
    return int(layer["sliding_window"])


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
