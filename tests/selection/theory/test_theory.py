"""App. A.1, A.2 and sec. 3.3 as properties, in exact rationals, and the hardness of A.3.

Each test says how many cases it runs. A world is four pools under one cost; kinds of cost (free,
falling, flat and straight intercepts, zero beta) and ties are mixed, see `worlds`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE, DraftTree, Routes
from specfit.selection.bitmaps import bitmaps
from specfit.selection.cost import CostModel
from specfit.selection.search import SubtreeSearch
from specfit.selection.theory import bounds
from specfit.selection.theory.bounds import Outcome, throughput
from tests.selection.worlds import KINDS, NODES, Cycle, K, World, price, random_world

WORLDS = 300


def worlds(seed: int, cycles: int = 4) -> list[tuple[World, np.random.Generator]]:
    rng = np.random.default_rng(seed)
    made = [(random_world(rng, cycles), rng) for _ in range(WORLDS)]
    assert {world.kind for world, _ in made} == set(KINDS)
    return made


def rates(cycle: Cycle, rng: np.random.Generator) -> list[Fraction]:
    """Below, at and above the cycle's ratio, and where two subtrees tie."""
    found = [cycle.rho * Fraction(int(rng.integers(0, 9)), 4), cycle.rho]
    i, j = rng.integers(0, len(cycle.sets), 2).tolist()
    if cycle.times[i] != cycle.times[j]:
        tie = Fraction(cycle.rewards[i] - cycle.rewards[j], cycle.times[i] - cycle.times[j])
        found.append(max(tie, Fraction(0)))
    return sorted(found)


def test_time_and_reward_never_grow_with_lambda() -> None:
    """1,200 pools, two or three rates each, over all ties."""
    strict = ties = 0
    for world, rng in worlds(0):
        for cycle in world.cycles:
            found = [cycle.argmax(rate) for rate in rates(cycle, rng)]
            for rate_pair in combinations(range(len(found)), 2):
                low, high = (found[i] for i in rate_pair)
                if low == high:
                    continue
                assert min(cycle.times_of(low)) >= max(cycle.times_of(high))
                assert min(cycle.rewards[i] for i in low) >= max(cycle.rewards[i] for i in high)
                strict += 1
            ties += any(len(which) > 1 for which in found)
    assert strict > 300 and ties > 300


def test_against_the_ratio_rule() -> None:
    """1,200 pools: l < rho takes at least the ratio maximiser's time, l > rho at most that, l = rho
    has exactly its maximisers."""
    sides = {-1: 0, 0: 0, 1: 0}
    for world, rng in worlds(1):
        for cycle in world.cycles:
            ratio = cycle.best_ratios()
            for rate in rates(cycle, rng):
                chosen = cycle.argmax(rate)
                sides[(rate > cycle.rho) - (rate < cycle.rho)] += 1
                if rate < cycle.rho:
                    assert min(cycle.times_of(chosen)) >= max(cycle.times_of(ratio))
                elif rate > cycle.rho:
                    assert max(cycle.times_of(chosen)) <= min(cycle.times_of(ratio))
                else:
                    assert chosen == ratio
    assert min(sides.values()) > 300


def test_the_source_s_wording_read_literally_is_reversed() -> None:
    """R / T = 1 / 1 or 1.5 / 2: below rho = 1 the lambda selection takes *more* time."""
    options = [(Fraction(1), Fraction(1)), (Fraction(3, 2), Fraction(2))]
    rho = max(reward / time for reward, time in options)
    rate = Fraction(4, 10)
    _, chosen = max((reward - rate * time, time) for reward, time in options)
    _, ratio = max((reward / time, time) for reward, time in options)
    assert rate < rho and chosen == 2 > ratio == 1


def star_of(world: World, rng: np.random.Generator) -> tuple[Outcome, bounds.Optimum]:
    ratio = world.ratio_rule(rng)
    return ratio, bounds.lambda_star(throughput(ratio), lambda l: world.lambda_rule(l, rng))  # noqa: E741


