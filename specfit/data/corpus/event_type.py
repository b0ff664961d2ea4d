"""One kind of news event, and the plain-text form it is written in.

    @ name
    # n=5..90 m=100..900..50     numbers that facts and highlights may use
    L lead    F fact (always told)    D detail (told when there is room)
    Q what people say    R roles of speakers, separated by ;    X what happens next    S highlight

Highlights may only use what leads and facts say, as they are always told. A line that starts with
two spaces continues the one before. Slots with a digit are remembered through the whole report.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EventType:
    name: str
    numbers: tuple[tuple[str, int, int, int], ...]
    leads: list[str]
    facts: list[str]
    details: list[str]
    quotes: list[str]
    roles: list[str]
    closings: list[str]
    highlights: list[str]


def parse(text: str) -> list[EventType]:
    """Event types of one block of text, in order."""
    joined = text.strip().replace("\n  ", " ")
    return [_event(block.strip().split("\n")) for block in joined.split("@ ") if block.strip()]


def _event(lines: list[str]) -> EventType:
    kinds = {kind: [line[2:] for line in lines[2:] if line[0] == kind] for kind in "LFDQRXS"}
    return EventType(
        name=lines[0],
        numbers=tuple(_range(rule) for rule in lines[1].removeprefix("#").split()),
        leads=kinds["L"],
        facts=kinds["F"],
        details=kinds["D"],
        quotes=kinds["Q"],
        roles=[role.strip() for line in kinds["R"] for role in line.split(";")],
        closings=kinds["X"],
        highlights=kinds["S"],
    )


def _range(rule: str) -> tuple[str, int, int, int]:
    name, bounds = rule.split("=")
    low, high, *step = (int(part) for part in bounds.split(".."))
    return name, low, high, step[0] if step else 1
