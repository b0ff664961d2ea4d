"""Foreign JSON files, read through a schema before a value is used.

Every key is used, known to be harmless, or refused by its name, whatever its value; types are asked
first; what a file leaves out is the default of the class that its writer used. transformers' own
config classes describe what transformers writes, so that defaults are theirs and a new family
brings its schema along; pydantic describes the few files that no class of transformers does.
A key whose value is null says nothing and is treated as absent.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from specfit.base.types import SpecfitError

Fields = Mapping[str, Any]
Model = TypeVar("Model", bound="File")

ROPE = frozenset({"rope_theta", "rope_scaling", "rope_parameters"})

HARMLESS = frozenset(
    {
        # what made the file
        *("_name_or_path", "_attn_implementation_autoset", "architectures", "attn_implementation"),
        *("dtype", "torch_dtype", "transformers_version", "finetuning_task", "unsloth_version"),
        # what is returned, and how memory is used
        *("output_attentions", "output_hidden_states", "output_router_logits", "return_dict"),
        *("output_scores", "return_dict_in_generate", "torchscript", "use_cache", "use_bfloat16"),
        *("tf_legacy_loss", "chunk_size_feed_forward", "pruned_heads"),
        # training and classification
        *("initializer_range", "attention_dropout", "router_aux_loss_coef", "router_jitter_noise"),
        *("id2label", "label2id", "problem_type", "task_specific_params", "pretraining_tp"),
        # tokenizers and generation, which have files of their own
        *("tokenizer_class", "prefix", "bos_token_id", "pad_token_id", "eos_token_id"),
        *("sep_token_id", "decoder_start_token_id", "max_length", "min_length", "do_sample"),
        *("early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature"),
        *("top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty"),
        *("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids"),
        *("num_return_sequences", "forced_bos_token_id", "forced_eos_token_id"),
        *("remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens"),
        "begin_suppress_tokens",
        # encoders and cross attention, false in every decoder
        *("cross_attention_hidden_size", "tie_encoder_decoder", "add_cross_attention"),
        *("is_decoder", "max_window_layers"),
    }
)
"""Keys of a transformers config that change no forward of a decoder."""

SIZES = frozenset(
    {
        *("hidden_size", "intermediate_size", "moe_intermediate_size", "num_hidden_layers"),
        *("num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size"),
        *("num_experts", "num_local_experts", "num_experts_per_tok", "max_position_embeddings"),
        *("rms_norm_eps", "draft_vocab_size", "truncated_vocab_size", "target_hidden_size"),
        *("sliding_window", "rope_theta", "decoder_sparse_step"),
    }
)
"""Numbers that are above zero wherever they are named."""


class File(BaseModel):
    """A file that pydantic describes: no other keys, no conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def read_json(path: Path) -> dict[str, Any]:
    """Raises SpecfitError where the file is absent or is not a JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecfitError(f"{path} is missing; a checkpoint folder needs it") from None
    except OSError as error:
        raise SpecfitError(f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise SpecfitError(f"{path} is not valid JSON ({error}); fetch it again") from None
    if not isinstance(content, dict):
        raise SpecfitError(f"{path} holds no JSON object; fetch it again")
    return content


def by_model(model: type[Model], fields: Fields, where: str) -> Model:
    """`fields` as `model`. Raises SpecfitError that names the first key at fault."""
    given = {name: value for name, value in fields.items() if value is not None}
    check_sizes(given, where)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise unknown_key(where, key, first["input"]) from None
        if first["type"] == "missing":
            raise SpecfitError(f"{where} lacks {key}") from None
        raise _wrong_type(where, str(first["loc"][0]), fields, first["msg"]) from None


def by_class(
    config_class: Any, fields: Fields, where: str, also: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """`fields` with the defaults of a transformers config class for what they leave out.

    `also`: keys that models of this class read and the class does not declare, with their types.
    Rotary keys pass unchecked: who reads them knows their meaning.
    Raises SpecfitError that names the first key at fault.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    types = {field.name: field.type for field in dataclasses.fields(config_class)}
    types |= also or {}
    aliases = dict(config_class.attribute_map)
    aliases |= {one: other for other, one in aliases.items()}
    for name, value in given.items():
        declared = types.get(name, types.get(aliases.get(name, name)))
        if declared is None and name not in HARMLESS | ROPE | {"model_type"}:
            raise unknown_key(where, name, value)
        if declared is not None and name not in HARMLESS | ROPE:
            _check_type(name, value, declared, where, given)
    check_sizes(given, where)
    plain = {name: value for name, value in given.items() if name not in ROPE | {"model_type"}}
    try:
        made = config_class(**{name: plain[name] for name in plain if name not in HARMLESS})
    except Exception as error:  # each validator of each class raises its own
        reason = str(error).strip().splitlines()[-1].strip()
        raise SpecfitError(f"{where} is refused by {config_class.__name__} ({reason})") from None
    named = {*given, *(aliases.get(name, name) for name in given)}
    filled = {
        name: getattr(made, name)
        for name in types
        if name not in named | HARMLESS | ROPE and hasattr(made, name)
    }
    return filled | given


def _check_type(name: str, value: Any, declared: Any, where: str, fields: Fields) -> None:
    if isinstance(declared, str):  # of the base class, and no number
        return
    try:
        TypeAdapter(declared).validate_python(value, strict=True)
    except ValidationError as error:
        raise _wrong_type(where, name, fields, error.errors()[0]["msg"]) from None


def check_sizes(fields: Fields, where: str) -> None:
    for name in SIZES & fields.keys():
        value = fields[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and not (math.isfinite(value) and value > 0):
            raise SpecfitError(f"{where} sets {name}={value}; expected a number above zero")


def unknown_key(where: str, key: str, value: Any) -> SpecfitError:
    return SpecfitError(
        f"{where} sets {key}={_short(value)}, which specfit does not implement; running it anyway "
        "would be silently wrong"
    )


def _wrong_type(where: str, key: str, fields: Fields, message: str) -> SpecfitError:
    expected = message.removeprefix("Input should be ")
    return SpecfitError(f"{where} sets {key}={_short(fields.get(key))}; expected {expected}")


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