def test_the_iteration_rises_to_the_throughput_optimum() -> None:
    """300 worlds: strictly increasing, and at the end no rule gains anything."""
    longest = 0
    for world, rng in worlds(2):
        ratio = world.ratio_rule(rng)
        seen: list[Fraction] = []

        def solve(rate: Fraction, world=world, rng=rng, seen=seen) -> Outcome:
            seen.append(rate)
            return world.lambda_rule(rate, rng)

        found = bounds.lambda_star(throughput(ratio), solve)
        assert seen == sorted(set(seen)) and found.solves == len(seen)
        left = world.lambda_rule(found.rate, rng)
        assert sum(left.rewards - found.rate * left.times) == 0
        assert found.rate in (throughput(found.outcome), throughput(ratio))
        rhos = [cycle.rho for cycle in world.cycles]
        assert min(rhos) <= throughput(ratio) <= found.rate <= max(rhos)
        longest = max(longest, len(seen))
    assert longest >= 3


def test_no_rule_does_better_than_lambda_star() -> None:
    """300 worlds of two pools: all pairs of legal subtrees."""
    for world, rng in worlds(3, cycles=2):
        _, best = star_of(world, rng)
        rules = product(*(range(len(cycle.sets)) for cycle in world.cycles))
        assert best.rate == max(throughput(world.outcome(which)) for which in rules)


def test_identity_and_bounds() -> None:
    """300 worlds: the identity, B1, B2 and all three parts of B3; in half, cycles are weighted."""
    gaps, tight = 0, 0
    for world, rng in worlds(4):
        weights = None
        if rng.random() < 0.5:
            counts = [Fraction(int(n)) for n in rng.integers(1, 5, len(world.cycles))]
            weights = np.array(counts, dtype=object)
        ratio = world.ratio_rule(rng)
        start = throughput(ratio, weights)
        best = bounds.lambda_star(start, lambda l, w=world, r=rng: w.lambda_rule(l, r), weights)  # noqa: E741
        gap = best.rate - start
        shortest, longest = world.extremes()
        at_ratio = world.lambda_rule(start, rng)
        b1 = bounds.bound_1(ratio, best.outcome, best.rate, weights)
        b2 = bounds.bound_2(ratio, shortest, longest, best.rate, weights)
        b3 = bounds.bound_3(ratio, at_ratio, shortest, weights)
        assert gap == bounds.identity_gap(ratio, best.rate, weights)
        assert gap <= b1 <= b2
        assert b3.lower <= gap <= b3.upper <= b3.loose
        gaps += gap > 0
        tight += gap == b1
    assert gaps > 75 and tight > 30


def test_bounds_in_floats_from_the_search() -> None:
    """100 worlds: what table 5 computes, from the compiled search, beside the exact values."""
    for world, rng in worlds(5)[:100]:
        search = SubtreeSearch(world.cost, K)
        rows = [cycle.pool.rows() for cycle in world.cycles]

        def solve(rate: float | None, world=world, search=search, rows=rows) -> Outcome:
            found = [
                search.best(c.pool.tree, r, rate) for c, r in zip(world.cycles, rows, strict=True)
            ]
            rewards = np.array([float(f.reward) for f in found])
            return Outcome(rewards, np.array([f.predicted_ns for f in found]))

        ratio = solve(None)
        best = bounds.lambda_star(throughput(ratio), solve)
        _, exact = star_of(world, rng)
        assert best.rate == pytest.approx(float(exact.rate), rel=1e-12)
        gap = best.rate - throughput(ratio)
        assert gap == pytest.approx(bounds.identity_gap(ratio, best.rate), abs=1e-12 * best.rate)
        assert gap <= bounds.bound_1(ratio, best.outcome, best.rate) + 1e-12 * best.rate


def test_pruning_identity() -> None:
    """600 pools, all pairs of nested legal subtrees: the ratio rises iff the time saved is the
    larger fraction."""
    raised = pairs = 0
    for world, _ in worlds(6, cycles=2):
        for cycle in world.cycles:
            legal = list(zip(cycle.sets, cycle.rewards, cycle.times, strict=True))
            for nodes, reward, time in legal:
                for fewer, less_reward, less_time in legal:
                    if set(fewer) < set(nodes):
                        rises = less_reward * time > reward * less_time
                        saved, lost = Fraction(less_time, time), Fraction(less_reward, reward)
                        assert rises == (1 - saved > 1 - lost)
                        raised += rises
                        pairs += 1
    assert pairs > 10_000 and raised > 1000


