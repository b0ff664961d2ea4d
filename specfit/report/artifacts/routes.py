"""Route sources side by side: what of the exact routes' gain each keeps, and how right it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specfit.report.artifact import Table
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Floats, Interval, clusters_in, interval_of
from specfit.report.many import beneath
from specfit.report.metrics import ratio, shared_requests, totals
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.styles import Workload, workload_of
from specfit.report.suite_runs import SuiteRun, pick
from specfit.report.table_format import Cell, Entry, Sheet, change, exact, measured
from specfit.storage.rows import RunRows

Source = tuple[str, str]


"""routes.name, cost."""


WORTH = 0.05


"""Below this gain of the exact routes a share of it says nothing."""


EXACT: Source = ("atlas", "union")


LABELS: Mapping[Source, str] = {
    ("atlas", "union"): "exact (off the clock)",
    ("learned", "union"): "learned, top-k",
    ("learned", "expected_union"): "learned, expected union",
    ("token_table", "union"): "token table",
    ("last_token", "union"): "last token",
    ("noisy", "union"): "60 % right, simulated",
}


STUDIED = {
    "learned": "learned, top-k",
    "expected": "learned, expected union",
    "token_table": "token table",
    "last_token": "last token",
    "noisy_0.6": "60 % right, simulated",
}


KEPT_NOTE = (
    "kept: (source / EAGLE-3 + cache - 1) / (exact / EAGLE-3 + cache - 1), where the exact routes "
    f"gain more than {100 * WORTH:.0f} % with an interval clear of zero; elsewhere the difference "
    "to exact routes in tokens/s; goal 0.97. A source on the clock pays routes.level_ms per "
    "drafted level."
)


def source_of(member: SuiteRun) -> Source:
    routes = member.config.get("routes", {})
    return str(routes.get("name", "")), str(member.config.get("cost", "union"))


@dataclass(frozen=True, eq=False)
class Setting:
    """One workload at one slot count."""

    workload: Workload
    slots: int
    eagle: RunRows
    by_source: Mapping[Source, RunRows]

    @property
    def gain(self) -> Interval:
        """Of the exact routes over EAGLE-3 + cache."""
        return QUANTITIES["speed"].ratio(self.by_source[EXACT], self.eagle)

    @property
    def has_share(self) -> bool:
        gain = self.gain
        return (
            gain.value is not None
            and gain.low is not None
            and gain.value > 1 + WORTH
            and gain.low > 1
        )

    def kept(self, source: Source) -> Interval:
        """Share of the exact routes' gain, the three runs resampled by the same requests."""
        runs = self.eagle, self.by_source[EXACT], self.by_source[source]
        clusters = clusters_in(self.eagle, self.eagle.ok_ids)
        return interval_of(_share, _columns(runs), clusters=clusters)

    def behind(self, source: Source) -> Interval:
        """Tokens/s of the source minus those of the exact routes."""
        runs = self.by_source[EXACT], self.by_source[source]
        clusters = clusters_in(runs[0], runs[0].ok_ids)
        return interval_of(_difference, _columns(runs), clusters=clusters)

    def kept_cell(self, source: Source) -> Cell:
        if source == EXACT:
            return Cell("1" if self.has_share else "0 tokens/s", 1.0 if self.has_share else 0.0)
        if self.has_share:
            return measured(self.kept(source), lambda value: f"{value:.3f}")
        found = measured(self.behind(source), lambda value: f"{value:+.2f}")
        return Cell(f"{found.text} tokens/s", found.value, found.low, found.high)


def settings(members: Sequence[SuiteRun]) -> list[Setting]:
    """Workload by workload in the suite's order, slots descending."""
    found = []
    for workload in dict.fromkeys(m.workload for m in members):
        held = [m for m in members if m.workload == workload and m.repeat == 0]
        for slots in sorted({m.slots for m in held}, reverse=True):
            mine = pick(held, slots=slots)
            eagle = pick(mine, system="eagle3_cache")[0].rows
            sources = {source_of(m): m.rows for m in pick(mine, system="specfit")}
            found.append(Setting(workload, slots, eagle, sources))
    return found


