"""What the study `real_geometry` left for a workload, its gains, and ranges of them over graftings
and seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specfit.report.intervals import Clusters, paired_ratio
from specfit.report.styles import Workload, workload_of
from specfit.report.table_format import Cell, factor, measured

EMBEDDED = "embedded"
SLOTS, ENDS = (48, 24, 12, 0), (48, 12)
LEADING = ("ar_cache", "eagle3_cache", "specfit")
ALL = "all graftings"
RANGE = (
    "Brackets of a grafting: least and greatest over its seeds, round the median seed; of all "
    "graftings: over graftings and seeds, round the median grafting; of embedded routes: 95 %, "
    "bootstrap over requests and over clusters of them, the wider one."
)
Ints = NDArray[np.int64]
Key = tuple[str, int, float | None, str, int, str, str]


@dataclass(frozen=True, eq=False)
class HalfReal:
    """One workload's document. `kept` [n]: requests that count."""

    document: Mapping[str, Any]
    kept: NDArray[np.bool_]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> HalfReal:
        return cls(document, np.ones(len(document["committed"]), dtype=np.bool_))

    def without_degenerate(self) -> HalfReal:
        """Without loops and answers cut at the cap, unless nothing would be left."""
        kept = ~np.array(self.document["degenerate"], dtype=np.bool_)
        return HalfReal(self.document, kept if kept.any() else self.kept)

    @property
    def workload(self) -> Workload:
        return workload_of(self.document["info"])

    @cached_property
    def committed(self) -> Ints:
        return np.array(self.document["committed"], dtype=np.int64)

    @property
    def clusters(self) -> Clusters:
        """Of each request that counts, where the document says them."""
        known = self.document.get("clusters")
        return None if known is None else [known[at] for at in np.flatnonzero(self.kept)]

    @cached_property
    def cells(self) -> Mapping[Key, Mapping[str, Any]]:
        return {_key(cell): cell for cell in self.document["cells"]}

    @cached_property
    def graftings(self) -> list[str]:
        return [g for g in dict.fromkeys(k[0] for k in self.cells) if g != EMBEDDED]

    def seeds(self, graft: str) -> list[int]:
        return sorted({k[1] for k in self.cells if k[0] == graft and k[2] is None})

    def ns(self, system: str, slots: int, graft: str, seed: int = 0, **how: Any) -> Ints:
        """[n], decode time of each request that counts."""
        return np.array(self.cell(system, slots, graft, seed, **how)["ns"])[self.kept]

    def cell(self, system: str, slots: int, graft: str, seed: int = 0, **how: Any) -> Any:
        study = how.get("study", "grid")
        changes = changes_key(how.get("changes", {}))
        return self.cells[graft, seed, how.get("acceptance"), system, slots, study, changes]

    @property
    def knows_waits(self) -> bool:
        """Whether the document says what waited for copies."""
        return all("wait_ns" in c for k, c in self.cells.items() if k[1] == 0 and k[5] == "grid")

    def has(self, study: str) -> bool:
        return any(key[5] == study for key in self.cells)


def _key(cell: Mapping[str, Any]) -> Key:
    return (
        cell["graft"],
        cell["seed"],
        cell["acceptance"],
        cell["system"],
        cell["slots"],
        cell["study"],
        changes_key(cell["changes"]),
    )


def changes_key(changes: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={changes[key]}" for key in sorted(changes))


# -- ranges ----------------------------------------------------------------------------------------


def ranged(values: Sequence[float], middle: float | None = None) -> Cell:
    """A middle (the median unless given) with the least and the greatest."""
    if not values:
        return Cell("-")
    at = float(np.median(values)) if middle is None else middle
    low, high = min(values), max(values)
    text = factor(at)
    if low < high:
        text += f" [{low:.2f}, {high:.2f}]"
    return Cell(text, at, low, high)


Of = Callable[[str, int], float]
"""(grafting, seed) -> a number."""


def over_seeds(half: HalfReal, graft: str, value: Of) -> Cell:
    return ranged([value(graft, seed) for seed in half.seeds(graft)])


def over_all(half: HalfReal, value: Of) -> Cell:
    found = {g: [value(g, seed) for seed in half.seeds(g)] for g in half.graftings}
    middles = [float(np.median(values)) for values in found.values()]
    every = [value for values in found.values() for value in values]
    return ranged(every, float(np.median(middles)))


def gain(half: HalfReal, system: str, base: str, slots: int) -> Of:
    """Speed of `system` over `base` at the same slots: committed tokens are the same."""

    def value(graft: str, seed: int) -> float:
        theirs = half.ns(base, slots, graft, seed).sum()
        return float(theirs / half.ns(system, slots, graft, seed).sum())

    return value


def embedded_gain(half: HalfReal, system: str, base: str, slots: int) -> Cell:
    tokens = half.committed[half.kept]
    ours, theirs = (
        np.stack([tokens, half.ns(name, slots, EMBEDDED)], axis=1) for name in (system, base)
    )
    return measured(paired_ratio(ours, theirs, clusters=half.clusters), factor)


def slots_named(slots: int) -> str:
    return f"{slots} slots" if slots else "no cache"


def missed_share(cell: Mapping[str, Any]) -> float:
    totals = cell["totals"]
    return 1 - totals["hit_experts"] / totals["demand_experts"]
