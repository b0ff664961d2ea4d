"""The protocols of the decoder over a recording. No tensor: features are row numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specfit.base.interfaces import Prefilled, RouteSource, Verified
from specfit.base.types import DraftTree, IntArray, Request, Routes, Selection
from specfit.decoding.replay.playback import Playback
from specfit.experts.cache import ExpertCache


class RecordedTarget:
    """Says what the target said; what it demands goes through the decoder's own expert cache."""

    def __init__(
        self, playback: Playback, cache: ExpertCache, expert_bytes: int, prefill_chunk: int | None
    ) -> None:
        self.expert_bytes = expert_bytes
        self.length = 0
        self.cache = cache
        self._playback, self._chunk = playback, prefill_chunk

    def begin(self) -> None:
        self.length = 0

    def prefill(self, prompt_ids: IntArray) -> Prefilled:
        self._playback.begin(prompt_ids)
        routes = self._playback.prompt_routes
        step = self._chunk or len(routes)
        traces = []
        for start in range(0, len(routes), step):
            chunk = routes[start : start + step]
            traces.append(self.cache.replay(chunk.swapaxes(0, 1), len(chunk), is_prefill=True))
        self.length = len(prompt_ids)
        first = int(self._playback.output_ids[0])
        return Prefilled(first, np.arange(len(routes)), routes, traces)

    def verify(self, root_token: int, tree: DraftTree, selection: Selection) -> Verified:
        playback = self._playback
        playback.seek(self.length - playback.prompt_tokens)
        rows = np.array((-1, *selection.nodes), dtype=np.int64) + 1
        routes = playback.atlas.take(rows, axis=0)
        trace = self.cache.replay(
            routes.swapaxes(0, 1), billed_rows=len(rows) - 1, is_prefill=False
        )
        return Verified(playback.next_tokens.take(rows), rows, routes, trace)

    def keep(self, rows: Sequence[int]) -> None:
        self.length += len(rows)

    def truncate(self, length: int) -> None:
        assert length <= self.length
        self.length = length

    def resident(self) -> np.ndarray:
        return self.cache.resident_mask()

    def residency(self) -> dict[str, np.ndarray]:
        return self.cache.state()

    def restore(self, residency: dict[str, np.ndarray]) -> None:
        self.cache.load_state(residency)


class RecordedDrafter:
    """Uncovers the recorded pool level by level."""

    def __init__(self, playback: Playback, max_depth: int) -> None:
        self.max_depth, self.length = max_depth, 0
        self._playback = playback

    def begin(self) -> None:
        self.length = 0

    def truncate(self, length: int) -> None:
        assert length <= self.length
        self.length = length

    def extend(self, tokens: IntArray, features: Any) -> None:
        self.length += len(tokens)

    def grow(self, tree: DraftTree) -> DraftTree:
        self._playback.seek(self.length - self._playback.prompt_tokens)
        return self._playback.grown[tree.levels]


class RecordedRoutes(RouteSource):
    """The recorded atlas of the pool so far."""

    on_clock = False

    def __init__(self, playback: Playback) -> None:
        self._playback = playback

    def begin(self, request: Request) -> None: ...

    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        playback = self._playback
        playback.seek(context_tokens - 1 - playback.prompt_tokens)
        return Routes(playback.atlas[0], playback.atlas[1 : 1 + len(tree)])

    def end_cycle(self) -> None: ...
