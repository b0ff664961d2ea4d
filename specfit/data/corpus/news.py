"""Seeded news reports with highlights.

Row `(split, index)` is a pure function of its address. Event types (text/news_*.txt) are disjoint
between splits; the word lists, quotation frames and filler sentences are shared. Counting distinct
texts: the lead names one of 1,980 towns and one person out of 190 first names and 2,250 surnames,
which alone is 8e8, and the report has at least two quotations from two more such people: far more
than 1e9 per split (`distinct_texts` is the bound).
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from specfit.data.corpus.event_type import EventType, parse
from specfit.data.corpus.grammar import SPLITS, Split, expand, seeded, sentence
from specfit.data.corpus.words import lines_of, news_words, text_of

EVENTS: dict[Split, list[EventType]] = {split: parse(text_of(f"news_{split}")) for split in SPLITS}
QUOTES, FILLER = lines_of("news_quotes"), lines_of("news_filler")
NEWS_WORDS = news_words()
FIRST_FRAMES = (
    '"{q}," {say} {P}, {role}.',
    '"{q}," {P}, {role}, said [on {day}|in an interview|at the {place}|by phone].',
    '{P}, {role}, {say}: "{q}."',
    "according to {P}, {role}, {q0}.",
)
LATER_FRAMES = (
    '"{q}," {say} {last}.',
    '"{q}," {last} [went on|continued|said later].',
    "{last} [also said|added|believes] that {q0}.",
)
_REMEMBERED = re.compile(r"\{([a-z]+\d)\}")
_FIRST_PERSON = re.compile(r"\b(I|my|me|we|our|us|you)\b")
WORDS_AT_LEAST, WORDS_AT_MOST = 135, 250
RETOLD_SHARE = 0.3
"""Reports whose highlights are reworded. The others quote lead and facts, as most highlights of
real news stay close to the first sentences; what an unseen event type shares with the seen ones is
that its highlights can be found in its article."""


@dataclass(frozen=True)
class Report:
    """`highlights` are 2-4 sentences, one a line, restating facts of the article."""

    article: str
    highlights: str


def report(split: Split, index: int) -> Report:
    """Row `index` of the split; no other row is involved."""
    rng = seeded("embedded_news", split, index)
    event = rng.choice(EVENTS[split])
    slots = _facts(event, rng)
    # Facts start with "it" or "they", so they stay right behind the lead and in order.
    opening = [_write(text, slots, rng) for text in [rng.choice(event.leads), *event.facts]]
    article = _article(event, opening, slots, rng)
    retold = rng.random() < RETOLD_SHARE
    lines = _retold(event, slots, rng) if retold else opening
    count = min(rng.randint(2, 4), len(lines))
    chosen = [0, *sorted(rng.sample(range(1, len(lines)), count - 1))]
    return Report(article, "\n".join(lines[position] for position in chosen))


def _retold(event: EventType, slots: dict[str, str], rng: random.Random) -> list[str]:
    """The event's own highlights; one may only name what the article has named."""
    usable = [text for text in event.highlights if set(_REMEMBERED.findall(text)) <= set(slots)]
    return [_write(text, slots, rng) for text in usable]


def _facts(event: EventType, rng: random.Random) -> dict[str, str]:
    slots: dict[str, str] = {}
    for name, low, high, step in event.numbers:
        slots[name] = f"{rng.randrange(low, high + 1, step):,}"
    return slots


def _write(text: str, slots: dict[str, str], rng: random.Random) -> str:
    return sentence(expand(text, slots, NEWS_WORDS, rng))


def _article(
    event: EventType, opening: list[str], slots: dict[str, str], rng: random.Random
) -> str:
    """The lead, every fact, quotations, and as much background as the drawn length asks for."""
    quotations = _quotations(event, slots, rng)
    body = quotations.copy()
    closing = _write(rng.choice(event.closings), slots, rng)
    budget = rng.randint(WORDS_AT_LEAST, WORDS_AT_MOST)
    details = rng.sample(event.details, len(event.details))
    for text in details + rng.sample(FILLER, len(FILLER)):
        written = _write(text, slots, rng)
        if len(" ".join([*opening, *body, written, closing]).split()) > budget:
            break
        body.insert(rng.randint(0, len(body)), written)
    return " ".join([*opening, *body, closing])


def _quotations(event: EventType, slots: dict[str, str], rng: random.Random) -> list[str]:
    """Two speakers; a paragraph is one speaker, who may speak a second time by surname."""
    said = rng.sample(event.quotes, len(event.quotes)) + rng.sample(QUOTES, 4)
    first = said[: rng.randint(1, 2)]
    rest = said[len(event.quotes) :]
    if len(first) == 1:
        rest = said[1:]
    second = rest[: rng.randint(1, 2)]
    roles = rng.sample(event.roles, 2)
    return [
        _speaker(role, texts, slots, rng)
        for role, texts in zip(roles, (first, second), strict=True)
    ]


def _speaker(role: str, texts: list[str], slots: dict[str, str], rng: random.Random) -> str:
    last = rng.choice(NEWS_WORDS["surname"])
    person = {"P": f"{rng.choice(NEWS_WORDS['first'])} {last}", "last": last}
    person["role"] = expand(role, slots, NEWS_WORDS, rng)
    lines = []
    for position, text in enumerate(texts):
        spoken = expand(text, slots, NEWS_WORDS, rng)
        frames = LATER_FRAMES if position else FIRST_FRAMES
        # Reported speech cannot keep the first person.
        frame = rng.choice(frames[:-1] if _FIRST_PERSON.search(spoken) else frames)
        quote = {"q": sentence(spoken), "q0": spoken}
        lines.append(sentence(expand(frame, slots | person | quote, NEWS_WORDS, rng)))
    return " ".join(lines)


def distinct_texts(split: Split) -> float:
    """Lower bound: the towns, and two quoted people by name, in one event type of the split."""
    assert EVENTS[split]
    people = len(set(NEWS_WORDS["first"])) * len(set(NEWS_WORDS["surname"]))
    return float(len(set(NEWS_WORDS["town"])) * people**2)
