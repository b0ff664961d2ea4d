"""Table 5 (app. A.4) from the documents of the study `rules`.

The summary we have names these quantities, not the table's layout. "A bound" is B1 of
`specfit.selection.theory.bounds`, our own, not the paper's eq. 7.
Every time is predicted by the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specfit.report.artifact import Table
from specfit.report.footer import INTERVALS
from specfit.report.intervals import Clusters, Interval, clusters_in, paired_ratio
from specfit.report.paper_values import TABLE_5
from specfit.report.reader import ResultsReader
from specfit.report.styles import Workload, workload_of
from specfit.report.table_format import Entry, Sheet, exact, measured
from specfit.storage.rows import RunRows

Document = Mapping[str, Any]


NAMES = {
    "every position": "every recorded position",
    "cycles of the run": "cycles SpecFit starts",
    "drafted pools": "pools SpecFit drafted",
}


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def fine(value: float) -> str:
    """For shares that round to nothing."""
    return f"{100 * value:.3f} %"


def signed(value: float) -> str:
    return f"{round(100 * value, 2) + 0.0:+.2f} %"  # no -0.00


def thousandths(value: float) -> str:
    return f"{value:.3f}"


def tenths(value: float) -> str:
    return f"{value:.1f}"


def rate(value: float) -> str:
    return f"{1e9 * value:.3f}"


@dataclass(frozen=True)
class Line:
    """One quantity of a weighting, and which published value stands beside it."""

    label: str
    of: Callable[[Mapping[str, Any]], Entry]
    told: str = ""


def _rule(name: str, shown: Callable[[float], str]) -> Callable[[Mapping[str, Any]], Entry]:
    return lambda w: exact(w["rules"][name], shown)


RULES = (
    Line("cycles", lambda w: w["rules"]["cycles"]),
    Line("lambda*, tokens/s (modelled)", _rule("best_throughput", rate)),
    Line("the ratio rule, tokens/s (modelled)", _rule("ratio_throughput", rate)),
    Line("gap of the ratio rule to lambda*", _rule("gap", fine), "gap"),
    Line("a bound on the gap", _rule("relative_bound", fine), "bound"),
    Line("cycles in which the two rules part", _rule("different", percent), "different"),
    Line(
        "recorded tokens per predicted time, S* over S^",
        lambda w: measured(realised(w, w["clusters"]), lambda value: signed(value - 1)),
        "realised",
    ),
    Line("stops before the last level", _rule("early_stops", percent), "stops"),
    Line("levels drafted", _rule("levels", lambda value: f"{value:.2f}")),
    Line("the full pool's optimum lies below the stop", _rule("lost_by_stop", percent)),
    Line("mean loss of a cycle's ratio by stopping", _rule("stop_loss", fine)),
    Line("tokens per time by stopping", _rule("stop_gain", signed)),
    Line("nodes per committed token", _rule("nodes_per_token", thousandths)),
    Line("with twice beta in selection", _rule("nodes_per_token_double", thousandths), "doubled"),
    Line("demand per committed token", _rule("demand_per_token", tenths)),
    Line("with twice beta in selection", _rule("demand_per_token_double", tenths), "doubled"),
)


def realised(weighting: Mapping[str, Any], clusters: Clusters) -> Interval:
    """Recorded tokens per predicted time of S* over those of S^. Sums are by request, whose names
    ascend, and so are `clusters`."""
    sums = {name: np.array(values) for name, values in weighting["recorded"].items()}
    best = np.stack([sums["tokens_best"], sums["ns_best"]], axis=1)
    ratio = np.stack([sums["tokens_ratio"], sums["ns_ratio"]], axis=1)
    return paired_ratio(best, ratio, clusters=clusters)


def named(document: Document) -> Workload:
    return workload_of(document["info"])


def clusters_by_name(rows: RunRows) -> Clusters:
    """Of the requests that have decode cycles, by ascending name, as a study's sums are."""
    cycles = rows.cycles[rows.cycles["cycle"] > 0]
    return clusters_in(rows, sorted(set(cycles["request_id"]).intersection(rows.ok_ids)))


