"""Whether a run's scores say anything, and the control that they are read beside."""

from __future__ import annotations

from dataclasses import dataclass

from specfit.storage.rows import RunRows

NAMES = {
    "gsm8k_exact_match": "exact match",
    "gsm8k_stated_answer": "exact match",
    "rouge_l": "ROUGE-L",
}
GOALS = {"embedded_gsm8k": 0.8, "embedded_news": 0.6}
"""Workload -> the mean score below which the shipped pair's answers are too poor to speak of."""


@dataclass(frozen=True)
class Quality:
    """`control`: mean score of the same outputs against other requests' references; None in rows
    that were written before it was kept."""

    name: str
    mean: float
    control: float | None
    goal: float | None

    @property
    def is_meaningful(self) -> bool:
        return self.goal is None or self.mean >= self.goal

    @property
    def beside(self) -> str:
        """'; other requests' references score 0.02', or nothing."""
        if self.control is None:
            return ""
        return f"; against other requests' references {self.control:.2f}"


def quality_of(run: RunRows, scorer: str | None) -> Quality | None:
    """None where the run has no scores."""
    ok = run.requests[run.requests["status"] == "ok"]
    scores, controls = ok["score"].dropna(), ok["score_control"].dropna()
    if not len(scores):
        return None
    return Quality(
        NAMES.get(scorer or "", str(scorer)),
        float(scores.mean()),
        float(controls.mean()) if len(controls) else None,
        GOALS.get(run.info.dataset),
    )
