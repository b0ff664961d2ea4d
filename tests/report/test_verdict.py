from __future__ import annotations

import pytest

from specfit.report.intervals import Interval
from specfit.report.paper_values import CLAIMS, Claim
from specfit.report.quantities import QUANTITIES
from specfit.report.styles import PAPER_WORKLOADS, SYSTEMS
from specfit.report.verdict import WORDS, controlled, effect, is_clear, passes, verdict
from specfit.storage.tables import RequestFlags
from tests.fakes.rows import part, rows_of

GAIN = Claim("t", "4.2", "news", 48, "specfit", "speed", 1.216, "eagle3_cache")
SPEED = Claim("t", "4.2", "news", 48, "specfit", "speed", 8.27)
FITTED = Claim("t", "4.2", "news", 48, "ar", "speed", 4.67, inferred=True, fitted=True)
OURS = rows_of([part("a"), part("b")])
FAILING = Interval(0.9, 0.8, 0.95, 9)
"""A control on the other side of 1."""
REAL = {"model": "qwen3-30b-a3b", "clock": "wall"}


@pytest.mark.parametrize(
    ("claim", "value", "said"),
    [
        (GAIN, 1.6, "same direction"),
        (GAIN, 1.4, "open"),
        (GAIN, 0.6, "open"),
        (GAIN, 0.4, "other direction"),
        (SPEED, 8.27, "not comparable"),
        (FITTED, 4.65, "fitted"),
    ],
)
def test_another_model_or_a_modelled_clock_has_at_most_a_direction(
    claim: Claim, value: float, said: str
) -> None:
    assert verdict(claim, Interval(value, value - 0.5, value + 0.5, 2), OURS, FAILING) == said


@pytest.mark.parametrize("changes", [{"model": "qwen3-30b-a3b"}, {"clock": "wall"}])
def test_half_the_papers_setting_reproduces_nothing(changes: dict[str, str]) -> None:
    run = rows_of([part("a"), part("b")], **changes)
    assert verdict(GAIN, Interval(1.216, 1.2, 1.3, 2), run, FAILING) == "same direction"


def test_the_papers_model_on_a_wall_clock_reproduces_or_does_not() -> None:
    run = rows_of([part("a"), part("b")], **REAL)
    assert verdict(GAIN, Interval(1.25, 1.2, 1.3, 2), run) == "reproduced"
    assert verdict(GAIN, Interval(1.25, 1.23, 1.3, 2), run) == "not reproduced"
    assert verdict(SPEED, Interval(8.0, 7.9, 8.3, 2), run) == "reproduced"
    assert verdict(SPEED, Interval(8.27, None, None, 1), run) == "not reproduced"


def test_a_scripted_answer_says_nothing() -> None:
    flags = RequestFlags(drafter_forced=True)
    run = rows_of([part("a", flags=flags), part("b", flags=flags)], **REAL)
    assert verdict(GAIN, Interval(1.25, 1.2, 1.3, 2), run) == "not comparable"


def test_what_has_not_run_is_not_tested() -> None:
    assert verdict(GAIN, None, OURS) == "not tested"
    assert verdict(GAIN, Interval(None, None, None, 0), OURS) == "not tested"
    assert verdict(GAIN, Interval(1.2, 1.1, 1.3, 2), None) == "not tested"


def test_only_an_interval_clear_of_one_has_a_direction() -> None:
    assert not is_clear(Interval(1.1, 0.9, 1.3, 2)) and is_clear(Interval(1.1, 1.05, 1.3, 2))
    assert not is_clear(Interval(1.1, None, None, 1)), "one request says nothing"


def test_what_plain_decoding_passes_too_is_no_direction_of_specfit() -> None:
    ours, passing = Interval(1.3, 1.2, 1.4, 9), Interval(1.7, 1.6, 1.8, 9)
    assert verdict(GAIN, ours, OURS, passing) == "as the control"
    for failing in (FAILING, Interval(1.1, 0.9, 1.3, 9)):
        assert verdict(GAIN, ours, OURS, failing) == "same direction"
    assert verdict(GAIN, ours, OURS) == "open", "its control has not run"
    assert passes(GAIN, ours) and not passes(GAIN, Interval(0.9, 0.8, 0.95, 9))


def test_the_control_of_a_claim_stands_in_on_both_sides_of_the_ratio() -> None:
    cached = Claim("t", "4.4", "news", 48, "specfit", "speed", 1.5, "specfit_uncached")
    swapped = controlled(cached)
    assert swapped is not None and (swapped.system, swapped.against) == ("ar_cache", "ar")
    bare = Claim("t", "4.4", "news", 0, "specfit_uncached", "speed", 1.3, "eagle3")
    swapped = controlled(bare)
    assert swapped is not None and (swapped.system, swapped.against) == ("ar", "eagle3")
    assert controlled(SPEED) is None and controlled(FITTED) is None


def test_the_effect_is_a_change_over_a_change() -> None:
    assert effect(GAIN, Interval(1.432, 1.4, 1.5, 9)) == pytest.approx(2)
    assert effect(GAIN, Interval(0.784, 0.7, 0.8, 9)) == pytest.approx(-1)
    assert effect(SPEED, Interval(8.0, 7.0, 9.0, 9)) is None


def test_claims_are_about_things_that_exist() -> None:
    assert "reproduced" in WORDS
    for claim in CLAIMS:
        assert claim.quantity in QUANTITIES and claim.workload in PAPER_WORKLOADS
        assert claim.system in SYSTEMS and (claim.against is None or claim.against in SYSTEMS)
        assert claim.value > 0 and (claim.inferred or not claim.fitted)
