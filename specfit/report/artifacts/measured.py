"""The measured comparison: systems on one machine's own clock, experts on its disk, block by block.

A block is one workload at one slot count, its baseline first and last (report/sandwich.py). Beside
each measured gain stands what the modelled clock says with the profile that a probe made there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from specfit.report.artifact import Table
from specfit.report.figures import EDGE, Drawing, marker, whiskers
from specfit.report.footer import INTERVALS
from specfit.report.intervals import Interval
from specfit.report.metrics import same_ids, totals
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.sandwich import TRIES, WITHIN, apart, split_try
from specfit.report.styles import SYSTEMS, Workload, style_of, workload_of
from specfit.report.table_format import Entry, Sheet, change, exact, factor, measured
from specfit.storage.rows import RunRows
from specfit.storage.suite import Found

SUITE = "measured"
FIRST, LAST, CACHED = "eagle3_cache", "again", "ar_cache"
MODELLED = "modelled"
GOAL = 0.10
"""What the modelled clock may be off by."""
VARIANTS = {
    "ar_early": ("ar_cache", "AR + cache, prefetching"),
    "learned": ("specfit", "SpecFit, learned routes (on the clock)"),
}
"""Names of the suite that are no key of SYSTEMS -> the system, and what it is called."""
ORDER = ("ar", "ar_cache", "ar_early", "eagle3", FIRST, "chain_k", "evict", "specfit", "learned")
COUNTED = ("cycles", "committed_tokens", "verified_nodes", "hit_experts", "transferred_experts")


def name_of(system: str) -> str:
    return VARIANTS[system][1] if system in VARIANTS else style_of(system).label


@dataclass(frozen=True, eq=False)
class Block:
    """Runs of one workload and setting: of every try by the suite's names, and modelled ones."""

    setting: str  # a slot count on disk, or the throttled link
    tries: Sequence[Mapping[str, RunRows]]
    modelled: Mapping[str, RunRows]

    @cached_property
    def chosen(self) -> Mapping[str, RunRows]:
        """The try whose baselines differ least."""
        return min(self.tries, key=lambda runs: apart(runs[FIRST], runs[LAST]))

    @property
    def apart(self) -> float:
        return apart(self.chosen[FIRST], self.chosen[LAST])

    @property
    def is_settled(self) -> bool:
        return self.apart <= WITHIN

    @property
    def state(self) -> str:
        word = "settled" if self.is_settled else "unsettled"
        tries = f", {len(self.tries)} tries" if len(self.tries) > 1 else ""
        return f"{word} ({100 * self.apart:.1f} %{tries})"

    @cached_property
    def baseline(self) -> RunRows:
        """Both runs of the baseline as one."""
        return pooled(self.chosen[FIRST], self.chosen[LAST])

    @property
    def workload(self) -> Workload:
        return workload_of(self.chosen[FIRST].info)

    @property
    def slots(self) -> int:
        return self.chosen[FIRST].info.cache_slots

    @property
    def link(self) -> str:
        return link_of(self.chosen[FIRST])

    def measured(self) -> dict[str, RunRows]:
        """By the suite's names, in the table's order; the baseline is both its runs."""
        runs = {**self.chosen, FIRST: self.baseline}
        return {name: runs[name] for name in ORDER if name in runs}

    def gain(self, name: str, over: str) -> Interval | None:
        """Of measured decode speed; None for a system over itself."""
        runs = self.measured()
        return None if name == over else QUANTITIES["speed"].ratio(runs[name], runs[over])

    def modelled_gain(self, name: str, over: str) -> Interval | None:
        runs = self.modelled
        if name == over or not {name, over} <= {*runs}:
            return None
        return QUANTITIES["speed"].ratio(runs[name], runs[over])

    def clock_error(self, name: str) -> float | None:
        """Modelled over measured time of all tokens, prefill included, minus 1."""
        if name not in self.modelled:
            return None
        both = (self.measured()[name], self.modelled[name])
        ours, told = (QUANTITIES["speed_with_prefill"].of(run).value for run in both)
        return ours / told - 1 if ours and told else None

    def equal_counters(self, name: str) -> tuple[int, int] | None:
        """(requests with the same cycles, nodes, hits and copies as the modelled run, requests)."""
        if name not in self.modelled:
            return None
        ours, told = (totals(run) for run in (self.chosen[name], self.modelled[name]))
        columns = list(COUNTED)
        same = (ours.decode[columns] == told.decode[columns]).all(axis=1)
        same &= (ours.prefill[columns] == told.prefill[columns]).all(axis=1)
        return int(same.sum()), len(same)


