"""Drafting at every position of a known text at once: the pools that a run would draft there.

The text is x_0 .. x_{T-1}; the last n of its tokens are the roots. Stable rows of the whole text
are computed once, causally; position i then sees the first of them, up to its own root's row:

                stable rows 0 .. T-2        drafted rows of position 0 | of position 1 | ..
    position 0  all up to root 0            own ancestors and itself   | -             | ..
    position 1  all up to root 1            -                          | own ..        | ..

Positions go in groups: the drafted rows of one are keys that the masks of the others leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree, IntArray
from specfit.models.drafter.expansion import Expansion, FloatArray, best_children
from specfit.models.drafter.head import EagleHead
from specfit.models.drafter.kv_cache import HeadCache

ROOTS = 64
"""Positions whose levels share a head call."""

TIES = {torch.float32: 1e-3, torch.float64: 1e-3}
LOW_PRECISION_TIE = 0.1
"""How far two log-probabilities may lie apart and still be a tie that rounding decides."""


@dataclass(eq=False)
class _Position:
    """One position's pool as it grows. `after` and `columns` know its expanded nodes."""

    root_row: int  # its stable row
    expansion: Expansion
    tree: DraftTree = field(default_factory=DraftTree.empty)
    after: dict[int, torch.Tensor] = field(default_factory=dict)  # [H], what children start from
    columns: dict[int, int] = field(default_factory=dict)  # place in the head's cache

    def beam(self) -> list[int]:
        return self.expansion.beam(self.tree)

    def grow(self, beam: list[int], tokens: IntArray, log_probs: FloatArray) -> None:
        self.tree = self.expansion.grown(self.tree, beam, tokens, log_probs)

    def features(self) -> torch.Tensor:
        """[U, H]: what the head gave each distinct parent of the pool, root first."""
        return torch.stack([self.after[int(node)] for node in np.unique(self.tree.parents)])


@dataclass(eq=False)
class _Recorded(_Position):
    """A position whose pool is known, level by level: it grows as it was recorded.

    Another CPU rounds the last bits of a logit in another way. Where two candidates are as
    probable as each other, the head may then prefer the other one: such nodes are counted in
    `ties`, and the recorded one is kept.
    """

    levels: Sequence[DraftTree] = ()
    tolerance: float = 0.0  # of a log-probability
    ties: int = 0
    others: int = 0  # nodes whose recorded children are less probable than a tie

    def beam(self) -> list[int]:
        """The recorded pool's expanded nodes of the newest level, in level order."""
        if not len(self.tree):
            return [ROOT]
        whole = self.levels[-1]
        expanded = np.unique(whole.parents[whole.depths == self.tree.levels + 1])
        nodes: list[int] = expanded.tolist()
        return nodes

    def grow(self, beam: list[int], tokens: IntArray, log_probs: FloatArray) -> None:
        before, self.tree = self.tree, self.levels[self.tree.levels]
        new = slice(len(before), len(self.tree))
        parents, said = self.tree.parents[new], self.tree.tokens[new]
        for node, drafted, logs in zip(beam, tokens, log_probs, strict=True):
            mine = parents == node
            if set(said[mine].tolist()) == set(drafted.tolist()):
                continue
            above = PROBABILITY_ONE if node == ROOT else int(before.path_probs[node])
            recorded = np.sort(self.tree.path_probs[new][mine])
            is_tie = _as_probable(recorded, np.sort(above * np.exp(logs)), self.tolerance)
            self.ties += is_tie
            self.others += not is_tie


def _as_probable(recorded: IntArray, drafted: FloatArray, tolerance: float) -> bool:
    """Path probabilities in units of 2**-20, ascending; one unit is lost to rounding."""
    if len(recorded) != len(drafted):
        return False
    return bool(np.all(np.abs(recorded - drafted) <= 1.0 + tolerance * drafted))


