"""Shapes of published models, from their config.json: the only place where they are written."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class PublishedShape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    experts: int  # of a layer
    top_k: int
    intermediate: int  # of one expert
    vocabulary: int
    draft_head_parameters: int  # of the head that drafts for it, its own embedding included
    stored_expert_bytes: int | None = None  # of a quantised expert, scales and biases included

    def expert_bytes(self, itemsize: int = 2) -> int:
        """Gate, up and down of one expert, as it is stored."""
        if self.stored_expert_bytes is not None:
            return self.stored_expert_bytes
        return 3 * self.hidden * self.intermediate * itemsize


QWEN3_30B_A3B = PublishedShape(
    layers=48,
    hidden=2048,
    heads=32,
    kv_heads=4,
    head_dim=128,
    experts=128,
    top_k=8,
    intermediate=768,
    vocabulary=151_936,
    draft_head_parameters=522_152_832,  # the RedHatAI head
)

GPT_OSS_20B = PublishedShape(
    layers=24,
    hidden=2880,
    heads=64,
    kv_heads=8,
    head_dim=64,
    experts=32,
    top_k=4,
    intermediate=2880,
    vocabulary=201_088,
    draft_head_parameters=762_359_040,  # of a RedHatAI head with a vocabulary of 32,000
    stored_expert_bytes=13_236_480,  # MXFP4 and three biases
)

PUBLISHED = {
    "qwen3-30b-a3b": QWEN3_30B_A3B,
    # FP8 in tiles of 128 x 128, int4 in groups of 128, both with scales in bfloat16.
    "qwen3-30b-a3b-fp8": replace(QWEN3_30B_A3B, stored_expert_bytes=4_719_168),
    "qwen3-30b-a3b-int4": replace(QWEN3_30B_A3B, stored_expert_bytes=2_433_024),
    "gpt-oss-20b": GPT_OSS_20B,
}
"""By the name that `gpu.billed` and `model` give them."""