def rules_sheet(document: Document, clusters: Clusters = None) -> Sheet:
    """Every weighting of one workload, and the paper's value. `clusters` of requests by name."""
    workload = named(document)
    told = TABLE_5.get(workload.stands_for or "", {})
    weightings = document["weightings"]
    known = [one | {"clusters": clusters} for one in weightings.values()]
    rows: list[tuple[Entry, ...]] = [
        (line.label, *(line.of(one) for one in known), told.get(line.told)) for line in RULES
    ]
    columns = ("", *(NAMES[name] for name in weightings), "paper")
    return Sheet(workload.label, columns, tuple(rows))


LINES = (
    ("different", "trees of at most K nodes differ, line and free", percent),
    ("loss", "mean loss of a cycle's ratio by the line, timed by the free fit", fine),
    ("gain", "tokens per time, line over free", signed),
    ("realised_gain", "recorded tokens per predicted time, line over free", signed),
    ("above_limit", "without a limit, more than K nodes are taken", percent),
    ("limit_loss", "mean loss of a cycle's ratio by the limit, timed by the line", fine),
    ("limit_gain", "tokens per time, with over without the limit", signed),
    ("largest", "largest tree without a limit, nodes", lambda value: f"{value:.0f}"),
)


def line_sheet(documents: Sequence[Document]) -> Sheet:
    """What b_k = a + c k changes, and what the size limit costs (app. A.3)."""
    weightings = [
        (f"{named(d).short}, {NAMES[name]}", one["line"])
        for d in documents
        for name, one in d["weightings"].items()
    ]
    rows: list[tuple[Entry, ...]] = [
        (label, *(exact(line[name], shown) for _, line in weightings))
        for name, label, shown in LINES
    ]
    columns = ("", *(name for name, _ in weightings))
    return Sheet("Intercepts on a line b_k = a + c k, and no size limit", columns, tuple(rows))


def fits_sheet(documents: Sequence[Document]) -> Sheet:
    """Coefficients of the two fits of the same probes; one pair serves both workloads."""
    fits = documents[0]["fits"]
    assert all(d["fits"] == fits for d in documents), "one fit serves both workloads (app. B)"
    k = len(fits["free"]["intercepts_ns"])
    both = [fits["free"], fits["line"]]

    def ms(value: float) -> str:
        return f"{value / 1e6:.2f}"

    rows: list[tuple[Entry, ...]] = [
        (f"b_{i}, ms", *(exact(f["intercepts_ns"][i], ms) for f in both)) for i in range(k)
    ]
    rows.append(("beta, us per expert", *(exact(f["expert_ns"] / 1e3) for f in both)))
    errors = (exact(f["mean_relative_error"], percent) for f in both)
    rows.append(("mean error, one state left out", *errors))
    return Sheet("The two fits", ("", "free intercepts", "line"), tuple(rows))


SUITE = "table_5"


NOTES = (
    "Predicted times are the fit's (modelled); acceptances are the recorded ones; S^ is the ratio "
    "rule, S* the throughput-optimal one. The bound is ours (docs/selection.md), not eq. 7. Pools "
    "are of full depth, but for those that SpecFit drafted, which end where it stopped, as in the "
    "paper.",
)


def table_5(reader: ResultsReader) -> Table:
    """Table 5 (app. A.4): the ratio rule beside the throughput-optimal one, paper beside ours."""
    rows = [member.rows for member in reader.members(SUITE, kind="replay")]
    found = reader.suites(SUITE)[0]
    studies = [found.document(cell.label) for cell in found.suite.cells if cell.kind == "bench"]
    clusters = {one.info.run_id: clusters_by_name(one) for one in rows}
    sheets = {
        named(study).dataset: rules_sheet(study, clusters[study["info"]["run_id"]])
        for study in studies
    }
    sheets |= {"line": line_sheet(studies), "fits": fits_sheet(studies)}
    title = "The ratio rule and the throughput-optimal one on recorded pools"
    return Table(SUITE, title, sheets, reader.stamp(rows, SUITE, extra=[INTERVALS]), NOTES)
