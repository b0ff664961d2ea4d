"""`routes=last_token`: root and nodes are taken to use the experts of the newest processed token.

A plain baseline, free of weights: what the target routed last is known when the next selection is
made. Under it every selection demands the same, so only probability and node count decide.
"""

from __future__ import annotations

import numpy as np

from specfit.base.interfaces import RouteSource
from specfit.base.types import DraftTree, IntArray, Request, Routes


class LastTokenRoutes(RouteSource):
    on_clock = True

    def begin(self, request: Request) -> None:
        self._routed: IntArray | None = None

    def observe(self, routed: IntArray) -> None:
        self._routed = routed[-1].astype(np.int64)

    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        assert self._routed is not None, "the prompt is processed before anything is selected"
        nodes = np.broadcast_to(self._routed, (len(tree), *self._routed.shape))
        return Routes(self._routed, nodes)

    def end_cycle(self) -> None: ...
