"""Runs the routed experts of one layer from device memory, moving the missing ones in.

The cache decides (policy), the copy engine moves (mechanism), this file walks the plan. Arithmetic
never depends on residency: each expert writes its rows' outputs to their (row, k) places, and these
are summed in the router's order at the end of the layer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional as F

from specfit.core import ForwardTrace, IntArray
from specfit.offload.cache import ExpertCache, LayerPlan, collect_trace
from specfit.offload.store import ExpertStore
from specfit.offload.transfer import CopyEngine

Activation = Callable[[torch.Tensor], torch.Tensor]


class RoutedRows:
    """The rows of one layer's input grouped by expert. Flat place p is row p // k, choice p % k."""

    def __init__(self, topk: IntArray) -> None:
        flat = topk.reshape(-1)
        places = np.argsort(flat, kind="stable")
        experts, starts = np.unique(flat[places], return_index=True)
        pieces = np.split(places, starts[1:])
        self._places = dict(zip(experts.tolist(), map(torch.from_numpy, pieces), strict=True))
        self._k = topk.shape[1]

    def of(self, expert: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(rows, flat places) that `expert` serves, in ascending row order."""
        places = self._places[expert]
        return places // self._k, places

    @property
    def experts(self) -> list[int]:
        return list(self._places)


class ExpertEngine:
    """Slots [L][S, block] and one staging area [B, block] on the device, beside the host store."""

    def __init__(
        self,
        store: ExpertStore,
        cache: ExpertCache,
        copies: CopyEngine,
        activation: Activation,
        device: torch.device,
    ) -> None:
        assert cache.staging_blocks > copies.in_flight, "staging: copies in flight and one more"
        self.store, self.cache, self.copies = store, cache, copies
        self._activation = activation
        block = store.block_bytes // store.dtype.itemsize
        self._slots = [
            torch.empty(cache.n_slots, block, dtype=store.dtype, device=device)
            for _ in range(store.layers)
        ]
        self._staging = torch.empty(cache.staging_blocks, block, dtype=store.dtype, device=device)
        self._on_clock = True
        self._plans: list[LayerPlan] = []
        self.routes: list[IntArray] = []

    # -- one forward ---------------------------------------------------------------------------

    def begin_forward(self, on_clock: bool) -> None:
        """Off-clock forwards change no residency and no counter."""
        self._on_clock = on_clock
        self._plans, self.routes = [], []
        if on_clock:
            self.cache.begin_forward()
            self.copies.wait_ns = 0

    def run(
        self, layer: int, hidden: torch.Tensor, topk: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """hidden [T, H], topk [T, k] expert ids, weights [T, k] -> [T, H]."""
        ids = topk.cpu().numpy()  # the layer's one host-device synchronisation
        self.routes.append(ids)
        walk = self._run_planned if self._on_clock else self._run_in_place
        outputs = walk(layer, hidden, RoutedRows(ids))
        return sum_in_router_order(outputs, weights)

    def end_forward(self, billed_rows: int, is_prefill: bool) -> ForwardTrace:
        self.copies.drain()
        self.cache.check()
        return collect_trace(self._plans, billed_rows, is_prefill, self.copies.wait_ns)

    # -- on the clock: hits first, misses as they arrive ------------------------------------------

    def _run_planned(self, layer: int, hidden: torch.Tensor, rows: RoutedRows) -> torch.Tensor:
        plan = self.cache.plan(layer, self.routes[-1])
        self._plans.append(plan)
        outputs = self._empty_outputs(hidden)
        issued = 0
        for ran, expert in enumerate(plan.order.tolist()):
            issued = self._issue(layer, plan, issued, ran)
            if ran >= plan.n_hits:
                self.copies.wait_oldest()
            block = self._block(layer, plan, ran)
            self._apply(block, hidden, *rows.of(expert), outputs)
        assert issued == len(plan.misses), "every miss is one transfer"
        return outputs

    def _issue(self, layer: int, plan: LayerPlan, issued: int, ran: int) -> int:
        """Start the copies that may go, in load order; returns how many have been started."""
        while issued < len(plan.misses) and self.copies.has_room():
            if plan.wait_for[issued] >= ran:  # its slot still holds an expert that has to run
                break
            source = self.store.block(layer, int(plan.misses[issued]))
            self.copies.submit(source, self._block(layer, plan, plan.n_hits + issued))
            issued += 1
        return issued

    def _block(self, layer: int, plan: LayerPlan, item: int) -> torch.Tensor:
        slot = int(plan.slots[item])
        if slot >= 0:
            return self._slots[layer][slot]
        return self._staging[item % len(self._staging)]

    # -- off the clock: residents in place, the rest through staging -------------------------------

    def _run_in_place(self, layer: int, hidden: torch.Tensor, rows: RoutedRows) -> torch.Tensor:
        outputs = self._empty_outputs(hidden)
        if layer == self.store.layers - 1:
            return outputs.zero_()  # only routes are wanted, and nothing routes after this layer
        for expert in rows.experts:
            slot = self.cache.slot_of(layer, expert)
            if slot >= 0:
                block = self._slots[layer][slot]
            else:
                block = self._staging[0]
                self.copies.submit(self.store.block(layer, expert), block)
                self.copies.wait_oldest()
            self._apply(block, hidden, *rows.of(expert), outputs)
        return outputs

    # -- arithmetic ------------------------------------------------------------------------------

    def _empty_outputs(self, hidden: torch.Tensor) -> torch.Tensor:
        top_k = self.routes[-1].shape[1]
        return hidden.new_empty(hidden.shape[0], top_k, hidden.shape[1])

    def _apply(
        self,
        block: torch.Tensor,
        hidden: torch.Tensor,
        rows: torch.Tensor,
        places: torch.Tensor,
        outputs: torch.Tensor,
    ) -> None:
        width, inner = self.store.hidden, self.store.intermediate
        gate_up = block[: 2 * inner * width].view(2 * inner, width)
        down = block[2 * inner * width :].view(width, inner)
        gate, up = F.linear(hidden[rows], gate_up).chunk(2, dim=-1)
        outputs.view(-1, width)[places] = F.linear(self._activation(gate) * up, down)

    # -- residency put back, for probes and resumed runs -------------------------------------------

    def residency(self) -> dict[str, np.ndarray]:
        return self.cache.state()

    def restore(self, residency: dict[str, np.ndarray]) -> None:
        """Put back ids and recency, and copy in the weights the slots now lack."""
        for layer, slot, expert in self.cache.load_state(residency).tolist():
            self._slots[layer][slot].copy_(self.store.block(layer, expert))


def sum_in_router_order(outputs: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """outputs [T, k, H] weighted by [T, k] and added for k = 0, 1, ...: one order, always."""
    total = outputs[:, 0] * weights[:, 0, None]
    for choice in range(1, outputs.shape[1]):
        total = torch.addcmul(total, outputs[:, choice], weights[:, choice, None])
    return total
