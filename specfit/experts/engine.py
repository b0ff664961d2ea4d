"""Runs the routed experts of one layer from device memory, moving the missing ones in.

The cache decides (policy), the copy engine moves (mechanism), this file walks the plan. Copies
are started before anything else, hits compute while they travel, each miss when it has arrived.
The host waits for the device once a layer, to read the routes; everything else is enqueued.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch

from specfit.base.types import ForwardTrace, IntArray
from specfit.experts.arithmetic import Arithmetic, Downloads, LayerWork, Uploads, sort_by_item
from specfit.experts.cache import ExpertCache, LayerPlan, collect_trace
from specfit.experts.cache_plan import NONE
from specfit.experts.copies import CopyEngine, Mark
from specfit.experts.host_weights import HostStore, device_blocks
from specfit.experts.ram_store import RamStore
from specfit.hardware.idle_link import PIECES


class StandInRoutes(Protocol):
    """Says what a layer routes to in place of a router that has not been trained.

    It keeps a state for every column of the target's KV cache.
    """

    def begin_forward(self, start: int, tokens: IntArray, mask: torch.Tensor | None) -> None:
        """Rows `tokens` [T] from column `start` on; mask [1, 1, T, columns], True = attend."""
        ...

    def keep(self, length: int, rows: Sequence[int]) -> None:
        """Of the columns from `length` on, keep these offsets, side by side."""
        ...

    def routes(self, layer: int) -> IntArray:
        """[T, k] of the forward that is going on."""
        ...


class ExpertEngine:
    """Slots [L][S, block] and one staging area [B, block] on the device, beside the host store."""

    def __init__(
        self,
        store: HostStore,
        cache: ExpertCache,
        copies: CopyEngine,
        arithmetic: Arithmetic,
        device: torch.device,
    ) -> None:
        assert cache.staging_blocks > copies.in_flight, "staging: copies in flight and one more"
        self.store, self.cache, self.copies = store, cache, copies
        self.ram = store if isinstance(store, RamStore) else None
        self.arithmetic = arithmetic
        self.stand_in: StandInRoutes | None = None
        block = store.format.elements, store.format.storage, device
        self._slots = [device_blocks(cache.n_slots, *block) for _ in range(store.layers)]
        self._staging = device_blocks(cache.staging_blocks, *block)
        ahead = cache.prefetcher
        self._area = device_blocks(ahead.blocks if ahead is not None else 0, *block)
        self._brought: dict[int, Mark | None] = {}  # block of the area -> its newest copy
        if ahead is not None:
            # Weak: a bound method would make the engine a cycle, and its slots outlive its job.
            itself = weakref.ref(self)

            def bring(layer: int, expert: int, block: int, piece: int) -> None:
                engine = itself()
                assert engine is not None, "a prefetcher is used by its engine alone"
                engine._bring(layer, expert, block, piece)

            ahead.bring = bring
            if self.ram is not None:
                ahead.in_ram = self.ram.holds
        self._upload, self._download = Uploads(device), Downloads()
        self._on_clock = self._whole = True
        self._plans: list[LayerPlan] = []
        self.routes: list[IntArray] = []

    # -- one forward ---------------------------------------------------------------------------

    def begin_forward(self, on_clock: bool, whole: bool = False) -> None:
        """Off-clock forwards change no residency and no counter; they give routes, and what the
        last layer's experts would add only if `whole`."""
        self._on_clock, self._whole = on_clock, whole
        self._plans, self.routes = [], []
        self.copies.drain()
        if on_clock:
            self.cache.begin_forward()
            if self.ram is not None:
                self.ram.begin_forward()
            self.copies.wait_ns = 0
            self.cache.before_layer(0)

    def run(
        self, layer: int, hidden: torch.Tensor, topk: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """hidden [T, H], topk [T, k] expert ids, weights [T, k] -> [T, H]."""
        ids = self._download(topk)  # the layer's one host-device synchronisation
        if self.stand_in is not None:
            ids = self.stand_in.routes(layer)
            assert ids.shape == topk.shape, "the stand-in was told of this forward"
        self.routes.append(ids)
        if self._on_clock:
            plan = self.cache.plan(layer, ids)
            self._plans.append(plan)
            if self.ram is not None:
                self.ram.plan(layer, plan.arrived, plan.areas, plan.misses)
        elif layer == self.store.layers - 1 and not self._whole:
            return torch.zeros_like(hidden)  # only routes are wanted, and nothing routes after it
        else:
            plan = self._plan_in_place(layer, ids)
        result = self._walk(layer, plan, hidden, ids, weights)
        if self._on_clock and layer + 1 < self.store.layers:
            self.cache.before_layer(layer + 1)  # copies that its fixed part hides are enqueued now
        return result

    def _bring(self, layer: int, expert: int, block: int, piece: int) -> None:
        """One of PIECES parts of a block; the mark of the newest stands for all before it."""
        locked = self.store.is_locked(layer, expert)
        if self.ram is not None:
            source = self.ram.piece(layer, expert, block, piece)
        else:
            source = self.store.source(layer, expert).chunk(PIECES)[piece]
        place = self._area[block].chunk(PIECES)[piece]
        self._brought[block] = self.copies.bring(source, place, locked)

    def end_forward(self, billed_rows: int, is_prefill: bool) -> ForwardTrace:
        self.copies.drain()
        self.cache.check()
        brought = self.cache.end_forward()
        trace = collect_trace(self._plans, billed_rows, is_prefill, self.copies.wait_ns, brought)
        if self.ram is None or self.ram.cache.n_slots == 0:
            return trace
        self.ram.cache.check()
        read = self.ram.reads + brought.begun - brought.from_ram
        return replace(trace, ram_hits=self.ram.hits + brought.from_ram, reads=read)

    # -- the walk: hits, what was brought in early, misses as they arrive --------------------------

    def _walk(
        self,
        layer: int,
        plan: LayerPlan,
        hidden: torch.Tensor,
        ids: IntArray,
        weights: torch.Tensor,
    ) -> torch.Tensor:
        # The index table goes up first: behind two blocks of its direction the hits would wait.
        work = self._work(plan, hidden, ids)
        areas = len(plan.areas)
        self.copies.begin_layer(len(plan.misses) + areas, len(plan.misses) + (areas > 0))
        marks: dict[int, Mark | None] = {}
        waited_for = set(plan.wait_for.tolist()) - {NONE}
        issued = self._issue(layer, plan, 0, 0, marks)
        ran = 0
        while ran < len(plan.order):
            last = _end_of_batch(plan, ran)
            if ran >= plan.n_ready:
                self.copies.wait_oldest()
            elif ran >= plan.n_hits:
                for block in plan.areas:
                    self.copies.wait_brought(self._brought.pop(block))
            self.arithmetic.run(self._storage(layer, plan, ran), ran, last, work)
            if plan.n_hits <= ran < plan.n_ready:
                self._settle(layer, plan)
            if not waited_for.isdisjoint(range(ran, last)):
                marks |= dict.fromkeys(range(ran, last), self.copies.mark())
            ran = last
            issued = self._issue(layer, plan, issued, ran, marks)
        assert issued == len(plan.misses), "every miss is one transfer"
        self.copies.end_layer()
        for item, expert in enumerate(plan.on_host, start=len(plan.order)):
            self.arithmetic.run(self.store.block(layer, expert)[None], item, item + 1, work)
        return self.arithmetic.finish(work, weights)

    def _settle(self, layer: int, plan: LayerPlan) -> None:
        """Move what has run from the area into its slots, on the compute lane: their former experts
        have run there, and what runs or is copied after an item sees it moved."""
        for item, block in enumerate(plan.areas, start=plan.n_hits):
            if (slot := int(plan.slots[item])) != NONE:
                self.copies.move(self._area[block], self._slots[layer][slot])

    def _issue(
        self, layer: int, plan: LayerPlan, issued: int, ran: int, marks: dict[int, Mark | None]
    ) -> int:
        """Start the copies that may go, in load order; returns how many have been started."""
        while issued < len(plan.misses) and self.copies.has_room():
            before, item = int(plan.wait_for[len(plan.areas) + issued]), plan.n_ready + issued
            if before >= ran:  # its block still holds an expert that has to run
                break
            expert = int(plan.misses[issued])
            destination = self._storage(layer, plan, item)[self._block(plan, item)]
            locked = self.store.is_locked(layer, expert)
            source = self.store.source(layer, expert)
            self.copies.submit(source, destination, marks.get(before), locked)
            issued += 1
        return issued

    def _work(self, plan: LayerPlan, hidden: torch.Tensor, ids: IntArray) -> LayerWork:
        places, starts = sort_by_item(ids, np.append(plan.order, plan.on_host).astype(np.int64))
        blocks = [self._block(plan, item) for item in range(len(plan.order))]
        blocks += [0] * len(plan.on_host)
        table = self._upload(np.concatenate([places, starts, blocks]))
        outputs = hidden.new_empty(ids.size, hidden.shape[1])
        inner = self.store.format.intermediate
        return LayerWork(hidden, outputs, ids.shape[1], inner, starts, blocks, table)

    def _storage(self, layer: int, plan: LayerPlan, item: int) -> torch.Tensor:
        """Where the block of an item lies. Hits have slots, so a batch of them shares one."""
        if plan.n_hits <= item < plan.n_ready:
            return self._area
        return self._slots[layer] if plan.slots[item] != NONE else self._staging

    def _block(self, plan: LayerPlan, item: int) -> int:
        if plan.n_hits <= item < plan.n_ready:
            return plan.areas[item - plan.n_hits]
        slot = int(plan.slots[item])
        return slot if slot != NONE else item % len(self._staging)

    def _plan_in_place(self, layer: int, ids: IntArray) -> LayerPlan:
        """Off the clock: residents where they are, the rest through staging; nothing changes."""
        experts = np.unique(ids).astype(np.int64)
        slot_of = np.array([self.cache.slot_of(layer, expert) for expert in experts.tolist()])
        resident = slot_of != NONE
        order = np.concatenate([experts[resident], experts[~resident]])
        n_hits, n_misses = int(resident.sum()), int((~resident).sum())
        nowhere = np.full(n_misses, NONE)
        slots = np.concatenate([slot_of[resident], nowhere])
        items = np.arange(n_hits, n_hits + n_misses) - len(self._staging)
        # Only a miss has used a staging block, so a hit is nothing to wait for.
        wait_for = np.where(items >= n_hits, items, NONE)
        return LayerPlan(n_hits, order, slots, nowhere, wait_for)

    # -- residency put back, for probes and resumed runs -------------------------------------------

    def residency(self) -> dict[str, np.ndarray]:
        return self.cache.state() | (self.ram.state() if self.ram is not None else {})

    def restore(self, residency: dict[str, np.ndarray]) -> None:
        """Put back ids and recency, and copy in the weights the slots now lack."""
        if self.ram is not None:
            self.ram.restore(residency)
        for layer, slot, expert in self.cache.load_state(residency).tolist():
            self._slots[layer][slot].copy_(self.store.block(layer, expert))


def _end_of_batch(plan: LayerPlan, ran: int) -> int:
    """Hits run together, then what was brought in early, then misses one by one."""
    if ran < plan.n_hits:
        return plan.n_hits
    return plan.n_ready if ran < plan.n_ready else ran + 1
