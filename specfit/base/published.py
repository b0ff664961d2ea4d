"""Shapes of published models, from their config.json: the only place where they are written."""

from __future__ import annotations

from dataclasses import dataclass


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

    def expert_bytes(self, itemsize: int = 2) -> int:
        """Gate, up and down of one expert."""
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

PUBLISHED = {"qwen3-30b-a3b": QWEN3_30B_A3B}
"""By the name that `gpu.billed` and `model` give them."""
