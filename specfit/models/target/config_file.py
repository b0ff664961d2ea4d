"""A target's `config.json` and `generation_config.json`, read through transformers' classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from specfit.base.types import SpecfitError
from specfit.models.schema import File, by_class, by_model, read_json, unknown_key
from specfit.models.target.family import family_of

GENERATION = "generation_config.json"
QUANTISED = "quantization_config"

# By family: keys that transformers' model reads and its config class does not declare.
ALSO: dict[str, dict[str, Any]] = {
    "qwen3_moe": {"head_dim": int},
    "gpt_oss": {"experts_per_token": int, "initial_context_length": int},  # said twice
}

# Greedy decoding does not read these, or this engine sets them itself.
UNUSED = frozenset(
    {
        *("do_sample", "temperature", "top_k", "top_p", "min_p", "top_h", "typical_p"),
        *("epsilon_cutoff", "eta_cutoff", "pad_token_id", "bos_token_id", "max_length"),
        *("max_new_tokens", "max_time", "use_cache", "cache_implementation", "cache_config"),
        *("max_cache_len", "num_return_sequences", "output_attentions", "output_hidden_states"),
        *("output_scores", "output_logits", "return_dict_in_generate", "transformers_version"),
        *("_from_model_config", "compile_config", "disable_compile", "prefill_chunk_size"),
        *("decoder_start_token_id", "trust_remote_code", "low_memory", "early_stopping"),
        "length_penalty",  # of beams
    }
)
# Keys that change what greedy decoding says, and the values at which they do not.
NEUTRAL: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "num_beams": 1,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "min_length": 0,
    "min_new_tokens": 0,
    "guidance_scale": 1.0,
    "renormalize_logits": False,
    "remove_invalid_values": False,
    "token_healing": False,
    "is_assistant": False,
    "penalty_alpha": 0.0,
}


class _Stops(File):
    eos_token_id: int | list[int] = Field(default_factory=list)


def target_fields(fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a target's config with its class's defaults filled in; without
    `quantization_config`, which a scheme reads.

    Raises SpecfitError naming a key that is unknown, of another type or asks for what is not done.
    """
    family = family_of(fields)
    fields = {name: value for name, value in fields.items() if name != QUANTISED}
    if fields.get("is_encoder_decoder"):
        raise unknown_key(where, "is_encoder_decoder", True)
    config_class = CONFIG_MAPPING[family.model_type]
    return by_class(config_class, fields, where, ALSO.get(family.model_type))


def stop_ids(folder: Path, config: Mapping[str, Any]) -> frozenset[int]:
    """Ids that end an answer: those of generation_config.json, without one those of config.json,
    as in transformers. `config`: the target's fields. Raises SpecfitError."""
    file = folder / GENERATION
    fields = read_json(file) if file.is_file() else {"eos_token_id": config.get("eos_token_id")}
    where = str(file if file.is_file() else folder / "config.json")
    for name, value in fields.items():
        if name == "eos_token_id" or value is None or name in UNUSED:
            continue
        if name not in NEUTRAL or value != NEUTRAL[name]:
            raise unknown_key(where, name, value)
    named = by_model(_Stops, {"eos_token_id": fields.get("eos_token_id")}, where).eos_token_id
    ids = [named] if isinstance(named, int) else named
    if not ids:
        raise SpecfitError(f"{where} names no eos_token_id, so no answer would end; add it")
    words = config["vocab_size"]
    beyond = [token for token in ids if not 0 <= token < words]
    if beyond:
        raise SpecfitError(
            f"{where} sets eos_token_id={named}; the target's ids go from 0 to {words - 1}"
        )
    return frozenset(ids)
