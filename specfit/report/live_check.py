"""Whether replayed rows are live rows: the requests that a suite also ran live, row by row.

They may part where a router ties: a recording routes a text in one pass, a run a few rows at a
time, and fp32 may round the last bit otherwise. Where the tie is of a draft node that is rejected,
no token changes: demand is equal, and one cycle has a hit more or less, with the copy, the eviction
and the time that follow from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from specfit.report.styles import label_of
from specfit.report.suite_runs import SuiteRun
from specfit.storage.rows import RunRows

REWARD = "predicted_reward"
TOLERANCE = 1e-4
"""Of predicted_reward, relative: its low bits depend on the shape of the forward that made the
features."""
NAMED = 3
"""Requests that are named where rows differ. One that parts changes the cache for those behind."""


@dataclass(frozen=True)
class LiveCheck:
    """Replays beside live runs of their first requests."""

    systems: int
    requests: int  # compared, over all systems
    cycles: int
    others: tuple[str, ...]  # "SpecFit, evaluation-13: hit_experts" of each that is not equal

    @property
    def sentence(self) -> str:
        """Empty where nothing was run live."""
        if not self.requests:
            return ""
        equal = self.requests - len(self.others)
        told = (
            f"Rows are replays of one recording; {equal} of {self.requests} requests that "
            f"{self.systems} systems also decoded live ({self.cycles} cycles) have the same rows"
        )
        if not self.others:
            return f"{told}."
        more = f"; and {len(self.others) - NAMED} more" if len(self.others) > NAMED else ""
        return f"{told}; others: {'; '.join(self.others[:NAMED])}{more}."


def check_live(replays: Sequence[SuiteRun], live: Sequence[SuiteRun]) -> LiveCheck:
    """Every column of every cycle is compared, for each live run whose replay is there. Of a run
    without cycles (committed as sums) nothing is."""
    systems = requests = cycles = 0
    others: list[str] = []
    for one in live:
        again = [other for other in replays if other is not one and _same_setting(one, other)]
        if not again or one.rows.cycles.empty or again[0].rows.cycles.empty:
            continue
        ours, theirs = _by_request(again[0].rows), _by_request(one.rows)
        shared = [name for name in one.rows.ok_ids if name in ours]
        systems += bool(shared)
        for name in shared:
            requests, cycles = requests + 1, cycles + len(theirs[name])
            columns = differing_columns(theirs[name], ours[name])
            if columns:
                others.append(f"{label_of(one.rows.info)}, {name}: {', '.join(columns[:2])}")
    return LiveCheck(systems, requests, cycles, tuple(others))


def _same_setting(one: SuiteRun, other: SuiteRun) -> bool:
    """The same but for the requests that were asked."""
    return one.workload == other.workload and _setting(one) == _setting(other)


def _setting(one: SuiteRun) -> tuple[object, ...]:
    info = one.rows.info
    kept = {key: value for key, value in one.config.items() if key not in ("limit", "recording")}
    return info.selector, info.cache_slots, info.profile_digest, one.calibration_id, repr(kept)


def _by_request(rows: RunRows) -> dict[str, pd.DataFrame]:
    """Of requests in the run's order: one that parts changes the cache contents of those behind."""
    return {str(name): group for name, group in rows.cycles.groupby("request_id", sort=False)}


# -- one request's cycles from two runs, column by column ------------------------------------------


def differing_columns(live: pd.DataFrame, again: pd.DataFrame) -> list[str]:
    """Columns that are not the same; only `cycle` where even the number of cycles is another."""
    if len(live) != len(again):
        return ["cycle"]
    a, b = live.reset_index(drop=True), again.reset_index(drop=True)
    names = [name for name in a.columns if name not in ("run_id", REWARD)]
    far = reward_difference(a, b)
    unequal = [name for name in names if not _equal(a[name], b[name])]
    return unequal + ([REWARD] if far is None or far > TOLERANCE else [])


def first_difference(live: pd.DataFrame, again: pd.DataFrame) -> int:
    """The first cycle in which some column differs."""
    for at in range(min(len(live), len(again))):
        if differing_columns(live.iloc[[at]], again.iloc[[at]]):
            return at
    return min(len(live), len(again))


def reward_difference(live: pd.DataFrame, again: pd.DataFrame) -> float | None:
    """Largest, relative; None where one has a reward and the other has none."""
    a, b = (frame[REWARD].reset_index(drop=True) for frame in (live, again))
    if not a.isna().equals(b.isna()):
        return None
    far = ((a - b).abs() / a).dropna()
    return float(far.max()) if len(far) else 0.0


def _equal(a: pd.Series, b: pd.Series) -> bool:
    if a.array.equals(b.array):  # nearly always, and a tenth of the time
        return True
    return bool(((a == b) | (a.isna() & b.isna())).fillna(False).all())
