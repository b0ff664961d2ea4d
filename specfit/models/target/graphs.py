"""A CUDA graph per layer for everything between two expert phases: one launch instead of ten.

A graph runs the same kernels on the same addresses with the same sizes, so forwards share graphs by
bucket: rows are padded to 1, 2, 4 or 8, columns to the next multiple of 256. A padded row is not
kept and goes to no expert; a padded column is masked, and cleared, for a masked score of what is no
number is none either. Experts stay outside, since the host decides what they need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from specfit.base.types import IntArray
from specfit.models.target.fused_layer import FusedLayers, Rows, ToExperts
from specfit.models.target.kv import KVCache

ROWS = (1, 2, 4, 8)
COLUMNS = 256

Replay = Callable[[], None]


@dataclass(frozen=True)
class Size:
    """A bucket: forwards of up to `rows` rows over up to `columns` columns."""

    rows: int
    columns: int

    @staticmethod
    def of(rows: int, end: int) -> Size | None:
        """None for more rows than any bucket has. `end`: columns that the last row sees."""
        fitting = [size for size in ROWS if size >= rows]
        return Size(fitting[0], -(-end // COLUMNS) * COLUMNS) if fitting else None

    def columns_of(self, start: int, rows: int) -> IntArray:
        """[rows of the bucket] where each row is kept; -1 for a padded one."""
        columns = np.full(self.rows, -1, dtype=np.int64)
        columns[:rows] = np.arange(start, start + rows)
        return columns

    def mask_of(self, mask: torch.Tensor | None, rows: int, end: int) -> torch.Tensor:
        """[1, 1, T, C] or None, True = attend -> the same in this size. A padded row sees what the
        first sees, so that it is finite."""
        padded = torch.zeros(1, 1, self.rows, self.columns, dtype=torch.bool)
        padded[:, :, :rows, :end] = True if mask is None else mask
        padded[:, :, rows:] = padded[:, :, :1]
        return padded


class Capture(Protocol):
    """How work on fixed addresses is recorded."""

    def warm_up(self, work: Replay) -> None:
        """Run it as it is: kernels are compiled and libraries begin here, not in a recording."""
        ...

    def capture(self, work: Replay) -> Replay:
        """Record and do not run; the result runs it again."""
        ...


class CudaCapture:
    """Graphs of one device that share their scratch memory: they are run one after the other."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    def warm_up(self, work: Replay) -> None:
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            work()
        current.wait_stream(self._stream)
        torch.cuda.synchronize()

    def capture(self, work: Replay) -> Replay:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self._stream):
            # Thread-local: the thread of unlocked copies goes on meanwhile.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                work()
            finally:
                graph.capture_end()
        replay: Replay = graph.replay
        return replay


class _Captured:
    """The tensors that one size's graphs read and write, and a graph per layer."""

    def __init__(
        self, size: Size, fused: FusedLayers, stored: torch.Tensor, like: Rows, hidden: torch.Tensor
    ) -> None:
        """`like`: rows of this size; hidden [1, T, H]."""
        self.hidden = hidden.new_zeros(size.rows, hidden.shape[2])
        cos, sin = (part.new_zeros(size.rows, part.shape[1]) for part in like.angles)
        assert like.mask is not None, "a size has columns to mask"
        self.rows = Rows((cos, sin), torch.full_like(like.columns, -1), torch.zeros_like(like.mask))
        self.out = ToExperts.empty(self.hidden, fused.layers[0].top_k)
        self._fused, self._stored, self._columns = fused, stored, size.columns
        self.replays: list[Replay] = []

    def work_of(self, index: int) -> Replay:
        layer, stored = self._fused.layers[index], self._stored[index]
        arguments = self.hidden, self.rows, stored, self._columns, self.out
        return lambda: layer.before_experts(*arguments)

    def fill(self, hidden: torch.Tensor, rows: Rows) -> None:
        count = hidden.shape[1]
        self.hidden[:count].copy_(hidden[0])
        for mine, given in zip(self.rows.angles, rows.angles, strict=True):
            mine[:count].copy_(given)
        self.rows.columns.copy_(rows.columns)
        assert self.rows.mask is not None and rows.mask is not None
        self.rows.mask.copy_(rows.mask)


class LayerGraphs:
    """Captured when a size is first needed; all are dropped when the KV cache comes to lie
    elsewhere. What `KVCache.keep` moves within it changes no address."""

    def __init__(self, fused: FusedLayers, kv: KVCache, capture: Capture) -> None:
        self._fused, self._kv, self._capture = fused, kv, capture
        self._held: dict[Size, _Captured] = {}
        self._moves = 0

    def begin(self, size: Size, hidden: torch.Tensor, rows: Rows, end: int) -> _Captured:
        """hidden [1, T, H], angles of its T rows, columns and mask of the size -> ready to run."""
        stored = self._fused.reserve(self._kv, size.columns, hidden)
        if self._moves != self._kv.moves:
            self._held.clear()
            self._moves = self._kv.moves
        if size not in self._held:
            self._held[size] = self._captured(size, stored, rows, hidden)
        self._kv.clear(end, size.columns)
        captured = self._held[size]
        captured.fill(hidden, rows)
        return captured

    def _captured(
        self, size: Size, stored: torch.Tensor, rows: Rows, hidden: torch.Tensor
    ) -> _Captured:
        """No row is kept while it warms up: its columns are all negative."""
        made = _Captured(size, self._fused, stored, rows, hidden)
        self._capture.warm_up(made.work_of(0))
        layers = range(len(self._fused.layers))
        made.replays = [self._capture.capture(made.work_of(index)) for index in layers]
        return made

    def run(self, index: int, captured: _Captured, count: int) -> torch.Tensor:
        """One layer of the forward that has begun -> its first `count` rows [1, T, H]."""
        captured.replays[index]()
        out = captured.out
        given = out.normed[:count], out.ids[:count], out.weights[:count]
        hidden = captured.hidden[:count]
        torch.add(out.residual[:count], self._fused.layers[index].experts(*given), out=hidden)
        return hidden[None]
