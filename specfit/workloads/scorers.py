"""Scores of one finished request, off the clock. Higher is better; None where nothing compares."""

from __future__ import annotations

import re
from collections.abc import Callable

from specfit.core import RequestError, SpecfitError

Scorer = Callable[[str, str], float]

_FINAL = re.compile(r"####\s*(-?[\d,]*\.?\d+)")


def gsm8k_exact_match(output: str, reference: str) -> float:
    """1 if the number after the last #### equals the reference's, by value.

    Raises RequestError for a reference without one: it can score nothing.
    """
    wanted = _final_number(reference)
    if wanted is None:
        raise RequestError("a GSM8K reference needs a final line '#### <number>'")
    return float(_final_number(output) == wanted)


def _final_number(text: str) -> float | None:
    found = _FINAL.findall(text)
    return float(found[-1].replace(",", "")) if found else None


def rouge_l(output: str, reference: str) -> float:
    """ROUGE-L F1 with stemming, one text against one text."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    return float(scorer.score(reference, output)["rougeL"].fmeasure)


SCORERS: dict[str, Scorer] = {"gsm8k_exact_match": gsm8k_exact_match, "rouge_l": rouge_l}


def scorer_named(name: str | None) -> Scorer | None:
    if name is None:
        return None
    if name not in SCORERS:
        raise SpecfitError(f"dataset.scorer is {name!r}; use one of {', '.join(SCORERS)} or null")
    return SCORERS[name]
