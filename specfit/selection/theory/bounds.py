"""How far the per-cycle ratio rule is from the throughput optimum (app. A.1), and bounds on that.

Notation: per cycle, S^ maximises R / T, rho is its ratio, S_l maximises R - l T. With E the
(weighted) mean over the cycles given, lambda^ = E[R(S^)] / E[T(S^)] and lambda* is the largest
E[R] / E[T] over all rules; S* = S_{lambda*}. Everything is exact for the cycles given: no i.i.d.
assumption. Each bound below is *a* bound, derived here; none is claimed to be the paper's eq. 7.

Arrays hold one value per cycle, in any units that agree: rewards and times as floats, or as
`fractions.Fraction` in object arrays, for which every result is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = Any
"""[n] floats or Fractions."""

Number = Any
"""One of them."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one rule takes in every cycle."""

    rewards: Values  # [n]
    times: Values  # [n]

    def __post_init__(self) -> None:
        assert len(self.rewards) == len(self.times) > 0, "one reward and one time per cycle"


@dataclass(frozen=True)
class Optimum:
    """lambda*, the rule that attains it, and how many solutions of R - l T that took."""

    rate: Number
    outcome: Outcome
    solves: int


def mean(values: Values, weights: Values | None = None) -> Number:
    """E; `weights` [n] say how often each cycle is met, once where there are none."""
    if weights is None:
        return values.sum() / len(values)
    return (weights * values).sum() / weights.sum()


def throughput(outcome: Outcome, weights: Values | None = None) -> Number:
    """E[R] / E[T], a ratio of like sums."""
    return mean(outcome.rewards, weights) / mean(outcome.times, weights)


def lambda_star(
    start: Number, solve: Callable[[Number], Outcome], weights: Values | None = None
) -> Optimum:
    """l <- E[R(S_l)] / E[T(S_l)] from a throughput that some rule attains, such as lambda^.

    Let V(l) = E[max R - l T]. For an attained l, V(l) >= 0, and the step is l + V(l) / E[T(S_l)]:
    it rises strictly while V(l) > 0, and V(l) = 0 exactly at lambda*. Each step is the throughput
    of one of finitely many rules, so it ends; in floats, at the first step that does not rise.
    """
    rate, solves = start, 0
    while True:
        outcome = solve(rate)
        solves += 1
        better = throughput(outcome, weights)
        if not better > rate:
            return Optimum(rate, outcome, solves)
        rate = better


def identity_gap(ratio: Outcome, rate: Number, weights: Values | None = None) -> Number:
    """lambda* - lambda^ = E[(lambda* - rho) T^] / E[T^], since R(S^) = rho T^; `rate` = lambda*."""
    shortfall = rate * ratio.times - ratio.rewards
    return mean(shortfall, weights) / mean(ratio.times, weights)


def bound_1(ratio: Outcome, best: Outcome, rate: Number, weights: Values | None = None) -> Number:
    """B1: lambda* - lambda^ <= E[|rho - lambda*| |T* - T^|] / E[T^].

    E[R(S*) - lambda* T*] = 0 and R(S^) = rho T^, so the gap is
    E[(R(S*) - lambda* T*) - (rho - lambda*) T^] / E[T^], and R(S*) <= rho T* makes the numerator
    at most E[(rho - lambda*) (T* - T^)]. T* >= T^ where lambda* < rho and T* <= T^ where
    lambda* > rho, so the product is that of the absolute values.
    """
    ratios = ratio.rewards / ratio.times
    products = np.abs(ratios - rate) * np.abs(best.times - ratio.times)
    return mean(products, weights) / mean(ratio.times, weights)


def bound_2(
    ratio: Outcome, shortest: Values, longest: Values, rate: Number, weights: Values | None = None
) -> Number:
    """B2: B1 without S*: T* is at most the longest, at least the shortest legal time of a cycle."""
    ratios = ratio.rewards / ratio.times
    room = np.where(ratios > rate, longest - ratio.times, ratio.times - shortest)
    return mean(np.abs(ratios - rate) * room, weights) / mean(ratio.times, weights)


@dataclass(frozen=True)
class OnePass:
    """B3, without lambda*: what one solution at lambda^ says of the gap."""

    lower: Number  # G / E[T(S_lambda^)]: the iteration's first step
    upper: Number  # G / E[T_min]
    loose: Number  # E[|rho - lambda^| |T(S_lambda^) - T^|] / E[T_min], at least `upper`


def bound_3(
    ratio: Outcome, at_ratio: Outcome, shortest: Values, weights: Values | None = None
) -> OnePass:
    """B3 with G = E[max R - lambda^ T]; `at_ratio` is the outcome of S_l at l = lambda^.

    Upper: G >= E[R(S*) - lambda^ T*] = (lambda* - lambda^) E[T*] >= (lambda* - lambda^) E[T_min].
    Lower: lambda^ + G / E[T(S_lambda^)] is the throughput of that rule, at most lambda*.
    Loose: R(S^) = rho T^ sums to lambda^ T^, so G = E[R(S_l) - l T(S_l) - (rho - l) T^]
    <= E[(rho - l)(T(S_l) - T^)] at l = lambda^, and the factors agree in sign as in B1.
    """
    rate = throughput(ratio, weights)
    gain = mean(at_ratio.rewards - rate * at_ratio.times, weights)
    products = np.abs(ratio.rewards / ratio.times - rate) * np.abs(at_ratio.times - ratio.times)
    floor = mean(shortest, weights)
    return OnePass(
        gain / mean(at_ratio.times, weights), gain / floor, mean(products, weights) / floor
    )
