"""Why one run is faster or slower than another, in factors that multiply and times that add up.

speed-up = committed ratio / cycle ratio; a cycle is the sum of its phases; copies per cycle =
demand (the union of the verified rows' experts) x share that was not resident.
"""

from __future__ import annotations

from dataclasses import dataclass

from specfit.base.types import SpecfitError
from specfit.report.intervals import Interval, speedup
from specfit.report.machines import unequal
from specfit.report.metrics import Totals, ratio, shared_requests, totals
from specfit.report.styles import PHASES, label_of
from specfit.storage.rows import RunRows


@dataclass(frozen=True)
class Side:
    """One run's decode in means per cycle over the shared requests."""

    name: str
    committed: float
    verified: float
    cycle_ms: float
    phases_ms: dict[str, float]  # of labels.PHASES, they add up to the cycle
    demand: float
    copies: float

    @property
    def hit_rate(self) -> float:
        """Share of the demand that needed no copy."""
        return 1 - self.copies / self.demand


@dataclass(frozen=True)
class Explanation:
    """`of` against `base`; every ratio is of over base."""

    of: Side
    base: Side
    speedup: Interval
    timed: str
    unequal: tuple[str, ...] = ()  # what the two machines do not share; then times say little

    @property
    def committed_ratio(self) -> float:
        return self.of.committed / self.base.committed

    @property
    def cycle_ratio(self) -> float:
        return self.of.cycle_ms / self.base.cycle_ms

    @property
    def union_growth(self) -> float:
        return self.of.demand / self.base.demand

    @property
    def miss_ratio(self) -> float | None:
        """How the share of demand that is copied grew; None where the base copies nothing."""
        return ratio(1 - self.of.hit_rate, 1 - self.base.hit_rate)

    @property
    def break_even_ms(self) -> float:
        """A cycle of `of` this long would make the two equally fast."""
        return self.committed_ratio * self.base.cycle_ms

    def added_ms(self) -> dict[str, float]:
        """Phase -> what it adds to `of`'s cycle; they add up to the difference of the cycles."""
        return {name: self.of.phases_ms[name] - self.base.phases_ms[name] for name in PHASES}


def explain(run: RunRows, base: RunRows) -> Explanation:
    """Raises SpecfitError for runs of other requests, of different clocks, or without decode."""
    a, b = run.info, base.info
    if a.clock != b.clock:
        raise SpecfitError(
            f"run {a.run_id} is {a.timed} and run {b.run_id} {b.timed}; only runs of one clock "
            "can be compared"
        )
    if a.requests_digest != b.requests_digest:
        raise SpecfitError(
            f"runs {a.run_id} and {b.run_id} answer different requests; name runs of one workload"
        )
    shared, _ = shared_requests(run, base)
    names = _names(run, base)
    sides = [_side(r, shared, name) for r, name in zip((run, base), names, strict=True)]
    return Explanation(sides[0], sides[1], speedup(run, base), a.timed, unequal(run, base))


def _names(run: RunRows, base: RunRows) -> tuple[str, str]:
    """System and, where the two differ in it, slots and what else tells them apart."""
    a, b = run.info, base.info
    names = [label_of(a), label_of(b)]
    for field, text in (
        ("cache_slots", "{} slots"),
        ("profile", "{}"),
        ("link_gbps", "{} GB/s"),
        ("routes", "routes {}"),
        ("repeat", "repeat {}"),
    ):
        values = getattr(a, field), getattr(b, field)
        if values[0] != values[1] and None not in values:
            names = [f"{n} at {text.format(v)}" for n, v in zip(names, values, strict=True)]
    if names[0] == names[1]:
        names = [f"{n} ({i.run_id})" for n, i in zip(names, (a, b), strict=True)]
    return names[0], names[1]


def _side(run: RunRows, shared: list[str], name: str) -> Side:
    t = totals(run)
    t = Totals(t.decode.loc[shared], t.prefill.loc[shared])
    cycles, committed, demand = (t.sum(c) for c in ("cycles", "committed_tokens", "demand_experts"))
    if not (cycles and committed and demand):
        raise SpecfitError(f"run {run.info.run_id} decoded nothing that could be explained")
    return Side(
        name,
        committed / cycles,
        t.sum("verified_nodes") / cycles,
        t.sum("cycle_ns") / cycles / 1e6,
        {phase: ns / cycles / 1e6 for phase, ns in phase_sums(t).items()},
        demand / cycles,
        t.sum("transferred_experts") / cycles,
    )


def phase_sums(t: Totals) -> dict[str, int]:
    """Decode nanoseconds by phase of labels.PHASES; verify is split by what it waited for."""
    wait = t.sum("transfer_wait_ns")
    parts = {"wait": wait, "compute": t.sum("verify_ns") - wait}
    return {name: parts[name] if name in parts else t.sum(f"{name}_ns") for name in PHASES}
