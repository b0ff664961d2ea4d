"""Logits that are no numbers end the request with a status that names where; others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

from specfit.storage.rows import load_run  # noqa: E402
from tests.fakes.tiny_model import Command, Runnable  # noqa: E402


def damage(folder: Path, tensor: str, value: float) -> None:
    for path in folder.glob("*.safetensors"):
        stored = safetensors.load_file(path)
        if tensor in stored:
            stored[tensor] = torch.full_like(stored[tensor], value)
            safetensors.save_file(stored, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("tensor", "value", "named"),
    [
        ("model.embed_tokens.weight", float("nan"), "from the embedding on"),
        ("model.layers.2.mlp.experts.5.up_proj.weight", float("nan"), "from layer 2 on"),
        ("model.layers.1.self_attn.v_proj.weight", float("inf"), "from layer 1 on"),
        ("model.layers.3.post_attention_layernorm.weight", float("nan"), "from layer 3 on"),
        ("lm_head.weight", float("nan"), "final norm or lm_head"),
    ],
)
def test_the_layer_is_named(
    command: Command, runnable: Runnable, tmp_path: Path, tensor: str, value: float, named: str
) -> None:
    own = runnable.copied_to(tmp_path)
    damage(own.target, tensor, value)
    settings = (f"results_dir={tmp_path}", "selector=ar_cache", "cache_slots=4", "limit=2")
    ended = command(*own.overrides, *settings, "dataset=embedded_gsm8k", "max_new_tokens=16")
    [folder] = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    rows = load_run(folder).requests
    failed = rows[rows["status"] != "ok"]
    assert ended.code == 3 and len(failed) == 2, ended
    assert all("the target's logits are not finite" in status for status in failed["status"])
    assert named in failed["status"].iloc[0]
    assert failed[["output_ids", "score", "decode_ns"]].isna().all(axis=None)


def test_the_head_is_named(command: Command, runnable: Runnable, tmp_path: Path) -> None:
    own = runnable.copied_to(tmp_path)
    damage(own.drafter, "fc.weight", float("nan"))
    settings = (f"results_dir={tmp_path}", "selector=eagle3_cache", "cache_slots=4", "limit=2")
    ended = command(*own.overrides, *settings, "dataset=embedded_gsm8k", "max_new_tokens=8")
    [folder] = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    assert ended.code == 3
    statuses = load_run(folder).requests["status"]
    assert all(status.startswith("the draft head's logits are not finite") for status in statuses)


def test_a_calibration_that_meets_one_is_one_sentence(
    command: Command, runnable: Runnable, tmp_path: Path
) -> None:
    own = runnable.copied_to(tmp_path)
    damage(own.drafter, "fc.weight", float("nan"))
    settings = (f"results_dir={tmp_path}", "selector=specfit", "cache_slots=4", "limit=1")
    ended = command(*own.overrides, *settings, "dataset=embedded_gsm8k", "max_new_tokens=4")
    assert ended.code == 2
    assert "cannot be decoded (the draft head's logits are not finite" in ended.sentence
