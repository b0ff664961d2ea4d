"""Selection time at the real geometry, beside the paper's 2.82 ms (sec. 4.6).

    python scripts/bench_selection.py [--pools 200] [--repeats 20]

48 layers x 128 experts, top-8, 18 nodes, K = 7. Pools are random, with experts shared between the
rows of one cycle so that unions grow as on real text. Compilation is outside every number.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numba
import numpy as np

from specfit.core import PROBABILITY_ONE, DraftTree, Routes
from specfit.selection.bitmaps import AtlasBits, demand
from specfit.selection.cost import CostModel
from specfit.selection.probes import most_probable
from specfit.selection.search import SubtreeSearch
from specfit.selection.selectors import SpecFit

LAYERS, EXPERTS, TOP, K = 48, 128, 8, 7
LEVELS = (2, 4, 4, 4, 4)
SHARED = 1.5  # spread of a cycle's common router scores, in units of a row's own
COST = CostModel((85 + 0.6 * np.arange(K + 1)) * 1e6, 377_600.0)  # paper_main, 9.44 MB experts
PAPER_MS = 2.82


ROWS = {
    "convert": "atlas conversion, 18 nodes and root",
    "plain": "search without pruning, full pool",
    "search": "search, full pool, one call",
    "select": "select(): conversion and search, full pool",
    "all_levels": "all five levels, conversion included",
}


def pool(rng: np.random.Generator) -> tuple[DraftTree, Routes]:
    """Top-2 expansion: the two most probable nodes of each level get two children each."""
    tree = DraftTree.empty()
    for size in LEVELS:
        if len(tree) == 0:
            parents = np.full(size, -1)
        else:
            newest = np.flatnonzero(tree.depths == tree.levels)
            best = newest[np.argsort(-tree.path_probs[newest], kind="stable")[:2]]
            parents = np.repeat(np.sort(best), 2)
        first = rng.beta(2, 1, len(parents) // 2)  # one candidate's probability, then the second's
        shares = np.column_stack([first, (1 - first) * rng.random(len(first))]).reshape(-1)
        above = tree.path_probs[parents] if len(tree) else PROBABILITY_ONE
        probs = np.floor(above * shares).astype(np.int64)
        tree = tree.grown(rng.integers(0, 32000, size), parents, probs)
    common = SHARED * rng.standard_normal((1, LAYERS, EXPERTS))
    scores = common + rng.standard_normal((1 + len(tree), LAYERS, EXPERTS))
    ids = np.argsort(-scores, axis=-1)[..., :TOP].astype(np.int64)
    return tree, Routes(ids[0].copy(), ids[1:].copy())


def level_views(tree: DraftTree, routes: Routes) -> list[tuple[DraftTree, Routes]]:
    """The pool and atlas as they stand after each level."""
    views = []
    for n in np.cumsum(LEVELS):
        part = DraftTree(tree.tokens[:n], tree.parents[:n], tree.depths[:n], tree.path_probs[:n])
        views.append((part, Routes(routes.root, routes.nodes[:n])))
    return views


def microseconds(work: Callable[[], object], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        start = perf_counter_ns()
        work()
        times.append((perf_counter_ns() - start) / 1e3)
    return times


def summary(times: list[float]) -> dict[str, float]:
    p5, p50, p95, p99 = np.percentile(times, [5, 50, 95, 99]).round(3).tolist()
    return {"n": len(times), "p5_us": p5, "median_us": p50, "p95_us": p95, "p99_us": p99}


def measure(pools: int, repeats: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    selector, atlas = SpecFit(COST, EXPERTS), AtlasBits(EXPERTS)
    search, plain = SubtreeSearch(COST, K), SubtreeSearch(COST, K, prune=False)
    times: dict[str, list[float]] = {name: [] for name in ROWS}
    unions, evaluated, legal, chosen = [], [], [], []
    for _ in range(pools):
        tree, routes = pool(rng)
        views = level_views(tree, routes)
        rows = atlas.load(routes)
        unions += [demand(rows, most_probable(tree, size)) / LAYERS for size in range(K + 1)]
        found = search.best(tree, rows)
        every = plain.best(tree, rows)
        assert every[:4] == found[:4], "pruning changes no answer"
        evaluated.append(found.searched_subtrees)
        legal.append(every.searched_subtrees)
        chosen.append(len(found.nodes))

        def all_levels(views: list[tuple[DraftTree, Routes]] = views) -> None:
            for part, seen in views:
                selector.select(part, seen)

        def one(name: str, work: Callable[[], object]) -> None:
            times[name] += microseconds(work, repeats + 2)[2:]

        one("convert", lambda routes=routes: atlas.load(routes))  # type: ignore[misc]
        one("plain", lambda tree=tree, rows=rows: plain.best(tree, rows))  # type: ignore[misc]
        one("search", lambda tree=tree, rows=rows: search.best(tree, rows))  # type: ignore[misc]
        one("select", lambda view=views[-1]: selector.select(*view))  # type: ignore[misc]
        one("all_levels", all_levels)
    growth = np.array(unions).reshape(pools, K + 1).mean(axis=0).round(2).tolist()
    return {
        "geometry": {"layers": LAYERS, "experts": EXPERTS, "top": TOP, "nodes": 18, "k": K},
        "pools": pools,
        "repeats": repeats,
        "union_growth": growth,
        "mean_evaluated_subtrees": float(np.mean(evaluated)),
        "mean_legal_subtrees": float(np.mean(legal)),
        "mean_selected_nodes": float(np.mean(chosen)),
        "times": {name: summary(values) for name, values in times.items()},
        "paper_median_us": PAPER_MS * 1e3,
    }


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pools", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/bench/selection.json"))
    options = parser.parse_args()
    result = measure(options.pools, options.repeats)
    result |= {"cpu": cpu_name(), "numba": numba.__version__, "numpy": np.__version__}
    print(f"measured on {result['cpu']}, numba {numba.__version__}, one core; microseconds")
    print(f"{'':44}{'n':>7}{'p5':>9}{'median':>9}{'p95':>9}{'p99':>9}")
    for name, label in ROWS.items():
        t = result["times"][name]
        cells = "".join(f"{t[q]:9.1f}" for q in ("p5_us", "median_us", "p95_us", "p99_us"))
        print(f"{label:44}{t['n']:7d}{cells}")
    print(f"{'paper, per cycle (sec. 4.6)':44}{'':7}{'':9}{PAPER_MS * 1e3:9.1f}")
    counts = result["mean_legal_subtrees"], result["mean_evaluated_subtrees"]
    print("full pool: {:.0f} legal subtrees, {:.0f} evaluated (means)".format(*counts))
    print(
        "union per layer at 1 to 8 rows:",
        *result["union_growth"],
        "(real 8 12.4 15.8 18.8 .. 27.2)",
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