def _columns(runs: Sequence[RunRows]) -> Floats:
    """[n, 2 x runs]: committed tokens and nanoseconds of every run, by request."""
    shared, _ = shared_requests(runs[0], runs[-1])
    names = ["committed_tokens", "cycle_ns"]
    parts = [totals(run).decode.loc[shared, names].to_numpy(float) for run in runs]
    return np.concatenate(parts, axis=1)


def _share(sums: Floats) -> Floats:
    eagle, best, ours = (sums[..., i] / sums[..., i + 1] for i in (0, 2, 4))
    found: Floats = (ours / eagle - 1) / (best / eagle - 1)
    return found


def _difference(sums: Floats) -> Floats:
    best, ours = (1e9 * sums[..., i] / sums[..., i + 1] for i in (0, 2))
    found: Floats = ours - best
    return found


# -- speed ---------------------------------------------------------------------------------------


def kept_sheet(found: Sequence[Setting], timed: str) -> Sheet:
    """One row per workload and source, three columns per slot count."""
    slots = sorted({s.slots for s in found}, reverse=True)
    columns = ["workload", "routes"]
    for n in slots:
        columns += [f"{n} slots: tokens/s ({timed})", f"{n}: over EAGLE-3 + cache", f"{n}: kept"]
    rows: list[tuple[Entry, ...]] = []
    for workload in dict.fromkeys(s.workload for s in found):
        mine = {s.slots: s for s in found if s.workload == workload}
        for source, label in LABELS.items():
            line: list[Entry] = [workload.label, label]
            for n in slots:
                line += _speed_cells(mine.get(n), source)
            if any(entry is not None for entry in line[2:]):
                rows.append(tuple(line))
    return Sheet("What each route source keeps", tuple(columns), tuple(rows), KEPT_NOTE)


def _speed_cells(setting: Setting | None, source: Source) -> list[Entry]:
    if setting is None or source not in setting.by_source:
        return [None, None, None]
    run, speed = setting.by_source[source], QUANTITIES["speed"]
    over = measured(speed.ratio(run, setting.eagle), change)
    return [measured(speed.of(run)), over, setting.kept_cell(source)]


def costs_sheet(found: Sequence[Setting]) -> Sheet:
    """The expected union beside hard sets, both under the same learned routes."""
    hard, soft = ("learned", "union"), ("learned", "expected_union")
    rows: list[tuple[Entry, ...]] = []
    for setting in found:
        if hard in setting.by_source and soft in setting.by_source:
            a, b = setting.by_source[soft], setting.by_source[hard]
            cells = [QUANTITIES[n].ratio(a, b) for n in ("speed", "verified", "experts")]
            ratios = (measured(c, factor3) for c in cells)
            rows.append((setting.workload.label, setting.slots, *ratios))
    columns = ("workload", "slots", "tokens/s", "verified / cycle", "experts / token")
    return Sheet("Learned routes: expected union over top-k sets", columns, tuple(rows))


def factor3(value: float) -> str:
    return f"{value:.3f}x"


def clock_sheet(found: Sequence[Setting], timed: str) -> Sheet:
    """What a source's reads cost on the clock."""
    rows: list[tuple[Entry, ...]] = []
    for source, label in LABELS.items():
        for setting in found:
            if source in setting.by_source:
                t = totals(setting.by_source[source])
                per_cycle = ratio(t.sum("route_ns") / 1e6, t.sum("cycles"))
                share = ratio(100 * t.sum("route_ns"), t.sum("cycle_ns"))
                cells = exact(per_cycle), exact(share)
                rows.append((label, setting.workload.label, setting.slots, *cells))
    columns = ("routes", "workload", "slots", f"ms per cycle ({timed})", "% of decode")
    return Sheet("Routes on the clock", columns, tuple(rows))


