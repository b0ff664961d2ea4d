"""Every selection rule side by side: speed, speed against others, and what a copy brought in."""

from __future__ import annotations

from collections.abc import Sequence

from specfit.report.artifact import Table
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Interval, clusters_in, ratio_interval
from specfit.report.many import beneath
from specfit.report.metrics import totals
from specfit.report.quantities import QUANTITIES, copy_scale, times
from specfit.report.reader import ResultsReader
from specfit.report.styles import rank, style_of
from specfit.report.suite_runs import SuiteRun, pick
from specfit.report.table_format import Entry, Sheet, factor, measured
from specfit.storage.rows import RunRows

PER_COPIES = 1000


ANATOMY = ("committed", "verified", "experts", "cycle")


NOTE = (
    "k: selector.k, the most nodes that a rule verifies. Accepted tokens exclude the target's own. "
    "Experts are copies in decode, of the billed model. AR and EAGLE-3 have no cache and stand at "
    "every slot count. EVICT, EcoSpec, Cascade and MoE-SpeQ are our reading of published rules."
)


STOPS_EARLY = {"specfit": True, "closure": True, "greedy": True, "evict": False}


"""Rules that can stop drafting at a level they take nothing of -> whether they usually do."""


Rule = tuple[str, int, str]


"""Key of styles.SYSTEMS, selector.k, and what else was set: "" where nothing was."""


def rule_of(member: SuiteRun) -> Rule:
    selector, set_apart = member.config.get("selector", {}), []
    if (objective := member.config.get("objective", "ratio")) != "ratio":
        set_apart.append(str(objective))
    usual = STOPS_EARLY.get(member.system)
    if usual is not None and bool(selector.get("adaptive_depth", usual)) != usual:
        set_apart.append("full depth" if usual else "early stop")
    return member.system, int(selector.get("k", 0)), ", ".join(set_apart)


def rules_of(members: Sequence[SuiteRun]) -> list[Rule]:
    """In the registry's order, a rule's fixed sizes ascending."""
    return sorted({rule_of(m) for m in members}, key=lambda r: (rank(r[0]), r[1:]))


def named(rule: Rule) -> str:
    system, _, set_apart = rule
    return style_of(system).label + (f", {set_apart}" if set_apart else "")


class Field:
    """The runs of one workload by rule and slots. An uncached system stands at every slot count."""

    def __init__(self, members: Sequence[SuiteRun]) -> None:
        self.members = members
        self.rules = rules_of(members)
        self.slots = sorted({m.slots for m in members} - {0}, reverse=True)

    def rows(self, rule: Rule, slots: int) -> RunRows | None:
        """The first repeat, or None where the suite has no such run."""
        held = [m for m in self.members if rule_of(m) == rule and m.slots in (slots, 0)]
        return min(held, key=lambda m: m.repeat).rows if held else None


def accepted_per_copy(run: RunRows) -> Interval:
    """Accepted draft tokens per 1,000 experts moved in decode, experts as the clock bills them."""
    t = totals(run)
    top, bottom = (t.decode[name] for name in ("accepted_tokens", "transferred_experts"))
    found = ratio_interval(top.to_numpy(), bottom.to_numpy(), clusters_in(run, run.ok_ids))
    return times(found, PER_COPIES / copy_scale(run))


def speed_over(run: RunRows | None, baseline: RunRows | None) -> Interval | None:
    """Decode tokens per second, paired by request; None where one is missing."""
    if run is None or baseline is None:
        return None
    return QUANTITIES["speed"].ratio(run, baseline)


def main_sheet(fields: Sequence[Field], baseline: Rule, timed: str) -> Sheet:
    """One row per workload and rule, three columns per slot count."""
    slots = sorted({s for field in fields for s in field.slots}, reverse=True)
    columns = ["workload", "selector", "k"]
    for s in slots:
        columns += [f"{s} slots: tokens/s ({timed})", f"{s}: against {named(baseline)}"]
        columns += [f"{s}: accepted / {PER_COPIES:,} experts"]
    rows: list[tuple[Entry, ...]] = []
    for field in fields:
        for rule in field.rules:
            line: list[Entry] = [field.members[0].workload.label, named(rule), rule[1]]
            for s in slots:
                run = field.rows(rule, s)
                speed = None if run is None else QUANTITIES["speed"].of(run)
                line += [measured(speed)]
                line += [measured(speed_over(run, field.rows(baseline, s)), factor)]
                line += [measured(None if run is None else accepted_per_copy(run))]
            rows.append(tuple(line))
    return Sheet("Selection rules on the same requests", tuple(columns), tuple(rows), NOTE)


def over_sheet(fields: Sequence[Field], of: Rule) -> Sheet:
    """One rule over each other one, in decode tokens per second."""
    slots = sorted({s for field in fields for s in field.slots}, reverse=True)
    rows: list[tuple[Entry, ...]] = [
        (
            field.members[0].workload.label,
            named(rule),
            rule[1],
            *(measured(speed_over(field.rows(of, s), field.rows(rule, s)), factor) for s in slots),
        )
        for field in fields
        for rule in field.rules
        if rule != of
    ]
    columns = ("workload", "against", "k", *(f"{s} slots" for s in slots))
    return Sheet(f"{named(of)} against each other rule, tokens/s", columns, tuple(rows))


def anatomy_sheet(fields: Sequence[Field], slots: int, timed: str) -> Sheet:
    """What a rule's cycles are like at one slot count."""
    heads = [
        f"{QUANTITIES[name].label}, ms ({timed})" if name == "cycle" else QUANTITIES[name].label
        for name in ANATOMY
    ]
    rows: list[tuple[Entry, ...]] = []
    for field in fields:
        for rule in field.rules:
            run = field.rows(rule, slots)
            cells = [None if run is None else measured(QUANTITIES[n].of(run)) for n in ANATOMY]
            rows.append((field.members[0].workload.label, named(rule), rule[1], *cells))
    columns = ("workload", "selector", "k", *heads)
    return Sheet(f"A cycle of each rule at {slots} slots", columns, tuple(rows))


CHOSEN = (
    "Of a rule at several sizes (k), the best is chosen on the text that it is shown on, which "
    "favours that rule; what is chosen on development text is in table_advice."
)


SUITE = "rivals"


BASELINE = ("eagle3_cache", 7, "")


OURS = ("specfit", 7, "")


def table_rivals(reader: ResultsReader) -> Table:
    """Every selection rule at every slot count, and accepted tokens per expert moved."""
    members = reader.members(SUITE, kind="replay")
    workloads = dict.fromkeys(m.workload for m in members)
    fields = [Field(pick(members, workload=workload)) for workload in workloads]
    rows = [m.rows for m in members]
    timed, most = words_of(rows), max(m.slots for m in members)
    sheets = {
        "": main_sheet(fields, BASELINE, timed),
        "over": over_sheet(fields, OURS),
        "cycle": anatomy_sheet(fields, most, timed),
    }
    stamp = reader.stamp(rows, SUITE, extra=[INTERVALS])
    notes = [*beneath([sheets["over"]]), CHOSEN]
    return Table("table_rivals", "Selection rules side by side", sheets, stamp, notes)
