"""Measured: the embedded pair from one machine's disk, format by format.

A block is one workload in one format, its baseline first and last. Formats round to texts of their
own, so systems are compared within a block alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specfit.report.artifact import Table
from specfit.report.footer import INTERVALS
from specfit.report.intervals import Interval
from specfit.report.metrics import same_ids, totals
from specfit.report.quality import quality_of
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.styles import Workload, style_of
from specfit.report.suite_runs import SuiteRun, one, pick
from specfit.report.table_format import Cell, Entry, Sheet, factor, measured

SUITE = "measured_formats"
BASELINE, PLAIN = "eagle3_cache", "ar_cache"
WITHIN = 0.05
"""By how much a block's baselines may differ, of the slower."""


@dataclass(frozen=True, eq=False)
class Block:
    """One workload in one format. `members` hold the baseline twice, as repeats."""

    members: Sequence[SuiteRun]

    @property
    def workload(self) -> Workload:
        return self.members[0].workload

    @property
    def format(self) -> str:
        return format_of(self.members[0])

    @property
    def drift(self) -> float:
        """Of the baseline's decode time from its first run to its last, of the longer one."""
        first, last = (
            int(totals(m.rows).decode["cycle_ns"].sum())
            for m in sorted(pick(self.members, system=BASELINE), key=lambda m: m.repeat)
        )
        return abs(first - last) / max(first, last)

    @property
    def texts_agree(self) -> bool:
        base = one(self.members, system=BASELINE).rows
        return all(same_ids(m.rows, base).equal for m in self.members)

    def over(self, member: SuiteRun, system: str) -> Interval | None:
        """Decode speed over that of a system of the block."""
        base = one(self.members, system=system).rows
        return None if member.system == system else QUANTITIES["speed"].ratio(member.rows, base)


def format_of(member: SuiteRun) -> str:
    """As rows say it; of experts in floating point, the type that they are computed in."""
    stored = member.rows.requests["expert_format"].dropna()
    return str(stored.iloc[0]) if len(stored) else str(member.config["model"]["dtype"])


def blocks_of(members: Sequence[SuiteRun]) -> list[Block]:
    keys = dict.fromkeys((m.workload, format_of(m)) for m in members)
    return [Block([m for m in members if (m.workload, format_of(m)) == key]) for key in keys]


def speeds_sheet(blocks: Sequence[Block]) -> Sheet:
    columns = ["workload", "experts as", "system", "tokens/s (measured)"]
    columns += [f"over {style_of(name).label}" for name in (BASELINE, PLAIN)]
    columns += ["committed / cycle", "misses / token", "KB read / token", "waiting, % of the time"]
    rows: list[tuple[Entry, ...]] = []
    for block in blocks:
        for member in block.members:
            if member.repeat:
                continue
            sums = totals(member.rows).decode.sum()
            tokens = sums["committed_tokens"]
            rows.append(
                (
                    block.workload.label,
                    block.format,
                    style_of(member.system).label,
                    measured(QUANTITIES["speed"].of(member.rows)),
                    *(measured(block.over(member, s), factor) for s in (BASELINE, PLAIN)),
                    measured(QUANTITIES["committed"].of(member.rows)),
                    measured(QUANTITIES["experts"].of(member.rows)),
                    _one_place(sums["transferred_bytes"] / tokens / 1e3),
                    _one_place(100 * sums["transfer_wait_ns"] / sums["cycle_ns"]),
                )
            )
    note = "Decoding alone. Systems are compared within a format: rounding changes the text."
    return Sheet("The embedded pair from disk, format by format", tuple(columns), tuple(rows), note)


def _one_place(value: float) -> Cell:
    return Cell(f"{value:.1f}", float(value))


def blocks_sheet(blocks: Sequence[Block]) -> Sheet:
    """What a block's numbers rest on, and what rounding does to the answers."""
    columns = ("workload", "experts as", "baseline, first to last", "block", "texts agree", "score")
    rows: list[tuple[Entry, ...]] = []
    for block in blocks:
        base = one(block.members, system=BASELINE)
        quality = quality_of(base.rows, base.config.get("dataset", {}).get("scorer"))
        told = Cell(f"{100 * block.drift:.1f} %", block.drift)
        state = "settled" if block.drift <= WITHIN else "unsettled"
        agree = "yes" if block.texts_agree else "no"
        score = (
            None if quality is None else Cell(f"{quality.name} {quality.mean:.2f}", quality.mean)
        )
        rows.append((block.workload.label, block.format, told, state, agree, score))
    note = f"Settled: the baselines differ by {100 * WITHIN:.0f} % at most."
    return Sheet("Blocks", columns, tuple(rows), note)


def table_measured_formats(reader: ResultsReader) -> Table:
    """Measured: the embedded pair from disk in bf16, FP8 and int4."""
    members = reader.members(SUITE)
    blocks = blocks_of(members)
    notes = [INTERVALS]
    loose = [
        f"{block.format} ({100 * block.drift:.0f} %)" for block in blocks if block.drift > WITHIN
    ]
    if loose:
        notes.append(
            f"The machine changed between a block's baselines: {', '.join(loose)}. Such blocks say "
            "nothing of the systems; run them again on an idle machine."
        )
    sheets = {"": speeds_sheet(blocks), "blocks": blocks_sheet(blocks)}
    stamp = reader.stamp([m.rows for m in members], SUITE, extra=notes)
    return Table("table_measured_formats", "Formats from disk, measured", sheets, stamp)
