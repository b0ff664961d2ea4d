"""An explanation in words: a sentence that names the cause, two lines, or one screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from specfit.report.explain import Explanation, explain
from specfit.report.metrics import ratio, totals
from specfit.report.run_summary import interval_note, number
from specfit.report.styles import PHASES
from specfit.storage.find import find_twin
from specfit.storage.rows import RunRows, load_run

EQUAL = 0.005  # runs closer than this are called equally fast
CAUSES = {
    "wait": "waiting for copies",
    "compute": "the target's forward itself",
    "draft": "drafting",
    "select": "selecting",
    "route": "predicting routes",
    "commit": "committing",
}


def sentence(e: Explanation) -> str:
    """One plain sentence that names the cause."""
    value, low, high = e.speedup.value, e.speedup.low, e.speedup.high
    assert value is not None, "both runs decoded"
    both = f"{e.of.name} and {e.base.name}"
    if e.unequal:
        return (
            f"{both} had unequal machines ({'; '.join(e.unequal)}): {value:.2f} times the speed is "
            "not the selector's; run both again on one machine in one state."
        )
    if abs(math.log(value)) < EQUAL:
        return f"{both} are equally fast: {_trade(e)}{_cause(e)}."
    if low is not None and high is not None and low <= 1 <= high:
        speed = f"{value:.2f} times the speed, 95 % {low:.2f}-{high:.2f}, n={e.speedup.n}"
        return f"{both} cannot be told apart here ({speed}): {_trade(e)}{_cause(e)}."
    if value > 1:
        return f"{e.of.name} is {value:.2f} times as fast as {e.base.name}: {_trade(e)}{_cause(e)}."
    slower = f"{e.of.name} is slower than {e.base.name} ({value:.2f} times its speed): {_trade(e)}"
    return f"{slower}{_cause(e)}."


def _trade(e: Explanation) -> str:
    more = f"a cycle commits {e.committed_ratio:.2f} times the tokens"
    return f"{more} and takes {e.cycle_ratio:.2f} times as long"


def _cause(e: Explanation) -> str:
    """The phase behind most of what a cycle takes longer, or less long."""
    difference = e.of.cycle_ms - e.base.cycle_ms
    if abs(difference) < EQUAL * e.base.cycle_ms:
        return ""
    sign, word = (1, "added") if difference > 0 else (-1, "saved")
    added = e.added_ms()
    phase = max(added, key=lambda name: sign * added[name])
    share = 100 * added[phase] / difference
    amount = f"{number(abs(float(difference)))} ms ({e.timed}) {word} per cycle"
    return f"; {share:.0f} % of the {amount} is {CAUSES[phase]}{_copies(e, phase)}"


def _copies(e: Explanation, phase: str) -> str:
    """Which of its two factors made the copies grow or shrink."""
    if phase != "wait":
        return ""
    before, after = (f"{100 * side.hit_rate:.0f} %" for side in (e.base, e.of))
    hits = f"{before} of them hit" if before == after else f"{after} of them hit, not {before}"
    return f" (verified rows demand {e.union_growth:.2f} times the experts, and {hits})"


def short(e: Explanation) -> str:
    """Two lines for the end of a run."""
    assert e.speedup.value is not None, "both runs decoded"
    if e.unequal:
        return f"against {e.base.name}: {sentence(e)}"
    factors = (
        f"against {e.base.name}: {e.speedup.value:.2f} x = committed {e.committed_ratio:.2f} x / "
        f"cycle {e.cycle_ratio:.2f} x ({e.timed}, n={e.speedup.n})"
    )
    return f"{factors}\n{sentence(e)}"


def against_cache(runs: Path, run: RunRows) -> str | None:
    """`short`, against AR with as large a cache; None without such a run on these requests."""
    if run.info.selector in ("ar", "ar_cache") or not totals(run).sum("cycles"):
        return None
    twin = find_twin(runs, run.info, "ar_cache", cache_slots=run.info.cache_slots)
    return None if twin is None else short(explain(run, load_run(twin)))


def screen(e: Explanation) -> str:
    """Factors, phases, copies, and the sentence."""
    return f"{numbers(e)}\n\n{sentence(e)}"


def numbers(e: Explanation) -> str:
    """Factors, phases and copies, lined up."""
    a, b = e.of, e.base
    difference = a.cycle_ms - b.cycle_ms
    rows = [
        ("", a.name, b.name, "", ""),
        ("tokens per cycle", *_pair(a.committed, b.committed), _x(e.committed_ratio), ""),
        ("nodes verified per cycle", *_pair(a.verified, b.verified), "", ""),
        (
            f"cycle, ms ({e.timed})",
            *_pair(a.cycle_ms, b.cycle_ms),
            _x(e.cycle_ratio),
            f"equally fast at {number(e.break_even_ms)} ms",
        ),
    ]
    for name, added in e.added_ms().items():
        if a.phases_ms[name] or b.phases_ms[name]:
            share = f"{100 * added / difference:.0f} % of the difference" if difference else ""
            pair = _pair(a.phases_ms[name], b.phases_ms[name])
            rows.append((f"  {PHASES[name].label}", *pair, f"{added:+.3g} ms", share))
    growth = ratio(a.copies, b.copies)
    why = f"= demand {_x(e.union_growth)} times missed {_x(e.miss_ratio)}"
    rows += [
        ("copies per cycle", *_pair(a.copies, b.copies), _x(growth), why),
        ("  demand (union)", *_pair(a.demand, b.demand), _x(e.union_growth), ""),
        ("  hit rate, %", *_pair(100 * a.hit_rate, 100 * b.hit_rate), "", ""),
    ]
    factors = f"committed {_x(e.committed_ratio)} / cycle {_x(e.cycle_ratio)}"
    head = (
        f"speed-up {_x(e.speedup.value)} = {factors} "
        f"({e.timed}, {interval_note(e.speedup)}, decode)"
    )
    marks = [f"mark: the machines differ: {text}" for text in e.unequal]
    return "\n".join([*marks, head, "", *aligned(rows)])


def _pair(a: float, b: float) -> tuple[str, str]:
    return number(float(a)), number(float(b))


def _x(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def aligned(rows: Sequence[tuple[str, ...]], left: Sequence[int] = (0, -1)) -> list[str]:
    """Labels and remarks (columns `left`) to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    words = {i % len(widths) for i in left}
    return [
        "  ".join(
            text.ljust(width) if i in words else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
