"""A table as data, and its spellings: CSV (full numbers), Markdown, LaTeX (booktabs), plain values.

Text in, text out: the same rows give the same bytes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specfit.report.intervals import Interval
from specfit.report.run_summary import number

DASH = "-"


@dataclass(frozen=True)
class Cell:
    """`text` is what a person reads; a number also has its value and, where known, its bounds."""

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    is_number: bool = True


Entry = Cell | str | int | None
Shown = Callable[[float], str]


@dataclass(frozen=True)
class Sheet:
    """Rows of one table. None is a dash, never a 0."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            assert len(row) == len(self.columns), f"{self.title}: {row} for {self.columns}"

    def cells(self) -> list[list[Cell]]:
        return [[cell(entry) for entry in row] for row in self.rows]


def cell(entry: Entry) -> Cell:
    if isinstance(entry, Cell):
        return entry
    if entry is None:
        return Cell(DASH)
    if isinstance(entry, int):
        return Cell(str(entry), entry)
    return Cell(entry, is_number=False)


# -- numbers with their intervals ------------------------------------------------------------------


def plain(value: float) -> str:
    return number(float(value))


def factor(value: float) -> str:
    return f"{value:.2f}x"


def change(value: float) -> str:
    """1.216 as +21.6 %."""
    return f"{100 * (value - 1):+.1f} %"


def measured(interval: Interval | None, shown: Shown = plain) -> Cell:
    """A value and its 95 % interval, as 1.22 [1.15, 1.28]; no brackets without bounds."""
    if interval is None or interval.value is None:
        return Cell(DASH)
    text = shown(interval.value)
    if interval.low is not None and interval.high is not None and interval.low < interval.high:
        bounds = (shown(bound).removesuffix("x").removesuffix(" %") for bound in _bounds(interval))
        text += f" [{', '.join(bounds)}]"
    return Cell(text, interval.value, interval.low, interval.high)


def exact(value: float | None, shown: Shown = plain) -> Cell:
    """A number without an interval."""
    return Cell(DASH) if value is None else Cell(shown(value), float(value))


def _bounds(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None and interval.high is not None
    return interval.low, interval.high


# -- spellings -------------------------------------------------------------------------------------


def to_csv(sheet: Sheet) -> str:
    """One line per row; a column with intervals becomes three, and a text column stays one."""
    rows = sheet.cells()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(sheet.columns)
    header: list[str] = []
    filled: list[list[str]] = []
    for name, cells in zip(sheet.columns, columns, strict=True):
        numeric = any(c.value is not None for c in cells) and all(c.is_number for c in cells)
        if not numeric:
            header.append(name)
            filled.append([c.text for c in cells])
            continue
        parts = ["value"] if all(c.low is None for c in cells) else ["value", "low", "high"]
        header += [name if part == "value" else f"{name}, {part}" for part in parts]
        filled += [[_raw(getattr(c, part)) for c in cells] for part in parts]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([header, *zip(*filled, strict=True)])
    return out.getvalue()


def _raw(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def to_markdown(sheet: Sheet) -> str:
    rows = sheet.cells()
    rule = ["---:" if right else "---" for right in numeric(sheet)]
    body = [[c.text.replace("|", "\\|") for c in row] for row in rows]
    lines = ["| " + " | ".join(cells) + " |" for cells in [list(sheet.columns), rule, *body]]
    return "\n".join([f"**{sheet.title}**", "", *lines, *(["", sheet.note] if sheet.note else [])])


def to_latex(sheet: Sheet) -> str:
    """A tabular with booktabs rules; the caption is the caller's."""
    kinds = "".join("r" if right else "l" for right in numeric(sheet))
    body = [" & ".join(escape(c.text) for c in row) + r" \\" for row in sheet.cells()]
    lines = [
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        " & ".join(escape(name) for name in sheet.columns) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


def to_plain(sheet: Sheet) -> dict[str, Any]:
    """What a person reads, as plain values: for JSON, and for the report."""
    return {
        "title": sheet.title,
        "columns": list(sheet.columns),
        "numeric": list(numeric(sheet)),
        "rows": [[c.text for c in row] for row in sheet.cells()],
        "note": sheet.note,
    }


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def escape(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def numeric(sheet: Sheet) -> Sequence[bool]:
    """Columns of numbers stand to the right."""
    rows = sheet.cells()
    return [bool(rows) and all(row[i].is_number for row in rows) for i in range(len(sheet.columns))]
