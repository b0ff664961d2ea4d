"""The word lists of `words.txt`, as the grammar reads them."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

NAMES = {"surname": 120, "town": 120, "county": 30, "firm": 60}
"""How many of each kind there are: few enough that a small vocabulary has each as one token."""
FOLDER = Path(__file__).resolve().parent


@cache
def word_lists() -> dict[str, list[str]]:
    """Name -> words; names of people, towns, counties and firms are joined from two lists."""
    lists: dict[str, list[str]] = {}
    text = (FOLDER / "words.txt").read_text(encoding="utf-8").replace("\n  ", " ")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, words = line.partition(":")
            lists[name] = [word.strip() for word in words.split(",")]
    for name, size in NAMES.items():
        heads, tails = lists.pop(f"{name}_head"), lists.pop(f"{name}_tail")
        every = [head + tail for head, tail in product(heads, tails)]
        lists[name] = every[:: len(every) // size][:size]
    lists["first"] = lists["women"] + lists["men"]
    return lists
