"""The set-up: models, drafter, profiles and how their numbers are known, limits, fits, versions.

`configs` are the runs' resolved configs (run.yaml), by run id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from specfit.base.paths import CONF
from specfit.report.artifact import Table
from specfit.report.reader import ResultsReader
from specfit.report.suite_runs import SuiteRun
from specfit.report.table_format import Cell, Entry, Sheet, exact
from specfit.storage.calibration_files import find_fit, states_of
from specfit.storage.manifest import Manifest
from specfit.storage.rows import run_yaml

Config = Mapping[str, Any]


Configs = Mapping[str, Config]


UNITS = {"gbps": ("GB/s", 1.0), "ms": ("ms", 1.0), "us": ("us", 1.0), "bytes": ("GB", 1e-9)}


NOT_CONSTANTS = ("name", "clock", "billed", "gpu_names", "kernel", "profile", "advice", "notes")


PAPER = {
    "target": "Qwen3-30B-A3B-Instruct-2507: 48 MoE layers, 128 experts, top-8",
    "drafter": "an EAGLE-3 head (RedHatAI)",
    "pool": "top-2, depth at most 5, at most 18 nodes",
    "selection": "at most 7 nodes",
    "slots": "48 of 128 per layer (primary)",
    "calibration": "144 probes of nine GSM8K states",
    "batch": "1, greedy",
    "copies in flight": "2",
    "eviction": "not named",
}


def setup_sheet(members: Sequence[SuiteRun], configs: Configs, place: Path) -> Sheet:
    """The pair and the method's limits, the paper's beside ours."""
    said = [configs[m.rows.info.run_id] for m in members]
    fits = [find_fit(m.calibration_id, place) for m in members if m.calibration_id]
    layers = _each(f"{fit['identity']['model']['num_layers']} MoE layers" for fit in fits)
    drafting = [c for m, c in zip(members, said, strict=True) if m.rows.info.drafter]
    ours = {
        "target": _each(f"{m.rows.info.model}, {m.rows.info.dtype}: {layers}" for m in members),
        "drafter": _each(c["drafter"]["name"] for c in drafting),
        "pool": _each(
            f"top-{c['drafter']['top_k']}, depth at most {c['drafter']['max_depth']}"
            for c in drafting
        )
        + f", largest seen {max(int(m.rows.cycles['pool_nodes'].max()) for m in members)} nodes",
        "selection": _each(f"at most {c['selector']['k']} nodes" for c in drafting),
        "slots": _each(sorted({m.slots for m in members}, reverse=True)) + " per layer",
        "calibration": _each(
            f"{fit['probe_count']} probes of {states_of(fit)} states" for fit in fits
        ),
        "batch": "1, greedy",
        "copies in flight": _each(c["gpu"]["copies_in_flight"] for c in said),
        "eviction": _each(c.get("policy", "lru") for c in said),
    }
    rows = tuple((name, PAPER[name], ours[name]) for name in PAPER)
    note = (
        "LRU is our assumption: the source names no policy. Two copies in flight hide copy latency "
        "and nothing else; a profile whose latency is 0 bills the same with any number."
    )
    return Sheet("Set-up", ("what", "paper", "ours"), rows, note)


def profile_sheet(configs: Configs, stored: Configs) -> Sheet:
    """Every constant that a run was billed by, a column for each profile and how it is known: by
    the profile's notes, or set, where it differs from the profile's file (`stored`, by name)."""
    names = list(dict.fromkeys(config["gpu"]["name"] for config in configs.values()))
    known: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    values: dict[tuple[str, str], dict[str, dict[str, Cell]]] = {}
    for gpu in (config["gpu"] for config in configs.values()):
        for key, value in gpu.items():
            if key in NOT_CONSTANTS or value is None or isinstance(value, bool):
                continue
            name, unit, scale = _named(key)
            how = (gpu.get("notes") or {}).get(key, "set")
            if stored.get(gpu["name"], {}).get(key, value) != value:
                how = "set"
            shown = exact(scale * float(value), _short)
            known.setdefault((name, unit), {}).setdefault(gpu["name"], {})[how] = None
            values.setdefault((name, unit), {}).setdefault(gpu["name"], {})[shown.text] = shown
    rows: list[tuple[Entry, ...]] = []
    for constant, by_profile in values.items():
        line: list[Entry] = [*constant]
        for name in names:
            line += [_one_of(by_profile.get(name, {})), _each(known[constant].get(name, ()))]
        rows.append(tuple(line))
    columns = [column for name in names for column in (name, f"{name}: known as")]
    return Sheet("Profiles", ("constant", "unit", *columns), tuple(rows))


def _one_of(values: Mapping[str, Cell]) -> Entry:
    """A profile's value; every one, where runs set it otherwise."""
    return next(iter(values.values())) if len(values) == 1 else _each(values)


