"""`prefetch`: predicted experts come in while the link is idle, into an area of their own.

    off     nothing
    root    the root's experts, while drafting, reading routes and selecting
    tree    also those of nodes, each with its path's probability; once selected, of the selection
    layer   also while the verify's layers compute their fixed part, before their routes are known

**No harm.** The area is N blocks beside the slots, shared by all layers. What comes in goes there
and nowhere else, so that no wrong copy evicts anything. Once a layer's routes are known, an expert
that was predicted and is routed to runs from the area and moves into a slot as a miss would,
without its copy; the others of that layer are dropped. What is predicted never runs unless it is
routed to.

**Nobody waits.** Blocks travel in pieces that end before the next on-demand copy can be due, by
`IdleLink`; a block that is not whole when its layer's routes are known is dropped as well. Every
block that has been begun counts as copied: bytes are an upper bound by less than one block a layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specfit.base.types import PROBABILITY_ONE, DraftTree, IntArray, Routes, Selection
from specfit.experts.prefetch_plan import needed, plan_copies
from specfit.hardware.idle_link import PIECES, IdleLink

MODES = ("off", "root", "tree", "layer")
LEAST = 0.1
"""Chance below which an expert is not brought in, idle link or not."""

UNLIMITED = 1 << 30

Bring = Callable[[int, int, int, int], None]
"""(layer, expert, block, piece): the copy of this part into that block may begin."""


@dataclass
class PrefetchStats:
    """Of one forward, and the drafting before it."""

    begun: int = 0
    used: int = 0
    from_ram: int = 0  # of those begun, where experts lie on disk behind RAM


class Prefetcher:
    """What is in the area, what comes next, and how much idle time is left of a copy begun."""

    def __init__(
        self,
        mode: str,
        blocks: int,
        layers: int,
        experts: int,
        link: IdleLink,
        least: float = LEAST,
    ) -> None:
        assert mode in MODES[1:] and blocks >= 1
        self.mode, self.blocks, self.link, self.least = mode, blocks, link, least
        self.bring: Bring = _nothing
        self.in_ram: Callable[[int, int], bool] = _nowhere
        self.brought = PrefetchStats()
        self._shape = layers, experts
        self._resident: Callable[[], NDArray[np.bool_]] = lambda: np.zeros((0, 0), np.bool_)
        self._in: dict[tuple[int, int], int] = {}  # whole blocks: (layer, expert) -> block
        self._coming: tuple[int, int] | None
        self.clear()

    def watch(self, resident: Callable[[], NDArray[np.bool_]]) -> None:
        """Where to ask which experts have slots, [L, E]."""
        self._resident = resident

    def clear(self) -> None:
        """Nothing is here and nothing is expected."""
        self._in.clear()
        self._coming, self._block, self._left, self._pieces = None, -1, 0, 0
        self._free = list(range(self.blocks))
        self._queue: list[tuple[int, int]] = []
        self._nodes = 0
        self.brought = PrefetchStats()

    # -- what is expected ------------------------------------------------------------------------

    def on_prediction(
        self, tree: DraftTree, routes: Routes, selection: Selection | None = None
    ) -> None:
        """This cycle's rows as predicted so far; with what is verified, once that is known."""
        weights = np.zeros(1 + len(tree))
        weights[0] = 1.0
        if self.mode != "root" and selection is None:
            weights[1:] = tree.path_probs / PROBABILITY_ONE
        elif self.mode != "root" and selection is not None:
            weights[1 + np.array(selection.nodes, dtype=np.int64)] = 1.0
        if selection is not None:
            self._nodes = len(selection.nodes)
        need = needed(routes, weights, self._shape[1])
        self._keep(need)
        wanted = ~self._resident()
        for layer, expert in self._in:
            wanted[layer, expert] = False
        if self._coming is not None:
            wanted[self._coming] = False
        copies = plan_copies(need, wanted, self.least, self._room(selection is not None))
        self._queue = [(layer, expert) for layer, expert in copies.tolist()]

    def _keep(self, need: NDArray[np.float64]) -> None:
        """What is no longer likely makes room."""
        for key in [key for key in self._in if need[key] < self.least]:
            self._free.append(self._in.pop(key))
        if self._coming is not None and need[self._coming] < self.least:
            self._drop_coming()

    def _room(self, is_selected: bool) -> IntArray:
        """[L] copies that can be whole before each layer's routes are known. How long drafting
        goes on is not known: while it does, no deadline is near."""
        layers = self._shape[0]
        if self.mode != "layer" or not is_selected:
            return np.full(layers, UNLIMITED, dtype=np.int64)
        begun = self.link.copy_ns - self._left if self._coming is not None else 0
        window = self.link.before_routes(self._nodes)
        return (begun + window * np.arange(1, layers + 1)) // self.link.copy_ns

    # -- the link is idle ------------------------------------------------------------------------

    def on_idle(self, phase: str) -> None:
        """While a level is drafted, routes are read, or nodes are selected."""
        self._run(self.link.drafting(phase))

    def before_layer(self, layer: int) -> None:
        """Its fixed part runs, and its routes are then known."""
        if self.mode == "layer":
            self._run(self.link.before_routes(self._nodes))

    def _run(self, ns: int) -> None:
        while True:
            if self._coming is None and not self._begin():
                return
            assert self._coming is not None
            granted = min(ns, self._left)
            ns, self._left = ns - granted, self._left - granted
            self._bring_pieces()
            if self._left:
                return
            self._in[self._coming] = self._block
            self._coming = None

    def _begin(self) -> bool:
        """The next copy, where there is one and a block for it."""
        if not self._queue or not self._free:
            return False
        self._coming = self._queue.pop(0)
        self._block, self._left = self._free.pop(0), self.link.copy_ns
        self._pieces = 0
        self.brought.begun += 1
        self.brought.from_ram += self.in_ram(*self._coming)
        return True

    def _bring_pieces(self) -> None:
        """Every part of the block that the link's idle time so far has room for."""
        assert self._coming is not None
        done = self.link.copy_ns - self._left
        while self._pieces < PIECES and done * PIECES >= self.link.copy_ns * (self._pieces + 1):
            self.bring(*self._coming, self._block, self._pieces)
            self._pieces += 1

    def _drop_coming(self) -> None:
        if self._coming is not None:
            self._free.append(self._block)
        self._coming, self._block, self._left = None, -1, 0

    # -- a layer's turn --------------------------------------------------------------------------

    def arrived(self, layer: int) -> dict[int, int]:
        """Expert -> block of what is here for a layer whose routes are now known."""
        return {expert: block for (at, expert), block in self._in.items() if at == layer}

    def after_layer(self, layer: int, used: int) -> None:
        """The layer has what it needs; the rest of what came for it makes room."""
        self.brought.used += used
        for key in [key for key in self._in if key[0] == layer]:
            self._free.append(self._in.pop(key))
        if self._coming is not None and self._coming[0] == layer:
            self._drop_coming()
        # Where no deadline is near the queue goes by chance, so what is late may stand anywhere.
        self._queue = [key for key in self._queue if key[0] > layer]

    def end_forward(self) -> PrefetchStats:
        """Counters of the forward that ends; predictions are of the next cycle's rows."""
        assert not self._in and self._coming is None, "every layer had its turn"
        assert sorted(self._free) == list(range(self.blocks)), "every block is free again"
        done, self.brought = self.brought, PrefetchStats()
        self._nodes, self._queue = 0, []
        return done


def _nothing(layer: int, expert: int, block: int, piece: int) -> None:
    """A replay moves no bytes."""


def _nowhere(layer: int, expert: int) -> bool:
    """No experts lie on disk."""
    return False
