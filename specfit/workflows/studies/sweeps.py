"""Beta, K and pool width swept over a recording: results/bench/sweep_<run id>.json.

    python -m specfit.replay recording=<id> selector=specfit cache_slots=48
    python scripts/studies/study.py sweeps results/replays/<run id>

Every point is the decoder over the recording, cache and timeline included, not an estimate from
single cycles. Beta is multiplied in selection only. At each K the cost model is fitted again, on
probes of up to K nodes. A width N keeps the best N nodes of each recorded pool, and the levels that
would have been drafted for nothing are billed. EAGLE-3 + cache stands beside at every K and width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from specfit.base.config import RunConfig, SelectorConfig
from specfit.base.types import SpecfitError
from specfit.decoding.calibration.files import calibrated_cost
from specfit.decoding.cycle import Cycle
from specfit.decoding.factory import build_decoder, build_selector
from specfit.decoding.replay.narrow import NarrowDrafter, narrowed, unseen_levels
from specfit.decoding.replay.spec import ReplayRunSpec, replay_runtime, resolve_replay
from specfit.report.intervals import clusters_in
from specfit.selection.cost import CostModel
from specfit.storage.recording.files import Recording, find_recording, read_recording
from specfit.storage.rows import RunRows, load_run
from specfit.workflows.studies.stored import stored_config

PAPER_K, PAPER_WIDTH = 7, 18
BETAS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
WIDTHS = (2, 4, 6, 8, 10, 12, 14, 16, 18)
COUNTED = ("committed_tokens", "verified_nodes", "transferred_experts", "drafted_levels")


@dataclass(frozen=True)
class Point:
    """One setting; what an axis does not vary is the paper's."""

    axis: str  # beta, k, width
    value: float
    system: str
    beta: float = 1.0
    k: int = PAPER_K
    width: int = PAPER_WIDTH

    @property
    def is_shipped(self) -> bool:
        rest = (self.system, self.beta, self.k, self.width)
        return rest == ("specfit", 1.0, PAPER_K, PAPER_WIDTH)


def points() -> Iterator[Point]:
    for beta in BETAS:
        yield Point("beta", beta, "specfit", beta=beta)
    for system in ("specfit", "eagle3_cache"):
        for k in SIZES:
            yield Point("k", k, system, k=k)
        for width in WIDTHS:
            yield Point("width", width, system, width=width)


class Sweep:
    """Settings of one workload, decoded over its recording."""

    def __init__(self, config: RunConfig, recording: Recording, results: Path) -> None:
        self._config, self._recording, self._results = config, recording, results

    def counted(self, point: Point) -> dict[str, list[int]]:
        """Per request: what the decode cycles add up to."""
        spec = self._spec(point)
        runtime = replay_runtime(spec, spec.slots, True)
        selector = build_selector(spec, self._cost(spec, point.beta))
        decoder = build_decoder(spec, runtime, selector, runtime.clock())
        full = spec.config.drafter.max_depth
        decoder.drafter = NarrowDrafter(runtime.playback, full)
        sums: dict[str, list[int]] = {name: [] for name in (*COUNTED, "cycles", "decode_ns")}
        for index in range(len(spec.workload.ids)):
            cycles = list(decoder.decode(spec.workload.request(index)))[1:]
            for name in COUNTED:
                sums[name].append(sum(getattr(cycle.record, name) for cycle in cycles))
            sums["cycles"].append(len(cycles))
            unseen = _unseen(cycles, full, selector.adaptive_depth)
            level_ns = round(spec.profile.draft_level_ms * 1e6)
            spent = sum(cycle.record.cycle_ns for cycle in cycles)
            sums["decode_ns"].append(spent + unseen * level_ns)
        return sums

    def _spec(self, point: Point) -> ReplayRunSpec:
        adaptive = point.system == "specfit"
        chosen = SelectorConfig(point.system, point.k, adaptive)
        spec = resolve_replay(replace(self._config, selector=chosen), self._recording)
        assert isinstance(spec, ReplayRunSpec)
        if point.width == PAPER_WIDTH:
            return spec
        requests = [narrowed(one, point.width) for one in self._recording.requests]
        return replace(spec, recording=replace(self._recording, requests=requests))

    def _cost(self, spec: ReplayRunSpec, beta: float) -> CostModel | None:
        """The fit of whole pools, at this K; kept with those of other replays."""
        if not spec.kind.needs_cost:
            return None
        whole = replace(spec, recording=self._recording)
        cost = calibrated_cost(whole, replay_runtime, self._results / "replays").cost
        return CostModel(cost.intercepts_ns, beta * cost.expert_ns)


def _unseen(cycles: list[Cycle], full: int, adaptive: bool) -> int:
    return sum(unseen_levels(cycle.drafted, full, adaptive) for cycle in cycles)


def check_shipped(sums: dict[str, list[int]], rows: RunRows) -> None:
    """The paper's setting is the replay that the sweep starts from, to the nanosecond."""
    times = rows.requests["decode_ns"].tolist()
    if sums["decode_ns"] != times:
        raise SpecfitError(
            "the sweep's own K = 7, beta x 1 and 18 nodes are not the replay's rows; the replay "
            "was made with other settings (give one of selector=specfit with its defaults)"
        )


def study(folder: Path) -> dict[str, Any]:
    results, rows = folder.parent.parent, load_run(folder)
    if rows.info.recording is None or rows.info.selector != "specfit":
        raise SpecfitError(f"{folder} is no replay of selector=specfit")
    recording = read_recording(find_recording(rows.info.recording, results))
    swept = Sweep(stored_config(folder, recording, results), recording, results)
    found = []
    for point in points():
        sums = swept.counted(point)
        if point.is_shipped:
            check_shipped(sums, rows)
        found.append(asdict(point) | {"requests": sums})
        speed = 1e9 * sum(sums["committed_tokens"]) / sum(sums["decode_ns"])
        print(f"{point.axis} {point.value:g}, {point.system}: {speed:.2f} tokens/s (modelled)")
    clusters = clusters_in(rows, rows.ok_ids)
    return {"info": asdict(rows.info), "clusters": clusters, "points": found}
