"""Routed experts for training on CPU: transformers' grouped_mm with cheap gathers.

The same sums as `grouped_mm`. Two things make it faster: a row is gathered by a permutation, whose
backward is the inverse permutation instead of an index_put; and the router's weight multiplies the
32-wide intermediate instead of the 128-wide output, which is equal because down is linear.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

NAME = "permuted_grouped_mm"


class GatherRows(torch.autograd.Function):
    """x [N, H] -> x[order // k] [N * k, H]; `order` permutes the N * k (token, choice) pairs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor, k: int) -> Tensor:
        ctx.save_for_backward(inverse)
        ctx.k = k
        return x.index_select(0, order // k)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (inverse,) = ctx.saved_tensors
        return grad.index_select(0, inverse).unflatten(0, (-1, ctx.k)).sum(1), None, None, None


class SumRows(torch.autograd.Function):
    """The adjoint: y [N * k, H] in sorted order -> [N, H], summed over each token's k rows."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, order: Tensor, inverse: Tensor, k: int) -> Tensor:
        ctx.save_for_backward(order)
        ctx.k = k
        return y.index_select(0, inverse).unflatten(0, (-1, k)).sum(1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (order,) = ctx.saved_tensors
        return grad.index_select(0, order // ctx.k), None, None, None


def experts_forward(self: nn.Module, x: Tensor, top_k_index: Tensor, weights: Tensor) -> Tensor:
    """x [N, H], top_k_index and weights [N, K] -> [N, H]."""
    k = top_k_index.shape[-1]
    experts, order = torch.sort(top_k_index.flatten(), stable=True)
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(len(order))
    ends = torch.bincount(experts, minlength=self.num_experts).cumsum(0).to(torch.int32)
    rows = GatherRows.apply(x, order, inverse, k)
    row_weights = weights.flatten()[order].unsqueeze(-1)
    up = F.grouped_mm(rows, self.gate_up_proj.transpose(-2, -1), offs=ends)
    gate, value = up.chunk(2, dim=-1)
    inner = F.silu(gate) * (value * row_weights)
    down = F.grouped_mm(inner, self.down_proj.transpose(-2, -1), offs=ends)
    return SumRows.apply(down, order, inverse, k)


# at import, so that a spawned worker knows the name its unpickled model asks for
ALL_EXPERTS_FUNCTIONS.register(NAME, experts_forward)


def use(model: nn.Module) -> None:
    """Switch a Qwen3-MoE model to this implementation."""
    model.set_experts_implementation(NAME)
