"""Seeded word problems in GSM8K's form, with arithmetic that a 14 M model can learn.

Row `(split, index)` is a pure function of its address. All splits but `held_out` draw from the same
families (templates/word_problems.txt) with numbers, names and wordings of their own; `held_out`
has families that no other split shows. Families take turns, so every 28 rows hold each once.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache

from specfit.data.synthetic.grammar import FOLDER, expand, seeded, sentence, word_lists
from specfit.data.synthetic.problem_template import Template, parse

OPENINGS = (
    "{N} lives in {town}.",
    "{N} and {M} [live|meet] in {town}.",
    "{day} is the favorite day of {N}.",
    "this {day}, {N} is near the {place}.",
)


@dataclass(frozen=True)
class WordProblem:
    """`answer` is a step a line, then a line `#### N`."""

    question: str
    answer: str
    family: str


@cache
def families(split: str) -> list[Template]:
    name = "word_problems_held_out.txt" if split == "held_out" else "word_problems.txt"
    return parse((FOLDER / "templates" / name).read_text(encoding="utf-8"))


def word_problem(split: str, index: int, annotated: bool = False) -> WordProblem:
    """Row `index` of the split; `annotated` writes GSM8K's calculator notes, `<<6*4=24>>`."""
    rng = seeded("word_problems", split, index)
    listed = families(split)
    turn, place = divmod(index, len(listed))
    order = list(range(len(listed)))
    seeded("word_problems/order", split, turn).shuffle(order)
    template = listed[order[place]]
    numbers = template.draw(rng)
    slots = _people(rng) | {key: str(value) for key, value in numbers.items()}
    story = template.ordered_story(rng)
    if rng.random() < 0.3:
        story.insert(0, rng.choice(OPENINGS))
    words = word_lists()
    question = " ".join(
        sentence(expand(text, slots, words, rng)) for text in [*story, template.question]
    )
    lines = []
    for step in template.steps:
        text = expand(
            step.text.replace("{=", "{_"),
            slots | _equation(step.name, step.expression, numbers, annotated),
            words,
            rng,
        )
        lines.append(sentence(text))
    return WordProblem(
        question,
        "\n".join([*lines, f"#### {numbers[template.steps[-1].name]}"]),
        template.name,
    )


def _people(rng: random.Random) -> dict[str, str]:
    slots: dict[str, str] = {}
    for key in ("N", "M"):
        woman = rng.random() < 0.5
        name = rng.choice(word_lists()["women" if woman else "men"])
        slots[key] = name if name != slots.get("N") else ("Alex" if woman else "Robin")
        if key == "N":
            pronouns = ("she", "her", "her") if woman else ("he", "his", "him")
            slots |= dict(zip(("he", "his", "him"), pronouns, strict=True))
    return slots


def _equation(
    name: str, expression: str, numbers: dict[str, int], annotated: bool
) -> dict[str, str]:
    """`{_}` is the equation, `{_d}` the same in dollars."""
    shown = re.sub(r"[a-z]\w*", lambda found: str(numbers[found[0]]), expression)
    left, value = re.sub(r"([-+*/])", r" \1 ", shown), numbers[name]
    if annotated:
        note = f"<<{shown}={value}>>"
        return {"_": f"{left} = {note}{value}", "_d": f"{left} = ${note}{value}"}
    return {"_": f"{left} = {value}", "_d": f"{left} = ${value}"}
