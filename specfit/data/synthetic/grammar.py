"""A small text grammar: `[a|b]` picks an alternative, `{slot}` fills in a value or a random word.

A slot that ends in a digit (`{item1}`) remembers its word, so a text can refer to it again, and
two remembered words from one list differ. Word-list entries (`words.txt`) may contain brackets and
slots.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path

SPLITS = ("train", "development", "calibration", "evaluation", "held_out")
NAMES = {"surname": 120, "town": 120, "county": 30, "firm": 60}
"""How many of each kind there are: few enough that a small vocabulary has each as one token."""
FOLDER = Path(__file__).resolve().parent

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")
# "a hour" does not occur in the lists; "a unit", "a one-day" must stay.
_ARTICLE = re.compile(r"\b([Aa]) (?=(?!uni|use|eur|one\b|one-)[aeiouAEIOU]|8\b|8\d\b|11\b|18\b)")


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


def seeded(name: str, split: str, index: int) -> random.Random:
    """Random access: a row's generator depends on nothing but its own address."""
    digest = hashlib.blake2b(f"{name}/{split}/{index}".encode(), digest_size=8).digest()
    return random.Random(int.from_bytes(digest, "big"))


def expand(
    text: str, slots: dict[str, str], words: Mapping[str, list[str]], rng: random.Random
) -> str:
    """Expand until nothing is left to choose; `slots` gains the remembered words."""
    while "[" in text or "{" in text:
        text = _CHOICE.sub(lambda found: rng.choice(found[1].split("|")), text)
        if "[" not in text:
            text = _SLOT.sub(lambda found: _fill(found[1], slots, words, rng), text)
    return text


def _fill(
    key: str, slots: dict[str, str], words: Mapping[str, list[str]], rng: random.Random
) -> str:
    if key in slots:
        return slots[key]
    base = key.rstrip("0123456789")
    if base == key:
        return rng.choice(words[key])
    taken = {value for other, value in slots.items() if other.startswith(base)}
    value = rng.choice(words[base])
    while value in taken:
        value = rng.choice(words[base])
    slots[key] = expand(value, slots, words, rng)
    return slots[key]


def sentence(text: str) -> str:
    """Tidy an expanded sentence: spaces, a/an, capital first letter."""
    text = re.sub(r"\s+", " ", text).strip().replace(" ,", ",").replace(" .", ".")
    text = _ARTICLE.sub(r"\1n ", text)
    start = 1 if text[:1] == '"' else 0
    text = text[:start] + text[start : start + 1].upper() + text[start + 1 :]
    return re.sub(r"(?<=[a-z0-9][.?!] )[a-z]", lambda found: found[0].upper(), text)