def best_nodes(cycle: Cycle) -> tuple[int, ...]:
    """The total order of A.2: ratio, fewer nodes, lexicographically lowest."""
    return min((len(cycle.sets[i]), cycle.sets[i]) for i in cycle.best_ratios())[1]


def test_stopping_by_levels() -> None:
    """1,200 pools (A.2): "takes no node of the newest level" and "equals the level before" are one
    event; a full-pool optimum inside the drafted levels is the stopped selection; an optimum that
    lies deeper than the stop is missed, and does occur."""
    inside = missed = 0
    for world, _ in worlds(7):
        for cycle in world.cycles:
            tree, full = cycle.pool.tree, best_nodes(cycle)
            before: tuple[int, ...] = ()
            stopped: tuple[int, ...] | None = None
            for level in range(1, tree.levels + 1):
                drafted = int((tree.depths <= level).sum())
                now = best_nodes(price(cycle.pool.prefix(drafted), world.cost))
                newest = set(np.flatnonzero(tree.depths == level).tolist())
                assert (not newest & set(now)) == (now == before)
                if all(node < drafted for node in full):
                    assert now == full
                    inside += level < tree.levels
                if stopped is None and now == before:
                    stopped = now
                before = now
            missed += stopped is not None and stopped != full
    assert inside > 300 and missed > 5


# -- the size limit makes it hard (A.3) -----------------------------------------------------------

Edges = list[tuple[int, int]]


def random_graph(rng: np.random.Generator) -> tuple[int, Edges, int]:
    """Vertices, edges (at least one) and the size of the clique that is asked for."""
    vertices = int(rng.integers(3, 8))
    share = rng.uniform(0.3, 0.95)
    edges = [e for e in combinations(range(vertices), 2) if rng.random() < share]
    return vertices, edges or [(0, 1)], int(rng.integers(3, 5))


def has_clique(vertices: int, edges: Edges, size: int) -> bool:
    known = set(edges)
    return any(known.issuperset(combinations(c, 2)) for c in combinations(range(vertices), size))


def test_a_clique_is_a_selection_of_bounded_size() -> None:
    """300 graphs: depth one, one layer, equal intercepts; a node per edge, its experts the edge's
    ends. At most K = q (q - 1) / 2 nodes reach the threshold iff there is a clique of q."""
    rng = np.random.default_rng(8)
    yes = 0
    for _ in range(300):
        vertices, edges, q = random_graph(rng)
        k, count = q * (q - 1) // 2, len(edges)
        prob = PROBABILITY_ONE // count
        # The proof needs b > (1 / p + K - 1) q; p is 1 / |Q| rounded down to the reward's unit.
        intercept = (-(-PROBABILITY_ONE // prob) + k) * q
        threshold = (1 + k * Fraction(prob, PROBABILITY_ONE)) / (intercept + q)
        ones = np.ones(count, dtype=np.int64)
        tree = DraftTree(ones, -ones, ones, np.full(count, prob))
        ids = np.array(edges)[:, None, :]
        # The root's own two experts are disjoint and part of b, so T = b + (vertices touched).
        root = np.array([[vertices, vertices + 1]])
        rows = bitmaps(Routes(root, ids), vertices + 2)
        limit = min(k, count)
        cost = CostModel(np.full(k + 1, float(intercept - 2)), 1.0)
        reached = {}
        for name, search in (
            ("plain", SubtreeSearch(cost, limit, prune=False)),
            ("bounded", SubtreeSearch(cost, limit, budget=0)),
        ):
            found = search.best(tree, rows)
            ratio = Fraction(found.reward, PROBABILITY_ONE) / Fraction(found.predicted_ns)
            reached[name] = ratio >= threshold
        clique = has_clique(vertices, edges, q)
        assert reached == {"plain": clique, "bounded": clique}
        yes += clique
    assert 75 < yes < 225


def test_the_worlds_are_what_they_claim() -> None:
    sizes = [len(c.pool.tree) for world, _ in worlds(9)[:50] for c in world.cycles]
    assert max(sizes) == NODES and min(sizes) == 0
