"""The interfaces the decoder speaks to. Tensors pass through it opaque, as `Features`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from specfit.base.types import (
    CycleRecord,
    DraftTree,
    ForwardTrace,
    IntArray,
    Request,
    Routes,
    Selection,
)

Features = Any
"""Auxiliary hidden states [rows, 3H] of target rows, in whatever the target and drafter share."""


@dataclass(frozen=True, eq=False)
class Prefilled:
    token: int  # the first committed token
    features: Features  # [P, 3H]
    routes: np.ndarray  # [P, L, k], what the prompt was routed to
    traces: Sequence[ForwardTrace]  # one per chunk
    fault: str | None = None  # why `token` is NOT_A_TOKEN


@dataclass(frozen=True, eq=False)
class Verified:
    """Row 0 is the root, row i >= 1 is `selection.nodes[i - 1]`."""

    tokens: IntArray  # [1 + |S|], the target's argmax after each row
    features: Features  # [1 + |S|, 3H]
    routes: np.ndarray  # [1 + |S|, L, k], what the forward really routed to
    trace: ForwardTrace
    fault: str | None = None  # why a token is NOT_A_TOKEN: the logits after that row are not finite


class Target(Protocol):
    """The MoE on the clock: every forward here goes through the expert cache and is counted."""

    expert_bytes: int

    @property
    def length(self) -> int:
        """Entries of the KV cache."""
        ...

    def begin(self) -> None:
        """Empty the KV cache for a new request; the expert cache keeps its contents."""
        ...

    def prefill(self, prompt_ids: IntArray) -> Prefilled: ...

    def verify(self, root_token: int, tree: DraftTree, selection: Selection) -> Verified:
        """Run root and selection in one forward; KV grows by 1 + |S| rows until `keep`."""
        ...

    def truncate(self, length: int) -> None:
        """Forget KV entries from `length` on (a probe is undone)."""
        ...

    def resident(self) -> np.ndarray:
        """[L, E] bool: which experts have slots now. Reading changes and counts nothing."""
        ...

    def residency(self) -> dict[str, np.ndarray]:
        """Which experts are on the device and how recently each was used."""
        ...

    def restore(self, residency: dict[str, np.ndarray]) -> None:
        """Put a residency back, weights included; nothing is counted."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Keep these rows (ascending, 0 = root) of the last verify in KV, drop the rest."""
        ...


class Drafter(Protocol):
    """The EAGLE-3 head: stable entries are made from true features, drafted ones are dropped."""

    max_depth: int

    @property
    def length(self) -> int:
        """Stable entries of the head's KV cache."""
        ...

    def begin(self) -> None: ...

    def truncate(self, length: int) -> None:
        """Forget stable entries from `length` on; `extend` brings the last row again."""
        ...

    def extend(self, tokens: IntArray, features: Features) -> None:
        """Append stable rows (tokens[j] = x_{t+1}, features[j] = g_t), dropping drafted entries."""
        ...

    def grow(self, tree: DraftTree) -> DraftTree:
        """The pool with one more level; an empty tree starts at the last stable row."""
        ...


class RouteSource(Protocol):
    """Says which experts the root and the pool's nodes will use, before they are verified."""

    @property
    def on_clock(self) -> bool:
        """An atlas is not: its forward runs while the clock stands still."""
        ...

    def begin(self, request: Request) -> None:
        """A new request: nothing of the one before is remembered."""
        ...

    def read(self, root_token: int, tree: DraftTree, context_tokens: int) -> Routes:
        """Routes of the root and of every node of `tree` (levels seen before are remembered).

        `context_tokens` is the number of tokens up to and including the root: with the request it
        names the position, which is all that simulated noise may depend on.
        """
        ...

    def observe(self, routed: IntArray) -> None:
        """[T, L, k]: what newly kept tokens were routed to, oldest first, after prefill and every
        commit. A source that learns nothing from it inherits this."""
        return

    def end_cycle(self) -> None:
        """Forget this cycle's nodes and whatever scratch they held."""
        ...


class PrefetchHooks(Protocol):
    """Called by the decoder with what a verify will probably need, and when the link is idle."""

    def on_prediction(
        self, tree: DraftTree, routes: Routes, selection: Selection | None = None
    ) -> None:
        """After every read of routes, and once more when it is decided what is verified."""
        ...

    def on_idle(self, phase: str) -> None:
        """A draft level (level), a read of routes (route) or the selection (select) has run."""
        ...


class Selector(Protocol):
    """Policy: which nodes are verified. Never touches a tensor.

    What it chooses depends on the arguments of `select` and on the cycles it has observed.
    """

    name: str
    k: int
    drafts: bool  # False: no drafter at all (AR)
    reads_routes: bool  # True: needs a route source and pays for selection
    adaptive_depth: (
        bool  # True: selects after every level; drafting stops when it takes no new node
    )

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection: ...

    def draft_levels(self) -> int | None:
        """Most levels the coming cycle drafts, asked once before it; None: all the drafter has.

        At 0 the root alone is verified: no level is drafted or billed, and nothing is selected; the
        head still takes in what was committed, whose bill the next drafted level holds.
        """
        return None

    def observe(self, record: CycleRecord) -> None:
        """A cycle of the run ended, prefill included. A selector without memory inherits this.

        A run that goes on after being killed observes its finished requests' cycles first.
        """
        return


class Clock(Protocol):
    """Either measures (wall) or bills (modelled). Nothing measured enters a modelled number."""

    @property
    def kind(self) -> str:
        """wall or modelled"""
        ...

    def start(self) -> None:
        """Open a phase here; time before it is in no phase."""
        ...

    def lap(self) -> int:
        """Nanoseconds since the last border; opens the next phase."""
        ...

    def off(self) -> AbstractContextManager[None]:
        """Time inside is in no phase (device synchronised on both sides)."""
        ...

    def bill_draft_level(self) -> None: ...

    def bill_routes(self) -> None:
        """One read of a route source on the clock."""
        ...

    def bill_selection(self) -> None: ...

    def bill_commit(self) -> None: ...

    def bill_forward(self, trace: ForwardTrace) -> int:
        """Returns the nanoseconds the forward waited for copies."""
        ...

    def billed_bytes(self, trace: ForwardTrace) -> int:
        """Bytes the forward's copies stand for: the run's own, or the billed model's."""
        ...
