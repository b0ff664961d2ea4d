"""Which expert sits in which slot: the residency of all layers, and the plan of each forward.

Letters: L layers, E experts per layer, S slots per layer, T rows of a forward, k experts per row,
D demanded experts of one layer, M its misses. Holds no tensor and decides nothing: the rule is
`cache_plan.plan_layer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specfit.base.types import ForwardTrace, SpecfitError
from specfit.experts import cache_plan
from specfit.experts.cache_plan import NONE, Int64Array
from specfit.experts.prefetch import Prefetcher, PrefetchStats

STATE_FIELDS = ("expert_in", "last_forward", "last_row")


@dataclass(frozen=True, eq=False)
class LayerPlan:
    """One layer of one forward: views that stay valid until the same layer is planned again.

    Between hits and misses stand A experts that were brought in before they were demanded: they
    need a slot as misses do, and no copy.
    """

    n_hits: int
    order: Int64Array  # [D] expert ids: hits ascending, then arrived and misses in load order
    slots: Int64Array  # [D], NONE = staging block `item % staging_blocks`
    evicted: Int64Array  # [A + M] expert whose slot the load takes, or NONE
    wait_for: Int64Array  # [A + M] item of `order` to have run before the copy starts, or NONE
    areas: tuple[int, ...] = ()  # [A] blocks of the prefetch area that hold the arrived
    on_host: tuple[int, ...] = ()  # experts that run on the host, in no slot and not in `order`

    @property
    def hits(self) -> Int64Array:
        return self.order[: self.n_hits]

    @property
    def n_ready(self) -> int:
        """Items whose weights are on the device when the layer's routes are known."""
        return self.n_hits + len(self.areas)

    @property
    def arrived(self) -> Int64Array:
        """[A] experts that were brought in before they were demanded."""
        return self.order[self.n_hits : self.n_ready]

    @property
    def misses(self) -> Int64Array:
        return self.order[self.n_ready :]


