"""The cost model T(S) = b_|S| + beta F(S) (sec. 3.2) and the one expression that ranks by it.

Compiled callers in other files inline what is here, and numba's disk cache watches the caller's
file alone: after an edit here run `make clean`, or the search keeps the old expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from specfit.base.types import SpecfitError

FloatArray = NDArray[np.float64]


class Rule(NamedTuple):
    """What a search maximises, as compiled code sees it: R / T, or R - price x T."""

    by_ratio: bool
    price: float  # reward units (2**-20 tokens) per nanosecond; unused by the ratio
    intercepts_ns: FloatArray  # [K + 1]
    expert_ns: float


@njit(cache=True, inline="always")
def time_ns(intercept_ns: float, expert_ns: float, demand: int) -> float:
    """T = b_k + beta F in float64: one product, one sum, no fused multiply-add.

    At least 1 ns, so that a model of all zeros still ranks, by reward. Rounding is monotone, hence
    so is this in each argument: bounds evaluated with it bound what it evaluates.
    """
    time = intercept_ns + expert_ns * demand
    return time if time > 1.0 else 1.0


@njit(cache=True, inline="always", error_model="numpy")
def ratio(reward: int, intercept_ns: float, expert_ns: float, demand: int) -> float:
    """R / T (eq. 5), the canonical float64 every search, test and replay compares.

    `reward` is in units of 2**-20 and below 2**53, so it is exact; the only roundings are those
    of `time_ns` and of one division.
    """
    return reward / time_ns(intercept_ns, expert_ns, demand)


@njit(cache=True, inline="always")
def margin(reward: int, intercept_ns: float, expert_ns: float, demand: int, price: float) -> float:
    """R - lambda T (app. A.1), canonical likewise: one more product and one difference.

    For a price >= 0 every rounded operation is monotone, as in `ratio`: more reward or less demand
    never lowers it.
    """
    return reward - price * time_ns(intercept_ns, expert_ns, demand)


@njit(cache=True, inline="always", error_model="numpy")
def score(rule: Rule, reward: int, size: int, demand: int) -> float:
    """The canonical value of a selection of `size` nodes under `rule`; higher is better."""
    if rule.by_ratio:
        return ratio(reward, rule.intercepts_ns[size], rule.expert_ns, demand)
    return margin(reward, rule.intercepts_ns[size], rule.expert_ns, demand, rule.price)


@dataclass(frozen=True, eq=False)
class CostModel:
    """Coefficients of T, frozen after calibration; the b_k need not grow with k (app. B)."""

    intercepts_ns: FloatArray  # [K + 1], b_0 .. b_K
    expert_ns: float  # beta, per distinct expert of one layer
    weights: tuple[int, int] = (1, 1)  # of an absent and a resident expert, for a cost that tells

    def __post_init__(self) -> None:
        values = np.array(self.intercepts_ns, dtype=np.float64)  # a private copy
        if values.ndim != 1 or len(values) == 0:
            raise SpecfitError("a cost model needs intercepts b_0 .. b_K, one per selection size")
        if not (np.isfinite(values).all() and np.isfinite(self.expert_ns)):
            raise SpecfitError("cost coefficients must be finite nanoseconds")
        if values.min() < 0 or self.expert_ns < 0:
            raise SpecfitError("cost coefficients must not be negative")
        object.__setattr__(self, "intercepts_ns", values)
        object.__setattr__(self, "expert_ns", float(self.expert_ns))

    @property
    def k(self) -> int:
        """Largest selection this model prices."""
        return len(self.intercepts_ns) - 1

    def predict_ns(self, size: int, demand: int) -> float:
        """T of a selection of `size` nodes that demands `demand` experts, root included."""
        return float(time_ns.py_func(float(self.intercepts_ns[size]), self.expert_ns, demand))

    def ratio(self, reward: int, size: int, demand: int) -> float:
        """R / T; `reward` in units of 2**-20 with the root's own 1 in it."""
        return float(ratio(reward, float(self.intercepts_ns[size]), self.expert_ns, demand))

    def margin(self, reward: int, size: int, demand: int, price: float) -> float:
        """R - price x T in units of 2**-20; `price` in such units per nanosecond."""
        intercept = float(self.intercepts_ns[size])
        return float(margin(reward, intercept, self.expert_ns, demand, price))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; floats survive json exactly."""
        plain = {"intercepts_ns": self.intercepts_ns.tolist(), "expert_ns": self.expert_ns}
        return plain if self.weights == (1, 1) else plain | {"weights": list(self.weights)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CostModel:
        try:
            absent, resident = data.get("weights", (1, 1))
            intercepts = np.array(data["intercepts_ns"], dtype=np.float64)
            return cls(intercepts, float(data["expert_ns"]), (int(absent), int(resident)))
        except (KeyError, TypeError, ValueError) as error:
            raise SpecfitError(
                "a cost model is {'intercepts_ns': [b_0, ..], 'expert_ns': beta} in numbers, "
                f"and this one is not ({error})"
            ) from error


@dataclass(frozen=True)
class LevelCost:
    """A cost per drafted level, for a selection whose T is to be of the cycle as it would end now.

    The fit is of full-depth cycles (app. B): b_k holds the drafting of every level, whatever has
    been drafted. With c per level, the T of a cycle that ends after d of D levels is

        T_d(S) = b_|S| - c (D - d) + beta F(S)

    A constant for all selections of one pool, so it moves the optimum of R / T, towards fewer nodes
    while the pool is shallow, and not that of R - lambda T. At d = D it is the paper's T.
    """

    ns: float
    levels: int  # of a full pool

    def spared(self, cost: CostModel, drafted: int) -> CostModel:
        """Of a cycle that ends after `drafted` levels; no intercept below 0."""
        left = max(self.levels - drafted, 0)
        return replace(cost, intercepts_ns=np.maximum(cost.intercepts_ns - left * self.ns, 0.0))
