"""What a routed expert computes: down(act(gate x) * lift(up x)), row by row, wherever it lies.

Most families lift nothing; where experts have biases, each product has its own added.

Letters: T rows of a forward, k experts per row, H hidden size, I an expert's inner size, D demanded
experts (items of a plan, in compute order). Flat place p is row p // k, choice p % k.

A row's output depends on its own input and its expert's weights alone: not on which items run
together, nor on where their blocks lie. So a forward is bit-identical for every residency.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch.nn import functional as F

from specfit.base.types import IntArray
from specfit.experts.expert_format import ExpertFormat

Activation = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class LayerWork:
    """One layer of one forward. `table` holds, on the device, places then starts then blocks."""

    hidden: torch.Tensor  # [T, H]
    outputs: torch.Tensor  # [T * k, H], each place written once
    top_k: int
    inner_size: int
    starts: Sequence[int]  # [D + 1] where the places of an item begin
    blocks: Sequence[int]  # [D] block index of an item, in slots or in staging
    table: torch.Tensor  # [T * k + D + 1 + D] int64

    @property
    def places(self) -> torch.Tensor:
        """[T * k] flat places, item by item, rows ascending."""
        return self.table[: len(self.outputs)]


class Arithmetic(Protocol):
    compiles: bool
    """Whether a CPU's decoder layers may be compiled around it."""

    def run(self, storage: torch.Tensor, first: int, last: int, work: LayerWork) -> None:
        """Items first .. last - 1, whose blocks lie in `storage` [B, block]."""
        ...

    def finish(self, work: LayerWork, weights: torch.Tensor) -> torch.Tensor:
        """Outputs weighted by [T, k] and summed for k = 0, 1, ...: one order, always -> [T, H]."""
        ...


def sort_by_item(topk: IntArray, order: IntArray | Sequence[int]) -> tuple[IntArray, list[int]]:
    """(places [T * k] item by item with rows ascending, starts [D + 1]) of `topk` [T, k]."""
    flat = topk.reshape(-1)
    item_of = np.empty(int(flat.max()) + 1, dtype=np.int64)
    item_of[np.asarray(order)] = np.arange(len(order))
    items = item_of[flat]
    places = np.argsort(items, kind="stable")
    counts = np.bincount(items, minlength=len(order))
    return places, [0, *np.cumsum(counts).tolist()]


class LoopArithmetic:
    """One expert after the other in plain torch: the reference, and the path for many rows."""

    compiles = False

    def __init__(self, activation: Activation, lift: Activation | None = None) -> None:
        self._activation, self._lift = activation, lift

    def run(self, storage: torch.Tensor, first: int, last: int, work: LayerWork) -> None:
        for item in range(first, last):
            places = work.places[work.starts[item] : work.starts[item + 1]]
            self._apply(storage[work.blocks[item]], places, work)

    def _apply(self, block: torch.Tensor, places: torch.Tensor, work: LayerWork) -> None:
        width, inner = work.hidden.shape[1], work.inner_size
        middle, end = 2 * inner * width, 3 * inner * width
        gate_up, down = block[:middle].view(2 * inner, width), block[middle:end].view(width, inner)
        biases = block[end:].split([2 * inner, width]) if len(block) > end else (None, None)
        gate, up = F.linear(work.hidden[places // work.top_k], gate_up, biases[0]).chunk(2, dim=-1)
        lifted = up if self._lift is None else self._lift(up)
        work.outputs[places] = F.linear(self._activation(gate) * lifted, down, biases[1])

    def finish(self, work: LayerWork, weights: torch.Tensor) -> torch.Tensor:
        outputs = work.outputs.view(-1, work.top_k, work.outputs.shape[-1])
        return sum_in_router_order(outputs, weights)


def sum_in_router_order(outputs: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """outputs [T, k, H] weighted by [T, k] and added for k = 0, 1, ...: one order, always."""
    total = outputs[:, 0] * weights[:, 0, None]
    for choice in range(1, outputs.shape[1]):
        total = torch.addcmul(total, outputs[:, choice], weights[:, choice, None])
    return total


class Uploads:
    """Small index tables to the device without a wait: through one pinned buffer on CUDA.

    The buffer is used again by the next layer, whose routes the host has waited for by then.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pinned: torch.Tensor | None = None

    def __call__(self, values: IntArray) -> torch.Tensor:
        """A new int64 tensor on the device."""
        if self._device.type != "cuda":
            return torch.from_numpy(values)
        if self._pinned is None or len(self._pinned) < len(values):
            self._pinned = torch.empty(2 * len(values), dtype=torch.int64, pin_memory=True)
        here = self._pinned[: len(values)]
        here.numpy()[:] = values
        return here.to(self._device, non_blocking=True)


class Downloads:
    """Small index tables to the host: on CUDA one copy to a pinned buffer, and a wait for it."""

    def __init__(self) -> None:
        self._pinned: torch.Tensor | None = None
        self._arrived: torch.cuda.Event | None = None

    def __call__(self, values: torch.Tensor) -> IntArray:
        """int64 of any shape -> an array of the caller's own: graphs write routes to one place."""
        if not values.is_cuda:
            return values.numpy().copy()
        if self._pinned is None or len(self._pinned) < values.numel():
            self._pinned = torch.empty(2 * values.numel(), dtype=torch.int64, pin_memory=True)
            self._arrived = torch.cuda.Event()
        assert self._arrived is not None
        here = self._pinned[: values.numel()].view(values.shape)
        here.copy_(values, non_blocking=True)
        self._arrived.record()
        self._arrived.synchronize()
        return here.numpy().copy()


class WidenedArithmetic:
    """Quantised blocks, one expert after the other: widened into memory of its own, run by `inner`.

    The sums are those of a plain checkpoint, so outputs are bit-identical to those of a model whose
    weights were widened up front.
    """

    def __init__(self, inner: Arithmetic, format: ExpertFormat) -> None:
        self._inner, self._format = inner, format
        self.compiles = inner.compiles

    def run(self, storage: torch.Tensor, first: int, last: int, work: LayerWork) -> None:
        alone = _at_block_zero(work)
        for item in range(first, last):
            block = self._format.widen(storage[work.blocks[item]])
            self._inner.run(block[None], item, item + 1, alone)

    def finish(self, work: LayerWork, weights: torch.Tensor) -> torch.Tensor:
        return self._inner.finish(work, weights)


def _at_block_zero(work: LayerWork) -> LayerWork:
    """The same work on a storage of one block."""
    table = work.table.clone()
    table[len(table) - len(work.blocks) :] = 0
    return replace(work, blocks=[0] * len(work.blocks), table=table)
