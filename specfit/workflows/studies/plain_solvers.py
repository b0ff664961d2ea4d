"""What one would write without this package: plain numpy enumeration, and a linear program."""

from __future__ import annotations

import numpy as np
from ortools.linear_solver import pywraplp

from specfit.base.types import PROBABILITY_ONE, ROOT, DraftTree, Routes
from specfit.selection.cost import CostModel

Answer = tuple[int, tuple[int, ...]]
"""Demand and nodes."""


def enumerate_numpy(
    tree: DraftTree, _routes: Routes, rows: np.ndarray, cost: CostModel, k: int
) -> Answer:
    """Every legal subtree by recursion, bitmaps joined and counted by numpy."""
    parents, probs = tree.parents.tolist(), tree.path_probs.tolist()
    best: tuple[float, int, tuple[int, ...]] = (0.0, 0, ())
    best_demand = 0

    def visit(chosen: tuple[int, ...], reward: int, union: np.ndarray, first: int) -> None:
        nonlocal best, best_demand
        demand = int(np.bitwise_count(union).sum())
        key = (-cost.ratio(reward, len(chosen), demand), len(chosen), chosen)
        if key < best:
            best, best_demand = key, demand
        if len(chosen) < k:
            for node in range(first, len(parents)):
                if parents[node] == ROOT or parents[node] in chosen:
                    joined = union | rows[1 + node]
                    visit((*chosen, node), reward + probs[node], joined, node + 1)

    visit((), PROBABILITY_ONE, rows[0], 0)
    return best_demand, best[2]


class Program:
    """max R(S) - lambda T(S) as a mixed-integer program, solved inside Dinkelbach's iteration.

    x_v: node v is taken. y_e >= x_v for every pair e = (layer, expert) of v that the root has not.
    z_k: exactly k nodes are taken (one-hot), which carries free intercepts.
    """

    def __init__(self, tree: DraftTree, routes: Routes, cost: CostModel, k: int) -> None:
        self._tree, self._cost = tree, cost
        self.solver = pywraplp.Solver.CreateSolver("SCIP")
        self.solver.SetNumThreads(1)
        nodes, sizes = len(tree), min(k, len(tree)) + 1
        self._x = [self.solver.BoolVar(f"x{v}") for v in range(nodes)]
        self._z = [self.solver.BoolVar(f"z{size}") for size in range(sizes)]
        for node, parent in enumerate(tree.parents.tolist()):
            if parent != ROOT:
                self.solver.Add(self._x[node] <= self._x[parent])
        self.solver.Add(sum(self._z) == 1)
        sized = sum(size * z for size, z in enumerate(self._z))
        self.solver.Add(sum(self._x) == sized)
        layers = range(len(routes.root))
        self._root = {(layer, e) for layer in layers for e in routes.root[layer].tolist()}
        self._used = [
            {(layer, e) for layer in layers for e in routes.nodes[v, layer].tolist()} - self._root
            for v in range(nodes)
        ]
        self._y = {e: self.solver.NumVar(0, 1, str(e)) for e in sorted(set().union(*self._used))}
        for node, pairs in enumerate(self._used):
            for pair in pairs:
                self.solver.Add(self._y[pair] >= self._x[node])

    def _set_objective(self, rate: float) -> None:
        goal = self.solver.Objective()
        for node, prob in enumerate(self._tree.path_probs.tolist()):
            goal.SetCoefficient(self._x[node], prob / PROBABILITY_ONE)
        for size, z in enumerate(self._z):
            goal.SetCoefficient(z, -rate * float(self._cost.intercepts_ns[size]))
        for y in self._y.values():
            goal.SetCoefficient(y, -rate * self._cost.expert_ns)
        goal.SetMaximization()

    def best(self) -> Answer:
        """Of the largest ratio."""
        nodes: tuple[int, ...] = ()
        demand = len(self._root)
        ratio = self._cost.ratio(PROBABILITY_ONE, 0, demand)
        while True:
            self._set_objective(ratio / PROBABILITY_ONE)
            status = self.solver.Solve()
            assert status == pywraplp.Solver.OPTIMAL, "the program was not solved"
            chosen = tuple(v for v, x in enumerate(self._x) if x.solution_value() > 0.5)
            union = set(self._root).union(*(self._used[v] for v in chosen))
            reward = PROBABILITY_ONE + int(self._tree.path_probs[list(chosen)].sum())
            better = self._cost.ratio(reward, len(chosen), len(union))
            if better <= ratio * (1 + 1e-9):
                return demand, nodes
            ratio, nodes, demand = better, chosen, len(union)


def solve_program(
    tree: DraftTree, routes: Routes, _rows: np.ndarray, cost: CostModel, k: int
) -> Answer:
    """Model and solutions together: a pool is solved once."""
    return Program(tree, routes, cost, k).best()
