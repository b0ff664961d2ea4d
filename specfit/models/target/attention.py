"""Attention on a GPU: which backend may run, and group-query attention without copies.

transformers repeats keys and values for every query head when there is a mask: 3.3 GB a verify of
2,048 columns at the 30B's shape. Instead, the queries of a group are rows over their own head's
keys: [1, kv_heads, group * T, head_dim], the mask once per query head. Every row attends to the
same columns with the same arithmetic: on a CPU the result is equal to the last bit from five rows
on (fewer take another matrix routine there).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

GROUPED = "specfit_grouped"
MOST_ROWS = 64
"""Of a verify or an atlas. A prefill has more rows than a mask should be repeated for."""


def settle_backend() -> None:
    """Raise no plan per key length: cuDNN's attention, which torch prefers from compute capability
    9 on, builds one for every new length, and so in every cycle."""
    torch.backends.cuda.enable_cudnn_sdp(False)


def backend_name() -> str:
    """The fused kernels that are allowed, in words for a manifest; a mask rules flash out."""
    cuda = torch.backends.cuda
    enabled = {
        "flash": cuda.flash_sdp_enabled(),
        "memory-efficient": cuda.mem_efficient_sdp_enabled(),
        "cudnn": cuda.cudnn_sdp_enabled(),
        "math": cuda.math_sdp_enabled(),
    }
    plain = next(name for name, on in enabled.items() if on)
    masked = next(name for name, on in enabled.items() if on and name != "flash")
    return f"{plain} without a mask, {masked} with one"


def grouped_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """transformers' interface: query [1, A, T, D], key and value [1, KV, S, D], mask [1, 1, T, S],
    True = attend -> [1, T, A, D]. Many rows, and one row without a mask, go transformers' way,
    which copies nothing where there is no mask."""
    heads, rows, width = query.shape[1:]
    if rows > MOST_ROWS or attention_mask is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **options
        )
    group = heads // key.shape[1]
    stacked = query.reshape(1, key.shape[1], group * rows, width)
    mask = attention_mask.repeat(1, 1, group, 1)
    mixed = F.scaled_dot_product_attention(stacked, key, value, attn_mask=mask, scale=scaling)
    return mixed.reshape(1, heads, rows, width).transpose(1, 2).contiguous(), None


AttentionInterface.register(GROUPED, grouped_attention)


def use_attention(model: Any, device: torch.device) -> None:
    """The grouped form on a GPU; a CPU keeps transformers' own, whose bits its rows are of."""
    if device.type == "cuda" and model.config._attn_implementation == "sdpa":
        model.config._attn_implementation = GROUPED
