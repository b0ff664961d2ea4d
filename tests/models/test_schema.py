"""Foreign files: every key is used, known to be harmless, or refused by its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

from specfit.base.types import SpecfitError  # noqa: E402
from specfit.models.drafter.checkpoint import load_head  # noqa: E402
from specfit.models.drafter.head_config import read_config  # noqa: E402
from specfit.models.schema import read_json  # noqa: E402
from specfit.models.target.checkpoint import INDEX, Checkpoint  # noqa: E402
from specfit.models.target.config_file import stop_ids, target_fields  # noqa: E402
from specfit.models.target.family import geometry_of  # noqa: E402
from specfit.models.target.loading import load_model  # noqa: E402
from tests.fakes.tiny_model import (  # noqa: E402
    CPU,
    Pair,
    Runnable,
    generate,
)

TARGET = SimpleNamespace(hidden_size=64, vocab_size=200, num_hidden_layers=5)


def head_fields(pair: Pair, layer: dict[str, Any], **top: Any) -> dict[str, Any]:
    fields = read_json(pair.drafter_folder / "config.json")
    fields["transformer_layer_config"] |= layer
    return {k: v for k, v in (fields | top).items() if v is not ...}


# -- heads -----------------------------------------------------------------------------------------

YARN = {"rope_type": "yarn", "rope_theta": 5e5, "factor": 4.0}
DEFAULT = {"rope_type": "default", "rope_theta": 1e4}


@pytest.mark.parametrize(
    ("layer", "named"),
    [
        ({"rope_parameters": {"full_attention": YARN}}, "rope_parameters sets full_attention="),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "RoPE is of type 'yarn'"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "RoPE is of type 'linear'"),
        ({"rope_parameters": DEFAULT | {"factor": 4.0}}, "rope_parameters sets factor=4.0"),
        ({"rope_parameters": DEFAULT | {"partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        ({"rope_parameters": [1]}, "expected an object"),
        ({"rope_theta": 5e5}, "two different rope_theta"),
        ({"rope_theta": "1e4"}, "sets rope_theta='1e4'; expected a number"),
        ({"head_dim": "32"}, 'sets head_dim="32"; expected a valid integer'),
        ({"hidden_size": 64.0}, "sets hidden_size=64.0; expected a valid integer"),
        ({"attention_bias": "false"}, 'sets attention_bias="false"; expected a valid boolean'),
        ({"head_dim": 0}, "sets head_dim=0; expected a number above zero"),
        ({"rms_norm_eps": -1e-6}, "rms_norm_eps"),
        ({"final_logit_softcapping": 30.0}, "sets final_logit_softcapping=30.0"),
        ({"attn_logit_softcap": False}, "sets attn_logit_softcap=false"),
        ({"num_key_value_heads": 3}, "over 3 key/value heads"),
        ({"layer_types": ["sliding_attention"]}, "no sliding_window"),
        ({"layer_types": ["chunked_attention"]}, "layer_types"),
        ({"vocab_size": ...}, "vocabulary of 32000"),  # what LlamaConfig means by leaving it out
    ],
)
def test_what_a_heads_layer_may_not_say(pair: Pair, layer: dict[str, Any], named: str) -> None:
    fields = head_fields(pair, layer)
    own = fields["transformer_layer_config"]
    fields["transformer_layer_config"] = {k: v for k, v in own.items() if v is not ...}
    with pytest.raises(SpecfitError) as refused:
        read_config(fields, TARGET, None)
    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("top", "named"),
    [
        ({"final_logit_softcapping": 30.0}, "sets final_logit_softcapping=30.0"),
        ({"quantization_config": {"quant_method": "fp8"}}, "sets quantization_config="),
        ({"quantization_config": {}}, "sets quantization_config={}"),
        ({"norm_output": "true"}, 'sets norm_output="true"; expected a valid boolean'),
        ({"norm_before_residual": 1}, "sets norm_before_residual=1; expected a valid boolean"),
        ({"draft_vocab_size": 120.0}, "sets draft_vocab_size=120.0"),
        ({"draft_vocab_size": 201}, "above the target's vocabulary"),
        ({"eagle_aux_hidden_state_layer_ids": ["1"]}, "eagle_aux_hidden_state_layer_ids"),
        ({"eagle_aux_hidden_state_layer_ids": []}, "distinct ids"),
        ({"new_norm": False}, "sets new_norm=false"),
    ],
)
def test_what_a_head_may_not_say(pair: Pair, top: dict[str, Any], named: str) -> None:
    with pytest.raises(SpecfitError) as refused:
        read_config(head_fields(pair, {}, **top), TARGET, None)
    assert named in str(refused.value)


def test_a_null_says_nothing_and_harmless_keys_pass(pair: Pair) -> None:
    plain = read_config(head_fields(pair, {}), TARGET, None)
    layer = {"rope_scaling": None, "pretraining_tp": 1, "attention_dropout": 0.0, "pad_token_id": 3}
    assert read_config(head_fields(pair, layer, quantization_config=None), TARGET, None) == plain


def test_defaults_are_the_classes_own(pair: Pair) -> None:
    fields = head_fields(pair, {})
    for name in ("rms_norm_eps", "max_position_embeddings", "rope_parameters", "hidden_act"):
        del fields["transformer_layer_config"][name]
    read = read_config(fields, TARGET, None)
    assert (read.rms_norm_eps, read.max_position_embeddings, read.rope_theta) == (1e-6, 2048, 1e4)


def copied_head(pair: Pair, folder: Path, **tensors: Any) -> Path:
    stored = safetensors.load_file(pair.drafter_folder / "model.safetensors") | tensors
    safetensors.save_file(stored, folder / "model.safetensors")
    (folder / "config.json").write_text((pair.drafter_folder / "config.json").read_text())
    return folder


def test_a_head_with_quantised_tensors_is_refused_by_tensor(pair: Pair, tmp_path: Path) -> None:
    weight = torch.ones(120, 64).to(torch.float8_e4m3fn)
    copied_head(pair, tmp_path, **{"lm_head.weight": weight})
    with pytest.raises(SpecfitError, match=r"lm_head.weight is stored as torch.float8_e4m3fn"):
        load_head(tmp_path, TARGET)


def test_an_assumed_head_dim_is_named(pair: Pair, tmp_path: Path) -> None:
    copied_head(pair, tmp_path)
    fields = read_json(tmp_path / "config.json")
    del fields["transformer_layer_config"]["head_dim"]
    (tmp_path / "config.json").write_text(json.dumps(fields))
    with pytest.raises(SpecfitError, match=r"names no head_dim, for which 16 is assumed.*=32"):
        load_head(tmp_path, TARGET)


def test_a_head_in_shards_is_named_as_such(pair: Pair, tmp_path: Path) -> None:
    copied_head(pair, tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-00001-of-00002.safetensors")
    with pytest.raises(SpecfitError, match="lies in shards"):
        load_head(tmp_path, TARGET)


@pytest.mark.parametrize("content", ["[1]", '"text"', "null", "{", "[" * 100_000, '{"a": '])
def test_json_that_is_no_object(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(SpecfitError, match=r"config\.json"):
        read_json(tmp_path / "config.json")


# -- targets ---------------------------------------------------------------------------------------

Changed = Callable[..., Path]


@pytest.fixture
def changed(runnable: Runnable, tmp_path: Path) -> Changed:
    """A copy of the target with keys of one of its JSON files set, or removed by `...`."""

    def change(file: str = "config.json", **keys: Any) -> Path:
        target = runnable.copied_to(tmp_path).target
        fields = read_json(target / file) | keys
        fields = {k: v for k, v in fields.items() if v is not ...}
        (target / file).write_text(json.dumps(fields))
        return target

    return change


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"quantization_config": "fp8"}, "is quantised with fp8"),
        ({"quantization_config": {"bits": 4}}, "is quantised with an unnamed method"),
        ({"quantization_config": {}}, "is quantised"),
        ({"head_dim": "16"}, 'sets head_dim="16"; expected a valid integer'),
        ({"norm_topk_prob": "true"}, 'sets norm_topk_prob="true"; expected a valid boolean'),
        ({"num_hidden_layers": 4.0}, "sets num_hidden_layers=4.0"),
        ({"num_experts_per_tok": 0}, "sets num_experts_per_tok=0"),
        ({"num_experts_per_tok": 17}, "num_experts_per_tok is 17 of 16"),
        ({"final_logit_softcapping": 30.0}, "sets final_logit_softcapping=30.0"),
        ({"shared_expert_intermediate_size": 8}, "sets shared_expert_intermediate_size=8"),
        ({"auto_map": {"AutoModel": "own.Model"}}, "sets auto_map="),
        ({"is_encoder_decoder": True}, "sets is_encoder_decoder=true"),
        ({"use_sliding_window": True, "sliding_window": 64}, "sliding window of 64"),
        ({"model_type": ["qwen3_moe"]}, "model_type"),
    ],
)
def test_what_a_targets_config_may_not_say(
    changed: Changed, keys: dict[str, Any], named: str
) -> None:
    with pytest.raises(SpecfitError) as refused:
        geometry_of(Checkpoint(changed(**keys)).config)
    assert named in str(refused.value)


def test_a_window_that_no_flag_turns_on_is_not_used_as_in_the_class() -> None:
    fields = {"model_type": "qwen3_moe", "sliding_window": 64, "max_position_embeddings": 512}
    assert geometry_of(target_fields(fields, "x")).context == 512
    with pytest.raises(SpecfitError, match="sliding window of 64"):
        geometry_of(target_fields(fields | {"model_type": "mixtral"}, "x"))


def test_an_index_may_not_leave_its_folder(changed: Changed, tmp_path: Path) -> None:
    target = changed()
    fields = read_json(target / INDEX)
    shard = next(iter(fields["weight_map"].values()))
    for name in (f"../{shard}", f"/tmp/{shard}", f"inner/{shard}", "model.bin"):
        fields["weight_map"]["lm_head.weight"] = name
        (target / INDEX).write_text(json.dumps(fields))
        with pytest.raises(SpecfitError, match=r"expected a \.safetensors file beside"):
            Checkpoint(target)
    fields["weight_map"]["lm_head.weight"] = 3
    (target / INDEX).write_text(json.dumps(fields))
    with pytest.raises(SpecfitError, match="weight_map"):
        Checkpoint(target)


# -- generation ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"eos_token_id": "2"}, 'sets eos_token_id="2"'),
        ({"eos_token_id": [2, "0"]}, "sets eos_token_id="),
        ({"eos_token_id": True}, "sets eos_token_id=true"),
        ({"eos_token_id": 5000}, "go from 0 to 263"),
        ({"eos_token_id": []}, "names no eos_token_id"),
        ({"eos_token_id": ...}, "names no eos_token_id"),
        ({"repetition_penalty": 1.05}, "sets repetition_penalty=1.05"),
        ({"num_beams": 4}, "sets num_beams=4"),
        ({"suppress_tokens": [5]}, "sets suppress_tokens="),
        ({"new_rule": 1}, "sets new_rule=1"),
    ],
)
def test_what_a_generation_config_may_not_say(
    changed: Changed, keys: dict[str, Any], named: str
) -> None:
    target = changed("generation_config.json", **keys)
    with pytest.raises(SpecfitError) as refused:
        stop_ids(target, Checkpoint(target).config)
    assert named in str(refused.value)


def test_what_greedy_decoding_does_not_read_passes(changed: Changed) -> None:
    sampled = {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8}
    target = changed("generation_config.json", **sampled, repetition_penalty=1.0, eos_token_id=7)
    assert stop_ids(target, Checkpoint(target).config) == {7}


def test_without_a_generation_config_the_configs_own_stop_ids_hold(changed: Changed) -> None:
    target = changed(eos_token_id=[5, 6])
    (target / "generation_config.json").unlink()
    assert stop_ids(target, Checkpoint(target).config) == {5, 6}


# -- tied embeddings -------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["another", "the same", "none"])
def test_a_stored_output_head_wins_over_the_flag(pair: Pair, tmp_path: Path, kept: str) -> None:
    from transformers import AutoModelForCausalLM

    plain = pair.plain
    weights = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    folder = tmp_path / "tied"
    plain.save_pretrained(folder, max_shard_size="50MB")
    stored = safetensors.load_file(folder / "model.safetensors")
    if kept == "none":
        del stored["lm_head.weight"]
    elif kept == "the same":
        stored["lm_head.weight"] = weights["model.embed_tokens.weight"]
    safetensors.save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    fields = read_json(folder / "config.json") | {"tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(fields))
    loaded = load_model(Checkpoint(folder), torch.float32, CPU, None)
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    assert torch.equal(loaded.model.lm_head.weight, theirs.lm_head.weight)
    assert generate(theirs, pair.prompts[0], 2)


def test_experts_fused_on_disk_are_the_same_blocks(pair: Pair, tmp_path: Path) -> None:
    pair.plain.save_pretrained(tmp_path / "fused", save_original_format=False)
    stored = safetensors.load_file(tmp_path / "fused" / "model.safetensors")
    assert "model.layers.0.mlp.experts.gate_up_proj" in stored
    loaded = load_model(Checkpoint(tmp_path / "fused"), torch.float32, CPU, None)
    for layer, expert in ((0, 0), (3, 7), (4, 31)):
        assert torch.equal(
            loaded.store.block(layer, expert), pair.loaded.store.block(layer, expert)
        )
    del stored["model.layers.2.mlp.experts.down_proj"]
    safetensors.save_file(stored, tmp_path / "fused" / "model.safetensors")
    with pytest.raises(SpecfitError, match=r"lacks tensor model\.layers\.2\.mlp\.experts\.down"):
        load_model(Checkpoint(tmp_path / "fused"), torch.float32, CPU, None)
