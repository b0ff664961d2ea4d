"""Sets of small pools priced exactly: every legal subtree of every cycle, listed, in integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from specfit.base.types import PROBABILITY_ONE
from specfit.selection.cost import CostModel
from specfit.selection.theory.bounds import Outcome
from tests.selection.pools import Pool, legal, masks, random_pool, union_count

K = 4
NODES = 6


@dataclass(frozen=True)
class Cycle:
    """One pool; entry i of the three lists is one legal subtree."""

    pool: Pool
    sets: list[tuple[int, ...]]
    rewards: list[int]  # units of 2**-20
    times: list[int]

    def argmax(self, rate: Fraction) -> list[int]:
        """All maximisers of R - rate T."""
        n, d = rate.numerator, rate.denominator
        values = [d * r - n * t for r, t in zip(self.rewards, self.times, strict=True)]
        best = max(values)
        return [i for i, value in enumerate(values) if value == best]

    @property
    def rho(self) -> Fraction:
        """By comparing every pair of ratios, without lambda."""
        reward, time = self.rewards[0], self.times[0]
        for r, t in zip(self.rewards, self.times, strict=True):
            if r * time > reward * t:
                reward, time = r, t
        return Fraction(reward, time)

    def best_ratios(self) -> list[int]:
        n, d = self.rho.numerator, self.rho.denominator
        pairs = zip(self.rewards, self.times, strict=True)
        return [i for i, (r, t) in enumerate(pairs) if r * d == n * t]

    def times_of(self, which: Sequence[int]) -> list[int]:
        return [self.times[i] for i in which]


@dataclass(frozen=True)
class World:
    """Cycles under one cost; `kind` says what is special about it."""

    cycles: list[Cycle]
    cost: CostModel
    kind: str

    def outcome(self, which: Sequence[int]) -> Outcome:
        """Of taking legal subtree `which[i]` in cycle i."""
        pairs = list(zip(self.cycles, which, strict=True))
        return Outcome(
            np.array([Fraction(cycle.rewards[i]) for cycle, i in pairs], dtype=object),
            np.array([Fraction(cycle.times[i]) for cycle, i in pairs], dtype=object),
        )

    def ratio_rule(self, rng: np.random.Generator) -> Outcome:
        """Ties fall at random: no property depends on how they are broken."""
        return self.outcome([int(rng.choice(cycle.best_ratios())) for cycle in self.cycles])

    def lambda_rule(self, rate: Fraction, rng: np.random.Generator) -> Outcome:
        return self.outcome([int(rng.choice(cycle.argmax(rate))) for cycle in self.cycles])

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Shortest and longest legal time of every cycle."""
        times = [cycle.times for cycle in self.cycles]
        shortest, longest = ([Fraction(f(t)) for t in times] for f in (min, max))
        return np.array(shortest, dtype=object), np.array(longest, dtype=object)


def price(pool: Pool, cost: CostModel, k: int = K) -> Cycle:
    """`cost` in whole nanoseconds."""
    sets, known = legal(pool.tree, k), masks(pool.routes)
    probs = pool.tree.path_probs.tolist()
    rewards = [PROBABILITY_ONE + sum(probs[n] for n in nodes) for nodes in sets]
    intercepts, expert = [int(b) for b in cost.intercepts_ns], int(cost.expert_ns)
    times = [
        intercepts[len(nodes)] + expert * union_count(pool.routes, nodes, known) for nodes in sets
    ]
    return Cycle(pool, sets, rewards, times)


KINDS = ("free", "falling", "flat", "line", "zero beta")


def random_world(rng: np.random.Generator, cycles: int = 4) -> World:
    """Whole coefficients and, half the time, probabilities in eighths: ties are common."""
    kind = KINDS[rng.integers(len(KINDS))]
    intercepts = rng.integers(1, 40, K + 1).astype(np.float64)
    if kind == "falling":
        intercepts = np.sort(intercepts)[::-1]
    elif kind == "flat":
        intercepts[:] = intercepts[0]
    elif kind == "line":
        intercepts = intercepts[0] + float(rng.integers(0, 5)) * np.arange(K + 1)
    expert = 0.0 if kind == "zero beta" else float(rng.integers(1, 6))
    cost = CostModel(intercepts, expert)
    pools = [random_pool(rng, most=NODES) for _ in range(cycles)]
    if rng.random() < 0.5:
        for pool in pools:
            pool.tree.path_probs[:] = pool.tree.path_probs >> 17 << 17
    return World([price(pool, cost) for pool in pools], cost, kind)
