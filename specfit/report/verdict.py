"""What may be said of a figure of ours beside the paper's: these words and no others."""

from __future__ import annotations

from specfit.report.intervals import Interval
from specfit.report.paper_values import Claim
from specfit.storage.rows import RunRows

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
SAME, OTHER = "same direction", "other direction"
NOT_COMPARABLE, FITTED, NOT_TESTED = "not comparable", "fitted", "not tested"
MEANING = {
    REPRODUCED: "the paper's model on the wall clock; our interval holds the paper's value",
    NOT_REPRODUCED: "the paper's model on the wall clock; our interval does not hold it",
    SAME: "another model or a modelled clock; our ratio lies on the paper's side of 1",
    OTHER: "another model or a modelled clock; our ratio lies on the other side of 1",
    NOT_COMPARABLE: "an absolute value of another model or of a modelled clock",
    FITTED: "a constant of the profile was chosen to give this value",
    NOT_TESTED: "has not run",
}
WORDS = tuple(MEANING)

PAPER_TARGETS = ("qwen3-30b-a3b",)


def verdict(claim: Claim, ours: Interval | None, run: RunRows | None) -> str:
    """`run` is the run that the claim is about.

    Only the paper's own model, answering for itself on a wall clock, can reproduce: our interval
    then holds the paper's value. Anything else has at most a direction, which is that of the ratio;
    an absolute value of another model or of a modelled clock is not comparable.
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
    return SAME if (ours.value > 1) == (claim.value > 1) else OTHER


def holds(interval: Interval, value: float) -> bool:
    """Whether the interval's bounds enclose `value`; without bounds nothing is enclosed."""
    if interval.low is None or interval.high is None:
        return False
    return interval.low <= value <= interval.high


def is_open(ratio: Interval | None) -> bool:
    """Whether the interval of a ratio leaves its direction open."""
    return ratio is not None and holds(ratio, 1.0)
