"""How far the modelled clock was off where a probe held it against a machine's own clock.

A probe leaves results/profiles/<name>.json, as a cell of a suite results/bench/probe-*.json; what
it found is said wherever modelled times of that profile are shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "profiles"  # below results_dir
BUSY = 1.2
"""Processes per core from which on a probe shared the machine with others."""
OWN_SHARE = 0.85
"""Of the time that a probe's decodes took: with less of a core than this it was disturbed."""


def busy_words(load_per_core: float | None, core_share: float | None) -> str:
    """What says that others used the machine meanwhile; empty where nothing does."""
    words = []
    if load_per_core is not None and load_per_core >= BUSY:
        words.append(f"{load_per_core:.1f} processes per core")
    if core_share is not None and core_share < OWN_SHARE:
        words.append(f"the probe had a core for {100 * core_share:.0f} % of its time")
    return f"the machine was busy, {', '.join(words)}" if words else ""


@dataclass(frozen=True)
class ClockCheck:
    """Of one probe: the error of modelled totals (modelled / measured - 1) by system."""

    device: str
    profile_digest: str
    made: str  # YYYY-MM-DD
    cycles: int
    errors: Mapping[str, float]
    load_per_core: float | None = None
    core_share: float | None = None

    def sentence(self) -> str:
        errors = ", ".join(f"{name} {100 * e:+.1f} %" for name, e in self.errors.items())
        return (
            f"modelled clock checked on {self.device}: {errors} of measured totals "
            f"(probe of {self.made}, n = {self.cycles} cycles{self.disturbed})"
        )

    @property
    def disturbed(self) -> str:
        """Words for a machine that others used as well."""
        words = busy_words(self.load_per_core, self.core_share)
        return f"; {words}" if words else ""


def clock_checks(results: Path) -> list[ClockCheck]:
    """By file name. A file that is no probe's, or an older one's, says nothing."""
    found = []
    cells = sorted((results / "bench").glob("probe-*.json"))  # probes that a suite made
    for path in [*sorted((results / FOLDER).glob("*.json")), *cells]:
        try:
            found.append(_check_of(json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            continue
    return found


def probed_places(results: Path, model: str | None) -> dict[str, tuple[float, float]]:
    """Profile -> (fixed_ms, link_gbps) of every machine that was probed running this model."""
    found = {}
    for path in sorted((results / FOLDER).glob("*.json")):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            profile = document["profile"]
            if model is not None and str(document["model"]).removesuffix("-dummy") == model:
                at = float(profile["fixed_ms"]), float(profile["link_gbps"])
                found[str(profile["name"])] = at
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _check_of(document: Mapping[str, Any]) -> ClockCheck:
    compared: Sequence[Mapping[str, Any]] = document["modelled_against_measured"]
    return ClockCheck(
        str(document["profile"]["gpu_names"][0]),
        str(document["profile_digest"]),
        str(document["made"]),
        sum(int(row["cycles"]) for row in compared),
        {str(row["system"]): float(row["error"]) for row in compared},
        document.get("load_per_core"),
        document.get("core_share"),
    )


def busy_lines(probe: Path) -> list[str]:
    """A warning where the machine was shared while this probe's file was made."""
    document = json.loads(probe.read_text(encoding="utf-8"))
    words = busy_words(document.get("load_per_core"), document.get("core_share"))
    return [f"warning: {probe}: {words}; its numbers are too slow: probe again"] if words else []


def clock_sentence(results: Path, profile_digest: str) -> str:
    """For modelled times of that profile: what is known of their error, or that nothing is.

    Where nothing is, how far the clock was off with the own profile of whatever was probed.
    """
    checks = clock_checks(results)
    for check in checks:
        if check.profile_digest == profile_digest:
            return check.sentence()
    unknown = "modelled clock: not checked on a device of this profile"
    errors = [error for check in checks for error in check.errors.values()]
    if not errors:
        return unknown
    devices = ", ".join(dict.fromkeys(check.device for check in checks))
    off = f"{100 * min(errors):+.1f} to {100 * max(errors):+.1f} %"
    return f"{unknown} (with a probe's own profile, on {devices}: off by {off})"
