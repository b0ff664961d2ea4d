"""The cache under another policy, with a prefetch area, or with experts that run on the host.

`ExpertCache` is the paper's; a run that changes none of this never gets here. Letters as there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specfit.base.types import ForwardTrace, SpecfitError
from specfit.experts import cache_plan
from specfit.experts.cache import ExpertCache, LayerPlan, collect_trace
from specfit.experts.cache_plan import NONE, Int64Array
from specfit.experts.eviction import NEVER, POLICIES, USES, Rank, plan_ranked, remember
from specfit.experts.host_experts import HostLane
from specfit.experts.prefetch import Prefetcher, PrefetchStats

EARLY = 2 * cache_plan.MAX_ROWS
"""Taken from the first row of a miss that has arrived already: it loads before all others."""


@dataclass(frozen=True)
class Movement:
    """Which experts stay, which come early and which do not move at all."""

    rank: Rank = POLICIES["lru"]
    bypass: bool = False  # always with a policy that pins
    prefetcher: Prefetcher | None = None
    host: HostLane | None = None


class MovingCache(ExpertCache):
    def __init__(
        self,
        n_layers: int,
        n_experts: int,
        n_slots: int,
        staging_blocks: int = 3,
        movement: Movement | None = None,
    ) -> None:
        self.movement = movement or Movement()
        self._memory = np.zeros((n_layers, 4, n_experts), dtype=np.int64)
        self._known = np.zeros((n_layers, n_experts), dtype=np.int64)
        self._rank = np.empty(n_experts, dtype=np.int64)
        self._future: NDArray[np.integer] | None = None
        self._seen: list[NDArray[np.bool_]] | None = None
        super().__init__(n_layers, n_experts, n_slots, staging_blocks)
        if self.prefetcher is not None:
            self.prefetcher.watch(self.resident_mask)

    @property
    def prefetcher(self) -> Prefetcher | None:
        return self.movement.prefetcher

    def clear(self) -> None:
        super().clear()
        self._memory.fill(0)
        if self.prefetcher is not None:
            self.prefetcher.clear()

    def begin_forward(self) -> None:
        super().begin_forward()
        if self._future is not None:
            self._known[:] = self._future[self.forward]
        if self._seen is not None:
            self._seen.append(np.zeros((self.n_layers, self.n_experts), dtype=np.bool_))

    # -- what a policy depends on ------------------------------------------------------------------

    def count(self, uses: NDArray[np.integer]) -> None:
        """[L, E] how often calibration text used each expert (static)."""
        self._known[:] = uses

    def uses(self) -> NDArray[np.int64]:
        """[L, E] forwards that used each expert since the cache was last emptied."""
        return self._memory[:, USES].copy()

    def look_ahead(self) -> None:
        """Note what every forward demands from here on, until `know_future` (belady)."""
        self._seen = []

    def know_future(self) -> None:
        """The forwards noted will come again: empty every slot and start anew, knowing them."""
        assert self._seen is not None
        self._future, self._seen = next_uses(self._seen), None
        self.clear()

    # -- one layer ---------------------------------------------------------------------------------

    def before_layer(self, layer: int) -> None:
        if self.prefetcher is not None:
            self.prefetcher.before_layer(layer)

    def plan(self, layer: int, topk: NDArray[np.integer]) -> LayerPlan:
        assert self.forward > 0, "begin_forward comes first"
        first_row, last_row = self._rows
        cache_plan.mark_rows(np.ascontiguousarray(topk, dtype=np.int64), first_row, last_row)
        if self._seen is not None:
            self._seen[-1][layer] = first_row != NONE
        here = self._arrived(layer, first_row)
        on_host = self._leave_to_host(layer, first_row, here)
        for expert in here:
            first_row[expert] -= EARLY
        self._rank.fill(NONE)
        residents = self._expert_in[layer], self._last_forward[layer], self._last_row[layer]
        memory, known = self._memory[layer], self._known[layer]
        remember(first_row, self.forward, memory)
        self.movement.rank(self.forward, *residents, memory, known, self._rank)
        order, slots, evicted, wait_for = self._plans[layer]
        n_hits, n_loads = plan_ranked(
            self._rank,
            self.movement.bypass,
            self.forward,
            first_row,
            last_row,
            self._slot_of[layer],
            *residents,
            memory,
            self.staging_blocks,
            order,
            slots,
            evicted,
            wait_for,
        )
        end = n_hits + n_loads
        areas = tuple(here[int(expert)] for expert in order[n_hits : n_hits + len(here)])
        if self.prefetcher is not None:
            self.prefetcher.after_layer(layer, len(here))
        return LayerPlan(
            n_hits,
            order[:end],
            slots[:end],
            evicted[n_hits:end],
            wait_for[n_hits:end],
            areas,
            on_host,
        )

    def _arrived(self, layer: int, first_row: Int64Array) -> dict[int, int]:
        """Demanded, not resident, and in the area: expert -> block."""
        if self.prefetcher is None:
            return {}
        found = self.prefetcher.arrived(layer)
        return {e: block for e, block in found.items() if first_row[e] != NONE}

    def _leave_to_host(
        self, layer: int, first_row: Int64Array, here: Mapping[int, int]
    ) -> tuple[int, ...]:
        """Misses that run on the host; they are taken out of the demand that is planned."""
        if self.movement.host is None:
            return ()
        missing = np.flatnonzero((first_row != NONE) & (self._slot_of[layer] == NONE))
        missing = missing[[int(e) not in here for e in missing]]
        in_order = missing[np.argsort(first_row[missing], kind="stable")]
        free = int(np.count_nonzero(self._expert_in[layer] == NONE))
        count = self.movement.host.share(len(in_order), free)
        chosen = tuple(in_order[len(in_order) - count :].tolist())
        for expert in chosen:
            first_row[expert] = NONE
        return chosen

    def replay(
        self, routes: NDArray[np.integer], billed_rows: int, is_prefill: bool
    ) -> ForwardTrace:
        self.begin_forward()
        plans = []
        for layer, topk in enumerate(routes):
            self.before_layer(layer)
            plans.append(self.plan(layer, topk))
        return collect_trace(plans, billed_rows, is_prefill, 0, self.end_forward())

    def end_forward(self) -> PrefetchStats:
        """What was brought in ahead of the forward that has ended."""
        return PrefetchStats() if self.prefetcher is None else self.prefetcher.end_forward()

    # -- kept with a request, put back by probes and resumed runs ----------------------------------

    def state(self) -> dict[str, Int64Array]:
        """Also what the policy remembers; the area is empty between cycles."""
        return super().state() | {"memory": self._memory.copy()}

    def load_state(self, state: dict[str, Int64Array]) -> Int64Array:
        if "memory" not in state or state["memory"].shape != self._memory.shape:
            raise SpecfitError(
                "stored residency lacks what this policy remembers; start the run anew with "
                "force=true"
            )
        lacking = super().load_state(state)
        self._memory[:] = state["memory"]
        return lacking


def next_uses(demands: Sequence[NDArray[np.bool_]]) -> NDArray[np.int32]:
    """demands [F][L, E] of forwards 1, 2, .. -> [1 + F, L, E], the first later forward that uses
    each expert, after forward 0, 1, .."""
    ahead = np.full((len(demands) + 1, *demands[0].shape), NEVER, dtype=np.int32)
    for forward in range(len(demands), 0, -1):
        ahead[forward - 1] = np.where(demands[forward - 1], forward, ahead[forward])
    return ahead
