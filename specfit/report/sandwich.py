"""Blocks of measured runs: a baseline, the others, and the baseline again (B1 / C / B2).

What the two baselines differ by, the machine did and no system. A block whose baselines differ by
more than `WITHIN` is run anew, at most `TRIES` times in all, and is unsettled if none was steady.
"""

from __future__ import annotations

from specfit.report.metrics import summarise
from specfit.storage.rows import RunRows

WITHIN = 0.05
TRIES = 4
_TRY = "try"


def apart(first: RunRows, last: RunRows) -> float:
    """What the decode speeds of two runs differ by, over their mean; infinite without a speed."""
    speeds = [summarise(run).tokens_per_second for run in (first, last)]
    known = [speed for speed in speeds if speed]
    if len(known) < 2:
        return float("inf")
    return 2 * abs(known[0] - known[1]) / sum(known)


def label_of_try(label: str, number: int) -> str:
    """Of a cell in the block's try `number`, counted from 0: "news/24/ar", "news/24/ar/try2"."""
    return label if number == 0 else f"{label}/{_TRY}{number + 1}"


def split_try(label: str) -> tuple[str, int]:
    """The cell's label in the first try, and the number of its try, from 0."""
    before, _, last = label.rpartition("/")
    number = last.removeprefix(_TRY)
    is_try = bool(before) and last.startswith(_TRY) and number.isdigit()
    return (before, int(number) - 1) if is_try else (label, 0)