class TeacherDrafter:
    """The same expansion as `EagleDrafter`, level by level, a group of positions in one call."""

    def __init__(self, head: EagleHead, max_depth: int, top_k: int, device: torch.device) -> None:
        self._head, self._max_depth, self._top_k = head, max_depth, top_k
        self._device = device
        self.calls = 0  # of the head, since it was last set to 0

    @torch.inference_mode()
    def pools(
        self, text: IntArray, features: torch.Tensor, positions: int
    ) -> tuple[list[DraftTree], list[torch.Tensor]]:
        """text [T], features [>= T - 1, 3H] of its tokens -> a pool and its parents' features for
        each of the last `positions` tokens as root."""
        stable = len(text) - 1
        roots = range(stable - positions, stable)
        states = [_Position(row, Expansion(self._top_k)) for row in roots]
        self._draft(text, features, states, self._max_depth)
        return [state.tree for state in states], [state.features() for state in states]

    @torch.inference_mode()
    def follow(
        self, text: IntArray, features: torch.Tensor, pools: Sequence[Sequence[DraftTree]]
    ) -> tuple[list[torch.Tensor], IntArray]:
        """`pools`: of each of the last tokens as root the recorded pool after level 1, 2, ..

        Returns the parents' features of each pool, and [n, 2]: at how many of its nodes the head
        now prefers other children, as probable as the recorded ones or not.
        """
        first = len(text) - 1 - len(pools)
        tolerance = TIES.get(self._head.fc.weight.dtype, LOW_PRECISION_TIE)
        states = [
            _Recorded(first + at, Expansion(self._top_k), levels=levels, tolerance=tolerance)
            for at, levels in enumerate(pools)
        ]
        self._draft(text, features, states, depth=len(pools[0]))
        counts = np.array([[state.ties, state.others] for state in states], dtype=np.int64)
        return [state.features() for state in states], counts

    def _draft(
        self, text: IntArray, features: torch.Tensor, states: Sequence[_Position], depth: int
    ) -> None:
        stable, positions = len(text) - 1, len(states)
        cache = HeadCache()
        where = torch.arange(stable, device=self._device)
        fused = self._head.fuse(features[:stable])
        after, logits = self._head(self._ids(text[1:]), fused, where, cache)
        for begin in range(0, positions, ROOTS):
            group = list(states[begin : begin + ROOTS])
            rows = slice(group[0].root_row, group[-1].root_row + 1)
            cache.crop(stable)
            self._spread(group, [[ROOT]] * len(group), after[rows], logits[rows])
            self.calls += depth
            for _ in range(1, depth):
                self._level(group, cache)

    def _level(self, states: list[_Position], cache: HeadCache) -> None:
        """One head pass over every position's beam."""
        beams = [state.beam() for state in states]
        rows = [(at, node) for at, beam in zip(states, beams, strict=True) for node in beam]
        begin, levels = len(cache), states[0].tree.levels
        mask = np.zeros((len(rows), begin + len(rows)), dtype=np.bool_)
        for row, (at, node) in enumerate(rows):
            at.columns[node] = begin + row
            mask[row, : at.root_row + 1] = True
            mask[row, [at.columns[above] for above in at.tree.path(node)]] = True
        after, logits = self._head(
            self._ids([at.tree.tokens[node] for at, node in rows]),
            torch.stack([at.after[int(at.tree.parents[node])] for at, node in rows]),
            self._ids([at.root_row + levels for at, _ in rows]),
            cache,
            torch.from_numpy(mask).to(self._device),
        )
        self._spread(states, beams, after, logits)

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
        outputs, row = after.unbind(0), 0
        for state, beam in zip(states, beams, strict=True):
            mine = slice(row, row + len(beam))
            state.after.update(zip(beam, outputs[mine], strict=True))
            state.grow(beam, ids[mine], log_probs[mine])
            row += len(beam)

    def _ids(self, values: Any) -> torch.Tensor:
        return torch.as_tensor(np.asarray(values), dtype=torch.long, device=self._device)
