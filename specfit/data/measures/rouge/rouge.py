"""ROUGE-1, -2, -L and -Lsum with Porter's stemmer, always, as a module of `evaluate`."""

from __future__ import annotations

import re

import datasets
import evaluate
from rouge_score import rouge_scorer

DESCRIPTION = """Mean F1 of ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum over pairs of texts, words
stemmed. A sentence ends with its line, or at . ! or ? before a space: references come with one
highlight a line or as one line, and both give the same rougeLsum."""

MEASURES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


class Rouge(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description="predictions, references: lists of texts, of equal length",
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        scorer = rouge_scorer.RougeScorer(MEASURES, use_stemmer=True)
        pairs = zip(predictions, references, strict=True)
        found = [scorer.score(lines(reference), lines(output)) for output, reference in pairs]
        return {name: sum(one[name].fmeasure for one in found) / len(found) for name in MEASURES}


def lines(text: str) -> str:
    """One sentence a line, which is where rougeLsum reads sentences from; other measures see only
    words."""
    return "\n".join(sentence for sentence in SENTENCE_END.split(text) if sentence.strip())
