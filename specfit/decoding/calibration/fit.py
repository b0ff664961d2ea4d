"""Probes of a machine and the cost model they give (app. A.2, app. B). Nothing is looked up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

from specfit.base.interfaces import RouteSource
from specfit.decoding.calibration.trials import Probe, Prober
from specfit.decoding.expert_cache_factory import CLAIRVOYANT, COMMITTED, QUESTIONS
from specfit.decoding.factory import build_decoder, build_selector, routes_named
from specfit.decoding.spec import Assemble, Facts
from specfit.selection.cost import CostModel
from specfit.selection.costs import BY_RESIDENCY
from specfit.selection.fit import Fitting, LeaveOneOut, fit, leave_one_out
from specfit.selection.mean_by_size import BySize, by_size
from specfit.selection.miss_cost_fit import best_prices, fit_misses


def calibration_slots(facts: Facts) -> int:
    """Slots the fit is made at: uncached runs have their own, cached ones share one or not."""
    if facts.slots == 0:
        return 0
    if facts.config.calibration.at == "own":
        return facts.slots
    return min(facts.config.calibration.slots, facts.geometry.experts)


@dataclass(frozen=True)
class Fitted:
    """A fit that no file keeps."""

    cost: CostModel
    sizes: BySize


def fitted(facts: Facts, assemble: Assemble) -> Fitted:
    """What `find_or_make` would have made, for settings that are tried in passing."""
    probes, k = take_probes(facts, assemble), facts.kind.probed(facts.config.selector.k)
    sizes = by_size([probe.family for probe in probes], *columns_of(probes), k)
    return Fitted(fit_cost(facts, assemble, probes), sizes)


def take_probes(facts: Facts, assemble: Assemble) -> list[Probe]:
    if facts.config.policy == CLAIRVOYANT:
        facts = replace(facts, config=replace(facts.config, policy="lru"))
    machine = assemble(facts, calibration_slots(facts), True)
    drafter = machine.drafter()
    routes: RouteSource = machine.exact_routes()
    if facts.config.prefetch != "off":  # what comes in early is what the run's own source says
        routes = routes_named(facts.config.routes.name)(facts, machine, drafter)
    prober = Prober(
        machine.target,
        drafter,
        routes,
        machine.clock(),
        facts.geometry.experts,
        facts.kind.probed(facts.config.selector.k),
        machine.foresight(),
    )
    if facts.clock == "wall":  # the first use of anything is slow: one untimed walk
        empty = machine.target.residency()
        prober.run(facts.questions.requests())
        machine.target.restore(empty)
    return prober.run(facts.questions.requests())


def columns_of(probes: list[Probe]) -> tuple[list[int], list[int], list[int]]:
    return (
        [probe.size for probe in probes],
        [probe.demand for probe in probes],
        [probe.cycle_ns for probe in probes],
    )


def held_out(probes: list[Probe], fitting: Fitting) -> LeaveOneOut:
    columns = columns_of(probes)
    return leave_one_out([probe.state for probe in probes], *columns, max(columns[0]), fitting)


def fit_cost(facts: Facts, assemble: Assemble, probes: list[Probe]) -> CostModel:
    k = facts.kind.probed(facts.config.selector.k)
    if facts.config.cost in BY_RESIDENCY:
        return _by_residency(facts, assemble, probes, k)
    return fit(*columns_of(probes), k)


def _by_residency(facts: Facts, assemble: Assemble, probes: list[Probe], k: int) -> CostModel:
    """The price of a miss from probes; the two of hit_miss from the throughput of the questions."""
    missing = [probe.missing or 0 for probe in probes]
    sizes, _, times = columns_of(probes)
    fitted = fit_misses(sizes, missing, times, k)
    if facts.config.cost == "miss":
        return fitted
    return best_prices(fitted, lambda cost: throughput(facts, assemble, cost))[0]


def throughput(facts: Facts, assemble: Assemble, cost: CostModel) -> float:
    """Tokens per nanosecond of decoding the calibration questions, from an empty cache."""
    machine = assemble(facts, calibration_slots(facts), True)
    empty = machine.target.residency()
    decoder = build_decoder(facts, machine, build_selector(facts, cost), machine.clock())
    tokens = ns = 0
    for request in islice(facts.questions.requests(), QUESTIONS):
        for cycle in decoder.decode(replace(request, max_new_tokens=COMMITTED)):
            if cycle.record.cycle:
                tokens += cycle.record.committed_tokens
                ns += cycle.record.cycle_ns
    machine.target.restore(empty)
    return tokens / ns
