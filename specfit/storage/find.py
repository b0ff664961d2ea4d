"""Finished runs by what their manifests say; no row is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specfit.base.types import SpecfitError
from specfit.storage.manifest import MANIFEST, Manifest, RunInfo, read_manifest
from specfit.storage.pack import packed_below

# Runs that agree on these did the same work on the same clock and can be divided by each other.
SAME = (
    "requests_digest",
    "target_digest",
    "profile_digest",
    "dataset",
    "model",
    "dtype",
    "profile",
    "clock",
)
SAME_ON_THE_WALL = ("device",)
# Among several such runs, the one that agrees on more of these is the closer twin.
CLOSER = ("repeat", "threads", "device", "link_gbps")


def finished_runs(runs: Path, **wanted: Any) -> Iterator[tuple[Path, Manifest]]:
    """Folders of `runs` whose run finished and whose info has the wanted values, by run id.

    Packed runs are among them.
    """
    folders = {path for path in runs.iterdir() if path.is_dir()} if runs.is_dir() else set()
    for folder in sorted(folders | {runs / row.run_id for row in packed_below(runs)}):
        manifest = None if folder.name.startswith(".") else read_manifest(folder)
        if manifest is None or not manifest.finished:
            continue
        if all(getattr(manifest.info, key) == value for key, value in wanted.items()):
            yield folder, manifest


def find_twin(runs: Path, info: RunInfo, selector: str = "ar", **wanted: Any) -> Path | None:
    """The finished run of `selector`, another than this, with the same requests and clock.

    `wanted` are further conditions. Of several (repeats, threads), the closest, then the lowest run
    id.
    """
    keys = SAME + (SAME_ON_THE_WALL if info.clock == "wall" else ())
    wanted |= {key: getattr(info, key) for key in keys}
    others = finished_runs(runs, selector=selector, **wanted)
    found = [item for item in others if item[1].info.run_id != info.run_id]

    def distance(item: tuple[Path, Manifest]) -> int:
        return sum(getattr(item[1].info, key) != getattr(info, key) for key in CLOSER)

    return min(found, key=distance)[0] if found else None


def find_run(named: str, results: Path) -> Path:
    """A folder, or the id of a run below `results`, or letters that only one such id begins with.

    A live run comes before a replay and both before reference rows. Raises SpecfitError.
    """
    if (Path(named) / MANIFEST).is_file():
        return Path(named)
    found: dict[str, Path] = {}
    for place in (results, results / "reference"):
        for below in ("runs", "replays"):
            for folder, manifest in finished_runs(place / below):
                if named and manifest.info.run_id.startswith(named):
                    found.setdefault(manifest.info.run_id, folder)
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise SpecfitError(f"{named} begins {len(found)} run ids: {', '.join(found)}; give more")
    raise SpecfitError(f"{named} is no finished run of {results}; give its id, or its folder")
