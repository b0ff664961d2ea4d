"""Many comparisons at once: Benjamini and Hochberg's rule against a count by hand."""

from __future__ import annotations

from math import exp

import pytest

from specfit.report.intervals import Interval
from specfit.report.many import beneath, chance, discoveries, sentence
from specfit.report.table_format import Cell, Sheet, factor, measured


def ratio(z: float) -> Interval:
    """A gain of so many standard deviations of 0.1 on the log scale."""
    return Interval(exp(0.1 * z), exp(0.1 * (z - 1.959964)), exp(0.1 * (z + 1.959964)), 20)


def test_a_chance_is_below_five_percent_just_where_the_interval_is_clear_of_one() -> None:
    for z, told in {0.0: 1.0, 1.0: 0.3173, 1.959964: 0.05, -2.575829: 0.01}.items():
        assert chance(ratio(z)) == pytest.approx(told, abs=2e-4)
    assert (
        chance(Interval(1.2, None, None, 1)) == 1.0 and chance(Interval(None, None, None, 0)) == 1.0
    )
    assert chance(Interval(2.0, 2.0, 2.0, 5)) == 0.0 and chance(Interval(1.0, 1.0, 1.0, 5)) == 1.0


def test_as_many_are_kept_as_the_rate_allows() -> None:
    """p of 0.001, 0.019, 0.029, 0.041, 0.5 against 0.01, 0.02, 0.03, 0.04, 0.05: three are kept.
    Each alone, four are clear."""
    ratios = [ratio(z) for z in (3.2905, 2.3455, 2.1835, 2.0435, 0.6745)]
    assert discoveries(ratios) == [True, True, True, False, False]
    assert discoveries(ratios[::-1]) == [False, False, True, True, True]
    assert "5 ratios are read here at once: 4 are clear of 1 at 95 % each, 3 at" in sentence(ratios)
    assert discoveries([]) == [] and sentence([]) == ""


def test_of_nothing_one_in_twenty_is_clear_alone_and_none_together() -> None:
    ratios = [ratio(z) for z in (1.97, *[0.3] * 19)]
    assert discoveries(ratios) == [False] * 20


def test_the_ratios_of_a_sheet_are_its_cells_with_a_factor_and_bounds() -> None:
    row = (
        "SpecFit",
        measured(ratio(3.0), factor),
        Cell("1.2x", 1.2),
        measured(Interval(9.0, 8.0, 10.0, 5)),
    )
    found = beneath([Sheet("Sheet", ("system", "against", "exact", "speed"), (row,))])
    assert len(found) == 1 and found[0].startswith("1 ratios are read")
    assert beneath([]) == []
