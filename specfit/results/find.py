"""Finished runs by what their manifests say; no row is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specfit.results.manifest import Manifest, RunInfo, read_manifest

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
    """Folders of `runs` whose run finished and whose info has the wanted values, by run id."""
    if not runs.is_dir():
        return
    for folder in sorted(path for path in runs.iterdir() if path.is_dir()):
        manifest = None if folder.name.startswith(".") else read_manifest(folder)
        if manifest is None or not manifest.finished:
            continue
        if all(getattr(manifest.info, key) == value for key, value in wanted.items()):
            yield folder, manifest


def find_twin(runs: Path, info: RunInfo, selector: str = "ar") -> Path | None:
    """The finished run of `selector`, another than this, with the same requests and clock.

    Where several do (repeats, thread counts), the closest, then the lowest run id.
    """
    keys = SAME + (SAME_ON_THE_WALL if info.clock == "wall" else ())
    wanted = {key: getattr(info, key) for key in keys}
    others = finished_runs(runs, selector=selector, **wanted)
    found = [item for item in others if item[1].info.run_id != info.run_id]

    def distance(item: tuple[Path, Manifest]) -> int:
        return sum(getattr(item[1].info, key) != getattr(info, key) for key in CLOSER)

    return min(found, key=distance)[0] if found else None
