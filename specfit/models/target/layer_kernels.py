"""Triton kernels of a decoder layer of the Qwen3 MoE kind, for a few rows on a GPU.

Each stands for a dozen small operations of transformers' class and rounds where that class rounds,
so results differ from it by the order of a sum at most. Imported only where Triton is used.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(
    hidden,  # [T, H]
    update,  # [T, H]; of `UPDATED` alone
    weight,  # [H]
    residual,  # [T, H] out; of `UPDATED` alone
    normed,  # [T, H] out
    eps,
    width: tl.constexpr,  # H
    UPDATED: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """One row: residual = hidden + update, and that by its root mean square."""
    column = tl.arange(0, COLUMNS)
    there = column < width
    at = tl.program_id(0) * width + column
    value = tl.load(hidden + at, mask=there, other=0.0)
    dtype = value.dtype
    if UPDATED:
        other = tl.load(update + at, mask=there, other=0.0)
        value = (value.to(tl.float32) + other.to(tl.float32)).to(dtype)
        tl.store(residual + at, value, mask=there)
    wide = value.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / width + eps)
    factor = tl.load(weight + column, mask=there, other=0.0).to(tl.float32)
    result = (wide * scale).to(dtype).to(tl.float32) * factor
    tl.store(normed + at, result.to(dtype), mask=there)


@triton.jit
def _straight(part, scale, weight, dtype: tl.constexpr):
    """A part of a head, normed: rounded after the norm and after its weight."""
    rounded = (part.to(tl.float32) * scale).to(dtype).to(tl.float32)
    return (rounded * weight.to(tl.float32)).to(dtype).to(tl.float32)


@triton.jit
def rotate_kernel(
    qkv,  # [T, (heads + 2 * kv_heads) * D]
    norms,  # [2, D]: of queries, of keys
    cos,  # [T, D]
    sin,  # [T, D]
    columns,  # [T] of the KV cache; negative: the row is not kept
    queries,  # [heads, T, D] out
    stored,  # [2, kv_heads, capacity, D] out
    rows,
    capacity,
    eps,
    heads: tl.constexpr,
    kv_heads: tl.constexpr,
    depth: tl.constexpr,  # D
    HALF: tl.constexpr,
):
    """One head of one row: queries and keys are normed and rotated, keys and values are kept."""
    row, head = tl.program_id(0), tl.program_id(1)
    half: tl.constexpr = depth // 2
    lane = tl.arange(0, HALF)
    there = lane < half
    at = qkv + (row * (heads + 2 * kv_heads) + head) * depth + lane
    low = tl.load(at, mask=there, other=0.0)
    high = tl.load(at + half, mask=there, other=0.0)
    dtype: tl.constexpr = low.dtype
    squares = low.to(tl.float32) * low.to(tl.float32) + high.to(tl.float32) * high.to(tl.float32)
    scale = tl.rsqrt(tl.sum(squares, 0) / depth + eps)
    weight = norms + tl.where(head < heads, 0, depth) + lane
    first = _straight(low, scale, tl.load(weight, mask=there, other=0.0), dtype)
    second = _straight(high, scale, tl.load(weight + half, mask=there, other=0.0), dtype)
    angle = row * depth + lane
    cos_low = tl.load(cos + angle, mask=there, other=0.0).to(tl.float32)
    cos_high = tl.load(cos + angle + half, mask=there, other=0.0).to(tl.float32)
    sin_low = tl.load(sin + angle, mask=there, other=0.0).to(tl.float32)
    sin_high = tl.load(sin + angle + half, mask=there, other=0.0).to(tl.float32)
    turned = (first * cos_low).to(dtype).to(tl.float32) - (second * sin_low).to(dtype).to(
        tl.float32
    )
    beyond = (second * cos_high).to(dtype).to(tl.float32) + (first * sin_high).to(dtype).to(
        tl.float32
    )
    rotates = head < heads + kv_heads
    low = tl.where(rotates, turned.to(dtype), low)
    high = tl.where(rotates, beyond.to(dtype), high)
    column = tl.load(columns + row)
    to = queries + (head * rows + row) * depth + lane
    asks = there & (head < heads)
    tl.store(to, low, mask=asks)
    tl.store(to + half, high, mask=asks)
    # Value heads follow key heads, in the row and in the cache.
    to = stored + ((head - heads) * capacity + column) * depth + lane
    kept = there & (head >= heads) & (column >= 0)
    tl.store(to, low, mask=kept)
    tl.store(to + half, high, mask=kept)


@triton.jit
def route_kernel(
    logits,  # [T, E]
    ids,  # [T, k] out
    weights,  # [T, k] out
    experts: tl.constexpr,  # E
    top_k: tl.constexpr,
    NORMALISED: tl.constexpr,
    COLUMNS: tl.constexpr,
    CHOICES: tl.constexpr,
):
    """One row: softmax, then the k greatest, the first of equals before the others. Logits that
    are no numbers choose the first experts, whose weights are no numbers either."""
    row = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    there = column < experts
    value = tl.load(logits + row * experts + column, mask=there, other=-float("inf"))
    value = value.to(tl.float32)
    value = tl.exp(value - tl.max(value, 0))
    share = value / tl.sum(value, 0)
    left = tl.where(there, tl.where(share == share, share, 0.0), -2.0)
    place = tl.arange(0, CHOICES)
    chosen = tl.zeros((CHOICES,), dtype=tl.float32)
    names = tl.zeros((CHOICES,), dtype=tl.int64)
    for choice in tl.static_range(top_k):
        best = tl.argmax(left, 0)
        chosen = tl.where(place == choice, tl.sum(tl.where(column == best, share, 0.0), 0), chosen)
        names = tl.where(place == choice, best.to(tl.int64), names)
        left = tl.where(column == best, -1.0, left)
    if NORMALISED:
        chosen = chosen / tl.sum(chosen, 0)
    alive = place < top_k
    tl.store(ids + row * top_k + place, names, mask=alive)
    to = weights + row * top_k + place
    tl.store(to, chosen.to(weights.dtype.element_ty), mask=alive)


class TritonLayerKernels:
    """`LayerKernels` of a CUDA device; every call is one launch."""

    def norm(
        self,
        hidden: torch.Tensor,
        update: torch.Tensor | None,
        weight: torch.Tensor,
        eps: float,
        residual: torch.Tensor,
        normed: torch.Tensor,
    ) -> None:
        rows, width = hidden.shape
        norm_kernel[(rows,)](
            hidden, hidden if update is None else update, weight, residual, normed, eps, width,
            UPDATED=update is not None, COLUMNS=triton.next_power_of_2(width), num_warps=8,
        )  # fmt: skip

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
        heads, rows, depth = queries.shape
        _, kv_heads, capacity, _ = stored.shape
        rotate_kernel[(rows, heads + 2 * kv_heads)](
            qkv, norms, *angles, columns, queries, stored, rows, capacity, eps,
            heads, kv_heads, depth, HALF=triton.next_power_of_2(depth // 2), num_warps=1,
        )  # fmt: skip

    def route(
        self, logits: torch.Tensor, normalised: bool, ids: torch.Tensor, weights: torch.Tensor
    ) -> None:
        rows, experts = logits.shape
        top_k = ids.shape[1]
        route_kernel[(rows,)](
            logits, ids, weights, experts, top_k, NORMALISED=normalised,
            COLUMNS=triton.next_power_of_2(experts), CHOICES=triton.next_power_of_2(top_k),
            num_warps=1,
        )  # fmt: skip
