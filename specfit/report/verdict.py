"""What may be said of a figure of ours beside the paper's: these words and no others."""

from __future__ import annotations

from dataclasses import replace

from specfit.report.intervals import Interval
from specfit.report.paper_values import Claim
from specfit.storage.rows import RunRows

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
SAME, OTHER = "same direction", "other direction"
OPEN, UNTOLD = "open", "as the control"
NOT_COMPARABLE, FITTED, NOT_TESTED = "not comparable", "fitted", "not tested"
MEANING = {
    REPRODUCED: "the paper's model on the wall clock; our interval holds the paper's value",
    NOT_REPRODUCED: "the paper's model on the wall clock; our interval does not hold it",
    SAME: "another model or a modelled clock; our interval lies on the paper's side of 1, and "
    "that of AR + cache in SpecFit's place, where the claim is about SpecFit, does not",
    UNTOLD: "another model or a modelled clock; our interval lies on the paper's side of 1, and so "
    "does that of AR + cache in SpecFit's place: the claim does not tell them apart",
    OPEN: "another model or a modelled clock; our interval holds 1, or there is none, or the "
    "claim is about SpecFit and its control has not run",
    OTHER: "another model or a modelled clock; our interval lies on the other side of 1",
    NOT_COMPARABLE: "an absolute value of another model or of a modelled clock",
    FITTED: "a constant of the profile was chosen to give this value",
    NOT_TESTED: "has not run",
}
WORDS = tuple(MEANING)

PAPER_TARGETS = ("qwen3-30b-a3b",)


CONTROLS = {"specfit": "ar_cache", "specfit_uncached": "ar"}
"""Systems that never speculate: what they pass in SpecFit's place says nothing of SpecFit."""


def controlled(claim: Claim) -> Claim | None:
    """The claim with its control in SpecFit's place, on both sides of the ratio; None for a claim
    that is not a ratio, is not about SpecFit, or is against its control."""
    other = CONTROLS.get(claim.system)
    if other is None or claim.against in (None, other):
        return None
    against = claim.against or ""
    return replace(claim, system=other, against=CONTROLS.get(against, against))


def verdict(
    claim: Claim, ours: Interval | None, run: RunRows | None, control: Interval | None = None
) -> str:
    """`run` is the run that the claim is about; `control` the ratio of `controlled(claim)`, None
    where that has not run.

    Only the paper's own model, answering for itself on a wall clock, can reproduce: our interval
    then holds the paper's value. Anything else has at most a direction, that of a ratio whose
    interval is clear of 1; an absolute value of another model or of a modelled clock is not
    comparable.
    """
    if ours is None or ours.value is None or run is None:
        return NOT_TESTED
    if bool(run.requests["drafter_forced"].eq(True).any()):
        return NOT_COMPARABLE
    if run.info.model in PAPER_TARGETS and run.info.clock == "wall":
        return REPRODUCED if holds(ours, claim.value) else NOT_REPRODUCED
    if claim.fitted and run.info.clock == "modelled":
        return FITTED
    if claim.against is None:
        return NOT_COMPARABLE
    if not is_clear(ours):
        return OPEN
    if not passes(claim, ours):
        return OTHER
    if controlled(claim) is None:
        return SAME
    if control is None or control.value is None:
        return OPEN
    return UNTOLD if passes(claim, control) else SAME


def passes(claim: Claim, ratio: Interval | None) -> bool:
    """Whether a ratio is clear of 1 on the claim's side."""
    if ratio is None or ratio.value is None or not is_clear(ratio):
        return False
    return (ratio.value > 1) == (claim.value > 1)


def effect(claim: Claim, ours: Interval | None) -> float | None:
    """Our change over the paper's: 1 where they are alike, below 0 where they go apart."""
    if claim.against is None or ours is None or ours.value is None or claim.value == 1:
        return None
    return (ours.value - 1) / (claim.value - 1)


def is_clear(ratio: Interval) -> bool:
    """Whether its bounds lie on one side of 1; without bounds nothing is clear."""
    return ratio.low is not None and not holds(ratio, 1.0)


def holds(interval: Interval, value: float) -> bool:
    """Whether the interval's bounds enclose `value`; without bounds nothing is enclosed."""
    if interval.low is None or interval.high is None:
        return False
    return interval.low <= value <= interval.high
