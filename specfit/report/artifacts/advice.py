"""Advice against full runs: the documents that the study `advice` leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from specfit.report.artifact import Table
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Clusters, Floats, Interval, paired_ratio
from specfit.report.reader import ResultsReader
from specfit.report.styles import workload_of
from specfit.report.table_format import Entry, Sheet, exact, factor, measured

GOAL = 0.98


"""The advised setting's speed over that of the best, at least."""


Line = Mapping[str, Any]


def advice_sheet(documents: Sequence[Mapping[str, Any]], timed: str) -> Sheet:
    columns = ["workload", "slots", "advised", f"expected, tokens/s ({timed})"]
    columns += ["whole workload, tokens/s", "fastest there", "its tokens/s", "advised over fastest"]
    columns += ["over AR + cache", "over the paper's SpecFit", "goal"]
    rows: list[tuple[Entry, ...]] = []
    for document in documents:
        workload = workload_of(document["info"]).label
        for slots, lines in document["slots"].items():
            rows.append((workload, int(slots), *_line(lines, document.get("clusters"))))
    n = " / ".join(dict.fromkeys(str(document["requests"]) for document in documents))
    note = (
        f"Advised from {n} requests of development text; the whole workload is evaluation text. "
        "Fastest there is hindsight, the standard that the advice is held to and no result. The "
        "paper's SpecFit reads exact routes off the clock. "
        f"Goal: the fastest setting, or at least {GOAL:.2f} of its speed."
    )
    return Sheet("Advice against the whole workload", tuple(columns), tuple(rows), note)


def _line(lines: Sequence[Line], clusters: Clusters = None) -> tuple[Entry, ...]:
    can_run = [line for line in lines if line["can_run"]]
    (advised,) = [line for line in can_run if line["advised"]]
    best = max(can_run, key=_speed)
    plain = next(line for line in can_run if line["name"] == "AR + cache")
    exact_routes = next((line for line in lines if not line["can_run"]), None)
    share = over(advised, best, clusters)
    met = "right" if advised is best else "met" if (share.value or 0) >= GOAL else "missed"
    return (
        words(advised),
        exact(advised["expected_tokens_per_s"]),
        exact(_speed(advised)),
        "the same" if advised is best else words(best),
        exact(_speed(best)),
        measured(share, lambda value: f"{value:.3f}x"),
        measured(over(advised, plain, clusters), factor),
        measured(None if exact_routes is None else over(advised, exact_routes, clusters), factor),
        met,
    )


def words(line: Line) -> str:
    shown = ("routes=", "policy=", "prefetch=")
    moves = [item for item in line["overrides"] if item.startswith(shown)]
    return ", ".join([line["name"], *moves])


def over(ours: Line, theirs: Line, clusters: Clusters = None) -> Interval:
    return paired_ratio(_columns(ours), _columns(theirs), clusters=clusters)


def _columns(line: Line) -> Floats:
    return np.array([line["committed_tokens"], line["decode_ns"]], dtype=np.float64).T


def _speed(line: Line) -> float:
    return float(1e9 * sum(line["committed_tokens"]) / sum(line["decode_ns"]))


SUITE = "advice"


def table_advice(reader: ResultsReader) -> Table:
    """Whether the advice is right: against every setting, both workloads, four slot counts."""
    rows = [member.rows for member in reader.members(SUITE, kind="replay")]
    found = reader.suites(SUITE)[0]
    cells = [cell for cell in found.suite.cells if cell.kind == "bench"]
    documents = [found.document(cell.label) for cell in cells]
    sheets = {"": advice_sheet(documents, words_of(rows))}
    stamp = reader.stamp(rows, SUITE, extra=[INTERVALS])
    return Table("table_advice", "What specfit.advise says, held against full runs", sheets, stamp)
