"""`routes=learned` over a recording: what the predictor said there, read instead of computed."""

from __future__ import annotations

import numpy as np

from specfit.base.interfaces import RouteSource
from specfit.base.types import DraftTree, Request, Routes
from specfit.decoding.replay.playback import Playback
from specfit.storage.recording.files import Recording
from specfit.storage.recording.route_predictions import Predictions, keyed


class PredictedRoutes(RouteSource):
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
