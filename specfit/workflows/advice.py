"""Which setting is fastest on a machine: those that a person could type, each replayed over a short
recording on the modelled clock (by a probe's profile if the advice is for this machine).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specfit.base.config import RunConfig
from specfit.base.types import SpecfitError
from specfit.decoding.resolve import LiveRunSpec
from specfit.decoding.spec import locate
from specfit.models.routes.predictor import load_predictor
from specfit.models.routes.token_table import load_table
from specfit.report.explain import Explanation, Side
from specfit.report.intervals import Interval, paired_ratio
from specfit.report.metrics import PHASES
from specfit.storage.recording.files import Recording
from specfit.workflows.hydra_cli import chosen
from specfit.workflows.simulate import Simulation, simulate

POLICIES = ("lru", "decayed_lfu")
TRAINED = ("learned", "token_table")
OWN, EARLY = "calibration.at=own", "selector.adaptive_depth=true"
BOUND = "selector=specfit"
"""The paper's own setting: exact routes, read while the clock stands still, as no machine can."""


@dataclass(frozen=True)
class Sources:
    """What can name experts ahead of demand on a real clock, for this target and head."""

    drafting: str  # learned, where a predictor of this pair is at hand
    plain: str  # AR drafts nothing: token_table, where one of this target is
    folder: str = ""  # of their files, where it is not the package's

    def words(self, name: str) -> list[str]:
        has_file = name in TRAINED and self.folder
        return [f"routes={name}", *([f"routes.path={self.folder}"] if has_file else [])]


@dataclass(frozen=True)
class Setting:
    """Overrides of `python -m specfit.run`, at as many slots as leave room for what it needs."""

    name: str
    overrides: tuple[str, ...]
    can_run: bool = True

    @property
    def drafts(self) -> bool:
        return not any(item.startswith("selector=ar") for item in self.overrides)


@dataclass(frozen=True)
class Tried:
    setting: Setting
    found: Simulation


def settings(slots: int, sources: Sources, overlap: bool = True) -> list[Setting]:
    """Simplest first: of equals the first is advised. An area for prefetched experts costs a slot
    per layer, so that every setting needs the same memory; where copying and computing take turns
    (no `overlap`) nothing can come in early."""
    ahead = ("off", "layer") if slots and overlap else ("off",)
    rules = {
        "AR + cache": ("selector=ar_cache", sources.plain, False),
        "EAGLE-3 + cache": ("selector=eagle3_cache", sources.drafting, False),
        "EVICT's rule, early stop": (f"selector=evict {EARLY} {OWN}", sources.drafting, False),
        "SpecFit": (f"selector=specfit {OWN}", sources.drafting, True),
    }
    found = []
    for policy in POLICIES if slots else POLICIES[:1]:
        for prefetch in ahead:
            for name, (said, routes, reads) in rules.items():
                words = said.split()
                if reads or prefetch != "off":
                    words += sources.words(routes)
                if policy != POLICIES[0]:
                    words.append(f"policy={policy}")
                if prefetch != "off":
                    words.append(f"prefetch={prefetch}")
                words.append(f"cache_slots={slots - (prefetch != 'off')}")
                found.append(Setting(name, tuple(words)))
    bound = f"{BOUND} {OWN} cache_slots={slots}".split()
    return [*found, Setting("SpecFit, exact routes off the clock", tuple(bound), can_run=False)]


def sources_of(spec: LiveRunSpec, named: str = "") -> Sources:
    """By the files in the folder `named`, else in the package; `last_token`, which needs no file,
    where none of this pair is at hand."""
    pair = {"target": spec.target_digest, "drafter": spec.drafter_digest}

    def has(name: str, load: Callable[[], object]) -> bool:
        try:
            load()
        except SpecfitError:
            return False
        return True

    predictor, table = (locate(named or _path(name)) / f"{name}.safetensors" for name in TRAINED)
    plain = "last_token"
    if has("token_table", lambda: load_table(table, spec.target_digest)):
        plain = "token_table"
    learned = has("learned", lambda: load_predictor(predictor, pair, spec.device))
    return Sources("learned" if learned else plain, plain, named)


