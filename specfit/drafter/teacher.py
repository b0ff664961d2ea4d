"""Drafting at every position of a known text at once: the pools that a run would draft there.

The text is x_0 .. x_{T-1}; the last n of its tokens are the roots. Stable rows of the whole text
are computed once, causally; position i then sees the first of them, up to its own root's row:

                stable rows 0 .. T-2        drafted rows of position 0 | of position 1 | ..
    position 0  all up to root 0            own ancestors and itself   | -             | ..
    position 1  all up to root 1            -                          | own ..        | ..
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from specfit.core import ROOT, DraftTree, IntArray
from specfit.drafter.cache import HeadCache
from specfit.drafter.expansion import Expansion, FloatArray, best_children
from specfit.drafter.head import EagleHead


@dataclass(eq=False)
class _Position:
    """One position's pool as it grows."""

    root_row: int  # its stable row
    expansion: Expansion
    tree: DraftTree = field(default_factory=DraftTree.empty)
    after: dict[int, torch.Tensor] = field(default_factory=dict)  # expanded node -> [H]

    def grow(self, beam: list[int], tokens: IntArray, log_probs: FloatArray) -> None:
        self.tree = self.expansion.grown(self.tree, beam, tokens, log_probs)

    def features(self) -> NDArray[np.float16]:
        """[U, H]: what the head gave each distinct parent of the pool, root first."""
        rows = [self.after[int(node)] for node in np.unique(self.tree.parents)]
        found: NDArray[np.float16] = torch.stack(rows).to(torch.float16).cpu().numpy()
        return found


class TeacherDrafter:
    """The same expansion as `EagleDrafter`, level by level, all positions in one head call."""

    def __init__(self, head: EagleHead, max_depth: int, top_k: int, device: torch.device) -> None:
        self._head, self._max_depth, self._top_k = head, max_depth, top_k
        self._device = device

    @torch.inference_mode()
    def pools(
        self, text: IntArray, features: torch.Tensor, positions: int
    ) -> tuple[list[DraftTree], list[NDArray[np.float16]]]:
        """text [T], features [>= T - 1, 3H] of its tokens -> a pool and its parents' features for
        each of the last `positions` tokens as root."""
        stable = len(text) - 1
        cache = HeadCache()
        where = torch.arange(stable, device=self._device)
        fused = self._head.fuse(features[:stable])
        after, logits = self._head(self._ids(text[1:]), fused, where, cache)
        first = stable - positions  # row of the first root
        states = [_Position(first + i, Expansion(self._top_k)) for i in range(positions)]
        self._spread(states, [[ROOT]] * positions, after[first:], logits[first:])
        owners: NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)  # (position, node) of rows
        for _ in range(1, self._max_depth):
            beams = [state.expansion.beam(state.tree) for state in states]
            owners = self._level(states, beams, cache, stable, owners)
        return [state.tree for state in states], [state.features() for state in states]

    def _level(
        self,
        states: list[_Position],
        beams: list[list[int]],
        cache: HeadCache,
        stable: int,
        owners: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """One head pass over every position's beam; returns the owners of all drafted rows."""
        rows = np.array([(i, node) for i, beam in enumerate(beams) for node in beam])
        owners = np.concatenate([owners, rows])
        mask = np.zeros((len(rows), stable + len(owners)), dtype=np.bool_)
        for row, (i, node) in enumerate(rows.tolist()):
            mask[row, : states[i].root_row + 1] = True
            own = np.flatnonzero(owners[:, 0] == i)
            mask[row, stable + own] = states[i].tree.ancestry[node, owners[own, 1]]
        trees = [states[i].tree for i in rows[:, 0]]
        tokens = np.array([tree.tokens[n] for tree, n in zip(trees, rows[:, 1], strict=True)])
        features = [states[i].after[int(states[i].tree.parents[node])] for i, node in rows.tolist()]
        levels = trees[0].levels
        where = self._ids([states[i].root_row + levels for i in rows[:, 0]])
        after, logits = self._head(
            self._ids(tokens),
            torch.stack(features),
            where,
            cache,
            torch.from_numpy(mask).to(self._device),
        )
        self._spread(states, beams, after, logits)
        return owners

    def _spread(
        self,
        states: list[_Position],
        beams: list[list[int]],
        after: torch.Tensor,
        logits: torch.Tensor,
    ) -> None:
        """Rows of a head pass back to their positions, which grow by one level."""
        draft_ids, log_probs = best_children(logits, self._top_k)
        ids = self._head.target_ids(draft_ids).cpu().numpy()
        row = 0
        for state, beam in zip(states, beams, strict=True):
            mine = slice(row, row + len(beam))
            state.after.update(zip(beam, after[mine], strict=True))
            state.grow(beam, ids[mine], log_probs[mine])
            row += len(beam)

    def _ids(self, values: Any) -> torch.Tensor:
        return torch.as_tensor(np.asarray(values), dtype=torch.long, device=self._device)
