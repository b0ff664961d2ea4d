"""The number that a worked answer ends with."""

from __future__ import annotations

import re

_MARKED = re.compile(r"####\s*(-?[\d,]*\.?\d+)")
_BOXED = re.compile(r"\\boxed\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_THOUSANDS = re.compile(r"\{,\}|\\[,!]")  # as LaTeX writes 1{,}000 and 1\,000
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?|-?\.\d+")


def marked_number(text: str) -> float | None:
    """After the last ####, as GSM8K's own answers end."""
    return _last(_MARKED.findall(text))


def stated_number(text: str) -> float | None:
    """After the last ####, else in the last \\boxed{}, else the last of the last line: models that
    were not trained on GSM8K's form state their answer in one of these ways. A number further up is
    a step, which a text cut at its cap must not be credited with."""
    marked = marked_number(text)
    if marked is not None:
        return marked
    text = _THOUSANDS.sub("", text)
    stated = _BOXED.findall(text) or text.rstrip().splitlines() or [""]
    return _last(_NUMBER.findall(stated[-1]))


def _last(numbers: list[str]) -> float | None:
    return float(numbers[-1].replace(",", "")) if numbers else None
