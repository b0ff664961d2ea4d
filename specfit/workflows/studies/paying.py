"""Every system of the map under every link and fixed cost: results/bench/map_<run id>.json.

    python -m specfit.replay recording=<id> selector=specfit routes=learned cache_slots=48
    python scripts/studies/study.py paying results/replays/<run id>

No oracle anywhere: SpecFit and prefetching go by learned routes, AR (which drafts nothing) by the
token table, all billed. Whatever else the profile says stays. SpecFit is fitted at every point and
slot count. A system that prefetches gives one slot per layer for the area its copies come into, so
that all of one slot count need the same memory. Of a single request only the corners are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from specfit.base.config import RoutesConfig, RunConfig, SelectorConfig, from_hydra
from specfit.base.paths import CONF
from specfit.base.types import SpecfitError
from specfit.report.intervals import clusters_in
from specfit.storage.recording.files import find_recording, read_once
from specfit.storage.rows import load_run
from specfit.workflows.hydra_cli import compose
from specfit.workflows.simulate import simulate
from specfit.workflows.studies.stored import stored_config

FIXED_MS = (5.0, 10.0, 20.0, 40.0, 70.0, 100.0)
LINK_GBPS = (5.0, 12.0, 25.0, 40.0, 60.0)
SLOTS = (48, 24, 12)
SYSTEMS = ("ar_cache", "eagle3_cache", "specfit")
PREFETCH = ("off", "layer")


@dataclass(frozen=True)
class Point:
    fixed_ms: float
    link_gbps: float
    slots: int  # experts of each layer the device has room for
    prefetch: str
    system: str


@dataclass(frozen=True)
class Grid:
    fixed_ms: tuple[float, ...] = FIXED_MS
    link_gbps: tuple[float, ...] = LINK_GBPS
    slots: tuple[int, ...] = SLOTS

    def points(self) -> Iterator[Point]:
        for values in product(self.fixed_ms, self.link_gbps, self.slots, PREFETCH, SYSTEMS):
            yield Point(*values)


def grid_of(requests: int) -> Grid:
    """One request answers nothing: it shows that the map can be drawn."""
    if requests > 1:
        return Grid()
    return Grid(FIXED_MS[:: len(FIXED_MS) - 1], LINK_GBPS[:: len(LINK_GBPS) - 1])


@dataclass(frozen=True)
class Mapper:
    """Decodes points over the recording behind one replay, in any process."""

    folder: Path

    def __call__(self, point: Point) -> dict[str, list[int]]:
        done = simulate(self._config(point), read_once(_recording_of(self.folder)))
        return {
            "committed_tokens": done.sums["committed_tokens"].tolist(),
            "decode_ns": done.sums["cycle_ns"].tolist(),
        }

    def _config(self, point: Point) -> RunConfig:
        config = _stored(self.folder)
        ahead = point.prefetch != "off"
        return replace(
            config,
            selector=SelectorConfig(point.system, adaptive_depth=point.system == "specfit"),
            gpu=replace(config.gpu, fixed_ms=point.fixed_ms, link_gbps=point.link_gbps),
            routes=self._routes(config, point.system),
            prefetch=point.prefetch,
            cache_slots=point.slots - ahead,
            calibration=replace(config.calibration, at="own"),
        )

    def _routes(self, config: RunConfig, system: str) -> RoutesConfig:
        """AR drafts nothing that a network could read; its table lies beside the network."""
        if system != "ar_cache":
            return config.routes
        return replace(_token_table(), path=config.routes.path)


@cache
def _recording_of(folder: Path) -> Path:
    name = load_run(folder).info.recording
    if name is None:
        raise SpecfitError(f"{folder} is no replay")
    return find_recording(name, folder.parent.parent)


@cache
def _stored(folder: Path) -> RunConfig:
    return stored_config(folder, read_once(_recording_of(folder)), folder.parent.parent)


@cache
def _token_table() -> RoutesConfig:
    return from_hydra(compose(["routes=token_table"])).routes


def shipped(billed: str) -> dict[str, dict[str, float]]:
    """Where on the map the package's profiles lie that bill the same model."""
    found = {}
    for path in sorted((CONF / "gpu").glob("*.yaml")):
        gpu = from_hydra(compose([f"gpu={path.stem}"])).gpu
        if gpu.billed == billed and gpu.fixed_ms is not None and gpu.link_gbps is not None:
            found[gpu.name] = {"fixed_ms": gpu.fixed_ms, "link_gbps": gpu.link_gbps}
    return found


def check_own(folder: Path, decoded: list[tuple[Point, dict[str, list[int]]]]) -> None:
    """The replay that the map starts from is one of its points, to the nanosecond."""
    rows, gpu = load_run(folder), _stored(folder).gpu
    info = rows.info
    own = Point(gpu.fixed_ms or 0, gpu.link_gbps or 0, info.cache_slots, "off", info.selector)
    found = [sums for point, sums in decoded if point == own]
    if found and found[0]["decode_ns"] != rows.requests["decode_ns"].tolist():
        raise SpecfitError(
            "the map's own point is not the replay's rows; give it one of selector=specfit "
            "routes=learned cache_slots=48 with the defaults"
        )


def study(folder: Path) -> dict[str, Any]:
    rows = load_run(folder)
    info, grid = rows.info, grid_of(len(rows.ok_ids))
    every = list(grid.points())
    print(f"{len(every)} points of {info.dataset}")
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        decoded = list(zip(every, pool.map(Mapper(folder), every, chunksize=6), strict=True))
    check_own(folder, decoded)
    tokens = decoded[0][1]["committed_tokens"]
    assert all(sums["committed_tokens"] == tokens for _, sums in decoded), "ids are the target's"
    return {
        "info": asdict(info),
        "grid": asdict(grid),
        "profiles": shipped(info.billed or ""),
        "clusters": clusters_in(rows, rows.ok_ids),
        "committed_tokens": tokens,
        "points": [asdict(point) | {"decode_ns": sums["decode_ns"]} for point, sums in decoded],
    }