def pooled(first: RunRows, last: RunRows) -> RunRows:
    """Two runs of the same requests as one that did every cycle twice."""

    def both(name: str) -> Any:
        frames = [getattr(run, name) for run in (first, last)]
        return None if frames[0] is None else pd.concat(frames, ignore_index=True)

    return RunRows(first.info, both("cycles"), first.requests, both("timings"), both("sums"))


def link_of(run: RunRows) -> str:
    if bool(run.requests["disk_reads"].notna().any()):
        return "disk"
    caps = sorted(set(run.requests["link_gbps_cap"].dropna()))
    return " / ".join(f"host, {cap:g} GB/s" for cap in caps) or "host"


def blocks_of(found: Found) -> list[Block]:
    """In the suite's order; a block without both baselines is left out."""
    runs: dict[tuple[str, str], dict[int, dict[str, RunRows]]] = {}
    modelled: dict[tuple[str, str], dict[str, RunRows]] = {}
    for cell in found.suite.cells:
        if cell.kind == "bench":
            continue
        label, number = split_try(cell.label.removesuffix(f"/{MODELLED}"))
        workload, setting, name = label.split("/")
        if cell.kind == "replay":
            modelled.setdefault((workload, setting), {})[name] = found.rows(cell.label)
        else:
            tries = runs.setdefault((workload, setting), {})
            tries.setdefault(number, {})[name] = found.rows(cell.label)
    blocks = []
    for key, tries in runs.items():
        whole = [tries[n] for n in sorted(tries) if {FIRST, LAST} <= {*tries[n]}]
        if whole:
            blocks.append(Block(key[1], whole, modelled.get(key, {})))
    return blocks


# -- sheets ----------------------------------------------------------------------------------------


def gains_sheet(blocks: Sequence[Block]) -> Sheet:
    columns: tuple[str, ...] = ("workload", "link", "slots", "system", "n", "tokens/s (measured)")
    columns += ("over EAGLE-3 + cache (measured)", "over EAGLE-3 + cache (modelled)")
    columns += ("over AR + cache (measured)", "over AR + cache (modelled)")
    columns += ("committed / cycle", "hit rate, %", "counters as modelled", "ids as AR", "block")
    rows: list[tuple[Entry, ...]] = []
    for block in blocks:
        runs = block.measured()
        for name, run in runs.items():
            gains: list[Entry] = []
            for over in (FIRST, CACHED):
                gains.append(measured(block.gain(name, over), factor) if over in runs else None)
                gains.append(measured(block.modelled_gain(name, over), factor))
            equal = block.equal_counters(name)
            rows.append(
                (
                    block.workload.short,
                    block.link,
                    str(run.info.cache_slots),
                    name_of(name),
                    len(run.ok_ids),
                    measured(QUANTITIES["speed"].of(run)),
                    *gains,
                    measured(QUANTITIES["committed"].of(run)),
                    measured(QUANTITIES["hit_rate"].of(run)),
                    None if equal is None else f"{equal[0]} of {equal[1]}",
                    "-" if name == "ar" or "ar" not in runs else str(same_ids(run, runs["ar"])),
                    block.state,
                )
            )
    note = (
        "Measured: this machine's own clock. Modelled: the same requests by the modelled clock "
        "with the profile that a probe made of this machine. Systems that price trees have a fit "
        "of each clock, so their counters may part. Others' part by single experts, where two were "
        "tied at the router to the last bit."
    )
    return Sheet("Systems, measured beside modelled", columns, tuple(rows), note)


