"""Which nodes a level expands and what the pool then looks like: EAGLE-2's rule, stated once.

Letters: B beam nodes, k = top_k children of each, DV draft vocabulary.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree, IntArray, RequestError

FloatArray = NDArray[np.float64]


class Expansion:
    """One pool while it is drafted: exact scores choose the beam, quantised ones are the pool's."""

    def __init__(self, top_k: int) -> None:
        self._top_k = top_k
        self._scores: FloatArray = np.zeros(0)  # cumulative log-probability of every node

    @property
    def nodes(self) -> int:
        return len(self._scores)

    def beam(self, tree: DraftTree) -> list[int]:
        """Best top_k nodes of the newest level, ties to the lower index; in level order."""
        if len(tree) == 0:
            return [ROOT]
        newest = np.flatnonzero(tree.depths == tree.levels)
        best = np.argsort(-self._scores[newest], kind="stable")[: self._top_k]
        return sorted(newest[best].tolist())

    def grown(
        self, tree: DraftTree, beam: list[int], tokens: IntArray, log_probs: FloatArray
    ) -> DraftTree:
        """The pool with the beam's children: tokens [B, k] and their own log_probs [B, k]."""
        assert len(tree) == self.nodes, "a pool is grown by the expansion that began it"
        parents = np.repeat(beam, tokens.shape[1])
        above = np.zeros(len(parents)) if len(tree) == 0 else self._scores[parents]
        scores = above + log_probs.reshape(-1)
        probs = quantise(np.exp(scores))
        if len(tree):  # two roundings must not let a child exceed its parent
            probs = np.minimum(probs, tree.path_probs[parents])
        self._scores = np.concatenate([self._scores, scores])
        return tree.grown(tokens.reshape(-1), parents, probs)


def best_children(logits: torch.Tensor, top_k: int) -> tuple[torch.Tensor, FloatArray]:
    """logits [B, DV] -> draft ids [B, k] and their log-probabilities [B, k], best first.

    topk promises no order among ties; a stable sort does, and costs four times as much.
    """
    log_probs = torch.log_softmax(logits.float(), dim=-1)
    best, ids = log_probs.topk(min(top_k + 1, log_probs.shape[-1]), dim=-1)
    if bool((best[:, 1:] == best[:, :-1]).any()):
        best, ids = torch.sort(log_probs, dim=-1, descending=True, stable=True)
    probs: FloatArray = best[:, :top_k].double().cpu().numpy()
    if not np.isfinite(probs).all():
        raise RequestError(
            "the draft head's logits are not finite: a weight of the head is damaged, or "
            "model.dtype overflows in it"
        )
    return ids[:, :top_k], probs


def quantise(probabilities: np.ndarray) -> IntArray:
    """Probabilities to integers in units of 2**-20, once, before any selector sees them."""
    return np.rint(np.asarray(probabilities) * PROBABILITY_ONE).astype(np.int64)
