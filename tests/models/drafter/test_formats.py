"""One random head in three formats loads to equal tensors; what a format cannot say is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

from specfit.base.types import SpecfitError  # noqa: E402
from specfit.models.drafter.checkpoint import load_head, save_head  # noqa: E402
from specfit.models.drafter.head import EagleHead  # noqa: E402
from tests.models.drafter.test_head import TINY, make_head  # noqa: E402

TARGET = SimpleNamespace(hidden_size=16, vocab_size=40, num_hidden_layers=8)
IDS = torch.arange(1, 40, 2)
FLAT: dict[str, Any] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": TINY.hidden_size,
    "intermediate_size": TINY.intermediate_size,
    "num_attention_heads": TINY.num_attention_heads,
    "num_key_value_heads": TINY.num_key_value_heads,
    "head_dim": TINY.head_dim,
    "num_hidden_layers": 1,
    "hidden_act": "silu",
    "rms_norm_eps": TINY.rms_norm_eps,
    "rope_theta": 5e5,
    "rope_scaling": None,
    "vocab_size": 40,
    "draft_vocab_size": 20,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "use_cache": True,
    "torch_dtype": "bfloat16",
}


def head_of(**changes: Any) -> EagleHead:
    head = make_head(replace(TINY, norm_before_residual=False, rope_theta=5e5, **changes))
    head.d2t.copy_(IDS - torch.arange(len(IDS)))
    head.t2d.zero_()
    head.t2d[IDS] = True
    return head


def save_flat(folder: Path, head: EagleHead, without: tuple[str, ...] = (), **fields: Any) -> None:
    """As SafeAILab and SpecForge write it: `midlayer`, a flat config, d2t of 32 bits."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        name.replace("layers.0.", "midlayer."): tensor.contiguous()
        for name, tensor in head.state_dict().items()
        if name not in without
    }
    tensors["d2t"] = tensors["d2t"].to(torch.int32)
    safetensors.save_file(tensors, folder / "model.safetensors")
    config = {k: v for k, v in (FLAT | fields).items() if v is not ...}
    (folder / "config.json").write_text(json.dumps(config))


def weights(head: EagleHead) -> dict[str, Any]:
    return {"model.embed_tokens.weight": head.embed_tokens.weight.detach().clone()}


def same(one: EagleHead, other: EagleHead) -> None:
    assert one.state_dict().keys() == other.state_dict().keys()
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name


def test_three_formats_are_one_head(tmp_path: Path) -> None:
    head = head_of()
    target = weights(head).__getitem__
    save_head(tmp_path / "speculators", head, {"name_or_path": "t", "architectures": ["x"]})
    save_flat(tmp_path / "specforge", head)
    save_flat(
        tmp_path / "safeailab", head, without=("embed_tokens.weight",), architectures=["Llama"]
    )
    loaded = {
        name: load_head(tmp_path / name, TARGET, target)
        for name in ("speculators", "specforge", "safeailab")
    }
    for name, read in loaded.items():
        same(read, head)
        assert read.config.norm_before_residual is False, name
        assert read.config.rope_theta == 5e5 and read.config.aux_layer_ids == (2, 4, 5)
        assert read.d2t.dtype == torch.int64
    layers = {read.config.layer_type for read in loaded.values()}
    assert layers == {"llama"}


def test_flat_files_count_aux_layers_by_output(tmp_path: Path) -> None:
    eagle = {"eagle_aux_hidden_state_layer_ids": [0, 3, 5], "use_aux_hidden_state": True}
    save_flat(tmp_path, head_of(), eagle_config=eagle)
    assert load_head(tmp_path, TARGET).config.aux_layer_ids == (1, 4, 6)


def test_transformers_5_rope_in_a_flat_file(tmp_path: Path) -> None:
    rope = {"rope_type": "default", "rope_theta": 7e5}
    save_flat(tmp_path, head_of(), rope_theta=..., rope_scaling=..., rope_parameters=rope)
    assert load_head(tmp_path, TARGET).config.rope_theta == 7e5


def test_flags_of_a_flat_file_are_honoured(tmp_path: Path) -> None:
    save_flat(tmp_path, head_of(norm_output=True), norm_output=True, norm_before_residual=True)
    config = load_head(tmp_path, TARGET).config
    assert config.norm_output and config.norm_before_residual