class ExpertCache:
    """Residency of every layer and the forward counter; `begin_forward`, then one `plan` a layer.

    `staging_blocks` is the size of the shared staging area (copies in flight + 1 at least); it
    matters without slots only, and is counted in no residency.
    """

    def __init__(
        self, n_layers: int, n_experts: int, n_slots: int, staging_blocks: int = 3
    ) -> None:
        if not 0 <= n_slots <= n_experts:
            raise SpecfitError(
                f"cache_slots={n_slots} does not fit {n_experts} experts per layer; "
                f"use 0 to {n_experts}"
            )
        assert staging_blocks >= 1, "staging holds at least the copy that is running"
        self.n_layers, self.n_experts, self.n_slots = n_layers, n_experts, n_slots
        self.staging_blocks = staging_blocks
        self._slot_of = np.empty((n_layers, n_experts), dtype=np.int64)
        self._expert_in = np.empty((n_layers, n_slots), dtype=np.int64)
        self._last_forward = np.empty((n_layers, n_experts), dtype=np.int64)
        self._last_row = np.empty((n_layers, n_experts), dtype=np.int64)
        self._rows = np.empty((2, n_experts), dtype=np.int64)  # first, last row: scratch
        self._plans = np.empty((n_layers, 4, n_experts), dtype=np.int64)
        self.clear()

    @property
    def prefetcher(self) -> Prefetcher | None:
        """None: every copy is on demand."""
        return None

    def before_layer(self, layer: int) -> None:
        """The layer's fixed part begins; once it has run, its routes are known."""

    def end_forward(self) -> PrefetchStats:
        """What was brought in ahead of the forward that has ended."""
        return PrefetchStats()

    def clear(self) -> None:
        """Empty every slot and start counting forwards anew, as a run does."""
        self.forward = 0
        for array in (self._slot_of, self._expert_in, self._last_forward, self._last_row):
            array.fill(NONE)

    def begin_forward(self) -> None:
        """One more on-clock forward (a verify, or one prefill chunk)."""
        self.forward += 1

    def plan(self, layer: int, topk: NDArray[np.integer]) -> LayerPlan:
        """Decide hits, loads and victims of `topk[T, k]`; the residency is changed by the call."""
        assert self.forward > 0, "begin_forward comes first"
        first_row, last_row = self._rows
        order, slots, evicted, wait_for = self._plans[layer]
        cache_plan.mark_rows(np.ascontiguousarray(topk, dtype=np.int64), first_row, last_row)
        n_hits, n_misses = cache_plan.plan_layer(
            first_row,
            last_row,
            self._slot_of[layer],
            self._expert_in[layer],
            self._last_forward[layer],
            self._last_row[layer],
            self.forward,
            self.staging_blocks,
            order,
            slots,
            evicted,
            wait_for,
        )
        end = n_hits + n_misses
        return LayerPlan(
            n_hits, order[:end], slots[:end], evicted[n_hits:end], wait_for[n_hits:end]
        )

    def replay(
        self, routes: NDArray[np.integer], billed_rows: int, is_prefill: bool
    ) -> ForwardTrace:
        """One whole forward of known `routes[L, T, k]`: the trace its plans would have left."""
        self.begin_forward()
        hits, misses, evictions = np.empty((3, self.n_layers), dtype=np.int64)
        wait_for = np.empty((self.n_layers, self.n_experts), dtype=np.int64)
        cache_plan.plan_forward(
            np.ascontiguousarray(routes, dtype=np.int64),
            self._slot_of,
            self._expert_in,
            self._last_forward,
            self._last_row,
            self.forward,
            self.staging_blocks,
            hits,
            misses,
            evictions,
            wait_for,
        )
        waits = wait_for[:, : max(misses.tolist())].copy()
        return ForwardTrace(billed_rows, is_prefill, hits, misses, evictions, waits)

    def slot_of(self, layer: int, expert: int) -> int:
        """Where an expert is, `NONE` if absent. Reading changes and counts nothing (atlas)."""
        return int(self._slot_of[layer, expert])

    def resident_mask(self) -> NDArray[np.bool_]:
        """[L, E], a new array."""
        return self._slot_of != NONE

    def resident(self, layer: int) -> Int64Array:
        """Ids of the resident experts, ascending."""
        return np.flatnonzero(self._slot_of[layer] != NONE)

    def check(self) -> None:
        """Invariant 3: resident + free = slots, and experts and slots name each other."""
        layer, slot = np.nonzero(self._expert_in != NONE)
        n_resident = np.count_nonzero(self._slot_of != NONE, axis=1)
        n_free = np.count_nonzero(self._expert_in == NONE, axis=1)
        assert bool(np.all(n_resident + n_free == self.n_slots)), "resident + free = slots"
        back = self._slot_of[layer, self._expert_in[layer, slot]]
        assert bool(np.all(back == slot)), "an expert's slot holds that expert"
        absent = self._slot_of == NONE
        assert bool(np.all((self._last_forward == NONE) == absent)), "recency is of residents"
        assert bool(np.all((self._last_row == NONE) == absent)), "recency is of residents"
        assert self._last_forward.max(initial=NONE) <= self.forward, "no use in the future"

    def state(self) -> dict[str, Int64Array]:
        """Residency with recency, in new arrays `[L, S]` (`NONE` = free slot) and `forward` `[]`.

        It is what a request's row keeps and what calibration puts back: one form for both.
        """
        where = np.where(self._expert_in == NONE, 0, self._expert_in)
        free = self._expert_in == NONE

        def by_slot(array: Int64Array) -> Int64Array:
            return np.where(free, NONE, np.take_along_axis(array, where, axis=1))

        return {
            "expert_in": self._expert_in.copy(),
            "last_forward": by_slot(self._last_forward),
            "last_row": by_slot(self._last_row),
            "forward": np.array(self.forward, dtype=np.int64),
        }

    def load_state(self, state: dict[str, Int64Array]) -> Int64Array:
        """Put `state` back. Returns `[n, 3]` (layer, slot, expert): blocks the device now lacks."""
        shape = (self.n_layers, self.n_slots)
        for name in STATE_FIELDS:
            if np.shape(state[name]) != shape:
                raise SpecfitError(
                    f"stored residency has {name} of shape {np.shape(state[name])}, this run's "
                    f"cache has {shape} (layers, slots); start the run anew with force=true"
                )
        before = self._expert_in.copy()
        self.clear()
        self.forward = int(state["forward"])
        self._expert_in[:] = state["expert_in"]
        layer, slot = np.nonzero(self._expert_in != NONE)
        expert = self._expert_in[layer, slot]
        try:
            self._slot_of[layer, expert] = slot
            self._last_forward[layer, expert] = state["last_forward"][layer, slot]
            self._last_row[layer, expert] = state["last_row"][layer, slot]
            self.check()
        except (IndexError, AssertionError) as error:
            raise SpecfitError(
                f"stored residency is damaged ({error}); start the run anew with force=true"
            ) from None
        moved = before[layer, slot] != expert
        return np.stack([layer, slot, expert], axis=1)[moved]


def collect_trace(
    plans: Sequence[LayerPlan],
    billed_rows: int,
    is_prefill: bool,
    transfer_wait_ns: int = 0,
    brought: PrefetchStats | None = None,
) -> ForwardTrace:
    """The plans of one forward, one per layer in order, as counters that can be billed.

    `brought`: what was copied before it was demanded.
    """
    misses = np.array([len(plan.misses) for plan in plans], dtype=np.int64)
    wait_for = np.full((len(plans), int(misses.max(initial=0))), NONE, dtype=np.int64)
    for layer, plan in enumerate(plans):
        wait_for[layer, : misses[layer]] = plan.wait_for[len(plan.areas) :]
    early = {} if brought is None else {"prefetched": brought.begun, "used": brought.used}
    on_host = [len(plan.on_host) for plan in plans]
    return ForwardTrace(
        billed_rows=billed_rows,
        is_prefill=is_prefill,
        hits=np.array([plan.n_ready for plan in plans], dtype=np.int64),
        misses=misses,
        evictions=np.array([np.sum(plan.evicted != NONE) for plan in plans], dtype=np.int64),
        wait_for=wait_for,
        transfer_wait_ns=transfer_wait_ns,
        on_host=np.array(on_host, dtype=np.int64) if any(on_host) else None,
        **early,
    )
