"""Scores of one finished request, off the clock. Each is a local module of `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from specfit.base.types import RequestError, Score, SpecfitError
from specfit.data.answers import marked_number

ROUGE_SEES = 0.9
"""Least share of a reference's letters that rouge-score's tokeniser must see; it drops all others,
so that equal Russian texts score 0."""

MEASURES = Path(__file__).parent / "measures"


@dataclass(frozen=True)
class Scorer:
    """One output against one reference by a module in `measures/`; higher is better."""

    name: str
    module: str
    value: str  # which of the module's measures is the score
    check: Callable[[str], None]  # raises RequestError for a reference that can score nothing
    needs_end: bool  # whether an answer that was cut at its cap is none
    note: str  # for a person: what is compared, and every choice that is fixed
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, output: str, reference: str, stop_reason: str | None = None) -> Score:
        """`stop_reason`: why decoding ended. A text cut at its cap ends with whatever number stood
        there. No score where the reference can score nothing."""
        try:
            self.check(reference)
        except RequestError:
            return Score()
        if self.needs_end and stop_reason == "length":
            return Score(0.0)
        pair = {"predictions": [output], "references": [reference]}
        found = _module(self.module).compute(**pair, **self.settings)
        rouge = {name.lower(): found[name] for name in found if name.startswith("rouge")}
        return Score(found[self.value], **rouge)


@cache
def _module(name: str) -> Any:
    """Loaded on first use, once: importing `evaluate` takes seconds."""
    import evaluate

    return evaluate.load(str(MEASURES / name), keep_in_memory=True)  # else it writes files


def check_marked(reference: str) -> None:
    if marked_number(reference) is None:
        raise RequestError("a GSM8K reference needs a final line '#### <number>'")


def check_text(reference: str) -> None:
    if not reference.strip():
        raise RequestError("the reference is empty, so nothing can be compared with it")
    letters = [letter for letter in reference if letter.isalnum()]
    seen = sum(letter.isascii() for letter in letters)
    if seen < ROUGE_SEES * len(letters) or not seen:
        raise RequestError(
            f"ROUGE's tokeniser reads a to z and digits, {seen} of the reference's {len(letters)} "
            "letters; use dataset.scorer=null for this language"
        )


SCORERS = {
    scorer.name: scorer
    for scorer in (
        Scorer(
            "gsm8k_exact_match",
            "gsm8k_answer",
            "exact_match",
            check_marked,
            True,
            "1 where the number after the last #### equals the reference's, else 0; an "
            "answer cut at its cap scores 0",
        ),
        Scorer(
            "gsm8k_stated_answer",
            "gsm8k_answer",
            "exact_match",
            check_marked,
            True,
            "1 where the number after the last ####, else in the last \\boxed{}, else the last of "
            "the last line equals the reference's, else 0; an answer cut at its cap scores 0",
            {"anywhere": True},
        ),
        Scorer(
            "rouge_l",
            "rouge",
            "rougeL",
            check_text,
            False,
            "F1 of ROUGE-L, with ROUGE-1, -2 and -Lsum beside it; Porter stemming on, a sentence "
            "ends with its line or at . ! ?",
        ),
    )
}


def scorer_named(name: str | None) -> Scorer | None:
    if name is None:
        return None
    if name not in SCORERS:
        raise SpecfitError(f"dataset.scorer is {name!r}; use one of {', '.join(SCORERS)} or null")
    return SCORERS[name]
