"""The two clocks: one measures, the other bills, and neither ever does both (docs/clocks.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter_ns
from typing import Any, Literal

import numpy as np

from specfit.base.types import ForwardTrace, IntArray, SpecfitError
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

    def bill_routes(self) -> None:
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
        return (int(trace.misses.sum()) + trace.prefetched) * self._expert_bytes


class _Standstill(AbstractContextManager[None]):
    """Bills inside are refused. A plain object, made once: a replay enters it every 40 us."""

    def __init__(self, clock: ModelledClock) -> None:
        self._clock = clock

    def __enter__(self) -> None:
        assert not self._clock._is_off, "the clock stands still already"
        self._clock._is_off = True

    def __exit__(self, *raised: object) -> None:
        self._clock._is_off = False


class ModelledClock:
    """Billed time: `lap` is the sum of the bills since the last border, in integer nanoseconds."""

    kind: str = "modelled"

    def __init__(self, profile: Profile, billing: Billing, route_ms: float = 0.0) -> None:
        """`route_ms`: one read of the run's route source, where it is on the clock."""
        if profile.link_gbps is None or profile.fixed_ms is None:
            raise SpecfitError(
                f"gpu={profile.name} has no link_gbps or fixed_ms, which the modelled clock bills; "
                "measure them with `python -m specfit.probe`, set them, or use gpu.clock=wall"
            )
        self.profile, self.billing = profile, billing
        self._route_ns = round(route_ms * 1e6)
        self._fixed_ms = profile.fixed_ms
        self._copy_ns = round(billing.expert_bytes / profile.link_gbps)  # GB/s = bytes per ns
        self._latency_ns = round(profile.copy_latency_us * 1e3)
        self._expert_ns = round(profile.expert_us * 1e3)
        self._missed_ns = round((profile.expert_us + profile.miss_us) * 1e3)
        self._host_expert_ns = round(profile.host_expert_us * 1e3)
        self._billed = 0
        self._is_off = self._has_drafted = False
        self._standstill = _Standstill(self)

    def start(self) -> None:
        assert not self._is_off, "the clock stands still"
        self._billed = 0
        self._has_drafted = False

    def lap(self) -> int:
        assert not self._is_off, "the clock stands still"
        billed, self._billed = self._billed, 0
        return billed

    def off(self) -> AbstractContextManager[None]:
        return self._standstill

    def _bill(self, ns: int) -> None:
        assert not self._is_off, "off-clock work is not billed"
        self._billed += ns

    def bill_draft_level(self) -> None:
        extension_ms = 0.0 if self._has_drafted else self.profile.extension_ms
        self._has_drafted = True
        self._bill(round((extension_ms + self.profile.draft_level_ms) * 1e6))

    def bill_routes(self) -> None:
        self._bill(self._route_ns)

    def bill_selection(self) -> None:
        self._bill(round(self.profile.selection_ms * 1e6))

    def bill_commit(self) -> None:
        self._bill(round(self.profile.commit_ms * 1e6))

    def _base_ns(self, trace: ForwardTrace) -> int:
        """One billed layer's share of the fixed and per-row cost, rounded once."""
        profile, rows = self.profile, trace.billed_rows
        if trace.is_prefill:
            rows_ms = profile.prefill_token_ms * rows
        else:
            rows_ms = profile.node_ms * rows + (profile.tree_ms if rows else 0.0)
        return round((self._fixed_ms + rows_ms) * 1e6 / self.billing.layers)

    def _waits(self, trace: ForwardTrace) -> IntArray:
        """[L, M] the item of the compute order that each copy waits for. Where one lane copies and
        computes, that is the item before it: nothing hides a copy."""
        if self.profile.overlap:
            return trace.wait_for
        return trace.hits[:, None] + np.arange(-1, trace.wait_for.shape[1] - 1)

    def _terms(self, trace: ForwardTrace) -> tuple[Any, ...]:
        """Arguments of the timeline's functions."""
        return (
            trace.hits,
            trace.misses,
            self._waits(trace),
            self._base_ns(trace),
            self._copy_ns,
            self._latency_ns,
            self._expert_ns,
            self._missed_ns,
            self.profile.copies_in_flight,
            self.billing.layer_scale,
        )

    def spans(self, trace: ForwardTrace) -> list[timeline.LayerSpans]:
        """What `bill_forward` bills, copy by copy and expert by expert; bills nothing."""
        return timeline.forward_spans(*self._terms(trace))

    def bill_forward(self, trace: ForwardTrace) -> int:
        """Bill a verify or a prefill chunk; returns the time its compute lane waited for copies."""
        assert len(trace.hits) == self.billing.own_layers, "the trace is of another model"
        if trace.on_host is not None:
            total_ns, wait_ns = self._hosted(trace, trace.on_host)
        else:
            total_ns, wait_ns = timeline.forward_ns(*self._terms(trace))
        self._bill(int(total_ns))
        return int(wait_ns)

    def _hosted(self, trace: ForwardTrace, on_host: IntArray) -> tuple[int, int]:
        """Beside a layer's two lanes the host takes its experts one after the other; the layer ends
        when all three are done, and waits for the host as for a copy."""
        hits, misses, waits, base_ns, *costs, scale = self._terms(trace)
        total = waited = 0
        for layer, hosted in enumerate(on_host.tolist()):
            lanes, idle = timeline.layer_ns(hits[layer], misses[layer], waits[layer], *costs)
            over = max(0, hosted * self._host_expert_ns - lanes)
            total += base_ns + lanes + over
            waited += idle + over
        return total * scale, waited * scale

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
