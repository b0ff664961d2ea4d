"""How long a run may take, by a profile's arithmetic: an estimate, and whoever shows it says so.

Rates of routing are those of public traces of Qwen3-30B-A3B (ShareGPT prompts); accepted tokens are
a round figure. A calibrated run knows better: this only tells minutes from days before a fetch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specfit.hardware.memory import DeviceNeeds
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


@dataclass(frozen=True)
class Hours:
    """Of one run: on the run's clock, and until it is finished."""

    timed: float
    elapsed: float

    def __add__(self, other: Hours) -> Hours:
        return Hours(self.timed + other.timed, self.elapsed + other.elapsed)


def hours_of(
    system: System,
    needs: DeviceNeeds,
    profile: Profile,
    top_k: int,
    slots: int,
    requests: int,
    prompt_tokens: int,
    new_tokens: int,
) -> Hours:
    """The profile has a link and a fixed cost. Calibration and loading are not in it."""
    assert profile.link_gbps is not None and profile.fixed_ms is not None
    copy_ms = needs.expert_bytes / profile.link_gbps / 1e6
    share = slots / needs.experts if system.cached else 0.0
    missed = 1.0 - float(np.interp(share, HIT_SHARES, HIT_RATES))

    def copies_ms(rows: int) -> float:
        return needs.layers * top_k * UNION_GROWTH[rows - 1] * missed * copy_ms

    verify = profile.fixed_ms + profile.node_ms * (system.rows - 1) + copies_ms(system.rows)
    cycle = verify + system.levels * profile.draft_level_ms
    cycle += profile.selection_ms if system.selects else 0.0
    atlas = system.atlas_levels * (profile.fixed_ms + copies_ms(4))
    cycles = new_tokens / system.committed
    nearly_all = needs.layers * needs.experts * (1.0 - share) * copy_ms
    prefill = profile.fixed_ms + profile.prefill_token_ms * prompt_tokens + nearly_all
    per_ms = requests / 3.6e6
    timed = (prefill + cycles * cycle) * per_ms
    return Hours(timed, timed + cycles * atlas * per_ms)
