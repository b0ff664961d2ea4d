"""A finished cycle billed again by another clock: how a modelled clock is held against a
measured one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specfit.base.types import CycleRecord, ForwardTrace
from specfit.hardware.clock import ModelledClock


@dataclass(frozen=True, eq=False)
class Observed:
    """One cycle on the wall clock, and what its forwards asked of the cache."""

    record: CycleRecord
    traces: Sequence[ForwardTrace]

    @property
    def misses(self) -> int:
        return self.record.transferred_experts


def modelled_ns(cycle: Observed, clock: ModelledClock, reads_routes: bool) -> int:
    """What the decoder would have billed for this cycle."""
    clock.start()
    for trace in cycle.traces:
        clock.bill_forward(trace)
    for _ in range(cycle.record.drafted_levels):
        clock.bill_draft_level()
    if cycle.record.cycle > 0:
        if reads_routes:
            clock.bill_selection()
        clock.bill_commit()
    return clock.lap()


@dataclass(frozen=True)
class Comparison:
    """Totals of one system over the same cycles, prefill included."""

    system: str
    cycles: int
    measured_ns: int
    modelled_ns: int
    measured_decode_ns: int
    modelled_decode_ns: int

    @property
    def error(self) -> float:
        """Modelled over measured, minus 1."""
        return self.modelled_ns / self.measured_ns - 1.0

    @property
    def decode_error(self) -> float:
        return self.modelled_decode_ns / self.measured_decode_ns - 1.0


def compare(
    system: str, cycles: Iterable[Observed], clock: ModelledClock, reads_routes: bool
) -> Comparison:
    pairs = [(c, modelled_ns(c, clock, reads_routes)) for c in cycles]
    decode = [(c, ns) for c, ns in pairs if c.record.cycle > 0]
    return Comparison(
        system,
        len(pairs),
        sum(c.record.cycle_ns for c, _ in pairs),
        sum(ns for _, ns in pairs),
        sum(c.record.cycle_ns for c, _ in decode),
        sum(ns for _, ns in decode),
    )
