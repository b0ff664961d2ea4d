"""gpt-oss: what its experts and its attention do that no other family does.

An expert is down(swiglu(min(gate x, limit)) * (clamp(up x) + 1)), each product with a bias, where
swiglu(g) = g * sigmoid(alpha g). Attention has one learnt sink per head: a column that takes its
share of the softmax and gives no value. Every other layer attends to a sliding window.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface

from specfit.models.target.family import FAMILIES


def expert_functions(config: Any) -> tuple[Any, Any]:
    """(of the gate projection, of the up projection), whose product the down projection reads."""
    alpha, limit = float(config.swiglu_alpha), float(config.swiglu_limit)

    def activation(gate: torch.Tensor) -> torch.Tensor:
        gate = gate.clamp(max=limit)
        return gate * torch.sigmoid(gate * alpha)

    def lift(up: torch.Tensor) -> torch.Tensor:
        return up.clamp(-limit, limit) + 1

    return activation, lift


def sink_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    s_aux: torch.Tensor,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' interface: query [1, A, T, D], key and value [1, KV, S, D], mask [1, 1, T, S],
    True = attend, sinks [A] -> [1, T, A, D].

    The queries of a group are rows over their own head's keys, so nothing is repeated. Scores
    [A, T, S] are held in float32: a long prompt goes in chunks (`prefill_chunk`).
    """
    _, heads, rows, width = query.shape
    groups = key.shape[1]
    stacked = query.reshape(1, groups, heads // groups * rows, width)
    scores = (stacked @ key.transpose(2, 3)).float().view(1, heads, rows, -1) * scaling
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, float("-inf"))
    sinks = s_aux.float().view(1, heads, 1, 1).expand(1, heads, rows, 1)
    shares = torch.cat([scores, sinks], dim=-1).softmax(dim=-1)[..., :-1].to(value.dtype)
    mixed = shares.reshape(1, groups, heads // groups * rows, -1) @ value
    return mixed.reshape(1, heads, rows, width).transpose(1, 2).contiguous(), None


AttentionInterface.register(FAMILIES["gpt_oss"].attention, sink_attention)
