"""The texts and word lists of the generators, from the files in `text/`."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

TEXT = Path(__file__).parent / "text"


def text_of(name: str) -> str:
    return (TEXT / f"{name}.txt").read_text(encoding="utf-8")


def lines_of(name: str) -> tuple[str, ...]:
    return tuple(text_of(name).splitlines())


def _lists(name: str) -> dict[str, list[str]]:
    """`key: word, word`; a line that starts with two spaces continues the one before."""
    entries = (line.partition(":") for line in text_of(name).replace("\n  ", " ").splitlines()[1:])
    return {key: [word.strip() for word in words.split(",")] for key, _, words in entries}


@cache
def shared_words() -> dict[str, list[str]]:
    """Names of people and towns, days and months."""
    lists = _lists("words")
    for name in ("surname", "town"):
        lists[name] = [a + b for a, b in product(lists[f"{name}_head"], lists[f"{name}_tail"])]
    return lists


@cache
def problem_words() -> dict[str, list[str]]:
    return {key: shared_words()[key] for key in ("town", "day", "month")} | _lists("problem_words")


@cache
def news_words() -> dict[str, list[str]]:
    shared, own = shared_words(), _lists("news_words")
    firms = product(own["firm_head"], own["firm_tail"], own["firm_kind"])
    built = {
        "first": shared["women"] + shared["men"],
        "firm": [f"{a}{b} {kind}" for a, b, kind in firms],
        "county": [a + b for a, b in product(own["county_head"], own["county_tail"])],
    }
    return {key: shared[key] for key in ("town", "day", "month", "surname")} | built | own
