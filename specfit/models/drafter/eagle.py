"""EAGLE-3 drafting: the head's cache, level by level expansion, quantised path probabilities.

Index of the head's cache while a tree of depth 3 is drafted (n stable entries, beam of two):

    0 .. n-1   rows (x_{t+1}, g_t) of true features; row n-1 holds the root token x_n
    n, n+1     the two beam nodes of depth 1, RoPE position n
    n+2, n+3   the two beam nodes of depth 2, RoPE position n+1
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from specfit.base.interfaces import Features
from specfit.base.types import ROOT, DraftTree, IntArray
from specfit.models.drafter.expansion import Expansion, FloatArray, best_children
from specfit.models.drafter.head import EagleHead
from specfit.models.drafter.kv_cache import HeadCache

HEAD_CHUNK = 512
"""Rows of true features that the head runs at once on a GPU: a mask has rows times columns."""


class EagleDrafter:
    """top_k expansion of EAGLE-2 and -3: the best top_k nodes of a level each give top_k children.

    Two and five levels make the paper's pool of 2 + 4 + 4 + 4 + 4 = 18 nodes (sec. 3.1).
    """

    def __init__(self, head: EagleHead, max_depth: int, top_k: int, device: torch.device) -> None:
        self.max_depth, self._top_k = max_depth, top_k
        self._head, self._device = head, device
        # A CPU keeps the form whose bits its rows are of.
        self._is_fused = device.type == "cuda"
        self.begin()

    def begin(self) -> None:
        self._cache = HeadCache()
        self._stable = 0
        self._forget_draft()

    def _forget_draft(self) -> None:
        self._cache.crop(self._stable)
        self._drafted: list[int] = []  # nodes with a cache entry, in order of the entries
        self._after: dict[int, torch.Tensor] = {}  # node -> feature for its children [H]
        self._children: dict[int, tuple[IntArray, FloatArray]] = {}  # node -> ids, log-probs [k]
        self._expansion = Expansion(self._top_k)

    @property
    def length(self) -> int:
        return self._stable

    def truncate(self, length: int) -> None:
        """Drop stable entries from the end; the next `extend` must bring the last row again."""
        assert length <= self._stable
        self._stable = length
        self._forget_draft()

    @torch.inference_mode()
    def extend(self, tokens: IntArray, features: Features) -> None:
        if len(tokens) == 0:
            return
        self._forget_draft()
        ids = torch.as_tensor(tokens, dtype=torch.long, device=self._device)
        where = torch.arange(self._stable, self._stable + len(tokens), device=self._device)
        step = HEAD_CHUNK if self._is_fused else len(tokens)
        for first in range(0, len(tokens), step):
            part = slice(first, first + step)
            after, logits = self._head(
                ids[part],
                self._head.fuse(features[part]),
                where[part],
                self._cache,
                fused=self._is_fused,
                last_only=self._is_fused,
            )
        self._stable = len(self._cache)
        self._remember([ROOT], after[-1:], logits[-1:])

    @torch.inference_mode()
    def grow(self, tree: DraftTree) -> DraftTree:
        beam = self._expansion.beam(tree)
        if len(tree):
            self._run(tree, beam)
        tokens = np.stack([self._children[node][0] for node in beam])
        log_probs = np.stack([self._children[node][1] for node in beam])
        return self._expansion.grown(tree, beam, tokens, log_probs)

    # -- for who predicts routes -------------------------------------------------------------------

    def features(self, nodes: Sequence[int]) -> torch.Tensor:
        """[R, H]: what the children of these expanded nodes are drafted from; ROOT is a node."""
        return torch.stack([self._after[node] for node in nodes])

    def embed(self, tokens: IntArray) -> torch.Tensor:
        """[R, H] of target token ids."""
        ids = torch.as_tensor(tokens, dtype=torch.long, device=self._device)
        embedded: torch.Tensor = self._head.embed_tokens(ids)
        return embedded

    def _run(self, tree: DraftTree, beam: list[int]) -> None:
        """One head pass over the beam: each attends to stable rows, its ancestors and itself."""
        ids = torch.as_tensor(tree.tokens[beam], dtype=torch.long, device=self._device)
        features = torch.stack([self._after[int(tree.parents[node])] for node in beam])
        position = self._stable + tree.levels - 1
        where = torch.full((len(beam),), position, dtype=torch.long, device=self._device)
        self._drafted += beam
        ancestry = torch.from_numpy(tree.ancestry[np.ix_(beam, self._drafted)])
        stable = torch.ones(len(beam), self._stable, dtype=torch.bool)
        mask = torch.cat([stable, ancestry], dim=1).to(self._device)
        after, logits = self._head(ids, features, where, self._cache, mask, fused=self._is_fused)
        self._remember(beam, after, logits)

    def _remember(self, nodes: list[int], after: torch.Tensor, logits: torch.Tensor) -> None:
        draft_ids, log_probs = best_children(logits, self._top_k)
        ids = self._head.target_ids(draft_ids).cpu().numpy()
        for row, node in enumerate(nodes):
            self._after[node], self._children[node] = after[row], (ids[row], log_probs[row])
