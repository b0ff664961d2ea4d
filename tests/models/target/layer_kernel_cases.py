"""Runs in a process of its own under TRITON_INTERPRET=1: the layer's kernels against transformers'
operations, in the same dtype.

`python -m tests.models.target.layer_kernel_cases` prints a line a case; exit code 1: one is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import torch

from specfit.models.target.layer_kernels import TritonLayerKernels
from tests.fakes.layer_kernels import TorchLayerKernels

OURS, THEIRS = TritonLayerKernels(), TorchLayerKernels()
EPS = 1e-6
# Sums are added up in another order, and the interpreter (Triton 3.7) cuts bfloat16 off where a
# device rounds: up to three such cuts of 2**-7 in a result.
LIMITS = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 2**-5}
HEADS, KV_HEADS, DEPTH, CAPACITY = 6, 2, 20, 11


def close(ours: torch.Tensor, theirs: torch.Tensor, dtype: torch.dtype) -> bool:
    limit = LIMITS[dtype]
    return torch.allclose(ours.float(), theirs.float(), rtol=2 * limit, atol=limit)


def norm_case(dtype: torch.dtype, updated: bool) -> bool:
    hidden, update, weight = torch.randn(3, 72), torch.randn(3, 72), torch.rand(72) + 0.5
    hidden, update, weight = (part.to(dtype) for part in (hidden, update, weight))
    made = []
    for kernels in (OURS, THEIRS):
        residual, normed = torch.zeros_like(hidden), torch.zeros_like(hidden)
        given = update if updated else None
        kernels.norm(hidden, given, weight, EPS, residual, normed)
        made.append((residual, normed))
    (residual, normed), (other, expected) = made
    same = dtype == torch.bfloat16 or torch.equal(residual, other)
    return same and close(residual, other, dtype) and close(normed, expected, dtype)


def rotate_case(dtype: torch.dtype) -> bool:
    """Five rows, of which the second and the last are not kept."""
    rows = 5
    qkv = torch.randn(rows, (HEADS + 2 * KV_HEADS) * DEPTH).to(dtype)
    norms = (torch.rand(2, DEPTH) + 0.5).to(dtype)
    turn = torch.rand(rows, DEPTH // 2).repeat(1, 2) * 6
    angles = turn.cos().to(dtype), turn.sin().to(dtype)
    columns = torch.tensor([3, -1, 0, 10, -1])
    before = torch.randn(2, KV_HEADS, CAPACITY, DEPTH).to(dtype)
    made = []
    for kernels in (OURS, THEIRS):
        queries, stored = torch.zeros(HEADS, rows, DEPTH, dtype=dtype), before.clone()
        kernels.rotate(qkv, norms, EPS, angles, columns, queries, stored)
        made.append((queries, stored))
    (queries, stored), (expected, kept) = made
    others = [column for column in range(CAPACITY) if column not in (3, 0, 10)]
    untouched = torch.equal(stored[:, :, others], before[:, :, others])
    values = torch.equal(stored[1], kept[1])
    return untouched and values and close(queries, expected, dtype) and close(stored, kept, dtype)


def route_case(dtype: torch.dtype, normalised: bool) -> bool:
    experts, top_k = 22, 5
    logits = torch.randn(4, experts).to(dtype)
    logits[2] = 0.5  # all equal: the first ones
    made = []
    for kernels in (OURS, THEIRS):
        ids = torch.zeros(4, top_k, dtype=torch.long)
        weights = torch.zeros(4, top_k, dtype=dtype)
        kernels.route(logits, normalised, ids, weights)
        made.append((ids, weights))
    (ids, weights), (_, expected) = made
    shares = logits.float().softmax(-1)
    greatest = all(
        sorted(shares[row, ids[row]].tolist()) == sorted(shares[row].topk(top_k).values.tolist())
        and len(set(ids[row].tolist())) == top_k
        for row in range(4)
    )
    return greatest and ids[2].tolist() == [*range(top_k)] and close(weights, expected, dtype)


def no_number_case() -> bool:
    """Ids stay within the experts, and are different ones."""
    logits = torch.full((2, 22), float("nan"))
    logits[1] = 1.0
    logits[1, 4] = float("inf")
    ids, weights = torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 5)
    OURS.route(logits, True, ids, weights)
    within = all(len(set(row)) == 5 and min(row) >= 0 and max(row) < 22 for row in ids.tolist())
    return within and bool(weights.isnan().any(dim=1).all())


def cases() -> Iterator[tuple[str, bool]]:
    for dtype in LIMITS:
        yield f"norm, {dtype}", norm_case(dtype, updated=False)
        yield f"sum and norm, {dtype}", norm_case(dtype, updated=True)
        yield f"rotate, {dtype}", rotate_case(dtype)
        yield f"route, {dtype}", route_case(dtype, normalised=True)
        yield f"route without a common sum, {dtype}", route_case(dtype, normalised=False)
    yield "logits that are no numbers", no_number_case()


if __name__ == "__main__":
    torch.manual_seed(0)
    results = list(cases())
    for name, right in results:
        print(f"{name}: {'right' if right else 'WRONG'}")
    sys.exit(0 if all(right for _, right in results) else 1)
