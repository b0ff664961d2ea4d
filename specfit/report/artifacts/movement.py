"""What moves, and when: policies, prefetching, costs by residency, the host, and their goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specfit.base.types import SpecfitError
from specfit.report.artifact import Table
from specfit.report.artifacts.constants import changed, most_common, profile_values
from specfit.report.footer import INTERVALS, words_of
from specfit.report.intervals import Interval, ratio_interval
from specfit.report.metrics import totals
from specfit.report.quantities import QUANTITIES, copy_scale, times
from specfit.report.reader import ResultsReader
from specfit.report.styles import style_of
from specfit.report.suite_runs import SuiteRun, pick
from specfit.report.table_format import Entry, Sheet, factor, measured
from specfit.storage.rows import RunRows

HASH_DEFAULTS = {
    "routes": "atlas",
    "policy": "lru",
    "bypass": "False",
    "prefetch": "off",
    "cost": "union",
    "level_cost_ms": "0.0",
    "miss": "transfer",
    "temperature": "1.0",
}


HOST_KEY = "host_expert_us"


OWN = "specfit_own"


"""With a fit of its own at every slot count."""


@dataclass(frozen=True)
class Setting:
    """What a run moves by, where it is not the paper's; the system, slots and profile apart."""

    routes: str
    policy: str
    bypass: str
    prefetch: str
    cost: str
    level_cost_ms: str
    miss: str
    temperature: str

    @classmethod
    def of(cls, member: SuiteRun) -> Setting:
        config = member.config
        told = {key: str(config.get(key, value)) for key, value in HASH_DEFAULTS.items()}
        drafter = config.get("drafter", {})
        told["temperature"] = str(drafter.get("temperature", HASH_DEFAULTS["temperature"]))
        return cls(**told | {"routes": _routes(member)})

    @property
    def is_plain(self) -> bool:
        return all(getattr(self, key) == value for key, value in HASH_DEFAULTS.items())

    def differs_in(self, *keys: str) -> bool:
        """Only in these is it not the paper's, if at all."""
        return all(getattr(self, k) == v for k, v in HASH_DEFAULTS.items() if k not in keys)

    def words(self) -> str:
        parts = [
            f"{k}={v}" for k, v in vars(self).items() if v != HASH_DEFAULTS[k] and k != "bypass"
        ]
        return ", ".join(parts + (["bypass"] if self.bypass == "True" else [])) or "the paper's"


def _routes(member: SuiteRun) -> str:
    routes: Mapping[str, object] = member.config.get("routes", {})
    name = str(routes.get("name", HASH_DEFAULTS["routes"]))
    return f"{name} {100 * member.accuracy:.0f} %" if name == "noisy" else name


class Field:
    """One workload's runs under the profile as it is."""

    def __init__(self, members: Sequence[SuiteRun]) -> None:
        values = {id(m): _profile(m) for m in members}
        usual = most_common(list(values.values()))
        self.all = members
        self.usual = usual
        self.members = [m for m in members if values[id(m)] == usual]
        self.slots = sorted({m.slots for m in self.members if Setting.of(m).is_plain}, reverse=True)
        self.name = members[0].workload.label

    def settings(self, system: str, *keys: str) -> list[Setting]:
        """Of a system's runs, those that differ from the paper's in these alone, in the suite's
        order; at a slot count that the paper's setting has too."""
        held = [Setting.of(m) for m in self.members if m.system == system and m.slots in self.slots]
        found = [s for s in dict.fromkeys(held) if s.differs_in(*keys)]
        return [s for s in found if "cost" not in keys or s.prefetch in ("off", "layer")]

    def rows(self, system: str, setting: Setting, slots: int) -> RunRows | None:
        """At the slot count of the shared fit a run with a fit of its own is that fit's run."""
        names = [system] + (["specfit"] if system == OWN and slots == max(self.slots) else [])
        held = [m for m in self.members if m.system in names and m.slots == slots]
        found = [m for m in held if Setting.of(m) == setting]
        return min(found, key=lambda m: m.system != system).rows if found else None


