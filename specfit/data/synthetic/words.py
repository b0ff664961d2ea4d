"""The word lists of `words.txt`, as the grammar reads them."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


@cache
def word_lists() -> dict[str, list[str]]:
    """Name -> words; surnames, towns, counties and firms are products of two lists."""
    lists: dict[str, list[str]] = {}
    text = (FOLDER / "words.txt").read_text(encoding="utf-8").replace("\n  ", " ")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, words = line.partition(":")
            lists[name] = [word.strip() for word in words.split(",")]
    for name in ("surname", "town", "county", "firm"):
        heads, tails = lists.pop(f"{name}_head"), lists.pop(f"{name}_tail")
        lists[name] = [head + tail for head, tail in product(heads, tails)]
    lists["first"] = lists["women"] + lists["men"]
    return lists
