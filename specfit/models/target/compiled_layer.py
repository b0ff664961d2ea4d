"""A decoder layer of the Qwen3 MoE kind for a few rows on a CPU, around its experts, compiled.

The class of transformers runs some sixty small operations a layer, each a few microseconds of
Python. For up to 32 float32 rows the same sums are two compiled calls: norm, projections, rotary
embedding; then attention, output projection, norm, router. Every row is computed as if it were
alone. More rows, other classes and other dtypes take the class itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import IntArray
from specfit.experts.kernels.compiled import MAX_ROWS, FloatArray, dot

KNOWN = "Qwen3MoeDecoderLayer"


@njit(cache=True, nogil=True, error_model="numpy")
def _norm(
    values: FloatArray, at: int, weight: FloatArray, eps: np.float32, out: FloatArray, to: int
) -> None:
    """By the root mean square of n values from `at` on, into n places from `to` on."""
    count = len(weight)
    mean = dot(values, at, values, at, count) / np.float32(count)
    scale = np.float32(1.0) / np.float32(math.sqrt(mean + eps))
    for i in range(count):
        out[to + i] = weight[i] * (values[at + i] * scale)


@njit(cache=True, nogil=True, error_model="numpy")
def _rotate(head: FloatArray, cos: FloatArray, sin: FloatArray, out: FloatArray) -> None:
    half = len(head) // 2
    for i in range(half):
        out[i] = head[i] * cos[i] - head[i + half] * sin[i]
        out[i + half] = head[i + half] * cos[i + half] + head[i] * sin[i + half]


@njit(cache=True, nogil=True, error_model="numpy")
def _project(
    hidden: FloatArray,
    norm: FloatArray,
    eps: np.float32,
    qkv: FloatArray,
    q_norm: FloatArray,
    k_norm: FloatArray,
    cos: FloatArray,
    sin: FloatArray,
    queries: FloatArray,
    keys: FloatArray,
    values: FloatArray,
) -> None:
    """hidden [T * H], qkv [(heads + 2 kv_heads) * D * H] -> queries [heads, T, D], keys and values
    [kv_heads, T, D], rotated."""
    rows, width = queries.shape[1], len(norm)
    heads, kv_heads, depth = queries.shape[0], keys.shape[0], queries.shape[2]
    normed = np.empty(width, dtype=np.float32)
    head = np.empty(depth, dtype=np.float32)
    straight = np.empty(depth, dtype=np.float32)
    for row in range(rows):
        _norm(hidden, row * width, norm, eps, normed, 0)
        for h in range(heads + 2 * kv_heads):
            for i in range(depth):
                head[i] = dot(qkv, (h * depth + i) * width, normed, 0, width)
            if h < heads:
                _norm(head, 0, q_norm, eps, straight, 0)
                _rotate(straight, cos[row], sin[row], queries[h, row])
            elif h < heads + kv_heads:
                _norm(head, 0, k_norm, eps, straight, 0)
                _rotate(straight, cos[row], sin[row], keys[h - heads, row])
            else:
                values[h - heads - kv_heads, row] = head


@njit(cache=True, nogil=True, error_model="numpy")
def _attend(
    queries: FloatArray,
    keys: FloatArray,
    values: FloatArray,
    layout: tuple[int, int, int, int],
    mask: NDArray[np.bool_],
    scaling: np.float32,
    row: int,
    out: FloatArray,
) -> None:
    """One row of queries [heads, T, D] over C columns; mask [T or 0, C]. `layout`: C, query heads
    of a key head, floats from one key head to the next in the flat keys and values, and from one
    column to the next."""
    heads, rows, depth = queries.shape
    columns, group, per_head, per_column = layout
    flat = queries.reshape(-1)
    scores = np.empty(columns, dtype=np.float32)
    for h in range(heads):
        first = h // group * per_head
        greatest = np.float32(-np.inf)
        for c in range(columns):
            if len(mask) > 0 and not mask[row, c]:
                continue
            scores[c] = (
                dot(flat, (h * rows + row) * depth, keys, first + c * per_column, depth) * scaling
            )
            greatest = max(greatest, scores[c])
        total = np.float32(0.0)
        own = h * depth
        for i in range(depth):
            out[own + i] = np.float32(0.0)
        for c in range(columns):
            if len(mask) > 0 and not mask[row, c]:
                continue
            weight = np.float32(math.exp(scores[c] - greatest))
            total += weight
            begin, end = np.uint64(first + c * per_column), np.uint64(own)
            for i in range(np.uint64(depth)):
                out[end + i] += weight * values[begin + i]
        for i in range(depth):
            out[own + i] /= total


@njit(cache=True, nogil=True, error_model="numpy")
def _route(logits: FloatArray, normalised: bool, ids: IntArray, weights: FloatArray) -> None:
    """softmax over [E], then the k greatest, the first of equals before the others."""
    greatest = logits.max()
    total = np.float32(0.0)
    for e in range(len(logits)):
        logits[e] = np.float32(math.exp(logits[e] - greatest))
        total += logits[e]
    kept = np.float32(0.0)
    for choice in range(len(ids)):
        best = 0
        for e in range(1, len(logits)):
            if logits[e] > logits[best]:
                best = e
        ids[choice] = best
        weights[choice] = logits[best] / total
        kept += weights[choice]
        logits[best] = np.float32(-1.0)
    if normalised:
        for choice in range(len(ids)):
            weights[choice] /= kept


@njit(cache=True, nogil=True, error_model="numpy")
def _after(
    hidden: FloatArray,
    queries: FloatArray,
    keys: FloatArray,
    values: FloatArray,
    layout: tuple[int, int, int, int],
    mask: NDArray[np.bool_],
    scaling: np.float32,
    output: FloatArray,
    norm: FloatArray,
    eps: np.float32,
    router: FloatArray,
    normalised: bool,
    residual: FloatArray,
    normed: FloatArray,
    ids: IntArray,
    weights: FloatArray,
) -> None:
    """Attention, its projection and the residual, norm and router, row by row."""
    rows, width = len(ids), len(norm)
    attended = np.empty(queries.shape[0] * queries.shape[2], dtype=np.float32)
    logits = np.empty(len(router) // width, dtype=np.float32)
    for row in range(rows):
        _attend(queries, keys, values, layout, mask, scaling, row, attended)
        for i in range(width):
            product = dot(output, i * len(attended), attended, 0, len(attended))
            residual[row * width + i] = hidden[row * width + i] + product
        _norm(residual, row * width, norm, eps, normed, row * width)
        for e in range(len(logits)):
            logits[e] = dot(router, e * width, normed, row * width, width)
        _route(logits, normalised, ids[row], weights[row])


_ALL = np.empty((0, 0), dtype=np.bool_)


class CompiledLayer:
    """One layer, called as transformers' own; `cache_argument` is what that calls its KV cache."""

    def __init__(self, layer: Any, cache_argument: str) -> None:
        attention, gate = layer.self_attn, layer.mlp.gate
        self._layer, self._cache_argument = layer, cache_argument
        projections = attention.q_proj, attention.k_proj, attention.v_proj
        self._qkv = torch.cat([part.weight for part in projections]).view(-1).numpy()
        self._norms = [
            norm.weight.numpy()
            for norm in (
                layer.input_layernorm,
                attention.q_norm,
                attention.k_norm,
                layer.post_attention_layernorm,
            )
        ]
        self._output = attention.o_proj.weight.view(-1).numpy()
        self._router = gate.weight.view(-1).numpy()
        self._eps = np.float32(layer.input_layernorm.variance_epsilon)
        self._scaling = np.float32(attention.scaling)
        self._depth, self._top_k = attention.head_dim, gate.top_k
        self._normalised = bool(gate.norm_topk_prob)
        self._heads = len(attention.q_proj.weight) // self._depth
        self._kv_heads = len(attention.k_proj.weight) // self._depth

    def __call__(self, hidden: torch.Tensor, **arguments: Any) -> torch.Tensor:
        """hidden [1, T, H] -> [1, T, H]."""
        rows = hidden.shape[1]
        if rows > MAX_ROWS:
            result: torch.Tensor = self._layer(hidden, **arguments)
            return result
        given = hidden.reshape(-1).numpy()
        cos, sin = (part[0].numpy() for part in arguments["position_embeddings"])
        queries = np.empty((self._heads, rows, self._depth), dtype=np.float32)
        keys, values = (torch.empty(1, self._kv_heads, rows, self._depth) for _ in range(2))
        first, q_norm, k_norm, second = self._norms
        _project(
            given, first, self._eps, self._qkv, q_norm, k_norm, cos, sin,
            queries, keys[0].numpy(), values[0].numpy(),
        )  # fmt: skip
        attention = self._layer.self_attn
        cache = arguments[self._cache_argument]
        seen_keys, seen_values = cache.update(keys, values, attention.layer_idx)
        mask = arguments["attention_mask"]
        residual, normed = torch.empty_like(hidden[0]), torch.empty_like(hidden[0])
        ids = torch.empty(rows, self._top_k, dtype=torch.long)
        weights = torch.empty(rows, self._top_k)
        _after(
            given, queries, _flat(seen_keys), _flat(seen_values), _layout(seen_keys, self._heads),
            _ALL if mask is None else mask[0, 0].numpy(), self._scaling, self._output, second,
            self._eps, self._router, self._normalised,
            residual.view(-1).numpy(), normed.view(-1).numpy(), ids.numpy(), weights.numpy(),
        )  # fmt: skip
        return (residual + self._layer.mlp.experts(normed, ids, weights))[None]