def test_a_flat_file_means_no_norm_before_the_residual(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    save_flat(tmp_path, head_of())
    assert load_head(tmp_path, TARGET).config.norm_before_residual is False
    assert not recwarn.list, "nothing is guessed: the format says so"


def test_draft_rows_under_another_name_or_none(tmp_path: Path) -> None:
    save_flat(tmp_path / "a", head_of(), draft_vocab_size=..., truncated_vocab_size=20)
    save_flat(tmp_path / "b", head_of(), draft_vocab_size=...)
    for name in "ab":
        assert load_head(tmp_path / name, TARGET).config.draft_vocab_size == 20


# -- the target's embedding ----------------------------------------------------------------------


def test_an_equal_embedding_is_the_targets_own(tmp_path: Path) -> None:
    head = head_of()
    target = weights(head)
    save_flat(tmp_path, head)
    own = target["model.embed_tokens.weight"]
    shared = load_head(tmp_path, TARGET, target.__getitem__)
    assert shared.embed_tokens.weight.data_ptr() == own.data_ptr()
    kept = shared.to(dtype=torch.float32)  # what `build` does with it
    assert kept.embed_tokens.weight.data_ptr() == own.data_ptr()


def test_a_trained_embedding_is_the_heads_own(tmp_path: Path) -> None:
    head = head_of()
    target = weights(head)
    target["model.embed_tokens.weight"][3, 2] += 1
    save_flat(tmp_path, head)
    same(load_head(tmp_path, TARGET, target.__getitem__), head)


def test_a_missing_embedding_keeps_the_targets_dtype(tmp_path: Path) -> None:
    head = head_of().to(torch.bfloat16)
    target = {"model.embed_tokens.weight": torch.randn(40, 16)}
    save_flat(tmp_path, head, without=("embed_tokens.weight",))
    loaded = load_head(tmp_path, TARGET, target.__getitem__)
    assert torch.equal(loaded.embed_tokens.weight, target["model.embed_tokens.weight"])


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"eagle_aux_hidden_state_layer_ids": [1, 3, 4]}, "inside eagle_config"),
        ({"eagle_config": {"use_aux_hidden_state": False}}, "EAGLE-1 and 2"),
        ({"eagle_config": {"parallel_drafting": True}}, "parallel_drafting=true"),
        ({"use_qk_clip": True}, "use_qk_clip=true"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "'linear'"),
        ({"use_sliding_window": True, "sliding_window": 64}, "does not say for which layer"),
        ({"num_hidden_layers": 2}, "2 layers; expected 1"),
        ({"draft_vocab_size": 21}, "20 rows; expected the 21"),
        ({"vocab_size": 41}, "vocabulary of 41"),
        ({"hidden_size": 32}, "width 32; the target's hidden_size is 16"),
        ({"hidden_size": ...}, "is no EAGLE-3 config"),
    ],
)
def test_what_a_flat_file_may_not_say(
    tmp_path: Path, fields: dict[str, Any], sentence: str
) -> None:
    save_flat(tmp_path, head_of(), **fields)
    with pytest.raises(SpecfitError, match=sentence):
        load_head(tmp_path, TARGET)


def test_a_pickle_is_refused_with_the_reason(tmp_path: Path) -> None:
    save_flat(tmp_path, head_of())
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(
        SpecfitError, match=r"pickle \(pytorch_model.bin\), which could run any code"
    ):
        load_head(tmp_path, TARGET)


def test_a_placeholder_map_is_refused(tmp_path: Path) -> None:
    head = head_of()
    head.d2t.zero_()
    save_flat(tmp_path, head, without=("t2d",))
    with pytest.raises(SpecfitError, match="all zero, a placeholder"):
        load_head(tmp_path, TARGET)


def test_a_head_of_another_target_is_refused_by_name_and_shape(tmp_path: Path) -> None:
    save_flat(tmp_path, head_of())
    wide = SimpleNamespace(hidden_size=16, vocab_size=40, num_hidden_layers=8)
    tensors = safetensors.load_file(tmp_path / "model.safetensors")
    tensors["midlayer.self_attn.q_proj.weight"] = torch.zeros(32, 16)  # EAGLE-1: H, not 2H
    safetensors.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(
        SpecfitError,
        match=r"layers.0.self_attn.q_proj.weight.*expected \[32, 32\], found \[32, 16\]",
    ):
        load_head(tmp_path, wide)


@pytest.mark.parametrize("name", ["use_input_layernorm_in_first_layer", "use_last_layernorm"])
def test_a_flat_file_may_say_that_a_norm_is_there_and_not_that_it_is_not(
    tmp_path: Path, name: str
) -> None:
    save_flat(tmp_path / "true", head_of(), **{name: True})
    load_head(tmp_path / "true", TARGET)
    save_flat(tmp_path / "inner", head_of(), eagle_config={name: True})
    load_head(tmp_path / "inner", TARGET)
    save_flat(tmp_path / "false", head_of(), **{name: False})
    with pytest.raises(SpecfitError, match=f"{name}=false; this head always has that norm"):
        load_head(tmp_path / "false", TARGET)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "head.pth"])
def test_a_head_that_is_only_a_pickle_is_named_as_one(tmp_path: Path, name: str) -> None:
    save_flat(tmp_path, head_of())
    (tmp_path / "model.safetensors").rename(tmp_path / name)
    with pytest.raises(SpecfitError, match=rf"is a pickle \({name}\).*convert it"):
        load_head(tmp_path, TARGET)
