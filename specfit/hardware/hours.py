"""How long a run may take, by a profile's arithmetic: an estimate, and whoever shows it says so.

Rates of routing are those of public traces of Qwen3-30B-A3B (ShareGPT prompts); accepted tokens are
a round figure. A calibrated run knows better: this only tells minutes from days before a fetch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from specfit.hardware.profile import Profile

UNION_GROWTH = (1.0, 1.55, 1.98, 2.35, 2.66, 2.94, 3.17, 3.40)
"""Distinct experts of one layer at 1 .. 8 rows, in units of one row's k (8, 12.4, 15.8 .. 27.2)."""

HIT_SHARES = np.array([0.0, 1 / 16, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2, 1.0])
HIT_RATES = np.array([0.0, 0.33, 0.61, 0.74, 0.83, 0.93, 0.97, 1.0])
"""Share of a layer's experts that have a slot, and the hit rate of single tokens there."""


@dataclass(frozen=True)
class System:
    """One way to decode, in the round figures that an estimate needs."""

    name: str
    rows: int  # of a verify forward, root included
    levels: int  # drafted per cycle
    committed: float  # tokens per cycle
    cached: bool
    atlas_levels: int = 0  # forwards off the clock per cycle
    selects: bool = False


SYSTEMS = (
    System("ar", 1, 0, 1.0, cached=False),
    System("ar_cache", 1, 0, 1.0, cached=True),
    System("eagle3", 8, 5, 2.5, cached=False),
    System("eagle3_cache", 8, 5, 2.5, cached=True),
    System("specfit", 5, 4, 2.3, cached=True, atlas_levels=4, selects=True),
)


def system_like(name: str, drafts: bool, reads_routes: bool) -> System:
    """The system of that name, or the one that another selector's cycle resembles most."""
    named = {system.name: system for system in SYSTEMS}
    nearest = "specfit" if reads_routes else "eagle3_cache" if drafts else "ar_cache"
    return named.get(name) or replace(named[nearest], name=name)


@dataclass(frozen=True)
class Experts:
    """A model's routed experts, as the clock counts them."""

    layers: int
    per_layer: int
    top_k: int  # of one row
    expert_bytes: int


@dataclass(frozen=True)
class Work:
    """What is asked; every answer is taken to be as long as it may."""

    requests: int
    prompt_tokens: float  # on average
    new_tokens: int


@dataclass(frozen=True)
class Hours:
    """Of one run: on the run's clock, and until it is finished."""

    timed: float
    elapsed: float

    def __add__(self, other: Hours) -> Hours:
        return Hours(self.timed + other.timed, self.elapsed + other.elapsed)


def hours_of(system: System, model: Experts, profile: Profile, slots: int, work: Work) -> Hours:
    """The profile has a link and a fixed cost. Calibration and loading are not in it."""
    assert profile.fixed_ms is not None
    share = slots / model.per_layer if system.cached else 0.0
    missed = 1.0 - float(np.interp(share, HIT_SHARES, HIT_RATES))

    def experts_ms(rows: int) -> float:
        used = min(model.per_layer, model.top_k * UNION_GROWTH[rows - 1])
        return _experts_ms(model, profile, used, used * missed)

    verify = profile.fixed_ms + profile.node_ms * (system.rows - 1) + experts_ms(system.rows)
    cycle = verify + system.levels * profile.draft_level_ms
    cycle += profile.selection_ms if system.selects else 0.0
    atlas = system.atlas_levels * (profile.fixed_ms + experts_ms(4))
    cycles = work.new_tokens / system.committed
    nearly_all = _experts_ms(model, profile, model.per_layer, model.per_layer * (1.0 - share))
    prefill = profile.fixed_ms + profile.prefill_token_ms * work.prompt_tokens + nearly_all
    per_ms = work.requests / 3.6e6
    timed = (prefill + cycles * cycle) * per_ms
    return Hours(timed, timed + cycles * atlas * per_ms)


def _experts_ms(model: Experts, profile: Profile, used: float, copied: float) -> float:
    """Of a forward that uses and copies so many experts of each layer."""
    assert profile.link_gbps is not None
    copy_ms = model.expert_bytes / profile.link_gbps / 1e6
    if not profile.overlap:
        copy_ms += profile.copy_latency_us / 1e3
    lanes = copied * copy_ms, used * profile.expert_us / 1e3
    return model.layers * (max(lanes) if profile.overlap else sum(lanes))