def _flat(seen: torch.Tensor) -> Any:
    """[1, kv_heads, C, D], of which the last dimension is dense, as it lies: gaps included."""
    _, heads, columns, depth = seen.shape
    assert seen.stride(3) == 1, "a column's values lie side by side"
    size = (heads - 1) * seen.stride(1) + (columns - 1) * seen.stride(2) + depth
    return seen.as_strided((size,), (1,)).numpy()


def _layout(seen: torch.Tensor, heads: int) -> tuple[int, int, int, int]:
    return seen.shape[2], heads // seen.shape[1], seen.stride(1), seen.stride(2)


def compiled_layers(decoder: Any, cache_argument: str) -> list[Any]:
    """The layers of a decoder to call, compiled where they can be."""
    return [
        CompiledLayer(layer, cache_argument) if _is_known(layer) else layer
        for layer in decoder.layers
    ]


def _is_known(layer: Any) -> bool:
    """What the compiled sums are of; `transformers` may add to its class, so each part is asked."""
    if type(layer).__name__ != KNOWN:
        return False
    weights = list(layer.parameters())
    plain = all(w.device.type == "cpu" and w.dtype == torch.float32 for w in weights)
    attention = layer.self_attn
    unbiased = all(
        getattr(attention, name).bias is None for name in ("q_proj", "k_proj", "v_proj", "o_proj")
    )
    return plain and unbiased and attention.sliding_window is None
