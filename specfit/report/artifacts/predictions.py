"""How well a selection's promises are kept: time and tokens of a cycle, and path probabilities.

A predicted time is that of a whole full-depth cycle, so cycles that
stopped early are shown apart. Cycles cut by a stop are in no comparison of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from specfit.base.types import PROBABILITY_ONE
from specfit.report.artifact import Table
from specfit.report.figures import Drawing
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Clusters, Floats, Interval, interval_of, ratio_interval
from specfit.report.reader import ResultsReader
from specfit.report.styles import Workload, style_of, workload_of
from specfit.report.suite_runs import SuiteRun
from specfit.report.table_format import Entry, Sheet, change, measured
from specfit.storage.rows import RunRows

REWARD_STEP = 0.5  # width of a bin of predicted tokens


GROUPS = {
    "full depth": lambda c: c["full"],
    "stopped early": lambda c: ~c["full"],
    "all": lambda c: c["full"] | True,
}


@dataclass(frozen=True, eq=False)
class Promises:
    """`cycles`: request, its cluster, predicted and realised ms and tokens, `full` depth or not,
    `whole` or cut by a stop; one row per decode cycle whose selector predicted."""

    workload: Workload
    slots: int
    cycles: pd.DataFrame


def promised(reader: ResultsReader) -> tuple[list[Promises], list[Drafter], list[RunRows]]:
    """Of the replays of suite `predictions` and the counts of their recordings."""
    members = reader.members("predictions", kind="replay")
    members.sort(key=lambda m: (m.workload.order, -m.slots))
    found = reader.suites("predictions")[0]
    documents = [found.document(c.label) for c in found.suite.cells if c.kind == "bench"]
    clusters = {
        m.workload: m.rows.requests.set_index("request_id")["cluster"].to_dict() for m in members
    }
    drafters = [drafter(one, clusters[workload_of(one["info"])]) for one in documents]
    drafters.sort(key=lambda one: one.workload.order)
    return [promises(m) for m in members], drafters, [m.rows for m in members]


def at_most_slots(found: Sequence[Promises]) -> list[Promises]:
    """Of each workload the one with the most slots, which the figure shows."""
    most = {one.workload: one for one in sorted(found, key=lambda one: one.slots)}
    return [one for one in found if most[one.workload] is one]


def promises(member: SuiteRun) -> Promises:
    rows = member.rows.cycles
    rows = rows[(rows["cycle"] > 0) & rows["predicted_ns"].notna()]
    deepest = rows["drafted_levels"].max()
    frame = pd.DataFrame(
        {
            "request": rows["request_id"].astype(str),
            "cluster": rows["request_id"].map(
                member.rows.requests.set_index("request_id")["cluster"]
            ),
            "predicted_ms": rows["predicted_ns"].astype(float) / 1e6,
            "ms": rows["cycle_ns"].astype(float) / 1e6,
            "predicted_tokens": rows["predicted_reward"].astype(float) / PROBABILITY_ONE,
            "tokens": rows["committed_tokens"].astype(float),
            "full": (rows["drafted_levels"] == deepest).astype(bool),
            "whole": rows["stop_reason"].isna(),
        }
    )
    return Promises(member.workload, member.slots, frame.reset_index(drop=True))


def mape(cycles: pd.DataFrame, what: str) -> Interval:
    """Mean over cycles of |predicted - realised| / realised, in percent; resampled by request."""
    error = (cycles[f"predicted_{what}"] - cycles[what]).abs() / cycles[what]
    return _mean(cycles, 100 * error)


def bias(cycles: pd.DataFrame, what: str) -> Interval:
    """Sum predicted over sum realised."""
    groups = cycles.groupby("request")
    sums = groups[[f"predicted_{what}", what]].sum()
    clusters = clusters_among(groups["cluster"].first())
    return ratio_interval(sums.iloc[:, 0].to_numpy(), sums.iloc[:, 1].to_numpy(), clusters)


def _mean(cycles: pd.DataFrame, values: pd.Series) -> Interval:
    sums = pd.DataFrame({"request": cycles["request"], "value": values, "n": 1})
    by_request = sums.groupby("request").sum()
    clusters = clusters_among(cycles.groupby("request")["cluster"].first())
    return ratio_interval(by_request["value"].to_numpy(), by_request["n"].to_numpy(), clusters)


def clusters_among(known: pd.Series) -> Clusters:
    """By request, in the order of the sums; None where one is not known."""
    return None if known.isna().any() else list(known)


def promises_sheet(found: Sequence[Promises], timed: str) -> Sheet:
    columns = (
        "workload",
        "slots",
        "cycles",
        "number",
        f"time off by, mean % ({timed})",
        f"time predicted / realised ({timed})",
        "tokens off by, mean %",
        "tokens predicted / committed",
    )
    rows: list[tuple[Entry, ...]] = []
    for one in found:
        for name, belongs in GROUPS.items():
            group = one.cycles[belongs(one.cycles)]
            whole = group[group["whole"]]
            rows.append(
                (
                    one.workload.label,
                    one.slots,
                    name,
                    len(group),
                    measured(mape(group, "ms")),
                    measured(bias(group, "ms"), change),
                    measured(mape(whole, "tokens")),
                    measured(bias(whole, "tokens"), change),
                )
            )
    note = (
        "One fit, made at the primary slots, predicts at every slot count. A predicted time is "
        "that of a full-depth cycle; cycles cut by a stop count no tokens."
    )
    return Sheet("What a selection predicted, and what came", columns, tuple(rows), note)


@dataclass(frozen=True)
class Bin:
    """Things promised about alike: how many, the mean promise, the mean that came."""

    count: int
    predicted: float
    came: Interval


def reward_bins(one: Promises) -> list[Bin]:
    """Cycles by predicted tokens, in steps of REWARD_STEP."""
    whole = one.cycles[one.cycles["whole"]]
    numbers = (whole["predicted_tokens"] // REWARD_STEP).astype(int)
    return [
        Bin(len(group), float(group["predicted_tokens"].mean()), _mean(group, group["tokens"]))
        for _, group in whole.groupby(numbers)
    ]


# -- the drafter -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Drafter:
    """`counts` of the study `drafter`: one row per (request, level, bin), with its cluster."""

    workload: Workload
    bins: int
    counts: pd.DataFrame

    def clusters_of(self, names: Sequence[str]) -> Clusters:
        """Of these requests, in this order; None where one is not known."""
        return clusters_among(self.counts.groupby("request_id")["cluster"].first()[list(names)])


def drafter(document: Mapping[str, Any], clusters: Mapping[str, Hashable]) -> Drafter:
    counts = pd.DataFrame(document["counts"])
    counts["cluster"] = counts["request_id"].map(clusters)
    return Drafter(workload_of(document["info"]), document["bins"], counts)


def path_bins(one: Drafter) -> list[Bin]:
    """Nodes by tenth of their path probability; empty bins are left out."""
    found = []
    for _, group in one.counts.groupby("bin"):
        by_request = group.groupby("request_id")[["accepted", "nodes", "path_probs"]].sum()
        nodes = int(by_request["nodes"].sum())
        mean = float(by_request["path_probs"].sum()) / PROBABILITY_ONE / nodes
        came = accepted_share(one, by_request)
        found.append(Bin(nodes, mean, came))
    return found


def accepted_share(one: Drafter, by_request: pd.DataFrame) -> Interval:
    """Of accepted nodes among all, from sums by request."""
    accepted, nodes = (by_request[name].to_numpy() for name in ("accepted", "nodes"))
    return ratio_interval(accepted, nodes, one.clusters_of(by_request.index))


def calibration_error(one: Drafter, level: int | None = None) -> Interval:
    """Expected calibration error: |accepted share - mean path probability| of each bin, weighted by
    its nodes; of one level, or of all."""
    counts = one.counts if level is None else one.counts[one.counts["level"] == level]
    table = counts.pivot_table(
        index="request_id",
        columns="bin",
        values=["accepted", "path_probs", "nodes"],
        aggfunc="sum",
        fill_value=0,
    )
    blocks = [table[name].to_numpy(float) for name in ("accepted", "path_probs", "nodes")]
    width = blocks[0].shape[1]
    blocks[1] = blocks[1] / PROBABILITY_ONE
    clusters = one.clusters_of(table.index)
    return interval_of(_weighted(width), np.concatenate(blocks, axis=1), clusters=clusters)


def _weighted(width: int) -> Callable[[Floats], Floats]:
    def statistic(sums: Floats) -> Floats:
        accepted, promised, nodes = (sums[..., i * width : (i + 1) * width] for i in range(3))
        gap: Floats = np.abs(accepted - promised).sum(axis=-1) / nodes.sum(axis=-1)
        return gap

    return statistic


def drafter_sheet(found: Sequence[Drafter]) -> Sheet:
    columns = ("workload", "level", "nodes", "accepted", "expected calibration error")
    rows: list[tuple[Entry, ...]] = []
    for one in found:
        levels = [*sorted(one.counts["level"].unique()), None]
        for level in levels:
            counts = one.counts if level is None else one.counts[one.counts["level"] == level]
            by_request = counts.groupby("request_id")[["accepted", "nodes"]].sum()
            rows.append(
                (
                    one.workload.label,
                    "all" if level is None else str(level),
                    int(by_request["nodes"].sum()),
                    measured(accepted_share(one, by_request)),
                    measured(calibration_error(one, level)),
                )
            )
    note = "Every node of the pool at every recorded position; tenths of path probability."
    return Sheet("Whether the drafter's path probabilities hold", columns, tuple(rows), note)


def table_predictions(reader: ResultsReader) -> Table:
    """What selections predicted against what came, and whether the drafter's probabilities hold."""
    promises, drafters, rows = promised(reader)
    sheets = {
        "": promises_sheet(promises, words_of(rows)),
        "drafter": drafter_sheet(drafters),
    }
    stamp = reader.stamp(rows, "predictions", extra=[INTERVALS])
    return Table("table_predictions", "Predicted against realised", sheets, stamp)


