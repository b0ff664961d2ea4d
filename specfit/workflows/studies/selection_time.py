"""Selection time at the real geometry, beside the paper's 2.82 ms (sec. 4.6) and two plain_solvers.

48 layers x 128 experts, top-8, random pools that share experts between the rows of one cycle so
that unions grow as on real text. Compilation is outside every number. Times are the thread's own
CPU seconds: on an idle core those of the wall, on a shared one not disturbed by waiting for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from specfit.base.types import PROBABILITY_ONE
from specfit.selection.bitmaps import AtlasBits, demand
from specfit.selection.forced_trees import most_probable
from specfit.selection.min_cut import best_closure
from specfit.selection.search import SubtreeSearch
from specfit.selection.selectors import SpecFit
from specfit.storage.provenance import cpu_name
from specfit.workflows.studies import plain_solvers, random_pools

PAPER_US = 2820.0
Work = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One line of the table. Microseconds of a call, over pools x repeats."""

    what: str
    nodes: int
    k: int | None  # None: no size limit
    pools: int
    calls: int
    p5_us: float
    median_us: float
    p95_us: float
    worst_us: float
    goal_us: float | None = None
    subtrees: float | None = None  # evaluated, or cuts made; mean over pools

    def line(self) -> str:
        cells = "".join(f"{v:12.1f}" for v in (self.p5_us, self.median_us, self.p95_us))
        goal = "" if self.goal_us is None else f"{self.goal_us:10.0f}"
        seen = "" if self.subtrees is None else f"{self.subtrees:12.0f}"
        k = "-" if self.k is None else self.k
        return f"{self.what:46}{self.nodes:6d}{k:>4}{self.calls:7d}{cells}{goal:>10}{seen:>12}"


PARTS = ("convert", "plain", "search", "call", "five")
HEAD = (
    f"{'microseconds of own CPU time':46}{'nodes':>6}{'K':>4}{'calls':>7}"
    f"{'p5':>12}{'median':>12}{'p95':>12}{'goal':>10}{'subtrees':>12}"
)


def clocked(work: Work, repeats: int, untimed: int = 1) -> list[float]:
    """Microseconds of each of `repeats` calls, after some that are not timed."""
    times = []
    for turn in range(untimed + repeats):
        start = time.thread_time_ns()
        work()
        taken = (time.thread_time_ns() - start) / 1e3
        if turn >= untimed:
            times.append(taken)
    return times


def row(
    what: str,
    nodes: int,
    k: int | None,
    times: list[list[float]],
    goal_us: float | None = None,
    subtrees: list[int] | None = None,
) -> Row:
    """`times` holds one list per pool."""
    flat = [value for of_pool in times for value in of_pool]
    p5, median, p95, worst = np.percentile(flat, [5, 50, 95, 100]).round(3).tolist()
    seen = None if subtrees is None else float(np.mean(subtrees))
    made = Row(what, nodes, k, len(times), len(flat), p5, median, p95, worst, goal_us, seen)
    print(made.line(), flush=True)
    return made


def paper_size(count: int, repeats: int) -> tuple[list[Row], list[float]]:
    """18 nodes, K = 7: the parts of a call, all five levels, and how unions grow."""
    rng, k = np.random.default_rng(0), 7
    model = random_pools.cost(k)
    selector, atlas = SpecFit(model, random_pools.EXPERTS, k), AtlasBits(random_pools.EXPERTS)
    search, plain = SubtreeSearch(model, k), SubtreeSearch(model, k, prune=False)
    times: dict[str, list[list[float]]] = {name: [] for name in PARTS}
    unions, evaluated, legal = [], [], []
    for _ in range(count):
        tree, routes = random_pools.pool(rng, 2, 18)
        views = random_pools.level_views(tree, routes)
        rows = atlas.load(routes)
        unions.append(
            [demand(rows, most_probable(tree, n)) / random_pools.LAYERS for n in range(k + 1)]
        )
        found, every = search.best(tree, rows), plain.best(tree, rows)
        assert found[:4] == every[:4], "pruning changes no answer"
        evaluated.append(found.searched_subtrees)
        legal.append(every.searched_subtrees)

        def five(views: list[Any] = views) -> None:
            for part, seen in views:
                selector.select(part, seen)

        works: dict[str, Work] = {
            "convert": partial(atlas.load, routes),
            "plain": partial(plain.best, tree, rows),
            "search": partial(search.best, tree, rows),
            "call": partial(selector.select, *views[-1]),
            "five": five,
        }
        for name, work in works.items():
            times[name].append(clocked(work, repeats, untimed=2))
    made = [
        row("atlas conversion, 18 nodes and root", 18, None, times["convert"]),
        row("search, every legal subtree", 18, k, times["plain"], None, legal),
        row("search", 18, k, times["search"], None, evaluated),
        row("one call: conversion and search", 18, k, times["call"], 30),
        row("all five levels, conversion included", 18, k, times["five"], 100),
    ]
    return made, np.mean(unions, axis=0).round(2).tolist()


