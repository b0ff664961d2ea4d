"""`routes=learned`: a trained network predicts every node's experts, on the clock.

Nothing of the target runs: the drafter's own features, the tokens' embeddings and the routes of the
tokens already processed are all it reads.
A node is predicted once, from the feature it was drafted from, so that its route is the same after
every further level, as the stopping rule needs (app. A.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch

from specfit.base.interfaces import RouteSource
from specfit.base.types import ROOT, DraftTree, IntArray, Request, Routes
from specfit.models.routes.predictor import DECAYS, RoutePredictor, in_bytes, most_likely
from specfit.models.routes.recent_use import RecentUse


class FeatureSource(Protocol):
    """A drafter that can be asked what its nodes were drafted from."""

    def features(self, nodes: Sequence[int]) -> torch.Tensor:
        """[R, H]: what the children of these nodes are drafted from; ROOT is a node."""
        ...

    def embed(self, tokens: IntArray) -> torch.Tensor:
        """[R, H]"""
        ...


class LearnedRoutes(RouteSource):
    on_clock = True

    def __init__(self, predictor: RoutePredictor, drafter: FeatureSource) -> None:
        self._predictor, self._drafter = predictor, drafter
        self._known: Routes | None = None
        self._logits: torch.Tensor | None = None  # [1 + N, L, E] of the rows predicted so far
        self._recent = RecentUse(DECAYS, predictor.shape.layers, predictor.shape.experts)

    def begin(self, request: Request) -> None:
        self.end_cycle()
        self._recent.clear()

    def observe(self, routed: IntArray) -> None:
        self._recent.add(routed)

    @torch.inference_mode()
    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        """Predicts the rows not yet seen; the root comes with the first of a cycle."""
        seen = ROOT if self._known is None else len(self._known)
        rows = np.arange(seen, len(tree))
        parents = np.concatenate([[ROOT], tree.parents])[rows + 1]
        tokens = np.concatenate([[root_token], tree.tokens])[rows + 1]
        depths = np.concatenate([[0], tree.depths])[rows + 1]
        embeddings = self._drafter.embed(tokens)
        place = embeddings.device
        where = torch.as_tensor(depths, dtype=torch.long, device=place)
        recent = torch.from_numpy(self._recent.use).to(place)[None]
        features = self._drafter.features(parents.tolist())
        logits = self._predictor(features, embeddings, where, recent)
        every = logits if self._logits is None else torch.cat([self._logits, logits])
        above = every[torch.as_tensor(parents + 1, device=place)]  # of the root: itself
        ids = most_likely(logits, self._predictor.shape.top_k)
        chances, self._logits = in_bytes(self._predictor.if_new(logits, above, where)), every
        if self._known is None:
            self._known = Routes(ids[0], ids[1:], chances)
        else:
            before = self._known
            assert before.chances is not None
            nodes = np.concatenate([before.nodes, ids])
            self._known = Routes(before.root, nodes, np.concatenate([before.chances, chances]))
        return self._known

    def end_cycle(self) -> None:
        self._known = self._logits = None