def _named(key: str) -> tuple[str, str, float]:
    """'link_gbps' as ('link', 'GB/s') and what its values are multiplied by."""
    stem, _, unit = key.rpartition("_")
    name, (shown, scale) = (stem, UNITS[unit]) if unit in UNITS else (key, ("", 1.0))
    return name.replace("_", " "), shown, scale


def _short(value: float) -> str:
    return f"{value:.5g}"


def _hundredths(value: float) -> str:
    return f"{value:.2f}"


LIMITS = (
    "Limits of input and output are ours: the paper says that they differ by workload and gives "
    "no value. Its even-numbered articles are read as counted from 0; counted from 1 they would "
    "be the other half."
)


def workload_sheet(members: Sequence[SuiteRun], configs: Configs) -> Sheet:
    """What was asked and answered, once per workload."""
    columns = (
        "dataset",
        "workload",
        "requests",
        "prompt tokens, mean",
        "longest prompt",
        "tokens cut",
        "output limit",
        "output tokens, mean",
        "scorer",
    )
    rows: dict[str, tuple[Entry, ...]] = {}
    for member in members:
        info, requests = member.rows.info, member.rows.requests
        ok = requests[requests["status"] == "ok"]
        config = configs[info.run_id]
        if info.dataset in rows or not len(ok):
            continue
        lengths = ok["output_ids"].map(len)
        rows[info.dataset] = (
            info.dataset,
            member.workload.label,
            len(ok),
            exact(float(ok["prompt_tokens"].mean())),
            int(ok["prompt_tokens"].max()),
            int(ok["cut_tokens"].fillna(0).sum()),
            config.get("max_new_tokens"),
            exact(float(lengths.mean())),
            config["dataset"].get("scorer") or "-",
        )
    return Sheet("Workloads", columns, tuple(rows.values()), LIMITS)


def fits_sheet(members: Sequence[SuiteRun], place: Path) -> Sheet:
    """The cost models that runs selected by: b_0 .. b_K, beta and their error."""
    fits: dict[str, tuple[Entry, ...]] = {}
    for member in members:
        name = member.calibration_id
        if name is None or name in fits:
            continue
        fit = find_fit(name, place)
        intercepts = fit["cost"]["intercepts_ns"]
        error = 100 * fit["leave_one_state_out"]["mean_relative"]
        fits[name] = (
            Cell(name, is_number=False),
            fit["profile"],
            fit["clock"],
            fit["identity"]["cache_slots"],
            fit["probe_count"],
            ", ".join(f"{b / 1e6:.1f}" for b in intercepts),
            exact(fit["cost"]["expert_ns"] / 1e3),
            exact(error, _hundredths),
            "; ".join(fit.get("doubts", ())) or "-",
        )
    columns = (
        "calibration",
        "profile",
        "clock",
        "slots",
        "probes",
        "b_0 .. b_K, ms",
        "beta, us per expert",
        "error, %",
        "doubts",
    )
    note = (
        "error: mean of |predicted - probed| / probed, leaving one state out. Without slots the "
        "modelled clock is linear in nodes and misses: the fit is perfect there by construction, "
        "and its error says nothing."
    )
    return Sheet("Cost models", columns, tuple(fits.values()), note)


def versions_sheet(manifests: Sequence[Manifest]) -> Sheet:
    """Which code and machine made the rows."""
    rows: dict[tuple[Entry, ...], int] = {}
    for manifest in manifests:
        for entry in manifest.provenance:
            versions = entry.get("versions") or {}
            listed = ", ".join(f"{k} {v}" for k, v in versions.items() if v) or "-"
            commit = (entry.get("commit") or "-")[:12]
            commit += " + changes" if entry.get("diff_hash") else ""
            key = (commit, manifest.info.device, listed)
            rows[key] = rows.get(key, 0) + 1
    columns = ("commit", "device", "versions", "runs")
    return Sheet("Code and machine", columns, tuple((*key, n) for key, n in rows.items()))


def _each(values: Any) -> str:
    return " / ".join(dict.fromkeys(str(value) for value in values)) or "-"


SUITES = ("table_2", "table_3", "table_4", "figure_4")


PROFILES = CONF / "gpu"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same values, ten times as fast


def table_setup(reader: ResultsReader) -> Table:
    """The set-up: models, drafter, profiles and how they are known, limits, fits, versions."""
    members = reader.members(*SUITES)
    configs = {m.rows.info.run_id: yaml.load(run_yaml(m.folder), LOADER) for m in members}
    place = reader.place(*SUITES)
    profiles = {p.stem: yaml.safe_load(p.read_text("utf-8")) for p in PROFILES.glob("*.yaml")}
    sheets = {
        "": setup_sheet(members, configs, place),
        "profiles": profile_sheet(configs, profiles),
        "workloads": workload_sheet(members, configs),
        "fits": fits_sheet(members, place),
        "versions": versions_sheet([m.manifest for m in members]),
    }
    return Table("table_setup", "Set-up", sheets, reader.stamp([m.rows for m in members], *SUITES))
