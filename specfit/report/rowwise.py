"""One request's cycles from two runs, column by column."""

from __future__ import annotations

import pandas as pd

REWARD = "predicted_reward"
TOLERANCE = 1e-4
"""Of predicted_reward, relative: its low bits depend on the shape of the forward that made the
features."""


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
    return bool(((a == b) | (a.isna() & b.isna())).fillna(False).all())
