"""How close the decisions were where two runs part: logits, routers, ratios of selections.

fp32 resolves about 1e-7. Where a decision was closer than `NEAR`, a forward of another shape may
take the other side by itself; anything further apart is a defect of the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from specfit.selection.bitmaps import bitmaps
from specfit.selection.cost import CostModel
from specfit.selection.theory.study import State
from specfit.selection.theory.subtrees import legal_columns

NEAR = 1e-5


@dataclass(frozen=True)
class Closest:
    """The closest decisions of one forward over a context."""

    margin: float  # of the two best logits after the last token
    router_gap: float  # relative, last expert chosen and first one not: the smallest of all
    layer: int  # where that is
    row: int
    token: int  # what this forward says comes next

    @property
    def smallest(self) -> float:
        return min(self.margin, self.router_gap)


@cache
def plain_model(folder: Path, threads: int) -> PreTrainedModel:
    """The checkpoint as transformers runs it, fp32, no expert elsewhere. Loaded once."""
    disable_progress_bar()
    torch.set_num_threads(threads)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


@torch.inference_mode()
def closest(model: PreTrainedModel, context: list[int]) -> Closest:
    gaps: list[torch.Tensor] = []
    hooks = [
        layer.mlp.gate.register_forward_hook(lambda _m, _i, out: gaps.append(router_gap(*out)))
        for layer in model.model.layers
    ]
    logits = model(torch.tensor([context])).logits[0, -1]
    for hook in hooks:
        hook.remove()
    best = logits.topk(2).values
    layers = torch.stack(gaps)  # [L, T]
    layer, row = divmod(int(layers.argmin()), layers.shape[1])
    margin = float(best[0] - best[1])
    return Closest(margin, float(layers.min()), layer, row, int(logits.argmax()))


def router_gap(logits: torch.Tensor, _scores: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """[T] relative gap between the last expert chosen and the first one not."""
    k = chosen.shape[-1]
    probs = logits.float().softmax(-1).topk(k + 1).values
    return (probs[:, k - 1] - probs[:, k]) / probs[:, k - 1]


def ratio_gap(state: State, cost: CostModel, experts: int, k: int, levels: int) -> float:
    """Relative gap between the two best selections, the smallest over the pools of levels 1, 2, ..
    up to `levels`: each of them is searched."""
    smallest = float("inf")
    for level in range(1, levels + 1):
        tree = state.tree.upto(level)
        rows = bitmaps(state.routes, experts)[: 1 + len(tree)]
        legal = legal_columns(tree, rows, state.accepted[: len(tree)], k)
        ratios = np.sort(legal.reward / legal.time_ns(cost))
        if len(ratios) > 1:
            smallest = min(smallest, float((ratios[-1] - ratios[-2]) / ratios[-1]))
    return smallest
