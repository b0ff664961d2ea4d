"""gpt-oss on a tiny random checkpoint in the published layout, against transformers' own class.

transformers widens the same MXFP4 tensors up front. The window of 8 is shorter than every text
here, so a row that saw too far, in a prompt, in a tree or after a compaction, would differ.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GptOssConfig, GptOssForCausalLM
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from specfit.base.types import DraftTree, Selection, SpecfitError
from specfit.experts.cache import ExpertCache
from specfit.experts.copies import CpuCopyEngine
from specfit.experts.engine import ExpertEngine
from specfit.experts.kernels.choice import choose_arithmetic
from specfit.models.target.checkpoint import Checkpoint
from specfit.models.target.loading import load_model
from specfit.models.target.offloaded import OffloadedTarget
from specfit.models.target.schemes.mxfp4 import fused_tensors
from tests.fakes.tiny_model import CPU, generate

HIDDEN, INNER, LAYERS, EXPERTS = 64, 32, 4, 8
AUX = (1, 2, 3)
PROMPT = np.random.default_rng(3).integers(3, 100, 21)
TREE = DraftTree(
    tokens=np.array([20, 50, 33, 7]),
    parents=np.array([-1, -1, 0, 0]),
    depths=np.array([1, 1, 2, 2]),
    path_probs=np.array([6, 5, 4, 3]),
)
PATHS = ((), (20,), (50,), (20, 33), (20, 7))
"""Of the root and of each node."""


def _config() -> GptOssConfig:
    rope = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 4.0, "truncate": False}
    rope |= {"beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 64}
    return GptOssConfig(
        vocab_size=100,
        hidden_size=HIDDEN,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        num_local_experts=EXPERTS,
        num_experts_per_tok=3,
        sliding_window=8,
        max_position_embeddings=256,
        rope_parameters=rope,
        initializer_range=0.3,
        pad_token_id=1,
        swiglu_limit=1.5,  # so low that it acts
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder, and transformers' model of the same numbers."""
    folder = tmp_path_factory.mktemp("gpt-oss")
    torch.manual_seed(5)
    model = GptOssForCausalLM(_config()).eval()
    tensors: dict[str, torch.Tensor] = {}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("bias", "sinks")):
                weight.normal_(0.0, 0.5)
            if ".experts." not in name:
                tensors[name] = weight.clone()
        for index, layer in enumerate(model.model.layers):
            gate, up = (torch.randn(EXPERTS, INNER, HIDDEN) * 0.3 for _ in range(2))
            down = torch.randn(EXPERTS, HIDDEN, INNER) * 0.3
            biases = [(torch.randn(EXPERTS, n) * 0.5).bfloat16() for n in (INNER, INNER, HIDDEN)]
            ends = fused_tensors(gate, up, down, tuple(biases))
            prefix = f"model.layers.{index}.mlp.experts."
            tensors |= {prefix + end: tensor for end, tensor in ends.items()}
            for name in ("gate_up_proj", "down_proj"):
                blocks, scales = ends[f"{name}_blocks"], ends[f"{name}_scales"]
                wide = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
                getattr(layer.mlp.experts, name).copy_(wide)
                getattr(layer.mlp.experts, f"{name}_bias").copy_(ends[f"{name}_bias"].float())
    fields = json.loads(_config().to_json_string(use_diff=False))
    fields |= {"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}
    (folder / "config.json").write_text(json.dumps(fields))
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "model.safetensors")
    return folder, model


def target_of(folder: Path, slots: int, chunk: int | None = None) -> OffloadedTarget:
    loaded = load_model(Checkpoint(folder), torch.float32, CPU, None)
    cache = ExpertCache(LAYERS, EXPERTS, slots, staging_blocks=3)
    arithmetic = choose_arithmetic("auto", loaded.activation, CPU, loaded.format, loaded.lift)
    engine = ExpertEngine(loaded.store, cache, CpuCopyEngine(2), arithmetic, CPU)
    return OffloadedTarget(loaded, engine, AUX, chunk, CPU)


@torch.inference_mode()
def plain_features(model: Any, text: list[int]) -> torch.Tensor:
    """[T, 3H] of a text."""
    states = model(
        torch.as_tensor([text]), output_hidden_states=True, use_cache=False
    ).hidden_states
    return torch.cat([states[layer][0] for layer in AUX], dim=-1)


