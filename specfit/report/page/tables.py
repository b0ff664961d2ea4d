"""A table of the index as HTML, in a box that scrolls by itself where it is wide."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from specfit.report.page.tags import Html, join, paragraph, tag, text
from specfit.report.verdict import WORDS

Shown = Mapping[str, Any]  # title, columns, numeric, rows, note: see sheet.to_plain
INTERVAL = re.compile(r"(?P<value>.+?) (?P<bounds>\[.*\])", re.DOTALL)


def table(sheet: Shown, name: str, heading: str = "h4") -> Html:
    """`name` is distinct on the page: the heading that names the table has it."""
    columns = zip(sheet["columns"], sheet["numeric"], strict=True)
    head = tag("tr", *(_head(*column) for column in columns))
    heads = header_columns(sheet["rows"])
    body = tag("tbody", *_lines(sheet, heads))
    kind = "pinned" if heads == 1 else ""
    element = tag("table", tag("thead", head), body, aria_labelledby=name, class_=kind)
    box = tag("div", element, class_="box", role="region", tabindex="0", aria_labelledby=name)
    note = paragraph(sheet["note"], class_="note") if sheet["note"] else Html("")
    return join(tag(heading, text(sheet["title"]), id=name), box, note)


def header_columns(rows: Sequence[Sequence[str]]) -> int:
    """1, or 2 where the first cell names a group of rows."""
    grouped = any(above[0] == below[0] for above, below in itertools.pairwise(rows))
    return 2 if grouped and len(rows[0]) > 2 else 1


def _lines(sheet: Shown, heads: int) -> list[Html]:
    lines, before = [], None
    for row in sheet["rows"]:
        cells = [
            _row_head(word, number) if at < heads else _cell(word, number)
            for at, (word, number) in enumerate(zip(row, sheet["numeric"], strict=True))
        ]
        starts_group = heads > 1 and not sheet["numeric"][0] and before not in (None, row[0])
        lines.append(tag("tr", *cells, **({"class_": "group"} if starts_group else {})))
        before = row[0]
    return lines


def _head(word: str, number: bool) -> Html:
    """A corner without a word heads nothing."""
    return tag("th", text(word), scope="col", **_side(number)) if word else tag("td")


def _row_head(word: str, number: bool) -> Html:
    return tag("th", text(word), scope="row", **_side(number))


def _side(number: bool) -> dict[str, str]:
    return {"class_": "number"} if number else {}


def _cell(word: str, number: bool) -> Html:
    """A number's interval stands below it; a verdict is marked as one."""
    if word in WORDS:
        return tag("td", tag("span", text(word), class_=f"verdict {word.replace(' ', '-')}"))
    found = INTERVAL.fullmatch(word) if number else None
    if found is None:
        return tag("td", text(word), **_side(number))
    bounds = tag("span", text(found["bounds"]), class_="bounds")
    return tag("td", text(found["value"]), Html(" "), bounds, class_="number")