def _profile(member: SuiteRun) -> dict[str, object]:
    """Without the host's constant: it is read by who runs experts there alone."""
    return {k: v for k, v in profile_values(member).items() if k != HOST_KEY}


# -- one sheet per question ------------------------------------------------------------------------


def policy_sheet(fields: Sequence[Field], timed: str) -> Sheet:
    title = "Cache policies, exact routes"
    systems = ("specfit", "ar_cache", "eagle3_cache")
    return _by_slots(fields, systems, ("policy", "bypass"), timed, title, "hit_rate")


def cost_sheet(fields: Sequence[Field], timed: str) -> Sheet:
    title = "Forms of the cost, on demand and with prefetching"
    return _by_slots(
        fields, (OWN,), ("cost", "level_cost_ms", "prefetch", "routes"), timed, title, "experts"
    )


def prefetch_sheet(fields: Sequence[Field], timed: str) -> Sheet:
    """Copies ahead of demand: speed, how many are made and how many come true."""
    first = ("workload", "slots", "routes", "prefetch", f"tokens/s ({timed})", "over none")
    columns = (*first, "ahead / token", "used, %", "on demand / token")
    rows: list[tuple[Entry, ...]] = []
    for field in fields:
        for slots in field.slots:
            for setting in field.settings(OWN, "prefetch", "routes"):
                run = field.rows(OWN, setting, slots)
                if run is None:
                    continue
                none = field.rows(OWN, Setting(**vars(setting) | {"prefetch": "off"}), slots)
                line = (field.name, slots, setting.routes, setting.prefetch, _of("speed", run))
                copies = (measured(_ahead(run)), measured(_used(run)), _of("experts", run))
                rows.append((*line, _over(run, none), *copies))
    note = "Ahead and on demand: copies of the billed model in decode, per output token."
    return Sheet("Prefetching", columns, tuple(rows), note)


def host_sheet(fields: Sequence[Field], timed: str) -> Sheet:
    return _by_slots(
        fields, ("specfit",), ("miss",), timed, "Missed experts on the host", "experts"
    )


def temperature_sheet(fields: Sequence[Field], timed: str) -> Sheet:
    title = "Path probabilities recalibrated by one temperature, fitted on calibration text"
    return _by_slots(fields, ("specfit",), ("temperature",), timed, title, "verified")


def _by_slots(
    fields: Sequence[Field],
    systems: tuple[str, ...],
    keys: tuple[str, ...],
    timed: str,
    title: str,
    second: str,
) -> Sheet:
    """Speed, speed over the same system's in the paper's setting, and one more quantity."""
    slots = sorted({s for field in fields for s in field.slots}, reverse=True)
    columns = ["workload", "system", "setting"]
    for s in slots:
        columns += [f"{s} slots: tokens/s ({timed})", f"{s}: over the paper's"]
        columns += [f"{s}: {QUANTITIES[second].label}"]
    rows: list[tuple[Entry, ...]] = []
    for field in fields:
        for system, setting in [(n, s) for n in systems for s in field.settings(n, *keys)]:
            line: list[Entry] = [field.name, style_of(system).label, setting.words()]
            for s in slots:
                run = field.rows(system, setting, s)
                plain = field.rows(system, Setting(**HASH_DEFAULTS), s)
                line += [_of("speed", run), _over(run, plain), _of(second, run)]
            rows.append(tuple(line))
    return Sheet(title, tuple(columns), tuple(rows))


