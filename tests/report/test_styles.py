"""What is drawn can be told apart: with colour, and without."""

from __future__ import annotations

import itertools

import pytest

from specfit.report.styles import PHASES, SYSTEMS, Style, rank, style_of

STYLES = [*itertools.combinations(SYSTEMS.values(), 2)]


def grey(style: Style) -> float:
    """Relative luminance, 0 to 1 (Rec. 709 weights on the stored values)."""
    red, green, blue = (int(style.colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("one", "other"), STYLES, ids=lambda s: s.label)
def test_no_two_systems_look_alike(one: Style, other: Style) -> None:
    assert one.label != other.label and one.colour != other.colour
    assert one.marker != other.marker, "points"
    assert one.hatch != other.hatch or abs(grey(one) - grey(other)) > 0.1, "bars in grey"


@pytest.mark.parametrize(
    ("one", "other"), [*itertools.combinations(PHASES.values(), 2)], ids=lambda s: s.label
)
def test_no_two_phases_look_alike(one: Style, other: Style) -> None:
    assert one.colour != other.colour
    assert one.hatch != other.hatch or abs(grey(one) - grey(other)) > 0.1


def test_a_system_that_nobody_registered_stands_last_under_its_own_name() -> None:
    assert style_of("thrifty").label == "thrifty"
    assert sorted([*SYSTEMS, "thrifty"], key=rank)[-1] == "thrifty"
