"""Writes a Qwen3 MoE checkpoint as a GGUF in float32 for llama.cpp, a third engine.

    python scripts/device/export_gguf.py <checkpoint folder> <file.gguf>

Needs the package `gguf`. The folder is one that the engine runs; quantising is llama.cpp's own.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from specfit.base.entry import script  # noqa: E402
from specfit.base.types import SpecfitError  # noqa: E402
from specfit.models.target.checkpoint import Checkpoint, read_json  # noqa: E402
from specfit.models.target.family import Family, Geometry, family_of, geometry_of  # noqa: E402

ARCHITECTURE = "qwen3moe"
TOKEN, SPECIAL = 1, 3  # llama.cpp's token types: normal, control

WHOLE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k": "self_attn.k_proj",
    "attn_k_norm": "self_attn.k_norm",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate_inp": "mlp.gate",
}
"""llama.cpp's name of a tensor -> the checkpoint's."""


def export(folder: Path, path: Path) -> Path:
    """Raises SpecfitError where the checkpoint is of another family or a tensor is missing."""
    from gguf import GGUFWriter

    checkpoint = Checkpoint(folder)
    family, geometry = family_of(checkpoint.config), geometry_of(checkpoint.config)
    if family.model_type != "qwen3_moe":
        raise SpecfitError(f"{folder} is a {family.model_type}; the export knows qwen3_moe")
    writer = GGUFWriter(str(path), ARCHITECTURE)
    write_fields(writer, checkpoint.config, geometry)
    write_tokenizer(writer, folder, checkpoint.config, geometry.vocabulary)
    write_tensors(writer, checkpoint, family, geometry)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_fields(writer: Any, config: dict[str, Any], geometry: Geometry) -> None:
    heads = int(config["num_attention_heads"])
    depth = int(config.get("head_dim") or geometry.hidden // heads)
    rope = config.get("rope_parameters") or config
    writer.add_context_length(geometry.context)
    writer.add_embedding_length(geometry.hidden)
    writer.add_block_count(geometry.layers)
    writer.add_feed_forward_length(int(config["intermediate_size"]))
    writer.add_expert_feed_forward_length(geometry.intermediate)
    writer.add_head_count(heads)
    writer.add_head_count_kv(int(config.get("num_key_value_heads") or heads))
    writer.add_key_length(depth)
    writer.add_value_length(depth)
    writer.add_rope_freq_base(float(rope["rope_theta"]))
    writer.add_layer_norm_rms_eps(float(config["rms_norm_eps"]))
    writer.add_expert_count(geometry.experts)
    writer.add_expert_used_count(geometry.top_k)
    writer.add_file_type(0)  # every tensor in float32


def write_tokenizer(writer: Any, folder: Path, config: dict[str, Any], size: int) -> None:
    """A byte-level BPE as Qwen's; ids that no token has are filled up."""
    stored = read_json(folder / "tokenizer.json")
    names = {i: name for name, i in stored["model"]["vocab"].items()}
    special = {token["id"]: token["content"] for token in stored["added_tokens"]}
    names |= special
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([names.get(i, f"[UNUSED{i}]") for i in range(size)])
    writer.add_token_types([SPECIAL if i in special else TOKEN for i in range(size)])
    merges = stored["model"]["merges"]
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    stops = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
    writer.add_eos_token_id(stops if isinstance(stops, int) else stops[0])
    writer.add_add_bos_token(False)


def write_tensors(writer: Any, checkpoint: Checkpoint, family: Family, geometry: Geometry) -> None:
    def put(name: str, value: torch.Tensor) -> None:
        writer.add_tensor(f"{name}.weight", np.ascontiguousarray(value.float().numpy()))

    def stored(name: str) -> torch.Tensor:
        shard = checkpoint.shard(checkpoint.shard_of(name))
        return shard.read(shard.entries[name])

    tied = bool(checkpoint.config.get("tie_word_embeddings"))
    for name, theirs in WHOLE.items():
        if not (tied and name == "output"):
            put(name, stored(f"{theirs}.weight"))
    for layer in range(geometry.layers):
        for name, theirs in LAYER.items():
            put(f"blk.{layer}.{name}", stored(f"model.layers.{layer}.{theirs}.weight"))
        names = [family.expert_parts(layer, expert) for expert in range(geometry.experts)]
        for part, name in enumerate(("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps")):
            put(f"blk.{layer}.{name}", torch.stack([stored(of[part]) for of in names]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    path = export(options.checkpoint, options.file)
    print(f"{path}: {path.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(script(main))
