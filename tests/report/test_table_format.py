from __future__ import annotations

import csv
import io

from specfit.report.intervals import Interval
from specfit.report.table_format import (
    Sheet,
    change,
    escape,
    exact,
    factor,
    measured,
    to_csv,
    to_latex,
    to_markdown,
)

SHEET = Sheet(
    "A table",
    ("system", "n", "speed", "paper"),
    (
        ("A & B", 3, measured(Interval(1.216, 1.1, 1.3, 3), change), exact(1.2, factor)),
        ("C_1", None, measured(None), None),
    ),
)


def test_a_value_and_its_interval_are_shown_alike() -> None:
    assert measured(Interval(1.216, 1.1, 1.3, 3), change).text == "+21.6 % [+10.0, +30.0]"
    assert measured(Interval(0.5, 0.4, 0.6, 3), factor).text == "0.50x [0.40, 0.60]"
    assert measured(Interval(5.0, 5.0, 5.0, 3)).text == "5.00", "no width, no brackets"
    assert measured(Interval(5.0, None, None, 1)).text == "5.00"


def test_csv_has_full_numbers_and_their_bounds() -> None:
    rows = list(csv.reader(io.StringIO(to_csv(SHEET))))
    assert rows[0] == ["system", "n", "speed", "speed, low", "speed, high", "paper"]
    assert rows[1] == ["A & B", "3", "1.216", "1.1", "1.3", "1.2"]
    assert rows[2] == ["C_1", "", "", "", "", ""], "what is unknown is empty, never 0"


def test_markdown_has_a_line_per_row_and_dashes_for_nothing() -> None:
    lines = to_markdown(SHEET).splitlines()
    assert lines[0] == "**A table**"
    assert lines[2] == "| system | n | speed | paper |"
    assert lines[3] == "| --- | ---: | ---: | ---: |"
    assert lines[5] == "| C_1 | - | - | - |"


def test_latex_is_booktabs_and_escaped() -> None:
    text = to_latex(SHEET)
    assert text.startswith("\\begin{tabular}{lrrr}\n\\toprule")
    assert "A \\& B & 3 & +21.6 \\% [+10.0, +30.0] & 1.20x \\\\" in text
    assert "C\\_1" in text and text.endswith("\\bottomrule\n\\end{tabular}")
    assert escape("50 % of $x^2$ & {a|b}") == (
        "50 \\% of \\$x\\textasciicircum{}2\\$ \\& \\{a\\textbar{}b\\}"
    )
