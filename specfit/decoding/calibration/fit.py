"""Forced trees on a runtime and the cost model they give (app. A.2, app. B)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from weakref import WeakKeyDictionary

from specfit.base.interfaces import RouteSource
from specfit.decoding.calibration.trials import Start, TreeTrial, TreeTrials
from specfit.decoding.expert_cache_factory import CLAIRVOYANT, COMMITTED, QUESTIONS
from specfit.decoding.factory import build_decoder, build_selector, routes_named
from specfit.decoding.replay.spec import ReplayRunSpec
from specfit.decoding.spec import BuildRuntime, RunSpec
from specfit.selection.cost import CostModel
from specfit.selection.cost_forms import BY_RESIDENCY
from specfit.selection.fit import Fitting, LeaveOneOut, fit, leave_one_out
from specfit.selection.miss_cost_fit import best_prices, fit_misses
from specfit.storage.recording.files import Recording


def calibration_slots(spec: RunSpec) -> int:
    """Slots the fit is made at: uncached runs have their own, cached ones share one or not."""
    if spec.slots == 0:
        return 0
    if spec.config.calibration.at == "own":
        return spec.slots
    return min(spec.config.calibration.slots, spec.geometry.experts)


def run_trials(
    spec: RunSpec, build: BuildRuntime, seen: Callable[[], None] | None = None
) -> list[TreeTrial]:
    """`seen` is called after each probed state."""
    if spec.config.policy == CLAIRVOYANT:
        spec = replace(spec, config=replace(spec.config, policy="lru"))
    runtime = build(spec, calibration_slots(spec), True)
    drafter = runtime.drafter()
    routes: RouteSource = runtime.exact_routes()
    if spec.config.prefetch != "off":  # what comes in early is what the run's own source says
        routes = routes_named(spec.config.routes.name)(spec, runtime, drafter)
    prober = TreeTrials(
        runtime.target,
        drafter,
        routes,
        runtime.clock(),
        spec.geometry.experts,
        spec.kind.probed(spec.config.selector.k),
        runtime.prefetch_hooks(),
    )
    if spec.clock == "wall":  # the first use of anything is slow: one untimed walk
        empty = runtime.target.residency()
        prober.run(spec.questions.requests())
        runtime.target.restore(empty)
    if not isinstance(spec, ReplayRunSpec):
        return prober.run(spec.questions.requests(), seen)
    return prober.run_from(_starts(spec, prober), seen)


_STARTS: WeakKeyDictionary[Recording, dict[str, Sequence[Start]]] = WeakKeyDictionary()


def _starts(spec: ReplayRunSpec, prober: TreeTrials) -> Sequence[Start]:
    """Where a replay's probed questions begin: residency after those before them, which no link and
    no fixed cost changes. Walking is most of a calibration where most answers are short, and a map
    has hundreds of links."""
    config = spec.config
    moves = [config.policy, config.bypass, config.prefetch, config.prefetch_blocks, config.miss]
    machine = [] if config.miss == "transfer" else [spec.profile.digest()]
    places = [calibration_slots(spec), spec.profile.copies_in_flight, config.prefill_chunk]
    known = _STARTS.setdefault(spec.recording, {})
    key = repr([*moves, *machine, *places])
    if key not in known:
        known[key] = prober.starts(spec.questions.requests())
    return known[key]


def columns_of(trials: Sequence[TreeTrial]) -> tuple[list[int], list[int], list[int]]:
    return (
        [trial.size for trial in trials],
        [trial.demand for trial in trials],
        [trial.cycle_ns for trial in trials],
    )


def held_out(trials: Sequence[TreeTrial], fitting: Fitting) -> LeaveOneOut:
    columns = columns_of(trials)
    return leave_one_out([trial.state for trial in trials], *columns, max(columns[0]), fitting)


def fit_cost(spec: RunSpec, build: BuildRuntime, trials: Sequence[TreeTrial]) -> CostModel:
    k = spec.kind.probed(spec.config.selector.k)
    if spec.config.cost in BY_RESIDENCY:
        return _by_residency(spec, build, trials, k)
    return fit(*columns_of(trials), k)


def _by_residency(
    spec: RunSpec, build: BuildRuntime, trials: Sequence[TreeTrial], k: int
) -> CostModel:
    """The price of a miss from trials; the two of hit_miss from the throughput of questions."""
    missing = [trial.missing or 0 for trial in trials]
    sizes, _, times = columns_of(trials)
    fitted = fit_misses(sizes, missing, times, k)
    if spec.config.cost == "miss":
        return fitted
    return best_prices(fitted, lambda cost: throughput(spec, build, cost))[0]


def throughput(spec: RunSpec, build: BuildRuntime, cost: CostModel) -> float:
    """Tokens per nanosecond of decoding the calibration questions, from an empty cache."""
    runtime = build(spec, calibration_slots(spec), True)
    empty = runtime.target.residency()
    decoder = build_decoder(spec, runtime, build_selector(spec, cost), runtime.clock())
    tokens = ns = 0
    for request in islice(spec.questions.requests(), QUESTIONS):
        for cycle in decoder.decode(replace(request, max_new_tokens=COMMITTED)):
            if cycle.record.cycle:
                tokens += cycle.record.committed_tokens
                ns += cycle.record.cycle_ns
    runtime.target.restore(empty)
    return tokens / ns
