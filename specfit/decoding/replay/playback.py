"""The request being replayed, and its position: what recorded target, drafter and routes share.

Greedy output depends on nothing that a replay may change, so a position is named by how many tokens
are committed: position i has output_ids[i] as its root, after P + i tokens of context.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from specfit.base.types import DraftTree, IntArray, SpecfitError
from specfit.storage.recording.requests import RecordedRequest


def _key(prompt_ids: IntArray) -> bytes:
    return np.asarray(prompt_ids, dtype=np.int64).tobytes()


class Playback:
    """Requests are found by their prompts; equal prompts have equal greedy outputs."""

    def __init__(self, requests: Iterable[RecordedRequest]) -> None:
        self._by_prompt = {
            _key(request.request.prompt_ids): request
            for request in requests
            if request.request is not None
        }
        self._position = -1

    def holds(self, prompt_ids: IntArray) -> bool:
        return _key(prompt_ids) in self._by_prompt

    def begin(self, prompt_ids: IntArray) -> None:
        key = _key(prompt_ids)
        if key not in self._by_prompt:
            raise SpecfitError("the recording holds no request with this prompt; record it first")
        self.recorded = self._by_prompt[key]
        self.prompt_tokens = len(prompt_ids)
        self._position = -1

    @property
    def output_ids(self) -> IntArray:
        assert self.recorded.output_ids is not None
        return self.recorded.output_ids

    @property
    def prompt_routes(self) -> NDArray[np.uint8]:
        """[P, L, k]"""
        assert self.recorded.prompt_routes is not None
        return self.recorded.prompt_routes

    def seek(self, position: int) -> None:
        """Everything about one position is looked up once."""
        if position == self._position:
            return
        pools = self.recorded.pools
        assert pools is not None and 0 <= position < len(pools), "a cycle starts before the end"
        self._position = position
        rows = pools.rows(position)
        self.grown: Sequence[DraftTree] = pools.grown(position)  # after level 1, 2, .., all
        self.next_tokens: IntArray = self.recorded.next_tokens[rows]  # [1 + N]
        self.atlas: IntArray = pools.routes[rows].astype(np.int64)  # [1 + N, L, k]

    @property
    def tree(self) -> DraftTree:
        """The whole pool of the position."""
        return self.grown[-1]
