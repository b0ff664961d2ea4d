"""The two clocks of design.md: one measures, the other bills, and neither ever does both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, Literal

from specfit.core import ForwardTrace, SpecfitError
from specfit.hardware import timeline
from specfit.hardware.profile import Billing, Profile

ClockKind = Literal["wall", "modelled"]


class WallClock:
    """Measured time. `synchronise` waits for the device; the wait belongs to the phase it ends."""

    kind: str = "wall"

    def __init__(
        self,
        synchronise: Callable[[], None],
        expert_bytes: int,
        timer: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self._synchronise, self._timer = synchronise, timer
        self._expert_bytes = expert_bytes  # the run's own
        self._border = 0
        self._is_off = False

    def _now(self) -> int:
        self._synchronise()
        return self._timer()

    def start(self) -> None:
        assert not self._is_off, "the clock stands still"
        self._border = self._now()

    def lap(self) -> int:
        assert not self._is_off, "the clock stands still"
        before, self._border = self._border, self._now()
        return self._border - before

    @contextmanager
    def off(self) -> Iterator[None]:
        """Moves the border by the time spent inside; what ran before it stays with its phase."""
        assert not self._is_off, "the clock stands still already"
        begin = self._now()
        self._is_off = True
        try:
            yield
        finally:
            self._is_off = False
            self._border += self._now() - begin

    def bill_draft_level(self) -> None:
        assert not self._is_off, "off-clock work is not billed"

    def bill_selection(self) -> None:
        assert not self._is_off, "off-clock work is not billed"

    def bill_commit(self) -> None:
        assert not self._is_off, "off-clock work is not billed"

    def bill_forward(self, trace: ForwardTrace) -> int:
        """The wait the copy engine measured."""
        assert not self._is_off, "off-clock work is not billed"
        return trace.transfer_wait_ns

    def billed_bytes(self, trace: ForwardTrace) -> int:
        """What really moved."""
        return int(trace.misses.sum()) * self._expert_bytes


class ModelledClock:
    """Billed time: `lap` is the sum of the bills since the last border, in integer nanoseconds."""

    kind: str = "modelled"

    def __init__(self, profile: Profile, billing: Billing) -> None:
        if profile.link_gbps is None or profile.fixed_ms is None:
            raise SpecfitError(
                f"gpu={profile.name} has no link_gbps or fixed_ms, which the modelled clock bills; "
                "measure them with `python -m specfit.probe`, set them, or use gpu.clock=wall"
            )
        self.profile, self.billing = profile, billing
        self._fixed_ms = profile.fixed_ms
        self._copy_ns = round(billing.expert_bytes / profile.link_gbps)  # GB/s = bytes per ns
        self._latency_ns = round(profile.copy_latency_us * 1e3)
        self._expert_ns = round(profile.expert_us * 1e3)
        self._billed = 0
        self._is_off = False

    def start(self) -> None:
        assert not self._is_off, "the clock stands still"
        self._billed = 0

    def lap(self) -> int:
        assert not self._is_off, "the clock stands still"
        billed, self._billed = self._billed, 0
        return billed

    @contextmanager
    def off(self) -> Iterator[None]:
        assert not self._is_off, "the clock stands still already"
        self._is_off = True
        try:
            yield
        finally:
            self._is_off = False

    def _bill(self, ns: int) -> None:
        assert not self._is_off, "off-clock work is not billed"
        self._billed += ns

    def bill_draft_level(self) -> None:
        self._bill(round(self.profile.draft_level_ms * 1e6))

    def bill_selection(self) -> None:
        self._bill(round(self.profile.selection_ms * 1e6))

    def bill_commit(self) -> None:
        self._bill(round(self.profile.commit_ms * 1e6))

    def _base_ns(self, trace: ForwardTrace) -> int:
        """One billed layer's share of the fixed and per-row cost, rounded once."""
        per_row_ms = self.profile.prefill_token_ms if trace.is_prefill else self.profile.node_ms
        return round((self._fixed_ms + per_row_ms * trace.billed_rows) * 1e6 / self.billing.layers)

    def _terms(self, trace: ForwardTrace) -> tuple[Any, ...]:
        """Arguments of the timeline's functions."""
        return (
            trace.hits,
            trace.misses,
            trace.wait_for,
            self._base_ns(trace),
            self._copy_ns,
            self._latency_ns,
            self._expert_ns,
            self.profile.copies_in_flight,
            self.billing.layer_scale,
        )

    def spans(self, trace: ForwardTrace) -> list[timeline.LayerSpans]:
        """What `bill_forward` bills, copy by copy and expert by expert; bills nothing."""
        return timeline.forward_spans(*self._terms(trace))

    def bill_forward(self, trace: ForwardTrace) -> int:
        """Bill a verify or a prefill chunk; returns the time its compute lane waited for copies."""
        assert len(trace.hits) == self.billing.own_layers, "the trace is of another model"
        if not self.profile.overlap:
            return self._bill_serially(trace)
        total_ns, wait_ns = timeline.forward_ns(*self._terms(trace))
        self._bill(int(total_ns))
        return int(wait_ns)

    def _bill_serially(self, trace: ForwardTrace) -> int:
        """One lane copies and computes: a miss waits for its own copy, and nothing hides it."""
        misses = int(trace.misses.sum())
        wait_ns = misses * (self._copy_ns + self._latency_ns)
        run_ns = int(trace.demand.sum()) * self._expert_ns
        base_ns = len(trace.hits) * self._base_ns(trace)
        self._bill((base_ns + run_ns + wait_ns) * self.billing.layer_scale)
        return wait_ns * self.billing.layer_scale

    def billed_bytes(self, trace: ForwardTrace) -> int:
        return self.billing.billed_bytes(trace)


def choose_clock(requested: str, profile: Profile, device_name: str) -> ClockKind:
    """Resolve `gpu.clock`: `auto` measures on the profile's own machine and models elsewhere."""
    if requested == "wall":
        return "wall"
    if requested == "modelled":
        return "modelled"
    if requested != "auto":
        raise SpecfitError(f"gpu.clock={requested} is unknown; use auto, wall or modelled")
    if profile.name == "local":
        return "wall"
    here = device_name.casefold()
    return "wall" if here in (name.casefold() for name in profile.gpu_names) else "modelled"
