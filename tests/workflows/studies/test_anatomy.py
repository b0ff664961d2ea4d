"""The rule that picks figure 1's cycle."""

from __future__ import annotations

from specfit.workflows.studies.anatomy import chosen_cycle
from tests.fakes.rows import part, rows_of


def test_the_cycle_kept_a_drafted_token() -> None:
    rejected, kept = part("q1", (1, 1)), part("q2", (1, 2))
    slow = part("q3", (1, 2), verify_ns=9_000_000)
    row, among = chosen_cycle(rows_of([rejected, slow, kept]))
    assert among == 2 and row["request_id"] == "q2", "of two, the shorter"


def test_where_no_cycle_kept_one_any_will_do() -> None:
    row, among = chosen_cycle(rows_of([part("q1", (1, 1)), part("q2", (1, 1))]))
    assert among == 2 and row["request_id"] == "q1"