def size_sheet(documents: Sequence[Mapping[str, Any]]) -> Sheet:
    """Arithmetic of one drafted level, at the shapes of the paper's model too; nothing measured."""
    rows: list[tuple[Entry, ...]] = []
    for size in documents[0]["sizes"]:
        held, read = (exact(size[name] / 1e6) for name in ("held_bytes", "read_bytes"))
        rows.append((size["of"], held, read, exact(size["flop"] / 1e6)))
    columns = ("what", "held, MB", "read per level, MB", "MFLOP per level")
    note = (
        "By arithmetic. A level is two expanded nodes of two children each: the predictor reads "
        "four rows in float32, the head two in bfloat16, the table a line per row in host memory."
    )
    return Sheet("What a source reads and computes", columns, tuple(rows), note)


# -- how right -----------------------------------------------------------------------------------


def recall_sheets(documents: Sequence[Mapping[str, Any]]) -> dict[str, Sheet]:
    """By depth and by layer: % of a row's routed experts that the source named."""
    return {
        "depth": _recall_sheet(documents, "depth", 1),
        "layer": _recall_sheet(documents, "layer", 0),
    }


def _recall_sheet(documents: Sequence[Mapping[str, Any]], what: str, summed: int) -> Sheet:
    rows: list[tuple[Entry, ...]] = []
    width = 0
    for document in documents:
        for key, label in STUDIED.items():
            tally = document["sources"].get(key)
            if tally is None or not np.sum(tally["routed"]):
                continue
            hits, routed = (np.array(tally[name]) for name in ("hits", "routed"))
            each = hits.sum(summed) / routed.sum(summed)
            whole = exact(float(100 * hits.sum() / routed.sum()))
            cells = [exact(float(100 * value)) for value in each]
            width = max(width, len(cells))
            rows.append((workload_of(document["info"]).label, label, whole, *cells))
    filled = [(*row, *[None] * (3 + width - len(row))) for row in rows]
    columns = ("workload", "routes", "all", *(f"{what} {i}" for i in range(width)))
    note = "Depth 0 is the root." if what == "depth" else ""
    return Sheet(f"Recall of routed experts by {what}, %", columns, tuple(filled), note)


def union_sheet(documents: Sequence[Mapping[str, Any]]) -> Sheet:
    """The union that a source sees of the root and the n most probable nodes."""
    rows: list[tuple[Entry, ...]] = []
    sizes = 0
    for document in documents:
        for key, label in STUDIED.items():
            tally = document["sources"].get(key)
            if tally is None:
                continue
            told, true = (np.array(tally[name]).sum(1) for name in ("told", "true"))
            counted = np.array(tally["selections"])
            error = np.array(tally["error"]) / counted
            layer = np.array(tally["layer_error"]) / counted[:, None]
            sizes = max(sizes, len(told))
            cells = [
                Cell(f"{100 * (a / b - 1):+.1f} / {100 * e:.1f} / {100 * one:.1f}", None)
                for a, b, e, one in zip(told, true, error, layer.mean(1), strict=True)
            ]
            rows.append((workload_of(document["info"]).label, label, *cells))
    columns = ("workload", "routes", *(f"{n} nodes" for n in range(sizes)))
    note = (
        "Bias of the union's size, its mean absolute error over all layers, and that of one layer, "
        "in %; root and the n most probable nodes of every recorded pool."
    )
    return Sheet("Union size as the source sees it", columns, tuple(rows), note)


SUITE = "routes"


def table_routes(reader: ResultsReader) -> Table:
    """Route sources: what of the exact routes' gain each keeps, its time, and how right it is."""
    members, suite = reader.members(SUITE, kind="replay"), reader.suites(SUITE)[0]
    documents = [suite.document(c.label) for c in suite.suite.cells if c.kind == "bench"]
    found, rows = settings(members), [m.rows for m in members]
    timed = words_of(rows)
    sheets = {
        "": kept_sheet(found, timed),
        "costs": costs_sheet(found),
        "clock": clock_sheet(found, timed),
        "size": size_sheet(documents),
        **recall_sheets(documents),
        "union": union_sheet(documents),
    }
    stamp = reader.stamp(rows, SUITE, extra=[INTERVALS])
    notes = beneath([sheets["costs"]])
    return Table("table_routes", "Routes on the clock", sheets, stamp, notes)