def searched(
    what: str,
    width: int,
    nodes: int,
    k: int,
    count: int,
    repeats: int,
    goal_us: float | None = None,
    **options: Any,
) -> Row:
    """Search alone, on rows already converted."""
    rng = np.random.default_rng(nodes * 100 + k)
    search = SubtreeSearch(random_pools.cost(k), k, **options)
    times, seen = [], []
    for _ in range(count):
        tree, routes = random_pools.pool(rng, width, nodes)
        rows = AtlasBits(random_pools.EXPERTS).load(routes)
        times.append(clocked(lambda tree=tree, rows=rows: search.best(tree, rows), repeats))  # type: ignore[misc]
        seen.append(search.best(tree, rows).searched_subtrees)
    return row(what, nodes, k, times, goal_us, seen)


def rivalled(
    what: str,
    solve: Callable[..., tuple[int, tuple[int, ...]]],
    width: int,
    nodes: int,
    k: int,
    count: int,
) -> Row:
    """A rival on the pools of `searched`; its answer must be worth as much."""
    rng, model = np.random.default_rng(nodes * 100 + k), random_pools.cost(k)
    search, times = SubtreeSearch(model, k), []
    for _ in range(count):
        tree, routes = random_pools.pool(rng, width, nodes)
        rows = AtlasBits(random_pools.EXPERTS).load(routes)
        start = time.thread_time_ns()
        demanded, chosen = solve(tree, routes, rows, model, k)
        times.append([(time.thread_time_ns() - start) / 1e3])
        found = search.best(tree, rows)
        reward = PROBABILITY_ONE + int(tree.path_probs[list(chosen)].sum())
        worth = model.ratio(reward, len(chosen), demanded)
        assert worth >= model.ratio(found.reward, len(found.nodes), found.demand) * (1 - 1e-6)
    return row(what, nodes, k, times)


def closed(what: str, width: int, nodes: int, count: int, cheaper: int = 1) -> Row:
    """Graph, cuts and pricing of one pool, without a size limit."""
    rng, model = np.random.default_rng(nodes), random_pools.cost(nodes, cheaper)
    times, cuts = [], []
    for _ in range(count):
        tree, routes = random_pools.pool(rng, width, nodes)

        def work(tree: Any = tree, routes: Any = routes) -> None:
            cuts.append(best_closure(tree, routes, model, random_pools.EXPERTS).cuts)

        times.append(clocked(work, 1, untimed=0))
    return row(what, nodes, None, times, None, cuts)


def measure(scale: float) -> dict[str, Any]:
    def n(count: int) -> int:
        return max(1, round(count * scale))

    print(HEAD)
    table, unions = paper_size(n(200), n(20))
    table += [
        searched("search", 4, 60, 8, n(60), n(5), 2000),
        searched("search, every legal subtree", 4, 60, 8, n(20), 2, prune=False),
        searched("search", 4, 60, 16, n(40), 2, 50_000),
        searched("search, cheap bound alone", 4, 60, 16, n(8), 1, budget=None),
        rivalled("numpy enumeration", plain_solvers.enumerate_numpy, 2, 18, 7, n(20)),
        rivalled("numpy enumeration", plain_solvers.enumerate_numpy, 4, 60, 8, n(2)),
        rivalled("integer program in Dinkelbach", plain_solvers.solve_program, 2, 18, 7, n(5)),
        rivalled("integer program in Dinkelbach", plain_solvers.solve_program, 4, 60, 8, 1),
    ]
    print("growth")
    by_nodes = [
        searched("search", 8, nodes, 7, n(12), 2) for nodes in (10, 18, 30, 60, 100, 150, 250)
    ]
    by_k = [searched("search", 4, 60, k, n(12), 2) for k in (1, 2, 4, 6, 8, 10, 12, 14, 16, 24, 32)]
    sizes = (18, 60, 125, 250, 500, 1000)
    by_cut = [closed("closure by minimum cuts", 16, nodes, n(3)) for nodes in sizes]
    cheap = [closed("closure, experts 50 x cheaper", 16, nodes, n(3), 50) for nodes in sizes]
    return {
        "geometry": {
            "layers": random_pools.LAYERS,
            "experts": random_pools.EXPERTS,
            "top": random_pools.TOP,
        },
        "union_per_layer_at_1_to_8_rows": unions,
        "paper_median_us": PAPER_US,
        "table": [asdict(made) for made in table],
        "growth_nodes": [asdict(made) for made in by_nodes],
        "growth_k": [asdict(made) for made in by_k],
        "growth_closure": [asdict(made) for made in by_cut],
        "growth_closure_cheap": [asdict(made) for made in cheap],
    }


def study(scale: float = 1.0) -> dict[str, Any]:
    """Every row, with the machine that took them; `scale` is of the numbers of calls."""
    began = time.time()
    load = [round(value, 2) for value in os.getloadavg()]
    result = measure(scale)
    machine = {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "load_average_before": load,
        "elapsed_s": round(time.time() - began, 1),
        "versions": {name: version(name) for name in ("numba", "numpy", "ortools")},
    }
    print(f"{'paper, per cycle (sec. 4.6)':46}{18:6d}{7:>4}{'':7}{'':12}{PAPER_US:12.1f}")
    print("union per layer at 1 to 8 rows:", *result["union_per_layer_at_1_to_8_rows"])
    print("                  on real text: 8 12.4 15.8 18.8 .. 27.2")
    print(f"one core of {machine['cpu']}, load {load[0]}, {machine['elapsed_s']} s elapsed")
    return {"machine": machine} | result
