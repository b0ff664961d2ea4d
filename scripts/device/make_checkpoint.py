"""Write a random checkpoint in hub format: shards, index, config; names as on the hub.

    python scripts/device/make_checkpoint.py /tmp/eight --layers 7  # 8.5 GB of experts, 30B shapes
    python scripts/device/make_checkpoint.py /tmp/tiny --layers 2 --hidden 64 --experts 8 \\
        --intermediate 32

Values are slices of one random bfloat16 pool, so that writing runs at the disk's speed; no two
experts begin at the same place of it. There is no tokenizer: it is for loaders, not for text.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from specfit.base.entry import needs_extras, script
from specfit.base.published import QWEN3_30B_A3B

with needs_extras():
    import torch

POOL_VALUES = 48 << 20
SHARD_BYTES = 4_000_000_000

Tensors = list[tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Shapes:
    """Qwen3-30B-A3B's, unless told otherwise."""

    layers: int = QWEN3_30B_A3B.layers
    hidden: int = QWEN3_30B_A3B.hidden
    experts: int = QWEN3_30B_A3B.experts
    top_k: int = QWEN3_30B_A3B.top_k
    intermediate: int = QWEN3_30B_A3B.intermediate
    heads: int = QWEN3_30B_A3B.heads
    kv_heads: int = QWEN3_30B_A3B.kv_heads
    head_dim: int = QWEN3_30B_A3B.head_dim
    vocabulary: int = QWEN3_30B_A3B.vocabulary

    def config(self) -> dict[str, Any]:
        return {
            "architectures": ["Qwen3MoeForCausalLM"],
            "model_type": "qwen3_moe",
            "torch_dtype": "bfloat16",
            "num_hidden_layers": self.layers,
            "hidden_size": self.hidden,
            "intermediate_size": 3 * self.hidden,
            "moe_intermediate_size": self.intermediate,
            "num_experts": self.experts,
            "num_experts_per_tok": min(self.top_k, self.experts),
            "norm_topk_prob": True,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": 4096,
            "rope_theta": 1e7,
            "rms_norm_eps": 1e-6,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
        }

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """In the hub's order: layer by layer, experts in ascending id."""
        wide, narrow = self.heads * self.head_dim, self.kv_heads * self.head_dim
        inward = self.intermediate, self.hidden
        yield "model.embed_tokens.weight", (self.vocabulary, self.hidden)
        for layer in range(self.layers):
            at = f"model.layers.{layer}"
            yield f"{at}.input_layernorm.weight", (self.hidden,)
            for expert in range(self.experts):
                yield f"{at}.mlp.experts.{expert}.gate_proj.weight", inward
                yield f"{at}.mlp.experts.{expert}.up_proj.weight", inward
                yield f"{at}.mlp.experts.{expert}.down_proj.weight", inward[::-1]
            yield f"{at}.mlp.gate.weight", (self.experts, self.hidden)
            yield f"{at}.post_attention_layernorm.weight", (self.hidden,)
            yield f"{at}.self_attn.q_proj.weight", (wide, self.hidden)
            yield f"{at}.self_attn.k_proj.weight", (narrow, self.hidden)
            yield f"{at}.self_attn.v_proj.weight", (narrow, self.hidden)
            yield f"{at}.self_attn.o_proj.weight", (self.hidden, wide)
            yield f"{at}.self_attn.q_norm.weight", (self.head_dim,)
            yield f"{at}.self_attn.k_norm.weight", (self.head_dim,)
        yield "model.norm.weight", (self.hidden,)
        yield "lm_head.weight", (self.vocabulary, self.hidden)


def write_checkpoint(folder: Path, shapes: Shapes, shard_bytes: int = SHARD_BYTES) -> int:
    """Returns the bytes of all tensors."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = list(_shards(list(shapes.tensors()), shard_bytes))
    pool = _Pool(min(POOL_VALUES, 2 * shapes.vocabulary * shapes.hidden))
    weight_map: dict[str, str] = {}
    for number, tensors in enumerate(shards, start=1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        with (folder / name).open("wb") as file:
            _write_shard(file, tensors, pool)
        weight_map |= {tensor: name for tensor, _ in tensors}
    total = sum(2 * math.prod(shape) for _, shape in shapes.tensors())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    _write_json(folder / "model.safetensors.index.json", index)
    _write_json(folder / "config.json", shapes.config())
    _write_json(folder / "generation_config.json", {"eos_token_id": [0, 1], "pad_token_id": 0})
    return total


def _shards(tensors: Tensors, shard_bytes: int) -> Iterator[Tensors]:
    shard: Tensors = []
    size = 0
    for name, shape in tensors:
        more = 2 * math.prod(shape)
        if shard and size + more > shard_bytes:
            yield shard
            shard, size = [], 0
        shard.append((name, shape))
        size += more
    yield shard


class _Pool:
    """Random bfloat16 values; every tensor takes its own stretch, and goes round at the end."""

    def __init__(self, values: int) -> None:
        random = torch.Generator().manual_seed(0)
        pool = torch.empty(values, dtype=torch.bfloat16).normal_(0.0, 0.02, generator=random)
        self._bytes = memoryview(pool.view(torch.uint8).numpy())
        self._at = 0

    def write(self, file: BinaryIO, size: int) -> None:
        while size > 0:
            piece = self._bytes[self._at : self._at + size]
            file.write(piece)
            size -= len(piece)
            self._at = (self._at + len(piece)) % len(self._bytes)
        self._at = (self._at + 2 * 4099) % len(self._bytes)  # no two rounds fall together


def _write_shard(file: BinaryIO, tensors: Tensors, pool: _Pool) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in tensors:
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name, shape in tensors:
        if name.endswith("norm.weight"):
            file.write(torch.ones(shape, dtype=torch.bfloat16).view(torch.uint8).numpy().tobytes())
        else:
            pool.write(file, 2 * math.prod(shape))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    defaults = Shapes()
    for name in ("layers", "hidden", "experts", "intermediate", "vocabulary"):
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    chosen = vars(parser.parse_args())
    folder = chosen.pop("folder")
    size = write_checkpoint(folder, replace(defaults, **chosen))
    print(f"{folder}: {size / 1e9:.2f} GB of tensors")


if __name__ == "__main__":
    sys.exit(script(main))
