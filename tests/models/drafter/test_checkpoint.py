"""Draft head files: round trip, and one sentence for everything that does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
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
VERIFIER = {"name_or_path": "tiny", "architectures": ["Qwen3MoeForCausalLM"]}
IDS = torch.arange(1, 40, 2)  # odd target ids are the draft vocabulary


def stored(path: Path, **changes: Any) -> EagleHead:
    head = make_head(replace(TINY, **changes))
    head.d2t.copy_(IDS - torch.arange(len(IDS)))
    head.t2d.zero_()
    head.t2d[IDS] = True
    save_head(path, head, VERIFIER)
    return head


def edit_config(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    file = path / "config.json"
    fields = json.loads(file.read_text())
    edit(fields)
    file.write_text(json.dumps(fields))


def edit_tensors(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    file = path / "model.safetensors"
    tensors = safetensors.load_file(file)
    edit(tensors)
    safetensors.save_file(tensors, file)


@pytest.mark.parametrize(
    "flag", ["norm_before_residual", "norm_before_fc", "fc_norm", "norm_output"]
)
def test_round_trip(tmp_path: Path, flag: str) -> None:
    head = stored(tmp_path, **{flag: True})
    loaded = load_head(tmp_path, TARGET)
    assert loaded.config == head.config
    for name, tensor in head.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def test_qwen3_layer_and_explicit_aux_layers_round_trip(tmp_path: Path) -> None:
    head = stored(tmp_path, layer_type="qwen3", aux_layer_ids=(1, 3, 6), sliding_window=64)
    assert load_head(tmp_path, TARGET).config == head.config


def test_missing_aux_layers_mean_the_default(tmp_path: Path) -> None:
    stored(tmp_path)
    edit_config(tmp_path, lambda c: c.update(eagle_aux_hidden_state_layer_ids=None))
    assert load_head(tmp_path, TARGET).config.aux_layer_ids == (2, 4, 5)


def test_prefix_and_unneeded_tensors(tmp_path: Path) -> None:
    head = stored(tmp_path)

    def older(tensors: dict[str, Any]) -> None:
        for name in list(tensors):
            tensors[f"model.{name}"] = tensors.pop(name)
        tensors["verifier_norm.weight"] = torch.ones(16)
        tensors["model.d2t"] = tensors["model.d2t"].to(torch.int32)

    edit_tensors(tmp_path, older)
    loaded = load_head(tmp_path, TARGET)
    assert torch.equal(loaded.d2t, head.d2t) and loaded.d2t.dtype == torch.int64


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_theta": 5e5, "rope_scaling": None, "rope_parameters": None},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
    ],
    ids=["transformers 4", "transformers 5"],
)
def test_both_spellings_of_rope(tmp_path: Path, rope: dict[str, Any]) -> None:
    stored(tmp_path)
    edit_config(tmp_path, lambda c: c["transformer_layer_config"].update(rope))
    assert load_head(tmp_path, TARGET).config.rope_theta == 5e5


def test_missing_norm_before_residual_is_said(tmp_path: Path) -> None:
    stored(tmp_path)
    edit_config(tmp_path, lambda c: c.pop("norm_before_residual"))
    with pytest.warns(UserWarning, match="norm_before_residual"):
        assert load_head(tmp_path, TARGET).config.norm_before_residual is False


def test_weights_left_out_come_from_the_target(tmp_path: Path) -> None:
    stored(tmp_path)
    edit_tensors(tmp_path, lambda t: (t.pop("embed_tokens.weight"), t.pop("lm_head.weight")))
    target = {
        "model.embed_tokens.weight": torch.randn(40, 16),
        "lm_head.weight": torch.randn(40, 16),
    }
    loaded = load_head(tmp_path, TARGET, target.__getitem__)
    assert torch.equal(loaded.embed_tokens.weight, target["model.embed_tokens.weight"])
    assert torch.equal(loaded.lm_head.weight, target["lm_head.weight"][IDS])
    with pytest.raises(SpecfitError, match=r"lacks embed_tokens\.weight"):
        load_head(tmp_path, TARGET)


def test_full_vocabulary_needs_no_map(tmp_path: Path) -> None:
    save_head(tmp_path, make_head(replace(TINY, draft_vocab_size=40)), VERIFIER)
    assert "d2t" not in safetensors.load_file(tmp_path / "model.safetensors")
    loaded = load_head(tmp_path, TARGET)
    assert torch.equal(loaded.target_ids(torch.arange(40)), torch.arange(40))


def test_target_ids_are_offsets(tmp_path: Path) -> None:
    stored(tmp_path)
    assert torch.equal(load_head(tmp_path, TARGET).target_ids(torch.arange(20)), IDS)


BAD_TENSORS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "q_proj width of an EAGLE-1 head": (
        lambda t: t.update({"layers.0.self_attn.q_proj.weight": torch.zeros(32, 16)}),
        r"q_proj.weight.*expected \[32, 32\], found \[32, 16\]",
    ),
    "two features": (
        lambda t: t.update({"fc.weight": torch.zeros(16, 32)}),
        r"fc.weight.*expected \[16, 48\], found \[16, 32\]",
    ),
    "no hidden_norm": (
        lambda t: t.pop("layers.0.hidden_norm.weight"),
        r"lacks tensor layers.0.hidden_norm.weight; expected \[16\]",
    ),
    "lm_head rows": (
        lambda t: t.update({"lm_head.weight": torch.zeros(21, 16)}),
        "21 rows; expected the 20",
    ),
    "embedding of another vocabulary": (
        lambda t: t.update({"embed_tokens.weight": torch.zeros(39, 16)}),
        r"embed_tokens.weight.*expected \[40, 16\], found \[39, 16\]",
    ),
    "d2t as absolute ids": (lambda t: t.update({"d2t": IDS.clone()}), "reaches target ids"),
    "d2t falling": (lambda t: t.update({"d2t": -torch.arange(20)}), "strictly increasing"),
    "d2t all zero": (lambda t: t.update({"d2t": torch.zeros(20).long()}), "t2d"),
    "no d2t": (lambda t: t.pop("d2t"), "no tensor d2t"),
    "t2d of other ids": (lambda t: t.update({"t2d": ~t["t2d"]}), "different target ids"),
    "unannounced norm": (
        lambda t: t.update({"input_norm.weight": torch.ones(48)}),
        "input_norm.weight",
    ),
}


@pytest.mark.parametrize("case", BAD_TENSORS)
def test_bad_tensors_are_refused(tmp_path: Path, case: str) -> None:
    stored(tmp_path)
    edit, sentence = BAD_TENSORS[case]
    edit_tensors(tmp_path, edit)
    with pytest.raises(SpecfitError, match=sentence):
        load_head(tmp_path, TARGET)


BAD_CONFIGS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "unknown flag": (lambda c: c.update(norm_everything=True), "norm_everything=true"),
    "unknown layer flag": (
        lambda c: c["transformer_layer_config"].update(use_qk_clip=True),
        "use_qk_clip=true",
    ),
    "another algorithm": (lambda c: c.update(speculators_model_type="dflash"), "EAGLE-3"),
    "two layers": (
        lambda c: c["transformer_layer_config"].update(num_hidden_layers=2),
        "2 layers; expected 1",
    ),
    "scaled rope": (
        lambda c: c["transformer_layer_config"].update(
            rope_parameters={"rope_type": "yarn", "rope_theta": 1e4}
        ),
        "'yarn'",
    ),
    "aux layer outside the target": (
        lambda c: c.update(eagle_aux_hidden_state_layer_ids=[2, 24, 45]),
        "from 0 to 7",
    ),
    "another target width": (lambda c: c.update(target_hidden_size=32), "hidden_size is 16"),
    "another vocabulary": (
        lambda c: c["transformer_layer_config"].update(vocab_size=41),
        "vocabulary of 41",
    ),
}


@pytest.mark.parametrize("case", BAD_CONFIGS)
def test_bad_configs_are_refused(tmp_path: Path, case: str) -> None:
    stored(tmp_path)
    edit, sentence = BAD_CONFIGS[case]
    edit_config(tmp_path, edit)
    with pytest.raises(SpecfitError, match=sentence):
        load_head(tmp_path, TARGET)


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(SpecfitError, match=r"config.json is missing"):
        load_head(tmp_path, TARGET)
    stored(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 100)
    with pytest.raises(SpecfitError, match="damaged"):
        load_head(tmp_path, TARGET)