def blocks_sheet(blocks: Sequence[Block]) -> Sheet:
    """Every try: what its two baselines say of the machine."""
    columns: tuple[str, ...] = (
        "workload",
        "link",
        "slots",
        "try",
        "first baseline, tokens/s (measured)",
    )
    columns += ("last baseline, tokens/s (measured)", "difference, %", "shown", "reads")
    columns += ("CPU clock, MHz", "throttled", "core time stolen, %")
    rows: list[tuple[Entry, ...]] = []
    for block in blocks:
        for number, runs in enumerate(block.tries, 1):
            pair = runs[FIRST], runs[LAST]
            speeds = [measured(QUANTITIES["speed"].of(run)) for run in pair]
            shown = block.state if runs is block.chosen else "-"
            difference = exact(100 * apart(*pair))
            place = (block.workload.short, block.link, str(block.slots), number)
            rows.append((*place, *speeds, difference, shown, *machine_of(list(runs.values()))))
    note = (
        f"A block's baselines may differ by {100 * WITHIN:.0f} %, over their mean; else it is run "
        f"anew, {TRIES} times in all, and the try that differs least is shown."
    )
    return Sheet("Blocks: EAGLE-3 + cache first and last", columns, tuple(rows), note)


def machine_of(runs: Sequence[RunRows]) -> tuple[Entry, ...]:
    """How misses were read, then the CPU over all requests: clock, throttling, stolen time."""
    every = pd.concat([run.requests for run in runs], ignore_index=True)
    reads = " / ".join(sorted(set(every["disk_reads"].dropna()))) or "-"
    clock, counts, stolen = (
        every[name].dropna() for name in ("cpu_clock_mhz", "cpu_throttles", "cpu_steal_share")
    )
    return (
        reads,
        exact(float(clock.median())) if len(clock) else None,
        exact(float(counts.sum())) if len(counts) else None,
        exact(100 * float(stolen.mean())) if len(stolen) else None,
    )


def clock_sheet(blocks: Sequence[Block]) -> Sheet:
    """The modelled clock against the measured one, by link and system over all settled blocks."""
    columns: tuple[str, ...] = ("link", "system", "blocks", "modelled over measured time, least, %")
    columns += ("greatest, %", f"within {100 * GOAL:.0f} %")
    errors: dict[tuple[str, str], list[float]] = {}
    for block in blocks:
        for name in block.measured():
            error = block.clock_error(name)
            if error is not None and block.is_settled:
                errors.setdefault((block.link, name), []).append(error)
    rows: list[tuple[Entry, ...]] = [
        (
            link,
            name_of(name),
            len(found),
            exact(100 * min(found)),
            exact(100 * max(found)),
            "yes" if max(map(abs, found)) <= GOAL else "no",
        )
        for (link, name), found in errors.items()
    ]
    note = "Time of all tokens, prefill included; unsettled blocks are left out."
    return Sheet("How far the modelled clock is off", columns, tuple(rows), note)


def probes_of(found: Found) -> dict[str, Mapping[str, Any]]:
    """By label: the documents of the suite's probes."""
    cells = [cell for cell in found.suite.cells if cell.kind == "bench"]
    return {cell.label: found.document(cell.label) for cell in cells}


def link_sheet(probes: Mapping[str, Mapping[str, Any]]) -> Sheet:
    """What the probes measured of each link."""
    columns = ("probe", "memory", "KiB a copy", "microseconds (measured)", "GB/s (measured)")
    rows: list[tuple[Entry, ...]] = [
        (
            name,
            str(row["memory"]),
            exact(row["size_bytes"] / 1024),
            exact(row["copy_us"]),
            exact(row["gbps"]),
        )
        for name, document in probes.items()
        for row in document["link"]
    ]
    note = "disk x2: two reads in flight. The profile takes the size of an expert."
    return Sheet("The links, by size and copies in flight", columns, tuple(rows), note)


def notes_of(blocks: Sequence[Block]) -> list[str]:
    """Which blocks are unsettled, and that AR and EAGLE-3 are shared."""
    unsettled = [b for b in blocks if not b.is_settled]
    told = [f"{b.workload.short}, {b.link}, {b.slots} slots: {b.state}" for b in unsettled]
    settled = f"{len(blocks) - len(unsettled)} of {len(blocks)} blocks are settled"
    return [
        f"{'; unsettled: '.join([settled, '; '.join(told)] if told else [settled])}.",
        "AR and EAGLE-3 have no slots and are measured once a workload and link.",
    ]


