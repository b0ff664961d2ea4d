"""How far a headline rests on single requests: without degenerate outputs, and without any one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specfit.report.degenerate import degenerate_of
from specfit.report.intervals import Interval
from specfit.report.metrics import shared_requests
from specfit.report.quantities import QUANTITIES
from specfit.report.table_format import Cell, Entry, Sheet, factor, measured
from specfit.storage.rows import RunRows

COLUMNS = (
    "all requests",
    "without degenerate outputs",
    "degenerate",
    "leaving any one request out",
    "moved most by",
)
NOTE = (
    "Decode speed over that of the other system, paired by request. Degenerate: one n-gram is "
    "over half of the output, or the output reached its cap. Leaving one out: the lowest and the "
    "highest ratio without one request."
)


@dataclass(frozen=True)
class Robustness:
    """One ratio of decode speeds."""

    whole: Interval
    without: Interval  # degenerate outputs left out
    degenerate: int
    lowest: float | None  # with one request left out
    highest: float | None
    by: str | None  # the request whose absence moves the ratio most

    @property
    def span(self) -> str:
        if self.lowest is None or self.highest is None:
            return ""
        return f"{factor(self.lowest).removesuffix('x')} to {factor(self.highest)}"

    def entries(self) -> tuple[Entry, ...]:
        """COLUMNS."""
        without = measured(self.without, factor)
        n = f"{self.degenerate} of {self.whole.n}"
        span = Cell(self.span, is_number=False) if self.span else None
        return measured(self.whole, factor), without, n, span, self.by


def robustness(run: RunRows, base: RunRows) -> Robustness:
    """Degenerate in either run counts: greedy outputs part at ties alone."""
    speed = QUANTITIES["speed"]
    shared, _ = shared_requests(run, base)
    left_out = (degenerate_of(run) | degenerate_of(base)) & set(shared)
    whole = speed.ratio(run, base)
    without = speed.ratio(run, base, left_out) if left_out else whole
    lowest = highest = by = None
    if whole.value is not None and len(shared) > 1:
        found = speed.leaving_out(run, base)
        lowest, highest = min(found.values(), default=None), max(found.values(), default=None)
        by = max(found, key=lambda name: abs(found[name] - (whole.value or 0.0)), default=None)
    return Robustness(whole, without, len(left_out), lowest, highest, by)


def sheet(
    rows: Iterable[tuple[tuple[Entry, ...], RunRows, RunRows]], heads: tuple[str, ...]
) -> Sheet:
    """A row for each (what stands before it, run, base)."""
    found = tuple((*head, *robustness(run, base).entries()) for head, run, base in rows)
    title = "How far the headline rests on single requests"
    return Sheet(title, (*heads, *COLUMNS), found, NOTE)
