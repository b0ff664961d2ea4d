"""Seeded reports whose highlights can be written from the text.

A report is a lead, three key facts, and details in a random order. Sentences may end in a source
("the police said"). The highlights repeat the lead and the key facts in the order of the text,
without what was added to them. Row `(split, index)` is a pure function of its address; kinds of
event take turns, and `held_out` has kinds that no other split shows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from specfit.data.synthetic.grammar import FOLDER, expand, seeded, sentence, word_lists

SOURCES = (
    "the police said",
    "officials said",
    "{first} {surname} said",
    "a {job} said",
    "the mayor said on {day}",
    "as was said on {day}",
    "local papers said",
)
QUOTES = (
    '"[we are very tired|this was a hard week|we hope for the best]," {say} {first} {surname}',
    '"[I could not believe it|no one had told us|we will talk of this for years]," {say} a {job}',
    '"[it is good news|it is bad news|it is a lesson] for {town}," {say} {first} {surname}',
)
NUMBERS = {"a": (2, 9), "b": (2, 90), "n": (3, 95)}


@dataclass(frozen=True)
class Event:
    name: str
    lead: str
    key_facts: tuple[str, ...]
    details: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """`highlights` are four sentences, one a line, each found in the article."""

    article: str
    highlights: str
    event: str


@cache
def events(split: str) -> list[Event]:
    name = "reports_held_out.txt" if split == "held_out" else "reports.txt"
    text = (FOLDER / "templates" / name).read_text(encoding="utf-8")
    return [_event(block.strip().splitlines()) for block in text.split("@ ") if block.strip()]


def _event(lines: list[str]) -> Event:
    kinds = {kind: tuple(line[2:] for line in lines[1:] if line[0] == kind) for kind in "LKD"}
    return Event(lines[0].strip(), kinds["L"][0], kinds["K"], kinds["D"])


def report(split: str, index: int) -> Report:
    """Row `index` of the split; no other row is involved."""
    rng = seeded("reports", split, index)
    listed = events(split)
    turn, place = divmod(index, len(listed))
    order = list(range(len(listed)))
    seeded("reports/order", split, turn).shuffle(order)
    event = listed[order[place]]
    slots = {name: str(rng.randint(*bounds)) for name, bounds in NUMBERS.items()}
    words = word_lists()

    def write(text: str) -> str:
        return expand(text, slots, words, rng)

    told = [(write(event.lead), True)]
    body = [(text, True) for text in event.key_facts]
    body += [(text, False) for text in rng.sample(event.details, rng.randint(2, 3))]
    if rng.random() < 0.6:
        body.append((rng.choice(QUOTES), False))
    rng.shuffle(body)
    told += [(write(text), key) for text, key in body]
    article = " ".join(sentence(text + _source(text, write, rng) + ".") for text, _ in told)
    highlights = "\n".join(sentence(text + ".") for text, key in told if key)
    return Report(article, highlights, event.name)


def _source(text: str, write: Callable[[str], str], rng: random.Random) -> str:
    """What is added to a sentence: nothing half of the time, and never to a quote."""
    if text.startswith('"') or rng.random() < 0.5:
        return ""
    return ", " + write(rng.choice(SOURCES))
