"""What a headline is without degenerate outputs and without any one request, counted by hand."""

from __future__ import annotations

import pytest

from specfit.report.comparison import Compared, lines_of
from specfit.report.degenerate import degenerate_of, loops_of
from specfit.report.footer import INTERVALS, stamp_of
from specfit.report.robustness import robustness
from specfit.report.run_summary import closing_table
from specfit.storage.request_files import Part
from specfit.storage.rows import RunRows
from tests.fakes.rows import part, rows_of

LOOP, PLAIN = [7, 8] * 10, list(range(20))
SLOW = {"verify_ns": 7_000_000}  # 8 ms a cycle instead of 4


def run(selector: str, cycles: dict[str, tuple[int, dict]], cluster: bool = False) -> RunRows:
    """By request: tokens of its one decode cycle, and what is other about it."""
    parts: list[Part] = []
    for name, (tokens, changes) in cycles.items():
        output = LOOP if name == "loop" else PLAIN
        scores = {"score": 1.0, "cluster": name[:1] if cluster else None}
        parts.append(part(name, (1, tokens), output_ids=output, scores=scores, **changes))
    return rows_of(parts, selector[:1] * 12, selector=selector, cache_slots=12)


# 4 ms each: 2, 2, 4 and 2 tokens against 1, 2, 2 and 2.
OURS = {"loop": (2, {}), "a": (2, {}), "b": (4, {}), "cut": (2, {"stop_reason": "length"})}
BASE = {"loop": (1, {}), "a": (2, {}), "b": (2, {}), "cut": (2, {"stop_reason": "length"})}


def test_degenerate_outputs_are_loops_and_those_at_the_cap() -> None:
    rows = run("specfit", OURS)
    assert loops_of(rows) == {"loop"} and degenerate_of(rows) == {"loop", "cut"}
    failed = rows_of([part("a", status="too long"), part("b", output_ids=LOOP)])
    assert degenerate_of(failed) == {"b"}


def test_the_ratio_without_them_and_without_any_one() -> None:
    found = robustness(run("specfit", OURS), run("eagle3_cache", BASE))
    assert (found.whole.value, found.whole.n, found.degenerate) == (pytest.approx(10 / 7), 4, 2)
    assert (found.without.value, found.without.n) == (pytest.approx(6 / 4), 2)
    assert (found.lowest, found.highest) == (pytest.approx(6 / 5), pytest.approx(8 / 5))
    assert found.by == "b", "10/7 to 6/5 is further than to 8/5 or 8/6"
    assert found.span == "1.20 to 1.60x"


def test_one_request_has_no_range() -> None:
    found = robustness(run("specfit", {"a": (2, {})}), run("eagle3_cache", {"a": (1, {})}))
    assert (found.lowest, found.by, found.span) == (None, None, "")


def test_the_closing_table_and_every_footer_count_them() -> None:
    ours, base = run("specfit", OURS), run("eagle3_cache", BASE)
    told = "\n".join(lines_of(ours, [Compared(base)], None))
    assert "cut at the cap): 2 of 4; without them SpecFit over EAGLE-3 + cache is 1.50x" in told
    assert "leaving any one request out 1.20 to 1.60x" in told
    line = next(line for line in closing_table(ours) if line.label == "degenerate outputs")
    assert (line.value, line.note) == (2, "of 4; 1 repeat one n-gram, the others reached the cap")
    footer = stamp_of([ours, base], "live").text
    assert "2 of 4 (1 by n-gram)" in footer and "without them SpecFit is 1.50x" in footer
    assert "12 slots, 1.43x" in footer
    clean = stamp_of([run("specfit", {"a": (2, {}), "b": (2, {})})], "live").text
    assert "0 of 2." in clean and "without them" not in clean


def test_a_footer_says_what_was_resampled() -> None:
    known = run("specfit", OURS, cluster=True)
    assert (
        "bootstrap over requests;"
        in stamp_of([run("specfit", OURS)], "live", extra=[INTERVALS]).text
    )
    told = stamp_of([known], "live", extra=[INTERVALS]).text
    assert (
        "bootstrap over requests and over clusters (4 of " in told
        and "the wider of the two" in told
    )
