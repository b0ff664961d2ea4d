"""Two runs of one cell: identical, within half a percent, or different, and what may be why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specfit.report.metrics import Summary, ratio, same_ids, summarise
from specfit.storage.identity import first_difference
from specfit.storage.manifest import Manifest, read_manifest
from specfit.storage.rows import RunRows, load_run

NEAR = 0.005
IDENTICAL, WITHIN, DIFFERENT = "identical", "within 0.5 %", "different"


@dataclass(frozen=True)
class Difference:
    """One metric of one cell. None: nothing to divide by."""

    metric: str
    here: float | None
    there: float | None

    @property
    def relative(self) -> float | None:
        if self.here is None or not self.there:
            return None
        return self.here / self.there - 1.0

    @property
    def verdict(self) -> str:
        if self.here == self.there:
            return IDENTICAL
        near = self.relative is not None and abs(self.relative) <= NEAR
        return WITHIN if near else DIFFERENT

    @property
    def shown(self) -> str:
        """In a table: `=`, or how much more there is here."""
        if self.verdict == IDENTICAL:
            return "="
        return DIFFERENT if self.relative is None else f"{100 * self.relative:+.2f} %"


@dataclass(frozen=True)
class Compared:
    label: str
    differences: tuple[Difference, ...]
    same_output: bool
    why: tuple[str, ...]  # what the two manifests do not share

    @property
    def verdict(self) -> str:
        """The worst of its metrics; other output ids are a difference whatever the metrics say."""
        verdicts = {difference.verdict for difference in self.differences}
        if DIFFERENT in verdicts or not self.same_output:
            return DIFFERENT
        return WITHIN if WITHIN in verdicts else IDENTICAL


def compare_runs(label: str, here: Path, there: Path) -> Compared:
    """Folders of finished runs; `there` may be reference rows. Measured times are not compared on
    the modelled clock, where they lie beside it."""
    runs = load_run(here), load_run(there)
    ours, theirs = (metrics(run) for run in runs)
    differences = tuple(Difference(name, ours[name], theirs[name]) for name in ours)
    same = runs[0].request_ids == runs[1].request_ids and same_ids(*runs).first_difference is None
    ours_said, theirs_said = read_manifest(here), read_manifest(there)
    assert ours_said is not None and theirs_said is not None, "both were loaded"
    return Compared(label, differences, same, tuple(reasons(ours_said, theirs_said)))


def metrics(run: RunRows) -> dict[str, float | None]:
    """What tables show of a run, on its own clock."""
    s: Summary = summarise(run)
    cycle_ns = sum(ns or 0.0 for ns in s.phase_ns_per_cycle.values())
    return {
        "tokens/s": s.tokens_per_second,
        "with prefill": s.tokens_per_second_with_prefill,
        "committed": s.committed_per_cycle,
        "verified": s.verified_per_cycle,
        "cycle": cycle_ns,
        "experts": s.experts_per_token,
        "hits": s.hit_rate,
        "answered": ratio(s.requests, s.requests + s.failed),
        "score": s.mean_score,
    }


def reasons(here: Manifest, there: Manifest) -> list[str]:
    """The identity's first difference, then versions and machine: what can change low bits."""
    result = []
    differs = first_difference(here.identity, there.identity)
    if differs is not None:
        result.append(f"another run: {differs} differs")
    ours, theirs = (_described(manifest) for manifest in (here, there))
    for name in sorted(set(ours) | set(theirs)):
        if ours.get(name) != theirs.get(name):
            result.append(f"{name}: {_said(ours, name)} here, {_said(theirs, name)} there")
    return result


def _described(manifest: Manifest) -> dict[str, Any]:
    """Of the last process that worked on it."""
    last: Mapping[str, Any] = manifest.provenance[-1] if manifest.provenance else {}
    machine = {name: last.get(name) for name in ("cpu", "arithmetic", "platform", "commit")}
    return {"device": manifest.info.device, **machine, **dict(last.get("versions") or {})}


def _said(described: Mapping[str, Any], name: str) -> str:
    value = described.get(name)
    return "unknown" if value is None else str(value)
