"""Routes that a recording holds: its atlas for a live run, a predictor's, recent use of experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from specfit.base.interfaces import RouteSource
from specfit.base.types import DraftTree, Request, Routes, SpecfitError
from specfit.decoding.replay.playback import Playback
from specfit.models.routes.recent_use import RecentUse, Use
from specfit.storage.identity import first_difference
from specfit.storage.recording.files import Recording
from specfit.storage.recording.requests import RecordedRequest
from specfit.storage.recording.route_predictions import Predictions, keyed


class KnownRoutes(RouteSource):
    """`routes=recording`: a live run reads its atlas from a recording, else asks the target.

    Falls back to the `atlas` for the rest of a cycle whose pool is not the recorded one.

    `cycles` and `fallbacks` count over the request at hand.
    """

    on_clock = False

    def __init__(self, playback: Playback, atlas: RouteSource) -> None:
        self._playback, self._atlas = playback, atlas
        self._asks_atlas = False
        self.cycles = self.fallbacks = 0

    def begin(self, request: Request) -> None:
        self._asks_atlas = False
        self.cycles = self.fallbacks = 0
        self._atlas.begin(request)
        self._has_request = self._playback.holds(request.prompt_ids)
        if self._has_request:
            self._playback.begin(request.prompt_ids)

    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        self.cycles += tree.levels == 1
        if not self._asks_atlas and self._is_recorded(root_token, tree, context_tokens):
            atlas = self._playback.atlas
            return Routes(atlas[0], atlas[1 : 1 + len(tree)])
        self.fallbacks += not self._asks_atlas
        self._asks_atlas = True
        return self._atlas.read(root_token, tree, context_tokens)

    def end_cycle(self) -> None:
        self._asks_atlas = False
        self._atlas.end_cycle()

    def _is_recorded(self, root_token: int, tree: DraftTree, context_tokens: int) -> bool:
        playback = self._playback
        if not self._has_request:
            return False
        position = context_tokens - 1 - playback.prompt_tokens
        if not position < playback.recorded.positions:
            return False
        playback.seek(position)
        known, n = playback.tree, len(tree)
        return bool(
            int(playback.output_ids[position]) == root_token
            and np.array_equal(known.tokens[:n], tree.tokens)
            and np.array_equal(known.parents[:n], tree.parents)
        )


def check_same_pair(identity: Mapping[str, Any], target: str, drafter: str, dtype: str) -> None:
    """Raises SpecfitError where the recording is of another target, head or dtype."""
    recorded = {"target": identity["target"], "drafter": identity["drafter"]}
    recorded["dtype"] = identity["model"]["dtype"]
    mine = {"target": target, "drafter": drafter, "dtype": dtype}
    differs = first_difference(recorded, mine)
    if differs is not None:
        raise SpecfitError(
            f"the recording was made with another {differs}; its routes are not this run's"
        )


class PredictedRoutes(RouteSource):
    """`routes=learned` over a recording: what the predictor said there, read, not computed."""

    on_clock = True

    def __init__(self, playback: Playback, recording: Recording, predictions: Predictions) -> None:
        self._playback = playback
        self._predicted = {one: predictions[key] for key, one in keyed(recording) if one.positions}

    def begin(self, request: Request) -> None: ...

    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        position = context_tokens - 1 - self._playback.prompt_tokens
        result = self._predicted[self._playback.recorded][position]
        rows = 1 + len(tree)
        routes = result.routes[:rows].astype(np.int64)
        return Routes(routes[0], routes[1:], result.chances[:rows])

    def end_cycle(self) -> None: ...


def recent_uses(one: RecordedRequest, decays: Sequence[float], experts: int) -> Iterator[Use]:
    """The recent use of experts at every position of a recorded request, before its root is
    processed. The same array every time: copy what is kept."""
    assert one.prompt_routes is not None, "a request that failed has no positions"
    recent = RecentUse(decays, one.prompt_routes.shape[1], experts)
    recent.add(one.prompt_routes)
    for position in range(one.positions):
        yield recent.use
        assert one.pools is not None
        recent.add(one.pools.atlas(position)[:1])
