"""Where speculation pays: the documents that scripts/study_map.py leaves, point by point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specfit.report.intervals import Floats, Interval, paired_ratio, ratio_interval
from specfit.report.styles import WORKLOADS, style_of
from specfit.report.suite_runs import workload_of
from specfit.report.table_format import Cell, Entry, Sheet, factor, measured

PLAIN = "ar_cache"
"""What speculation has to beat: plain decoding whose experts move in the same way."""

LETTERS = {"ar_cache": "A", "eagle3_cache": "E", "specfit": "S"}
MOVES = {"off": "on demand", "layer": "prefetching"}


@dataclass(frozen=True)
class Spot:
    """One link and one fixed cost. `gain` is the best drafting system's over PLAIN."""

    fixed_ms: float
    link_gbps: float
    speeds: Mapping[str, Interval]  # tokens/s by system
    drafting: str
    gain: Interval

    @property
    def best(self) -> str:
        return self.drafting if (self.gain.value or 0) > 1 else PLAIN

    @property
    def is_clear(self) -> bool:
        """Whether the interval of the gain leaves one answer."""
        low, high = self.gain.low, self.gain.high
        return low is not None and high is not None and not low <= 1 <= high


@dataclass(frozen=True)
class Panel:
    workload: str
    prefetch: str
    slots: int
    spots: Mapping[tuple[float, float], Spot]  # (fixed_ms, link_gbps)


@dataclass(frozen=True)
class Atlas:
    """One workload: its panels, the grid they share, and the profiles on it."""

    workload: str
    fixed_ms: tuple[float, ...]
    link_gbps: tuple[float, ...]
    slots: tuple[int, ...]
    profiles: Mapping[str, tuple[float, float]]
    panels: Mapping[tuple[str, int], Panel]  # (prefetch, slots)


def atlas_of(document: Mapping[str, Any]) -> Atlas:
    workload, grid = workload_of(document["info"]["dataset"]), document["grid"]
    tokens = np.array(document["committed_tokens"], dtype=np.float64)
    groups: dict[tuple[str, int], dict[tuple[float, float], dict[str, Floats]]] = {}
    for p in document["points"]:
        panel = groups.setdefault((p["prefetch"], p["slots"]), {})
        spot = panel.setdefault((p["fixed_ms"], p["link_gbps"]), {})
        spot[p["system"]] = np.stack([tokens, np.array(p["decode_ns"], np.float64)], axis=1)
    panels = {
        key: Panel(workload, *key, {at: _spot(*at, systems) for at, systems in spots.items()})
        for key, spots in groups.items()
    }
    profiles = {n: (v["fixed_ms"], v["link_gbps"]) for n, v in document["profiles"].items()}
    fixed_ms, link_gbps, slots = (tuple(grid[n]) for n in ("fixed_ms", "link_gbps", "slots"))
    return Atlas(workload, fixed_ms, link_gbps, slots, profiles, panels)


def _spot(fixed_ms: float, link_gbps: float, systems: Mapping[str, Floats]) -> Spot:
    """`systems` [n, 2] tokens and nanoseconds per request."""
    drafting = max((s for s in systems if s != PLAIN), key=lambda s: -systems[s][:, 1].sum())
    gain = paired_ratio(systems[drafting], systems[PLAIN])
    speeds = {s: ratio_interval(1e9 * v[:, 0], v[:, 1]) for s, v in systems.items()}
    return Spot(fixed_ms, link_gbps, speeds, drafting, gain)


# -- tables ----------------------------------------------------------------------------------------


def profile_sheet(atlases: Sequence[Atlas], timed: str) -> Sheet:
    """The answer at every profile that lies on the grid."""
    systems = list(LETTERS)
    columns = ["workload", "profile", "experts", "slots"]
    columns += [f"{style_of(s).label}, tokens/s ({timed})" for s in systems]
    columns += ["best", "best drafting over AR alike"]
    rows: list[tuple[Entry, ...]] = []
    for atlas in atlases:
        for name, at in atlas.profiles.items():
            for panel in atlas.panels.values():
                if at in panel.spots:
                    spot = panel.spots[at]
                    line: list[Entry] = [WORKLOADS[atlas.workload], name, MOVES[panel.prefetch]]
                    line += [panel.slots, *(measured(spot.speeds[s]) for s in systems)]
                    rows.append((*line, style_of(spot.best).label, measured(spot.gain, factor)))
    note = (
        "Prefetching systems keep one slot less, so that every system of a line needs the same "
        "memory; AR prefetches by the token table, the others by learned routes."
    )
    return Sheet("At the profiles of the package", tuple(columns), tuple(rows), note)


def share_sheet(atlases: Sequence[Atlas]) -> Sheet:
    """How much of the grid each system takes, and what the gain is at its ends."""
    columns = ["workload", "experts", "slots", *(style_of(s).label for s in LETTERS)]
    columns += ["undecided", "least gain", "greatest gain"]
    rows = []
    for atlas in atlases:
        for panel in atlas.panels.values():
            rows.append(_share_line(atlas, panel))
    note = (
        "Points of the grid at which each system is fastest; undecided: of these, where the "
        "interval of the best drafting system's gain over AR (experts moved alike) holds 1."
    )
    return Sheet("Of the whole map", tuple(columns), tuple(rows), note)


def _share_line(atlas: Atlas, panel: Panel) -> tuple[Entry, ...]:
    spots = list(panel.spots.values())
    counts = [sum(spot.best == s for spot in spots) for s in LETTERS]
    by_gain = sorted(spots, key=lambda spot: spot.gain.value or 0)
    ends = [_end(spot) for spot in (by_gain[0], by_gain[-1])]
    head: list[Entry] = [WORKLOADS[atlas.workload], MOVES[panel.prefetch], panel.slots]
    return (*head, *counts, sum(not spot.is_clear for spot in spots), *ends)


def _end(spot: Spot) -> Cell:
    told = measured(spot.gain, factor).text
    return Cell(f"{told} at {spot.fixed_ms:g} ms, {spot.link_gbps:g} GB/s", is_number=False)
