"""The route atlas: exact experts of every pool node, by an off-clock forward (sec. 3.3)."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from specfit.base.interfaces import RouteSource
from specfit.base.types import DraftTree, Request, Routes


class RouteObserver(Protocol):
    """A target that can say where nodes would be routed, without touching cache or counters."""

    def observe(self, root_token: int, tree: DraftTree, seen: int) -> Routes: ...


class AtlasRoutes(RouteSource):
    """Asks the target after each level, for the new nodes only, and remembers the earlier ones."""

    on_clock = False

    def __init__(self, observer: RouteObserver) -> None:
        self._observer = observer
        self._known: Routes | None = None

    def begin(self, request: Request) -> None:
        self.end_cycle()

    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        seen = 0 if self._known is None else len(self._known)
        new = self._observer.observe(root_token, tree, seen)
        if self._known is None:
            self._known = new
        else:
            nodes = np.concatenate([self._known.nodes, new.nodes])
            self._known = Routes(self._known.root, nodes)
        return self._known

    def end_cycle(self) -> None:
        self._known = None
