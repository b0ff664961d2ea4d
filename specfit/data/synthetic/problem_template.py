"""One story template of the word problems, and the plain-text form it is written in.

    @ name
    # a=2..9 b=10..90..10 t=a*b where t>50        numbers: range, range with step, or derived
    a story sentence; consecutive ones that start with "~ " may change places
    ? the question
    > x=a*b : a step's sentence, where {=} is the annotated equation and {=d} the same in dollars

A line that starts with two spaces continues the one before.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    name: str
    expression: str
    text: str


@dataclass(frozen=True)
class Template:
    name: str
    numbers: tuple[tuple[str, str], ...]
    condition: str
    story: tuple[str, ...]
    movable: tuple[bool, ...]
    question: str
    steps: tuple[Step, ...]

    def draw(self, rng: random.Random) -> dict[str, int]:
        """Draw numbers until every step is a whole number of at least 2 and the condition holds."""
        for _ in range(5000):
            values = self._attempt(rng)
            if values is not None:
                return values
        raise AssertionError(f"template {self.name}: no admissible numbers")

    def _attempt(self, rng: random.Random) -> dict[str, int] | None:
        values: dict[str, int] = {}
        for name, rule in self.numbers:
            values[name] = _number(rule, values, rng)
        for step in self.steps:
            result = _evaluate(step.expression, values)
            if result != int(result) or result < 2:
                return None
            values[step.name] = int(result)
        return values if _evaluate(self.condition, values) else None

    def ordered_story(self, rng: random.Random) -> list[str]:
        """The sentences, each run of movable ones in a random order."""
        result: list[str] = []
        run: list[str] = []
        for text, movable in [*zip(self.story, self.movable, strict=True), ("", False)]:
            if movable:
                run.append(text)
                continue
            rng.shuffle(run)
            result += [*run, text]
            run = []
        return result[:-1]


def _number(rule: str, values: dict[str, int], rng: random.Random) -> int:
    if ".." not in rule:
        return int(_evaluate(rule, values))
    low, high, *step = (int(part) for part in rule.split(".."))
    return rng.randrange(low, high + 1, *step)


def _evaluate(expression: str, values: dict[str, int]) -> float:
    # The expressions are this package's own template text, never input.
    return eval(expression, {"__builtins__": {}}, values)


def parse(text: str) -> list[Template]:
    """Templates of one block of text, in order."""
    joined = text.strip().replace("\n  ", " ")
    return [_template(block.strip().split("\n")) for block in joined.split("@ ") if block.strip()]


def _template(lines: list[str]) -> Template:
    name, head, *rest = (line.strip() for line in lines)
    rules, _, condition = head.removeprefix("# ").partition(" where ")
    numbers = tuple(tuple(rule.split("=", 1)) for rule in rules.split())
    story = [line for line in rest if line[0] not in "?>"]
    question = next(line[2:] for line in rest if line[0] == "?")
    return Template(
        name=name,
        numbers=numbers,  # type: ignore[arg-type]
        condition=condition or "True",
        story=tuple(line.removeprefix("~ ") for line in story),
        movable=tuple(line.startswith("~ ") for line in story),
        question=question,
        steps=tuple(_step(line) for line in rest if line[0] == ">"),
    )


def _step(line: str) -> Step:
    equation, text = line[2:].split(" : ", 1)
    name, expression = equation.split("=")
    return Step(name, expression, text)