def _path(name: str) -> str:
    return chosen([f"routes={name}"]).routes.path


def applied(config: RunConfig, overrides: Sequence[str]) -> RunConfig:
    """The config with what these override, groups and values alike; the rest stays."""
    said = chosen(overrides)
    groups = {item.partition("=")[0].partition(".")[0] for item in overrides}
    return replace(config, **{name: getattr(said, name) for name in groups})


def try_all(
    config: RunConfig, recording: Recording, wanted: Sequence[Setting], seen: Callable[[], None]
) -> list[Tried]:
    """`seen` is called after each."""
    found = []
    for setting in wanted:
        found.append(Tried(setting, simulate(applied(config, setting.overrides), recording)))
        seen()
    return found


def hits_of_belady(
    config: RunConfig, recording: Recording, tried: Sequence[Tried]
) -> dict[str, float]:
    """By the name of a setting: the hit rate, percent, that it would have on demand with a cache
    that knows the future. What is demanded depends on no policy, so one bound serves all."""
    found = {}
    for one in tried:
        words = one.setting.overrides
        if one.setting.name in found or "cache_slots=0" in words or moves_ahead(one.setting):
            continue
        known = [word for word in words if not word.startswith("policy=")]
        simulation = simulate(applied(config, [*known, "policy=belady"]), recording)
        found[one.setting.name] = hit_rate(simulation)
    return found


def moves_ahead(setting: Setting) -> bool:
    return any(word.startswith("prefetch=") for word in setting.overrides)


def hit_rate(found: Simulation) -> float:
    """Percent of the demand, on demand and early alike."""
    return 100 * found.total("hit_experts") / found.total("demand_experts")


@dataclass(frozen=True)
class Advice:
    """Of what can run: the best, the best that drafts nothing, and the best that drafts."""

    tried: Sequence[Tried]
    best: Tried
    plain: Tried
    drafting: Tried

    @property
    def gain(self) -> Interval:
        """The best drafting setting over the best plain one."""
        return speed_over(self.drafting, self.plain)


def advise_on(tried: Sequence[Tried]) -> Advice:
    can_run = [one for one in tried if one.setting.can_run]
    plain = _fastest([one for one in can_run if not one.setting.drafts])
    drafting = _fastest([one for one in can_run if one.setting.drafts])
    return Advice(tried, _fastest([plain, drafting]), plain, drafting)


def _fastest(tried: Sequence[Tried]) -> Tried:
    return max(tried, key=lambda one: one.found.tokens_per_second)


def speed_over(ours: Tried, theirs: Tried) -> Interval:
    """Of decode tokens/s, paired by request."""

    def columns(one: Tried) -> np.ndarray:
        sums = one.found.sums
        return np.stack([sums["committed_tokens"], sums["cycle_ns"]], axis=1)

    return paired_ratio(columns(ours), columns(theirs))


def explained(ours: Tried, theirs: Tried) -> Explanation:
    return Explanation(_side(ours), _side(theirs), speed_over(ours, theirs), "modelled")


def _side(one: Tried) -> Side:
    found, cycles = one.found, one.found.total("cycles")
    phases = {phase: found.total(f"{phase}_ns") for phase in PHASES}
    wait = found.total("transfer_wait_ns")
    phases |= {"wait": wait, "compute": phases.pop("verify") - wait}
    return Side(
        one.setting.name,
        found.total("committed_tokens") / cycles,
        found.total("verified_nodes") / cycles,
        found.total("cycle_ns") / cycles / 1e6,
        {phase: ns / cycles / 1e6 for phase, ns in phases.items()},
        found.total("demand_experts") / cycles,
        found.total("transferred_experts") / cycles,
    )
