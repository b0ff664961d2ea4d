"""Many comparisons read at once: how many are clear of 1, and how many of those are by chance.

At 95 % each, one of twenty ratios of nothing is clear of 1. Benjamini and Hochberg's rule keeps as
many as it can while at most RATE of those kept are expected to be false.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from statistics import NormalDist

from specfit.report.intervals import Interval, Z
from specfit.report.table_format import Cell, Sheet

RATE = 0.05
"""Of the ratios that are called clear, the share expected to be by chance."""


def chance(ratio: Interval) -> float:
    """Two-sided p of a ratio of 1, normal on the log scale, by the bound on 1's side: below 0.05
    just where that bound leaves 1 out. 1 where there is no interval."""
    if not ratio.value or ratio.low is None or ratio.high is None or ratio.low <= 0:
        return 1.0
    bound = ratio.low if ratio.value > 1 else ratio.high
    deviation = abs(log(ratio.value) - log(bound)) / Z
    if deviation == 0:
        return 1.0 if ratio.value == 1 else 0.0
    return 2 * (1 - NormalDist().cdf(abs(log(ratio.value)) / deviation))


def discoveries(ratios: Sequence[Interval]) -> list[bool]:
    """Of each, whether it is clear of 1 at a false discovery rate of RATE (Benjamini-Hochberg)."""
    chances = [chance(one) for one in ratios]
    ordered, most = sorted(chances), len(chances)
    passing = [p for rank, p in enumerate(ordered, 1) if p <= RATE * rank / most]
    limit = max(passing, default=-1.0)
    return [p <= limit for p in chances]


def sentence(ratios: Sequence[Interval]) -> str:
    """Beneath a table of many ratios; empty where there are none."""
    carried = [one for one in ratios if one.low is not None]
    if not carried:
        return ""
    each = sum(chance(one) < RATE for one in carried)
    return (
        f"{len(carried)} ratios are read here at once: {each} are clear of 1 at 95 % each, "
        f"{sum(discoveries(carried))} at a false discovery rate of {100 * RATE:.0f} % "
        "(Benjamini-Hochberg)."
    )


def beneath(sheets: Iterable[Sheet]) -> list[str]:
    """`sentence` of every ratio with an interval in these sheets: a ratio is printed with an x or
    as a change in percent."""
    cells = [entry for sheet in sheets for row in sheet.rows for entry in row]
    ratios = [c for c in cells if isinstance(c, Cell) and c.low is not None and _is_ratio(c)]
    found = sentence([Interval(c.value, c.low, c.high, 0) for c in ratios])
    return [found] if found else []


def _is_ratio(cell: Cell) -> bool:
    head = cell.text.partition(" [")[0]
    return head.endswith("x") or (head.endswith("%") and head[0] in "+-")
