"""The fused layer kernels by the operations of transformers' own classes, and graphs on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers.models.qwen3_moe.modeling_qwen3_moe import apply_rotary_pos_emb

from tests.fakes.launches import Dispatched

WAITS = {"_local_scalar_dense", "nonzero", "item", "equal"}


class TorchLayerKernels:
    """`LayerKernels`, rounding where transformers rounds."""

    def norm(
        self,
        hidden: torch.Tensor,
        update: torch.Tensor | None,
        weight: torch.Tensor,
        eps: float,
        residual: torch.Tensor,
        normed: torch.Tensor,
    ) -> None:
        if update is not None:
            hidden = torch.add(hidden, update, out=residual)
        normed.copy_(_normed(hidden, weight, eps))

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
        kv_heads = stored.shape[1]
        parts = qkv.view(1, rows, -1, depth).split([heads, kv_heads, kv_heads], dim=2)
        asked, keys = (
            _normed(part, norm, eps).transpose(1, 2)
            for part, norm in zip(parts[:2], norms, strict=True)
        )
        cos, sin = (part[None] for part in angles)
        turned, turned_keys = apply_rotary_pos_emb(asked, keys, cos, sin)
        queries.copy_(turned[0])
        new = torch.stack([turned_keys[0], parts[2][0].transpose(0, 1)])
        # Row by column, so that a row that is not kept changes nothing.
        lands = columns[None, :] == torch.arange(stored.shape[2])[:, None]
        moved = new[:, :, lands.float().argmax(1)]
        stored.copy_(torch.where(lands.any(1)[None, None, :, None], moved, stored))

    def route(
        self, logits: torch.Tensor, normalised: bool, ids: torch.Tensor, weights: torch.Tensor
    ) -> None:
        shares = torch.nn.functional.softmax(logits, dtype=torch.float, dim=-1)
        chosen, names = torch.topk(shares, ids.shape[1], dim=-1)
        if normalised:
            chosen = chosen / chosen.sum(dim=-1, keepdim=True)
        ids.copy_(names)
        weights.copy_(chosen)


def _normed(hidden: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = hidden.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * wide.to(hidden.dtype)


class _Recorder(Dispatched):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def meet(self, func: Any, args: Any, kwargs: Any, made: Any) -> None:
        assert func.overloadpacket.__name__ not in WAITS, "a graph cannot wait for a value"
        self.calls.append((func, args, kwargs, made))


class RecordedCapture:
    """What a CUDA graph is, on a CPU: the same operations on the same tensors with equal numbers,
    whatever the code around them has come to mean since. A recording is run as it is made, which
    CUDA does not do; what it wrote is spoilt."""

    def __init__(self) -> None:
        self.captured = self.replayed = 0

    def warm_up(self, work: Callable[[], None]) -> None:
        work()

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        self.captured += 1
        recorder = _Recorder()
        with recorder:
            work()
        for *_, made in recorder.calls:
            for tensor in _tensors(made):
                if tensor.is_floating_point() and tensor.dim() == 2:
                    tensor.fill_(float("nan"))

        def replay() -> None:
            self.replayed += 1
            for func, args, kwargs, made in recorder.calls:
                again = func(*args, **kwargs)
                for place, value in zip(_tensors(made), _tensors(again), strict=True):
                    place.copy_(value)

        return replay


def _tensors(made: Any) -> list[torch.Tensor]:
    parts = made if isinstance(made, tuple | list) else (made,)
    return [part for part in parts if isinstance(part, torch.Tensor)]