def test_every_row_of_a_tree_is_that_of_its_path(made: tuple[Path, Any]) -> None:
    """Prompt in chunks, tree, compaction, tree again; then text, as `generate` gives it."""
    folder, model = made
    target = target_of(folder, slots=2, chunk=9)
    filled = target.prefill(PROMPT)
    text = PROMPT.tolist()
    close = {"atol": 2e-4, "rtol": 2e-4}
    torch.testing.assert_close(filled.features, plain_features(model, text), **close)
    assert (
        target.expert_bytes
        == -(-(3 * HIDDEN * INNER * 17 // 32 + 2 * (2 * INNER + HIDDEN)) // 48) * 48
    )
    for root, kept, path in ((42, [0, 1, 3], [20, 33]), (9, [0, 2], [50]), (5, [0], [])):
        observed = target.observe(root, TREE, seen=0)
        verified = target.verify(root, TREE, Selection((0, 1, 2, 3)))
        expected = [plain_features(model, [*text, root, *own])[-1] for own in PATHS]
        torch.testing.assert_close(verified.features, torch.stack(expected), **close)
        assert np.array_equal(observed.nodes, verified.routes[1:])
        target.keep(kept)
        text += [root, *path]
    said = [7]
    for _ in range(8):
        said.append(int(target.verify(said[-1], DraftTree.empty(), Selection(())).tokens[0]))
        target.keep([0])
    assert said[1:] == generate(model, np.array([*text, 7]), 8)


def test_an_atlas_that_grows_is_the_whole_one(made: tuple[Path, Any]) -> None:
    target = target_of(made[0], slots=0)
    target.prefill(PROMPT)
    whole = target.observe(42, TREE, seen=0)
    first = target.observe(42, TREE.upto(1), seen=0)
    more = target.observe(42, TREE, seen=2)
    assert np.array_equal(np.concatenate([first.nodes, more.nodes]), whole.nodes)
    assert np.array_equal(first.root, whole.root)


def test_fewer_layers_keep_their_kinds(made: tuple[Path, Any]) -> None:
    loaded = load_model(Checkpoint(made[0]), torch.float32, CPU, 3)
    assert loaded.windows == [8, None, 8]


def test_what_is_wrong_is_one_sentence(made: tuple[Path, Any], tmp_path: Path) -> None:
    folder, _ = made
    tensors = load_file(folder / "model.safetensors")
    fields = json.loads((folder / "config.json").read_text())

    def refused(sentence: str, config: dict[str, Any] = fields, **changed: Any) -> None:
        kept = {k: v.contiguous() for k, v in (tensors | changed).items() if v is not None}
        save_file(kept, tmp_path / "model.safetensors")
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(SpecfitError, match=sentence):
            load_model(Checkpoint(tmp_path), torch.float32, CPU, None)

    at = "model.layers.2.mlp.experts.down_proj"
    refused(f"lacks tensor {at}_scales", **{f"{at}_scales": None})
    refused(f"{at}_bias .*stored as U8", **{f"{at}_bias": torch.zeros(8, 64, dtype=torch.uint8)})
    refused(f"{at}_blocks .*its config says", **{f"{at}_blocks": tensors[f"{at}_blocks"][:, 1:]})
    refused("in floating point; specfit reads", {**fields, "quantization_config": None})
    refused(
        "quantised with fp8; specfit", {**fields, "quantization_config": {"quant_method": "fp8"}}
    )
    refused("recurrent state a tree", {**fields, "model_type": "qwen3_next"})


def test_mxfp4_rounds_to_the_nearest_number() -> None:
    from specfit.experts.layouts.mxfp4 import Mxfp4Layout

    weight = torch.tensor([[0.0, 0.3, -0.26, 0.24, 0.74, 5.1, -6.0, 3.4, *([0.0] * 24)]])
    parts = Mxfp4Layout().quantise(weight)
    near = [0.0, 0.5, -0.5, 0.0, 0.5, 6.0, -6.0, 3.0]
    assert Mxfp4Layout().widen(parts, torch.float32)[0, :8].tolist() == near
    theirs = convert_moe_packed_tensors(*(part[None] for part in parts), dtype=torch.float32)
    assert torch.equal(theirs[0].t(), Mxfp4Layout().widen(parts, torch.float32))
