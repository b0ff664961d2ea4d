"""Statistics of the finished pair on held-out text, as JSON and as the model cards' tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from embedded import routing
from embedded.drafter import agreement
from embedded.evaluate import evaluate
from embedded.stream import Stream
from transformers import Qwen3MoeForCausalLM

from specfit.models.drafter.head import EagleHead

Splits = dict[str, dict[str, Stream]]


def target_statistics(
    target: Qwen3MoeForCausalLM, splits: Splits, documents: int
) -> dict[str, Any]:
    """Over the first documents of every source and split."""
    return {split: _target_split(target, sources, documents) for split, sources in splits.items()}


def _target_split(
    target: Qwen3MoeForCausalLM, sources: dict[str, Stream], documents: int
) -> dict[str, Any]:
    results = {name: evaluate(target, stream, documents) for name, stream in sources.items()}
    text = {
        name: {
            "documents": documents,
            "loss": round(r.loss, 4),
            "perplexity": round(math.exp(r.loss), 3),
            "answer_loss": round(r.answer_loss, 4),
            "answer_perplexity": round(math.exp(r.answer_loss), 3),
        }
        for name, r in results.items()
    }
    pooled = [text for r in results.values() for text in r.routes]
    routes = {name: _routes(r.routes) for name, r in results.items()}
    return {"text": text, "routes": {"all": _routes(pooled), **routes}}


def _routes(routes: list[np.ndarray]) -> dict[str, Any]:
    s = routing.route_statistics(routes)
    return {
        "effective_experts": s.effective.round(1).tolist(),
        "starved_share": s.starved.round(4).tolist(),
        "busiest_over_fair_share": s.busiest.round(2).tolist(),
        "distinct_experts": {
            span: _beside(s.distinct[span], routing.REAL_DISTINCT[span]) for span in routing.SPANS
        },
        "lru_hit_rate": {
            slots: _beside(s.hits[slots], routing.REAL_HITS[slots]) for slots in routing.SLOTS
        },
        "outside_the_requirement": routing.shares_outside(s),
    }


def _beside(values: np.ndarray, real: float) -> dict[str, Any]:
    mean = float(values.mean())
    return {
        "mean": round(mean, 3),
        "real_qwen3_30b_a3b": real,
        "ratio": round(mean / real, 3),
        "layers": values.round(3).tolist(),
    }


def drafter_statistics(
    head: EagleHead, target: Qwen3MoeForCausalLM, splits: Splits, documents: int, steps: int
) -> dict[str, Any]:
    """Top-1 agreement with the target per step ahead, answer tokens of given text."""
    return {
        split: {
            name: {
                "documents": documents,
                "agreement": [round(v, 4) for v in agreement(head, target, s, documents, steps)],
            }
            for name, s in sources.items()
        }
        for split, sources in splits.items()
    }


def target_table(statistics: dict[str, Any]) -> str:
    """Markdown, evaluation text."""
    part = statistics["evaluation"]
    lines = ["| text | loss | perplexity | answers: loss | perplexity |", "|---|---|---|---|---|"]
    for name, t in part["text"].items():
        lines.append(
            f"| {name} | {t['loss']:.3f} | {t['perplexity']:.2f} | {t['answer_loss']:.3f} "
            f"| {t['answer_perplexity']:.2f} |"
        )
    routes = part["routes"]["all"]
    lines += ["", "| routes | ours | real Qwen3-30B-A3B | ratio |", "|---|---|---|---|"]
    for label, key in (
        ("distinct experts of {} tokens", "distinct_experts"),
        ("LRU hit rate, {} slots", "lru_hit_rate"),
    ):
        for number, v in routes[key].items():
            lines.append(
                f"| {label.format(number)} | {v['mean']:.2f} | {v['real_qwen3_30b_a3b']:.2f} "
                f"| {v['ratio']:.2f} |"
            )
    lines += ["", "| layer | " + " | ".join(str(i) for i in range(8)) + " |", "|---" * 9 + "|"]
    for label, key in (
        ("effective experts", "effective_experts"),
        ("share of starved experts", "starved_share"),
        ("busiest, in fair shares", "busiest_over_fair_share"),
    ):
        lines.append(f"| {label} | " + " | ".join(str(v) for v in routes[key]) + " |")
    return "\n".join(lines)


def drafter_table(statistics: dict[str, Any]) -> str:
    """Markdown, evaluation text."""
    part = statistics["evaluation"]
    steps = len(next(iter(part.values()))["agreement"])
    lines = [
        "| text | " + " | ".join(f"step {i + 1}" for i in range(steps)) + " |",
        "|---" * (steps + 1) + "|",
    ]
    for name, values in part.items():
        lines.append(f"| {name} | " + " | ".join(f"{v:.3f}" for v in values["agreement"]) + " |")
    return "\n".join(lines)
