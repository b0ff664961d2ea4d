"""The runs of a suite by what they are, not by what the suite calls them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specfit.base.types import SpecfitError
from specfit.report.styles import Workload, style_of, system_of, workload_of
from specfit.storage.manifest import Manifest
from specfit.storage.rows import RunRows


@dataclass(frozen=True, eq=False)
class SuiteRun:
    """A run or a replay, its rows, and what its manifest says of it."""

    manifest: Manifest
    rows: RunRows
    folder: Path
    repeat: int = 0

    @property
    def workload(self) -> Workload:
        return workload_of(self.rows.info)

    @property
    def stands_for(self) -> str | None:
        """The paper's workload whose claims the run may stand beside."""
        return self.rows.info.stands_for

    @property
    def system(self) -> str:
        """Key of styles.SYSTEMS."""
        return system_of(self.rows.info)

    @property
    def slots(self) -> int:
        return self.rows.info.cache_slots

    @property
    def accuracy(self) -> float:
        """Share of route ids that the selector was told right; 1 for an atlas."""
        routes: Mapping[str, Any] = self.config.get("routes", {})
        return float(routes.get("accuracy", 1.0)) if routes.get("name") == "noisy" else 1.0

    @property
    def config(self) -> Mapping[str, Any]:
        """The part of the resolved config that made the run's id."""
        return self.manifest.identity.get("config", {})

    @property
    def calibration_id(self) -> str | None:
        return self.manifest.identity.get("digests", {}).get("calibration")


def pick(members: Iterable[SuiteRun], **wanted: Any) -> list[SuiteRun]:
    """Those whose attributes have the wanted values, in order."""
    return [m for m in members if all(getattr(m, key) == value for key, value in wanted.items())]


def one(members: Iterable[SuiteRun], **wanted: Any) -> SuiteRun:
    """The only one, or the first repeat of it. Raises SpecfitError where there is none."""
    found = pick(members, **wanted)
    if not found:
        said = dict(wanted)
        if "system" in said:
            said["system"] = style_of(said["system"]).label
        listed = ", ".join(f"{key} {value}" for key, value in said.items())
        raise SpecfitError(f"the suite holds no run with {listed}; its file says which runs it has")
    return min(found, key=lambda m: m.repeat)


def by_system(members: Iterable[SuiteRun], systems: Iterable[str], **wanted: Any) -> dict[str, Any]:
    """Rows of one run per system, in the order of `systems`."""
    runs = list(members)
    return {system: one(runs, system=system, **wanted).rows for system in systems}
