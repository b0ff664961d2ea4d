"""Data-parallel training over processes of one thread each, on shared memory.

The model's matrices are so small that two threads inside one product mostly wait for each other;
two processes with half the batch each are about 1.7 times as fast on two cores.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any, Protocol

import torch
import torch.multiprocessing as mp
from torch import Tensor, nn


class Work(Protocol):
    """What one process does with its share of a batch. Pickled once, when a worker starts."""

    def trained(self) -> list[nn.Parameter]:
        """Parameters, in a fixed order."""

    def __call__(self, ids: Tensor, assistant: Tensor, *settings: Any) -> dict[str, float]:
        """Forward and backward on rows [B, L]: adds to the gradients, returns values to log.
        settings: what the caller changes between batches."""


class Workers:
    """`count` processes, the caller's included, that turn one batch into mean gradients."""

    def __init__(self, work: Work, count: int) -> None:
        self.work = work
        self.parameters = work.trained()
        for parameter in self.parameters:
            parameter.data.share_memory_()
        self._pipes: list[Connection] = []
        self._gradients: list[list[Tensor]] = []
        context = mp.get_context("spawn")
        for _ in range(count - 1):
            ours, theirs = context.Pipe()
            shared = [torch.zeros_like(p.data).share_memory_() for p in self.parameters]
            context.Process(target=_serve, args=(work, shared, theirs), daemon=True).start()
            self._pipes.append(ours)
            self._gradients.append(shared)

    def gradients(self, ids: Tensor, assistant: Tensor, *settings: Any) -> dict[str, float]:
        """Leave the mean gradient over all rows in `.grad`; returns mean logged values."""
        count = 1 + len(self._pipes)
        ids_parts, assistant_parts = ids.chunk(count), assistant.chunk(count)
        for pipe, rows, marks in zip(self._pipes, ids_parts[1:], assistant_parts[1:], strict=True):
            pipe.send((rows.numpy(), marks.numpy(), settings))
        results = [self.work(ids_parts[0], assistant_parts[0], *settings)]
        results += [pipe.recv() for pipe in self._pipes]
        own = [p.grad for p in self.parameters if p.grad is not None]
        assert len(own) == len(self.parameters), "a trained parameter got no gradient"
        for shared in self._gradients:
            torch._foreach_add_(own, shared)
        torch._foreach_mul_(own, 1 / count)
        return {key: sum(r[key] for r in results) / count for key in results[0]}

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)


def _serve(work: Work, shared: list[Tensor], pipe: Connection) -> None:
    """A worker: parameters are the caller's memory, gradients go to `shared`."""
    torch.set_num_threads(1)
    for parameter, gradient in zip(work.trained(), shared, strict=True):
        parameter.grad = gradient
    while (message := pipe.recv()) is not None:
        torch._foreach_zero_(shared)
        ids, assistant = (torch.from_numpy(array) for array in message[:2])
        pipe.send(work(ids, assistant, *message[2]))
