"""Seeded grade-school word problems with step-by-step answers.

Row `(split, index)` is a pure function of its address. Every split has its own story templates
(text/word_problems_*.txt); only the word lists and the optional opening and aside sentences are
shared. Counting distinct texts: the opening sentence alone names one of 1,980 towns, 7 days, 11
kinds of weather in 3 wordings; two of 195 first names and the wordings of the story multiply that
to far more than 1e9 per split before a single number is drawn (`distinct_texts` is the bound).
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from specfit.data.corpus.grammar import SPLITS, Split, expand, seeded, sentence, variants
from specfit.data.corpus.problem_template import Template, parse
from specfit.data.corpus.words import problem_words, shared_words, text_of

TEMPLATES: dict[Split, list[Template]] = {
    split: parse(text_of(f"word_problems_{split}")) for split in SPLITS
}
MEN, WOMEN = shared_words()["men"], shared_words()["women"]
PROBLEM_WORDS = problem_words()
OPENINGS = (
    "it is a {weather} {day} in {town}.",
    "[one|on a] {weather} {day}, [the people of {town} are busy|everyone in {town} is outside].",
    "{N} lives in {town}[| with {his} family| near the {place}].",
    "{N} and {M} [grew up|live|met] in {town}.",
    "{day} is {his} favorite day of the week, and {N} is [up early|in a good mood|busy].",
    "{N} has [a big plan|a lot to do|some free time] this {day}.",
    "this {month}, {N} is staying [with {his} {relative}|in {town}|near the {place} in {town}].",
)
ASIDES = (
    "{N} is {aside} years old.",
    "{his} {relative} [lives|works] {aside} miles away[| in {town}].",
    "{N} also owns {aside} {color} {toy}, but [{he} keeps them at home|they do not count here].",
    "the {place} is {aside} minutes away [on foot|by bike|by bus].",
    "{M}, who is {aside}, [comes along|watches|helps for a while].",
    "{he} [wakes up|leaves home|arrives] at {clock} o'clock.",
    "{his} favorite color is {color}.",
    "{his} {relative} [thinks|says] this is a good idea.",
)
LEADS = {
    "first": ("", "", "", "first, ", "to begin, ", "we start here: ", "first of all, "),
    "middle": ("", "", "then ", "next, ", "so ", "after that, ", "this means "),
    "last": ("", "", "so ", "finally, ", "therefore, ", "thus, ", "in the end, "),
}
# A step that already opens with a connective or a time gets no lead in front of it.
_CONNECTED = re.compile(r"(so|then|that|now|in|at|after|once|with|for|together|altogether|each)\b")


@dataclass(frozen=True)
class WordProblem:
    """`answer` is GSM8K-shaped: annotated steps, then a line `#### N`."""

    question: str
    answer: str


def word_problem(split: Split, index: int) -> WordProblem:
    """Row `index` of the split; no other row is involved."""
    rng = seeded("embedded_gsm8k", split, index)
    template = rng.choice(TEMPLATES[split])
    numbers = template.draw(rng)
    slots = _people(rng) | {key: str(value) for key, value in numbers.items()}
    question = " ".join(_question(template, slots, rng))
    lines = _answer(template, numbers, slots, rng)
    return WordProblem(question, "\n".join(lines))


def _people(rng: random.Random) -> dict[str, str]:
    slots: dict[str, str] = {}
    for key, prefix in (("N", ""), ("M", "m")):
        woman = rng.random() < 0.5
        name = rng.choice(WOMEN if woman else MEN)
        slots[key] = name if name != slots.get("N") else ("Alex" if woman else "Robin")
        pronouns = ("she", "her", "her") if woman else ("he", "his", "him")
        slots |= dict(zip((prefix + "he", prefix + "his", prefix + "him"), pronouns, strict=True))
    return slots | {"aside": str(rng.randint(6, 58)), "clock": str(rng.randint(6, 11))}


def _question(template: Template, slots: dict[str, str], rng: random.Random) -> list[str]:
    story = template.ordered_story(rng)
    # The first story sentence introduces the people; asides come after it, never before.
    if rng.random() < 0.4:
        story.insert(0, rng.choice(OPENINGS))
    # An aside says "he" or gives an age: only where the story has named someone and no ages.
    plot = " ".join(template.story)
    if "{N}" in plot and "years old" not in plot and rng.random() < 0.25:
        story.insert(rng.randint(min(2, len(story)), len(story)), rng.choice(ASIDES))
    texts = [*story, template.question]
    return [sentence(expand(text, slots, PROBLEM_WORDS, rng)) for text in texts]


def _answer(
    template: Template, numbers: dict[str, int], slots: dict[str, str], rng: random.Random
) -> list[str]:
    spaced, labelled = rng.random() < 0.5, rng.random() < 0.5
    lines = []
    for position, step in enumerate(template.steps):
        where = "last" if position == len(template.steps) - 1 else "middle"
        lead = rng.choice(LEADS[where if position else "first"]) if labelled else ""
        shown = re.sub(r"[a-z]\w*", lambda found: str(numbers[found[0]]), step.expression)
        text = expand(
            step.text.replace("{=", "{_"),
            slots | _equation(step.name, shown, numbers, spaced),
            PROBLEM_WORDS,
            rng,
        )
        lines.append(sentence(text if _CONNECTED.match(text) else lead + text))
    return [*lines, f"#### {numbers[template.steps[-1].name]}"]


def _equation(name: str, shown: str, numbers: dict[str, int], spaced: bool) -> dict[str, str]:
    """`{_}` is the annotated equation, `{_d}` the same in dollars."""
    left = re.sub(r"([-+*/])", r" \1 ", shown) if spaced else shown
    value = numbers[name]
    note = f"<<{shown}={value}>>{value}"
    return {"_": f"{left} = {note}", "_d": f"{left} = ${note}"}


def distinct_texts(split: Split) -> float:
    """Lower bound: one opening, one aside, one name and the story's own wordings.

    Takes the least of the split's templates and ignores the story's numbers and the answer.
    """
    opening = variants(OPENINGS[0], PROBLEM_WORDS) * variants(ASIDES[3], PROBLEM_WORDS) * 53
    names = len(WOMEN) + len(MEN)
    return min(
        opening * names * variants(" ".join([*item.story, item.question]), PROBLEM_WORDS)
        for item in TEMPLATES[split]
    )