EARLY, LINE = "0.45", {"color": "0.3", "lw": 0.9, "ls": "--"}


def figure_predictions(reader: ResultsReader) -> Drawing:
    """Predicted against realised time and tokens of SpecFit's cycles; the drafter's reliability."""
    every, drafters, rows = promised(reader)
    promises = at_most_slots(every)
    word = words_of(rows)
    errors = ", ".join(
        f"{p.workload.short} time {mape(p.cycles, 'ms').value:.0f} %" for p in promises
    )
    alt = (
        f"Predicted against realised cycle time and tokens, and accepted share against path "
        f"probability. Mean error: {errors}."
    )
    marks = "Dots are means of a bin and grow with its cases; dashed: as predicted."
    bars = INTERVALS.replace("Brackets", "Bars")
    stamp = reader.stamp(rows, "predictions", extra=[marks, bars])
    return Drawing(
        "figure_predictions",
        f"What SpecFit predicts, and what comes (times {word})",
        2.9 * len(promises),
        stamp,
        alt,
        lambda sheet: paint(sheet, promises, drafters, word),
    )


def paint(sheet: Any, promises: list[Promises], drafters: list[Drafter], word: str) -> None:
    axes: Any = sheet.subplots(len(promises), 3, squeeze=False)
    known = {d.workload: d for d in drafters}
    for row, one in zip(axes, promises, strict=True):
        named = "\n".join(one.workload.lines)
        _times(row[0], one, named, word)
        _bins(row[1], reward_bins(one), "tokens predicted", "tokens committed")
        tokens = one.cycles[one.cycles["whole"]]
        row[1].set_title(f"tokens predicted: {change(bias(tokens, 'tokens').value or 1.0)} in sum")
        drafted = known[one.workload]
        _bins(row[2], path_bins(drafted), "path probability", "share accepted")
        row[2].set_title(f"drafter: calibration error {calibration_error(drafted).value:.3f}")
        row[2].set_xlim(-0.02, 1.02)
        row[2].set_ylim(-0.02, 1.02)


