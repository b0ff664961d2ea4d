"""Exact match of GSM8K's final numbers, by value, as a module of `evaluate`."""

from __future__ import annotations

import datasets
import evaluate

from specfit.data.answers import marked_number, stated_number

DESCRIPTION = """Share of predictions whose final number equals the one after the reference's ####.
In a prediction the number stands after the last #### as well; with anywhere=True, else in the last
\\boxed{}, else it is the last number of the last line."""


class Gsm8kAnswer(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description="predictions, references: lists of texts, of equal length",
            features=datasets.Features({"predictions": text, "references": text}),
        )

    def _compute(
        self, predictions: list[str], references: list[str], anywhere: bool = False
    ) -> dict[str, float]:
        read = stated_number if anywhere else marked_number
        pairs = zip(predictions, references, strict=True)
        equal = [read(output) == marked_number(reference) for output, reference in pairs]
        return {"exact_match": sum(equal) / len(equal)}
