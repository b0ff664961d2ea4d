"""The number that a worked answer ends with, by value.

A number is read whole or not at all: what stands there as 1,2 or 3:2 or 1.2.3 is no number, and a
piece of it would be another one. Known are a sign in any of its characters, separators between
groups of three, decimals, exponents, and fractions (7/2, 1 1/2, \\frac{7}{2}, ½).
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

MINUS = "-\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d"
"""Hyphen-minus, minus, hyphens, figure and en dash, small and full-width."""
SLASH = "/\u2044\u2215"
SEPARATORS = ",'\u2019\u00a0\u2009\u202f"  # comma, apostrophes, spaces that do not break

_HALVES = "".join(chr(c) for c in range(0xBC, 0x2190) if unicodedata.category(chr(c)) == "No")
_VULGAR = "".join(c for c in _HALVES if "VULGAR FRACTION" in unicodedata.name(c, ""))
_MARK = re.compile(r"####[^\S\n]*")
_BOXED = re.compile(r"\\boxed\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_THOUSANDS = re.compile(r"\{,\}|\\[,!]")  # as LaTeX writes 1{,}000 and 1\,000
_LATEX = re.compile(r"(\d?)\s*\\[dt]?frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}")
_SPACED_SLASH = re.compile(rf"(?<=\d) ?[{SLASH}] ?(?=\d)")
_SPACED_GROUPS = re.compile(r"(?<![\w.,])\d{1,3}(?: \d{3})+(?![\w,])")
_SPACED_SIGN = re.compile(rf"[{re.escape(MINUS)}] +(?=[\d.$€£¥₹])")
# Everything that may belong to one number: digits, and what joins digits to digits.
_JOINED = rf"[{re.escape(SEPARATORS)}.:^{re.escape(SLASH)}{re.escape(MINUS)}]"
_DIGITS = rf"(?:\d|(?<!\d)\.\d)(?:\d|[eE][{re.escape(MINUS)}+]?\d|{_JOINED}+(?=\d))*"
_SIGN = (
    rf"(?:(?<![\w)\]]) *[{re.escape(MINUS)}+\uff0b])?[$€£¥₹]?(?:(?<=[$€£¥₹])[{re.escape(MINUS)}])?"
)
_CANDIDATE = re.compile(
    rf"{_SIGN}(?:\d+\s+(?=\d+[{SLASH}]\d)(?:{_DIGITS})|(?:{_DIGITS})?\s?[{_VULGAR}]|{_DIGITS})"
)
_GROUPS = "|".join(rf"\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+" for mark in SEPARATORS)
_DECIMAL = re.compile(rf"(?:(?:{_GROUPS}|\d+)(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{{1,3}})?")
_MIXED = re.compile(rf"(?:(\d+)\s+)?(\S+?)[{SLASH}](\S+)")
_WITH_VULGAR = re.compile(rf"(\d*)\s?([{_VULGAR}])")


def marked_number(text: str) -> Fraction | None:
    """After the last ####, as GSM8K's own answers end."""
    found = _marked(text)
    return None if found is None else value_of(found)


def stated_number(text: str) -> Fraction | None:
    """After the last ####, else in the last \\boxed{}, else the last of the last line: models that
    were not trained on GSM8K's form state their answer in one of these ways. A number further up is
    a step, which a text cut at its cap must not be credited with."""
    marked = _marked(text)
    if marked is not None:
        return value_of(marked)
    text = _plain(text)
    stated = _BOXED.findall(text) or text.rstrip().splitlines() or [""]
    found = [match.group() for match in _CANDIDATE.finditer(stated[-1])]
    return value_of(found[-1]) if found else None


def value_of(text: str) -> Fraction | None:
    """Of one number's text; None where it is none that is known."""
    text = re.sub(r"[$€£¥₹+\uff0b]", "", text.strip(), count=1).strip()
    sign = -1 if text[:1] in MINUS and text[:1] else 1
    text = (text[1:] if sign < 0 else text).lstrip("$€£¥₹ ")
    vulgar = _WITH_VULGAR.fullmatch(text)
    if vulgar:
        part = Fraction(unicodedata.numeric(vulgar[2])).limit_denominator(100)
        return sign * (int(vulgar[1] or 0) + part)
    mixed = _MIXED.fullmatch(text)
    if mixed:
        whole, above, below = mixed[1], _decimal(mixed[2]), _decimal(mixed[3])
        if above is None or not below:
            return None
        return sign * (int(whole or 0) + above / below)
    number = _decimal(text)
    return None if number is None else sign * number


def _decimal(text: str) -> Fraction | None:
    text = re.sub(rf"(?<=[eE])[{MINUS}]", "-", text)
    if not _DECIMAL.fullmatch(text):
        return None
    digits = re.sub(rf"[{re.escape(SEPARATORS)}]", "", text)
    return Fraction("0" + digits)


def _marked(text: str) -> str | None:
    """What stands as a number after the last #### that one follows."""
    text = _plain(text)
    found = None
    for mark in _MARK.finditer(text):
        after = _SPACED_SIGN.sub("-", text[mark.end() : mark.end() + 80], count=1)
        number = _CANDIDATE.match(after)
        found = number.group() if number else found
    return found


def _plain(text: str) -> str:
    """LaTeX's thousands and fractions, and spaces inside a number, as plain text has them."""
    text = _LATEX.sub(lambda m: f"{m[1]}{' ' if m[1] else ''}{m[2]}/{m[3]}", text)
    text = _SPACED_SLASH.sub("/", _THOUSANDS.sub("", text))
    return _SPACED_GROUPS.sub(lambda m: m.group().replace(" ", ""), text)