def table_measured(reader: ResultsReader) -> Table:
    """Measured: every system on this machine's clock, experts on its disk, beside the model."""
    found = reader.suites(SUITE)[0]
    blocks = blocks_of(found)
    sheets = {
        "": gains_sheet(blocks),
        "blocks": blocks_sheet(blocks),
        "clock": clock_sheet(blocks),
        "link": link_sheet(probes_of(found)),
    }
    stamp = reader.stamp(_rows(blocks), SUITE, extra=[INTERVALS])
    return Table("table_measured", _title(blocks), sheets, stamp, notes_of(blocks))


def _rows(blocks: Sequence[Block]) -> list[RunRows]:
    """Of the shown tries; the baseline's two runs are both there."""
    measured_runs = [run for block in blocks for run in block.chosen.values()]
    return [*measured_runs, *(run for block in blocks for run in block.modelled.values())]


def _title(blocks: Sequence[Block]) -> str:
    devices = dict.fromkeys(block.chosen[FIRST].info.device for block in blocks)
    return f"Measured on {' / '.join(devices)}: experts on disk"


# -- the figure ------------------------------------------------------------------------------------

PANELS = {FIRST: "SpecFit over EAGLE-3 + cache", CACHED: "SpecFit over AR + cache"}
UNSETTLED = "#BBBBBB"


def figure_measured(reader: ResultsReader) -> Drawing:
    """Measured: what SpecFit gains over EAGLE-3 + cache and over AR + cache, beside the model."""
    found = reader.suites(SUITE)[0]
    blocks = [b for b in blocks_of(found) if {"specfit", CACHED} <= {*b.chosen}]
    gains = [
        [(b.gain("specfit", o), b.modelled_gain("specfit", o)) for b in blocks] for o in PANELS
    ]
    names = [f"{b.workload.short}\n{b.link}, {b.slots} slots" for b in blocks]

    def paint(figure: Any) -> None:
        panels: Any = figure.subplots(1, 2)
        for axes, title, pairs in zip(panels, PANELS.values(), gains, strict=True):
            _panel(axes, title, blocks, pairs)
            axes.set_yticks(range(len(names)), names, fontsize=7.5)
        panels[1].set_yticklabels([])
        figure.legend(handles=_handles(), loc="outside lower center", ncols=3)

    stamp = reader.stamp(_rows(blocks), SUITE, extra=[*notes_of(blocks), INTERVALS])
    height = 1.6 + 0.42 * len(blocks)
    return Drawing("figure_measured", _title(blocks), height, stamp, _alt(blocks, gains[0]), paint)


def _panel(
    axes: Any,
    title: str,
    blocks: Sequence[Block],
    pairs: Sequence[tuple[Interval | None, Interval | None]],
) -> None:
    style = SYSTEMS["specfit"]
    for row, (block, (ours, told)) in enumerate(zip(blocks, pairs, strict=True)):
        colour = style.colour if block.is_settled else UNSETTLED
        if ours is not None and ours.value is not None:
            looks: dict[str, Any] = {"color": colour, "mec": EDGE, "ecolor": EDGE, "capsize": 2}
            axes.errorbar(
                ours.value, row - 0.12, xerr=whiskers(ours), fmt=style.marker, lw=0.9, **looks
            )
        if told is not None and told.value is not None:
            axes.plot(told.value, row + 0.18, "d", mfc="none", mec=EDGE)
    axes.axvline(1, color="0.3", lw=0.8)
    axes.set_ylim(len(blocks) - 0.45, -0.55)
    axes.set_title(title)
    axes.set_xlabel("times as fast")
    axes.margins(x=0.1)


def _handles() -> list[Any]:
    style = SYSTEMS["specfit"]
    return [
        marker(style.marker, "measured", style.colour),
        marker(style.marker, "measured, block unsettled", UNSETTLED),
        marker("d", "modelled, the probe's profile"),
    ]


def _alt(blocks: Sequence[Block], pairs: Sequence[tuple[Interval | None, Interval | None]]) -> str:
    told = [
        f"{block.workload.short}, {block.link}, {block.slots} slots: {change(ours.value)}"
        for block, (ours, _) in zip(blocks, pairs, strict=True)
        if ours is not None and ours.value is not None
    ]
    return f"SpecFit against EAGLE-3 + cache, measured decode speed: {'; '.join(told)}."