def _times(panel: Any, one: Promises, named: str, word: str) -> None:
    style = style_of("specfit")
    for full, name, colour, marker in (
        (False, "stopped early", EARLY, "x"),
        (True, "full depth", style.colour, style.marker),
    ):
        group = one.cycles[one.cycles["full"] == full]
        if len(group):
            error = mape(group, "ms").value or 0.0
            panel.plot(
                group["predicted_ms"],
                group["ms"],
                marker,
                ms=3,
                alpha=0.45,
                color=colour,
                mew=0.7,
                label=f"{name}: off by {error:.0f} %, n={len(group)}",
            )
    ends = [one.cycles[["predicted_ms", "ms"]].min().min(), one.cycles["predicted_ms"].max()]
    panel.plot(ends, ends, **LINE)
    panel.set_xlabel(f"predicted, ms ({word})")
    panel.set_ylabel(f"realised, ms ({word})")
    panel.set_title(f"{named}\ncycle time")
    panel.set_ylim(top=1.22 * one.cycles["ms"].max())
    legend = panel.legend(loc="upper left", fontsize=7, markerscale=1.5)
    for handle in legend.legend_handles:
        handle.set_alpha(1)


def _bins(panel: Any, bins: list[Bin], x: str, y: str) -> None:
    """What came against what was promised; marks grow with the number of cases."""
    style = style_of("specfit")
    most = max(b.count for b in bins)
    for b in bins:
        value = b.came.value or 0.0
        low, high = b.came.low, b.came.high
        if low is not None and high is not None:
            panel.plot([b.predicted, b.predicted], [low, high], color="#222222", lw=0.9)
        size = 3 + 7 * np.sqrt(b.count / most)
        panel.plot(b.predicted, value, "o", ms=size, color=style.colour, mec="#222222", mew=0.6)
    ends = [min(b.predicted for b in bins), max(b.predicted for b in bins)]
    panel.plot(ends, ends, **LINE)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
