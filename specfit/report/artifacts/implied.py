"""What the paper's own ratios imply under a linear clock: arithmetic alone, no run goes in.

With T = fixed + overhead + misses x a copy, AR without a cache ties the link to the fixed cost.
Then the published cycle, committed and copied ratios of SpecFit over EAGLE-3 leave one committed
length of EAGLE-3 for each fixed cost, and its two speeds the union of its rows and its misses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specfit.report.artifact import Table
from specfit.report.artifacts.constants import COPIED_GB
from specfit.report.reader import ResultsReader
from specfit.report.styles import PAPER_WORKLOADS
from specfit.report.table_format import Cell, Entry, Sheet, exact

FIXED_MS = (10.0, 20.0, 30.0, 40.0, 50.0, 70.0, 100.0)
NODE_MS, LEVEL_MS, SELECTION_MS, LEVELS, VERIFIED = 0.6, 3.0, 3.0, 5, 7
TOP_K, ROWS = 8, 1 + VERIFIED
REAL_MISSES, REAL_UNION, REAL_COMMITTED = 15.8, 27.2, (2.0, 2.6)
"""Of the real router's trace, 8 consecutive tokens a forward: misses at 48 slots (LRU), percent,
and the union; committed tokens a cycle of published heads."""


@dataclass(frozen=True)
class Published:
    """Of one workload, tokens/s and ratios of SpecFit over EAGLE-3 with the same cache."""

    ar: float
    eagle3: float
    eagle3_cache: float
    committed: float
    cycle: float
    experts: float  # copied a token
    verified: float  # nodes that SpecFit verifies
    stated: bool  # whether `verified` is the paper's


PAPER: Mapping[str, Published] = {
    "cnn_dailymail": Published(4.67, 4.20, 6.80, 0.869, 0.715, 0.779, 2.88, True),
    "gsm8k": Published(4.71, 6.27, 10.08, 0.922, 0.862, 0.884, 4.0, False),
}


@dataclass(frozen=True)
class Implied:
    """At one fixed cost; `committed` etc. are of EAGLE-3."""

    fixed_ms: float
    link_gbps: float
    committed: float
    union: float  # experts of a layer that its rows demand
    misses: float  # percent of them, with 48 slots


def implied(paper: Published, fixed_ms: float) -> Implied:
    """All published ratios but the hit rate are met by construction."""
    copy_ms = 1e3 / paper.ar - fixed_ms  # AR's eight experts of every layer
    eagle_ms = NODE_MS * VERIFIED + LEVEL_MS * LEVELS
    ours_ms = NODE_MS * paper.verified + LEVEL_MS * LEVELS + SELECTION_MS
    copies = paper.experts * paper.committed  # SpecFit's a cycle over EAGLE-3's
    # cycle x T_E = fixed + ours + copies x (T_E - fixed - eagle), solved for T_E
    cached_ms = (fixed_ms + ours_ms - copies * (fixed_ms + eagle_ms)) / (paper.cycle - copies)
    committed = cached_ms * paper.eagle3_cache / 1e3
    uncached_ms = 1e3 * committed / paper.eagle3
    demanded = uncached_ms - fixed_ms - eagle_ms
    missed = cached_ms - fixed_ms - eagle_ms
    return Implied(
        fixed_ms,
        1e3 * COPIED_GB / copy_ms,
        committed,
        TOP_K * demanded / copy_ms,
        100 * missed / demanded,
    )


def implied_sheet() -> Sheet:
    columns = (
        "workload",
        "fixed cost, ms",
        "link, GB/s",
        "EAGLE-3 commits a cycle",
        "union of its rows, experts",
        "misses at 48 slots, %",
        "times the real trace's misses",
        "can be",
    )
    rows: list[tuple[Entry, ...]] = []
    for workload, paper in PAPER.items():
        for fixed in FIXED_MS:
            one = implied(paper, fixed)
            numbers = (fixed, one.link_gbps, one.committed, one.union, one.misses)
            cells = [exact(value) for value in (*numbers, one.misses / REAL_MISSES)]
            rows.append((PAPER_WORKLOADS[workload], *cells, Cell(verdict(one), is_number=False)))
    note = (
        f"Real trace, {ROWS} consecutive tokens a forward: union {REAL_UNION:g}, misses at 48 "
        f"slots {REAL_MISSES:g} %; published heads commit {REAL_COMMITTED[0]:g} to "
        f"{REAL_COMMITTED[1]:g}. A pool of five levels commits at most {LEVELS + 1}; "
        f"{ROWS} rows demand at most {ROWS * TOP_K} experts. Node, level and selection times as "
        "the profile assumes them; GSM8K's verified nodes are not published (4 assumed)."
    )
    return Sheet("What the published ratios imply", columns, tuple(rows), note)


def verdict(one: Implied) -> str:
    """What stands against a line."""
    against = []
    if one.committed > LEVELS + 1:
        against.append("commits more than a pool can hold")
    if one.union > ROWS * TOP_K:
        against.append("demands more than its rows can")
    if one.misses > 2 * REAL_MISSES:
        against.append("misses are not those of LRU over real routes")
    return "no: " + "; ".join(against) if against else "yes"


def table_implied(reader: ResultsReader) -> Table:
    """Committed lengths, hit rates and constants that the published ratios imply."""
    rows = [m.rows for m in reader.members("constants", kind="replay")]
    holds = [implied(paper, fixed) for paper in PAPER.values() for fixed in FIXED_MS]
    fitting = [one for one in holds if verdict(one) == "yes"]
    least = min(one.misses for one in holds) / REAL_MISSES
    said = (
        f"{len(fitting)} of {len(holds)} lines satisfy all published ratios and an LRU cache over "
        f"real routes; the misses implied are at least {least:.1f} times the real trace's. The "
        "paper names no eviction rule, and its clock need not be linear."
    )
    stamp = reader.stamp(
        rows, "constants", extra=["Arithmetic: no run goes into this table.", said]
    )
    return Table("table_implied", "What the paper's ratios imply", {"": implied_sheet()}, stamp)
