"""The simulator beside what others counted and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specfit.report.artifact import Table
from specfit.report.reader import ResultsReader
from specfit.report.table_format import Cell, Entry, Sheet, exact

SUITE = "real_geometry"
NAMES = {
    "lru": "LRU, one pool",
    "lfu": "LFU, one pool",
    "belady": "Belady, one pool",
    "layer": "LRU, equal parts per layer",
    "layerlfu": "LFU, equal parts per layer",
}


def counted_sheet(counted: Sequence[Mapping[str, Any]]) -> Sheet:
    """The engine's own counters."""
    columns = ("model", "one pool of, MiB", "one token needs, MiB", "engine counted, %", "ours, %")
    rows: list[tuple[Entry, ...]] = [
        (
            one["model"],
            one["mib"],
            exact(one["cycle_mib"]),
            _places(one["engine"], 1),
            _places(one["ours"], 1),
        )
        for one in counted
    ]
    return Sheet("Hit rates that an engine counted", columns, tuple(rows))


def curve_sheet(curve: Sequence[Mapping[str, Any]]) -> Sheet:
    """Every policy and memory of the source's curve: theirs, ours, ours less theirs."""
    columns = ["model", "policy", "MiB", "source, %", "ours, %", "difference, points"]
    columns += ["decode: source, %", "ours, %", "difference, points"]
    rows: list[tuple[Entry, ...]] = []
    for one in sorted(curve, key=lambda r: (r["model"], list(NAMES).index(r["policy"]), r["mib"])):
        line: list[Entry] = [one["model"], NAMES[one["policy"]], one["mib"]]
        for part in ("", "_decode"):
            theirs, ours = one[f"source{part}"], one[f"ours{part}"]
            line += [_places(theirs, 3), _places(ours, 3), _places(round(ours, 3) - theirs, 3)]
        rows.append(tuple(line))
    note = (
        "Source: BigMoeOnEdge's replays of its own routes (Apache-2.0). Prompts are one pass; of a "
        "pass, the expert that its tokens name last is the most recent. Its `random` is not drawn."
    )
    return Sheet("Hit rates by policy and memory", tuple(columns), tuple(rows), note)


def slots_sheet(slots: Mapping[str, Any]) -> Sheet:
    """A stranger's tokens/s by slots, two of them fitted, the others predicted."""
    columns = ("slots", "misses a token", "measured, tokens/s", "modelled, tokens/s", "error")
    rows: list[tuple[Entry, ...]] = [
        (
            one["slots"],
            exact(one["misses"]),
            _places(one["measured"], 1),
            _places(one["predicted"], 1),
            "fitted" if one["fitted"] else Cell(f"{100 * one['error']:+.1f} %", one["error"]),
        )
        for one in slots["points"]
    ]
    pair = " and ".join(str(count) for count in slots["best_pair"])
    note = (
        "Measured by vllm-expert-cache (Qwen3-30B-A3B W8A8, two MI210). Two constants, "
        f"{slots['fixed_ms']:.2f} ms a token and {slots['miss_ms']:.4f} ms a miss, fitted on 128 "
        "and 0 slots; misses: LRU over real routes (prompt tokens), one token a forward. Fitted on "
        f"{pair} slots, which predicts best, the worst error is "
        f"{100 * slots['best_pair_worst_error']:.1f} %."
    )
    return Sheet("A measured slot curve", columns, tuple(rows), note)


def _places(value: float, places: int) -> Cell:
    value = round(value, places) + 0.0
    return Cell(f"{value:.{places}f}", value)


def table_validation(reader: ResultsReader) -> Table:
    """The simulator beside an engine's counters and a stranger's slot curve."""
    document = reader.suites(SUITE)[0].document("validation")
    sheets = {
        "": counted_sheet(document["counted"]),
        "curve": curve_sheet(document["curve"]),
        "slots": slots_sheet(document["slots"]),
    }
    stamp = reader.stamp([], SUITE, extra=["Counted and modelled from published routes."])
    return Table("table_validation", "The simulator against others' counts", sheets, stamp)