def goal_sheet(fields: Sequence[Field], timed: str) -> Sheet:
    """What is deployable beside the paper's systems, as each assumed constant changes.

    Ours has one slot fewer, whose bytes are its prefetch area, and no oracle anywhere.
    """
    columns = ["workload", "profile", "setting", f"ours, tokens/s ({timed})"]
    columns += [f"over {name}" for name in ("SpecFit", "EAGLE-3 + cache", "AR + cache")]
    columns += ["over EAGLE-3, prefetching alike", "over AR, prefetching by token"]
    rows: list[tuple[Entry, ...]] = []
    for field in fields:
        wanted = dict.fromkeys(changed(_profile(m), field.usual) for m in field.all)
        for constants in ("as it is", *(c for c in wanted if c != "as it is")):
            held = [m for m in field.all if changed(_profile(m), field.usual) == constants]
            most = max(m.slots for m in held)
            for one in pick(held, system="specfit", slots=most - 1):
                rows.append((field.name, constants, *_goal_cells(one, held, most)))
    note = (
        "Goals at the profile as it is, news: 1.20x SpecFit (exact routes, on demand, union cost), "
        "1.45x EAGLE-3 + cache. The last two columns are systems that get the same area and "
        "policy: EAGLE-3 with the learned routes, AR with those of the token table, since it "
        "drafts nothing."
    )
    title = "Without an oracle, against the paper's systems"
    return Sheet(title, tuple(columns), tuple(rows), note)


def _goal_cells(one: SuiteRun, held: Sequence[SuiteRun], slots: int) -> tuple[Entry, ...]:
    def of(system: str, at: int) -> RunRows:
        found = [m for m in pick(held, system=system, slots=at) if at != slots or _is_plain(m)]
        if not found:
            raise SpecfitError(f"the movement suite lacks {system} at {at} slots")
        return found[0].rows

    rivals = [of(system, slots) for system in ("specfit", "eagle3_cache", "ar_cache")]
    rivals += [of(system, slots - 1) for system in ("eagle3_cache", "ar_cache")]
    over = [_over(one.rows, rival) for rival in rivals]
    return Setting.of(one).words(), _of("speed", one.rows), *over


def _is_plain(member: SuiteRun) -> bool:
    return Setting.of(member).is_plain


# -- cells -----------------------------------------------------------------------------------------


def _of(quantity: str, run: RunRows | None) -> Entry:
    return measured(None if run is None else QUANTITIES[quantity].of(run))


def _over(run: RunRows | None, other: RunRows | None) -> Entry:
    if run is None or other is None:
        return measured(None)
    return measured(QUANTITIES["speed"].ratio(run, other), factor)


def _ahead(run: RunRows) -> Interval:
    t = totals(run)
    top, bottom = t.decode["prefetched_experts"], t.decode["committed_tokens"]
    return times(ratio_interval(top.to_numpy(), bottom.to_numpy()), copy_scale(run))


def _used(run: RunRows) -> Interval:
    """Percent of what was copied ahead that was then demanded; nothing where nothing was."""
    decode = run.cycles[run.cycles["cycle"] > 0]
    columns = ["used_prefetched_experts", "prefetched_experts"]
    sums = decode[columns].fillna(0).astype("int64")
    grouped = sums.groupby(decode["request_id"].astype(str), sort=False).sum().reindex(run.ok_ids)
    if not grouped["prefetched_experts"].any():
        return Interval(None, None, None, 0)
    return times(ratio_interval(*(grouped[c].to_numpy() for c in columns)), 100.0)


SUITE = "movement"


def table_movement(reader: ResultsReader) -> Table:
    """Policies, prefetching, costs by residency and the goal without an oracle, from replays."""
    members = reader.members(SUITE, kind="replay")
    workloads = dict.fromkeys(m.workload for m in members)
    fields = [Field(pick(members, workload=workload)) for workload in workloads]
    rows = [m.rows for m in members]
    timed = words_of(rows)
    sheets = {
        "": goal_sheet(fields, timed),
        "policies": policy_sheet(fields, timed),
        "prefetch": prefetch_sheet(fields, timed),
        "costs": cost_sheet(fields, timed),
        "temperature": temperature_sheet(fields, timed),
        "host": host_sheet(fields, timed),
    }
    stamp = reader.stamp(rows, SUITE, extra=[INTERVALS])
    return Table("table_movement", "What moves, and when", sheets, stamp)
