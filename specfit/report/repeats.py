"""Run-to-run spread: what repeats of one cell differ by, shown beside the interval over requests.

The interval says what other requests would have given, the spread what the same requests give
again. Modelled repeats are equal by construction, so their spread is 0 and says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specfit.base.types import SpecfitError
from specfit.report.metrics import shared_requests
from specfit.storage.rows import RunRows


@dataclass(frozen=True)
class Spread:
    """Least, middle and greatest value over n repeats."""

    n: int
    low: float
    median: float
    high: float

    @property
    def relative(self) -> float | None:
        """Greatest minus least, over the median."""
        return (self.high - self.low) / self.median if self.median else None

    @property
    def note(self) -> str:
        """Beside a number: `3 repeats: 10.2-10.4`; nothing where there was one."""
        return f"{self.n} repeats: {self.low:#.3g}-{self.high:#.3g}" if self.n > 1 else ""


def spread(runs: Sequence[RunRows], statistic: Callable[[RunRows], float | None]) -> Spread | None:
    """Of a statistic over repeats of one cell; None where a repeat has nothing to divide by.

    Raises SpecfitError where the runs are not repeats: other requests, or twice the same repeat.
    """
    assert runs, "a cell has at least one repeat"
    for other in runs[1:]:
        shared_requests(runs[0], other)
    if len({run.info.repeat for run in runs}) != len(runs):
        raise SpecfitError(f"{runs[0].info.run_id} is counted twice; repeats have their own ids")
    values = [value for run in runs if (value := statistic(run)) is not None]
    if len(values) != len(runs):
        return None
    values.sort()
    middle, n = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2, len(values)
    return Spread(n, values[0], middle, values[-1])
