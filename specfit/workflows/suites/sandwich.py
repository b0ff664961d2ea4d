"""Further tries of blocks whose baselines were not equally fast (report/sandwich.py).

They are planned once the rows that ask for them are there, so planning again finds them. A try has
repeats of its own: 2 and 3 the second, 4 and 5 the third.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Protocol, TypeVar

from specfit.report.sandwich import TRIES, WITHIN, apart, label_of_try, split_try
from specfit.storage.rows import load_run
from specfit.storage.suite import Cell
from specfit.workflows.suites.files import Group, joined, key_of


class Planned(Protocol):
    """What is read of a planned cell."""

    @property
    def cell(self) -> Cell: ...
    @property
    def group(self) -> Group: ...
    @property
    def overrides(self) -> tuple[str, ...]: ...


One = TypeVar("One", bound=Planned)


def with_tries(
    planned: Iterable[One],
    names: tuple[str, str],
    results: Path,
    plan: Callable[[One, str, list[str]], One],
) -> list[One]:
    """Every block followed by its further tries. `plan` makes a cell like another one with this
    label and override line."""
    found: list[One] = []
    for _, cells in groupby(planned, key=block_of):
        block = list(cells)
        found += block
        latest = block
        for number in range(1, TRIES):
            if not _is_unsettled(latest, names, results):
                break
            latest = [_again(one, number, plan) for one in block]
            found += latest
    return found


def block_of(one: Planned) -> tuple[int, str, int]:
    """What cells of one try of one block have in common."""
    label, number = split_try(one.cell.label)
    return id(one.group), label.rpartition("/")[0], number


def _again(one: One, number: int, plan: Callable[[One, str, list[str]], One]) -> One:
    said = (item.partition("=")[2] for item in one.overrides if key_of(item) == "repeat")
    repeat = int(next(said, 0)) + 2 * number
    line = joined(list(one.overrides), [f"repeat={repeat}"])
    return plan(one, label_of_try(one.cell.label, number), line)


def _is_unsettled(block: Sequence[Planned], names: tuple[str, str], results: Path) -> bool:
    """Whether both baselines are there and differ by too much."""
    named = {one.cell.label.split("/")[_depth(block)]: one.cell for one in block}
    if block[0].cell.kind != "run" or not {*names} <= {*named}:
        return False
    pair = [named[name] for name in names]
    if not all(cell.is_there(results) for cell in pair):
        return False
    first, last = (load_run(cell.path(results)) for cell in pair)
    return apart(first, last) > WITHIN


def _depth(block: Sequence[Planned]) -> int:
    """Which name of a label is the last axis's."""
    return len(block[0].group.axes) - 1
