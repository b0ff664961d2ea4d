"""One setting replayed over a recording and kept in memory: sums per request, no rows, and a fit of
its own that no file keeps. For maps and advice, which try hundreds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from specfit.base.config import RunConfig
from specfit.base.types import CycleRecord, IntArray, SpecfitError
from specfit.decoding.calibration.files import calibration_id_of, solved
from specfit.decoding.calibration.fit import fit_cost, run_trials
from specfit.decoding.calibration.trials import TreeTrial
from specfit.decoding.expert_cache_factory import CLAIRVOYANT
from specfit.decoding.factory import build_decoder, build_selector
from specfit.decoding.replay.spec import ReplayRunSpec, replay_runtime, resolve_replay
from specfit.report.metrics import COUNTERS
from specfit.report.run_summary import failed_sentence
from specfit.storage.recording.files import Recording
from specfit.workflows.execute import look_ahead


@dataclass(frozen=True, eq=False)
class Simulation:
    """What the decode cycles of each request add up to: COUNTERS and `cycles`, [n] each, in the
    recording's order and without requests that failed in it."""

    request_ids: tuple[str, ...]
    sums: Mapping[str, IntArray]

    def total(self, column: str) -> int:
        return int(self.sums[column].sum())

    @property
    def tokens_per_second(self) -> float:
        return 1e9 * self.total("committed_tokens") / self.total("cycle_ns")


def simulate(config: RunConfig, recording: Recording) -> Simulation:
    """The run that `replay` would make of this config: same decoder, same cycles.

    Raises SpecfitError if the config needs what was not recorded.
    """
    spec = resolve_replay(config, recording)
    assert isinstance(spec, ReplayRunSpec)
    cost = sizes = None
    if spec.kind.needs_cost:
        trials = _trials(spec)
        fit = solved(spec, "", fit_cost(spec, replay_runtime, trials), trials)
        cost, sizes = fit.cost, fit.sizes
    machine = replay_runtime(spec, spec.slots, spec.kind.drafts)
    decoder = build_decoder(spec, machine, build_selector(spec, cost, sizes), machine.clock())
    if config.policy == CLAIRVOYANT:
        look_ahead(machine.target, decoder, spec.workload)
        decoder.selector = build_selector(spec, cost, sizes)
    answered = [i for i, one in enumerate(spec.workload.recorded) if one.request is not None]
    if not answered:
        why = failed_sentence(one.status for one in spec.workload.recorded)
        raise SpecfitError(f"recording {recording.recording_id} has no request to replay; {why}")
    rows = [_sums(list(decoder.decode(spec.workload.request(i)))) for i in answered]
    ids = tuple(spec.workload.ids[i] for i in answered)
    columns = ("cycles", *COUNTERS)
    return Simulation(ids, {c: np.array([row[c] for row in rows], np.int64) for c in columns})


_TRIALS: WeakKeyDictionary[Recording, dict[str, Sequence[TreeTrial]]] = WeakKeyDictionary()


def _trials(spec: ReplayRunSpec) -> Sequence[TreeTrial]:
    """Forced trees of this setting, tried once: selectors and slot counts share a fit."""
    known, name = _TRIALS.setdefault(spec.recording, {}), calibration_id_of(spec)
    if name not in known:
        known[name] = run_trials(spec, replay_runtime)
    return known[name]


def _sums(cycles: list) -> dict[str, int]:
    records: list[CycleRecord] = [cycle.record for cycle in cycles if cycle.record.cycle > 0]
    sums = {name: sum(getattr(record, name) or 0 for record in records) for name in COUNTERS}
    return sums | {"cycles": len(records)}
