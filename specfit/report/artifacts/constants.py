"""The headline ratios at half and double each constant that the profile assumes, and along the line
of fixed cost and link on which AR stays as fast as the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specfit.base.types import SpecfitError
from specfit.report.artifact import Table
from specfit.report.artifacts.systems import headed
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Interval
from specfit.report.paper_values import CLAIMS
from specfit.report.quantities import QUANTITIES
from specfit.report.reader import ResultsReader
from specfit.report.styles import style_of
from specfit.report.suite_runs import SuiteRun, one, pick
from specfit.report.table_format import Entry, Sheet, change, exact, factor, measured

BASELINES = ("ar", "ar_cache", "eagle3", "eagle3_cache")


Values = Mapping[str, Any]


def profile_values(member: SuiteRun) -> Values:
    """The numbers of the profile that the run was billed by."""
    gpu = member.config["gpu"]
    return {key: gpu[key] for key in gpu if key not in ("name", "billed")}


def most_common(profiles: Sequence[Values]) -> Values:
    """The profile as it is: each key's value in most runs."""
    keys = {key for values in profiles for key in values}
    found = {}
    for key in sorted(keys):
        listed = [values.get(key) for values in profiles]
        found[key] = max(dict.fromkeys(listed), key=listed.count)
    return found


def changed(values: Values, usual: Values) -> str:
    """'node_ms 0.6 -> 0.3', or 'as it is'."""
    parts = [f"{k} {usual[k]} -> {values.get(k)}" for k in usual if values.get(k) != usual[k]]
    return ", ".join(parts) or "as it is"


def constants_sheet(members: Sequence[SuiteRun], timed: str) -> Sheet:
    """SpecFit's speed-up over each other system, one row per workload and changed constant; those
    that only move along the line of equal AR have a sheet of their own."""
    usual = most_common([profile_values(m) for m in members])
    members = [m for m in members if not _is_moved(profile_values(m), usual)]
    columns = (
        "workload",
        "profile",
        f"SpecFit, {headed('speed', timed)}",
        *(f"over {style_of(name).label}" for name in BASELINES),
    )
    rows: list[tuple[Entry, ...]] = []
    for workload in sorted({m.workload for m in members}, key=lambda w: w.order):
        held = pick(members, workload=workload)
        settings = dict.fromkeys(changed(profile_values(m), usual) for m in held)
        if "as it is" not in settings:
            raise SpecfitError("the constants suite has no run of the profile as it is")
        for setting in ("as it is", *(s for s in settings if s != "as it is")):
            runs = [m for m in held if changed(profile_values(m), usual) == setting]
            rows.append((workload.label, setting, *_ratios(runs)))
    return Sheet("Speed-up of SpecFit as assumed constants change", columns, tuple(rows))


def _ratios(runs: Sequence[SuiteRun]) -> list[Entry]:
    ours, speed = one(runs, system="specfit").rows, QUANTITIES["speed"]
    found: list[Entry] = [exact(speed.of(ours).value)]
    for name in BASELINES:
        gain = speed.ratio(ours, one(runs, system=name).rows)
        found.append(measured(gain, change if name == "eagle3_cache" else factor))
    return found


COPIED_GB = 48 * 8 * 9_437_184 / 1e9
"""What AR copies a token without a cache: eight experts of each layer of Qwen3-30B-A3B."""
SAME_AR = 0.002
"""Two profiles in which AR's uncached time differs by less than this share are on one line."""


def uncached_ms(values: Values) -> float:
    """AR's time a token without a cache."""
    return float(values["fixed_ms"]) + 1e3 * COPIED_GB / float(values["link_gbps"])


def is_on_line(values: Values, usual: Values) -> bool:
    """Whether only fixed cost and link differ, and AR without a cache is as fast."""
    apart = {key for key in usual if values.get(key) != usual[key]}
    if not apart <= {"fixed_ms", "link_gbps"}:
        return False
    return not apart or abs(uncached_ms(values) / uncached_ms(usual) - 1) < SAME_AR


CACHED = {
    claim.workload: claim.value
    for claim in CLAIMS
    if (claim.system, claim.quantity, claim.against) == ("eagle3_cache", "speed", "eagle3")
}
"""The paper's EAGLE-3 with a cache over EAGLE-3 without one, by workload."""


def _is_moved(values: Values, usual: Values) -> bool:
    return is_on_line(values, usual) and changed(values, usual) != "as it is"


def line_sheet(members: Sequence[SuiteRun]) -> Sheet:
    """SpecFit's gains along the line on which the paper's AR figures stay what they are, and what a
    cache gives EAGLE-3 there, which the paper publishes."""
    usual = most_common([profile_values(m) for m in members])
    columns = (
        "workload",
        "fixed cost, ms",
        "link, GB/s",
        "SpecFit over EAGLE-3 + cache",
        "SpecFit over AR + cache",
        "EAGLE-3, cached over uncached",
        "the paper's",
    )
    rows: list[tuple[Entry, ...]] = []
    for workload in sorted({m.workload for m in members}, key=lambda w: w.order):
        alike = pick(members, workload=workload)
        held = [m for m in alike if is_on_line(profile_values(m), usual)]
        told = CACHED.get(workload.stands_for or "")
        for fixed in sorted({float(profile_values(m)["fixed_ms"]) for m in held}):
            runs = [m for m in held if float(profile_values(m)["fixed_ms"]) == fixed]
            link = float(profile_values(runs[0])["link_gbps"])
            gains = [measured(_gain(runs, *pair), factor) for pair in ALONG]
            rows.append((workload.label, exact(fixed), exact(link), *gains, exact(told, factor)))
    note = (
        "The paper's AR figures fix one number, fixed cost + 3.62 GB / link, and the two are "
        "inferred from it: every row fits them alike."
    )
    return Sheet("Along the line of equal AR", columns, tuple(rows), note)


ALONG = (("specfit", "eagle3_cache"), ("specfit", "ar_cache"), ("eagle3_cache", "eagle3"))


def _gain(runs: Sequence[SuiteRun], of: str, base: str) -> Interval:
    return QUANTITIES["speed"].ratio(one(runs, system=of).rows, one(runs, system=base).rows)


def table_constants(reader: ResultsReader) -> Table:
    """Headline ratios as the profile's constants change: each alone, and along the line of AR."""
    members = reader.members("constants", kind="replay")
    rows = [m.rows for m in members]
    sheets = {"": constants_sheet(members, words_of(rows)), "line": line_sheet(members)}
    stamp = reader.stamp(rows, "constants", extra=[INTERVALS])
    return Table("table_constants", "What the assumed constants decide", sheets, stamp)
