"""Which rows of a split are the questions of a smaller file: what `dataset.rows` is made of.

    python scripts/check/dataset_rows.py --split gsm8k/test.jsonl --subset spec_bench/question.jsonl
    python scripts/check/dataset_rows.py --split test.jsonl --subset sum.jsonl --field article

Texts are compared by their letters and digits alone: copies differ in spaces and quotes. A line of
the subset that is not in the split is left out and counted (Spec-Bench's file holds other tasks).
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from specfit.base.entry import reading, script
from specfit.base.types import SpecfitError


def rows_of(split: Sequence[str], subset: Sequence[str]) -> list[int]:
    """Row numbers in the split, 0-based, in the subset's order. Raises SpecfitError for a text that
    the split holds twice."""
    where: dict[str, list[int]] = {}
    for row, text in enumerate(split):
        where.setdefault(letters(text), []).append(row)
    found = [where[letters(text)] for text in subset if letters(text) in where]
    twice = [rows for rows in found if len(rows) > 1]
    if twice:
        raise SpecfitError(f"the split holds one text in rows {twice[0]}; its row is not known")
    return [row for (row,) in found]


def letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def texts(path: Path, field: str) -> Iterator[str]:
    with reading(path, f"JSON lines with the field {field}"):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line.strip():
                yield text_of(json.loads(line), field)


def text_of(row: dict[str, Any], field: str) -> str:
    """The field, or the first turn of Spec-Bench's own format without its instruction."""
    return str(row[field] if field in row else row["turns"][0]).removeprefix("Summarize: ")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", type=Path, required=True, help="JSON lines, the whole split")
    parser.add_argument("--subset", type=Path, required=True, help="JSON lines, the chosen rows")
    parser.add_argument("--field", default="question")
    options = parser.parse_args()
    split, subset = (list(texts(path, options.field)) for path in (options.split, options.subset))
    rows = rows_of(split, subset)
    print(
        f"{len(rows)} of {len(subset)} lines are in the split ({len(split)} rows)", file=sys.stderr
    )
    print("rows: [")
    print(textwrap.fill(", ".join(map(str, rows)), 96, initial_indent="  ", subsequent_indent="  "))
    print("]")
    return 0


if __name__ == "__main__":
    sys.exit(script(main))
