"""A decoder layer of the Qwen3 MoE kind for few rows on a GPU, around its experts, in few launches.

The class of transformers launches some sixty small kernels a layer, each several microseconds of
the host. Here it is ten: norm, one projection to queries, keys and values, one kernel that norms,
rotates and keeps them, attention, its projection, residual and norm in one, router. More rows and
other classes take the class itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.nn import functional as F

from specfit.models.target.kv import KVCache

KNOWN = "Qwen3MoeDecoderLayer"


class LayerKernels(Protocol):
    """What is fused. Results go to tensors that are given, so that a graph can be captured."""

    def norm(
        self,
        hidden: torch.Tensor,
        update: torch.Tensor | None,
        weight: torch.Tensor,
        eps: float,
        residual: torch.Tensor,
        normed: torch.Tensor,
    ) -> None:
        """residual = hidden + update [T, H], where there is one; normed: that by its RMS."""
        ...

    def rotate(
        self,
        qkv: torch.Tensor,
        norms: torch.Tensor,
        eps: float,
        angles: tuple[torch.Tensor, torch.Tensor],
        columns: torch.Tensor,
        queries: torch.Tensor,
        stored: torch.Tensor,
    ) -> None:
        """qkv [T, (A + 2 KV) * D], norms [2, D] of queries and keys, cos and sin [T, D] -> queries
        [A, T, D]; keys and values to stored [2, KV, capacity, D] at columns [T], those below 0 to
        nowhere."""
        ...

    def route(
        self, logits: torch.Tensor, normalised: bool, ids: torch.Tensor, weights: torch.Tensor
    ) -> None:
        """Softmax of logits [T, E], its k greatest -> ids [T, k] int64, weights [T, k]."""
        ...


@dataclass(frozen=True, eq=False)
class Rows:
    """What all layers of a forward read, beside the hidden states."""

    angles: tuple[torch.Tensor, torch.Tensor]  # cos, sin [T, D]
    columns: torch.Tensor  # [T] int64, of the KV cache; negative: the row is not kept
    mask: torch.Tensor | None  # [1, 1, group * T, C], added to the scores; None: all is seen


@dataclass(frozen=True, eq=False)
class ToExperts:
    """What a layer hands to its experts, and what their sum is added to."""

    residual: torch.Tensor  # [T, H]
    normed: torch.Tensor  # [T, H]
    ids: torch.Tensor  # [T, k]
    weights: torch.Tensor  # [T, k]

    @staticmethod
    def empty(like: torch.Tensor, top_k: int) -> ToExperts:
        """`like` [T, H]."""
        ids = like.new_empty(len(like), top_k, dtype=torch.long)
        weights = like.new_empty(len(like), top_k)
        return ToExperts(torch.empty_like(like), torch.empty_like(like), ids, weights)


class FusedLayer:
    """One layer. The projections to queries, keys and values become views of one matrix."""

    def __init__(self, layer: Any, kernels: LayerKernels) -> None:
        attention, gate = layer.self_attn, layer.mlp.gate
        self.index, self.experts, self._kernels = attention.layer_idx, layer.mlp.experts, kernels
        self._qkv = _joined([attention.q_proj, attention.k_proj, attention.v_proj])
        self._norms = torch.stack([attention.q_norm.weight, attention.k_norm.weight])
        self._first, self._second = layer.input_layernorm, layer.post_attention_layernorm
        self._output, self._router = attention.o_proj.weight, gate.weight
        self._head_eps = attention.q_norm.variance_epsilon
        self.depth, self._scaling = attention.head_dim, attention.scaling
        self.kv_heads = len(attention.k_proj.weight) // self.depth
        self.heads = len(attention.q_proj.weight) // self.depth
        self.top_k, self._normalised = gate.top_k, bool(gate.norm_topk_prob)

    def before_experts(
        self, hidden: torch.Tensor, rows: Rows, stored: torch.Tensor, end: int, out: ToExperts
    ) -> None:
        """hidden [T, H]; stored [2, KV, capacity, D], of which the first `end` columns are seen."""
        kernels, count = self._kernels, len(hidden)
        normed = torch.empty_like(hidden)
        first, second = self._first, self._second
        kernels.norm(hidden, None, first.weight, first.variance_epsilon, hidden, normed)
        queries = hidden.new_empty(self.heads, count, self.depth)
        qkv = F.linear(normed, self._qkv)
        eps = self._head_eps
        kernels.rotate(qkv, self._norms, eps, rows.angles, rows.columns, queries, stored)
        mixed = F.scaled_dot_product_attention(
            queries.view(1, self.kv_heads, -1, self.depth),
            stored[:1, :, :end],
            stored[1:, :, :end],
            attn_mask=rows.mask,
            scale=self._scaling,
        )
        heads = mixed.reshape(self.kv_heads, -1, count, self.depth)
        update = F.linear(heads.permute(2, 0, 1, 3).reshape(count, -1), self._output)
        eps = second.variance_epsilon
        kernels.norm(hidden, update, second.weight, eps, out.residual, out.normed)
        logits = F.linear(out.normed, self._router)
        kernels.route(logits, self._normalised, out.ids, out.weights)


def _joined(projections: list[Any]) -> torch.Tensor:
    """Their weights one below the other; the projections then hold views, so nothing is held
    twice."""
    joined = torch.cat([projection.weight for projection in projections])
    sizes = [len(projection.weight) for projection in projections]
    for projection, part in zip(projections, joined.split(sizes), strict=True):
        projection.weight = torch.nn.Parameter(part, requires_grad=False)
    return joined


class FusedLayers:
    """All layers of a decoder, for forwards of up to MOST_ROWS rows."""

    def __init__(self, decoder: Any, kernels: LayerKernels) -> None:
        self.layers = [FusedLayer(layer, kernels) for layer in decoder.layers]

    def run(
        self, index: int, hidden: torch.Tensor, rows: Rows, stored: torch.Tensor, end: int
    ) -> torch.Tensor:
        """One layer with its experts: hidden [1, T, H] -> [1, T, H]; `stored` is of all layers."""
        layer = self.layers[index]
        out = ToExperts.empty(hidden[0], layer.top_k)
        layer.before_experts(hidden[0], rows, stored[index], end, out)
        return (out.residual + layer.experts(out.normed, out.ids, out.weights))[None]

    def rows(
        self, angles: tuple[torch.Tensor, torch.Tensor], columns: torch.Tensor, mask: Any
    ) -> Rows:
        """cos and sin [1, T, D], columns [T], mask [1, 1, T, C] True = attend, or None."""
        cos, sin = (part[0].contiguous() for part in angles)
        return Rows((cos, sin), columns, None if mask is None else self._added(mask, cos.dtype))

    def _added(self, mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Once per forward and not per layer: as what is added to the scores, once per query head
        of a group, in lines that the memory-efficient kernel takes without a copy (of 8)."""
        count, columns = mask.shape[2:]
        added = torch.zeros(count, columns, dtype=dtype, device=mask.device)
        added.masked_fill_(mask[0, 0].logical_not(), float("-inf"))
        group = self.layers[0].heads // self.layers[0].kv_heads
        lines = added.new_empty(group, count, -(-columns // 8) * 8)[:, :, :columns]
        lines.copy_(added)
        return lines.view(1, 1, group * count, columns)

    def reserve(self, kv: KVCache, end: int, like: torch.Tensor) -> torch.Tensor:
        """[L, 2, KV, capacity, D] with room for columns up to `end`."""
        one = self.layers[0]
        return kv.reserve(one.kv_heads, one.depth, end, like)


def fusable(decoder: Any) -> bool:
    """Whether every layer is what the kernels compute; `transformers` may add to its class, so
    each part is asked."""
    return all(_is_known(layer) for layer in decoder.layers)


def _is_known(layer: Any) -> bool:
    if type(layer).__name__ != KNOWN:
        return False
    attention = layer.self_attn
    unbiased = all(
        getattr(attention, name).bias is None for name in ("q_proj", "k_proj", "v_proj", "o_proj")
    )
    halves = attention.head_dim % 2 == 0
    return unbiased and halves and attention.sliding_window is None
