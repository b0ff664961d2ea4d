"""Every way to search gives the answer of plain enumeration: nodes, reward, demand, time."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.runtime import _nrt_python, rtsys

from specfit.base.types import PROBABILITY_ONE, DraftTree, Routes
from specfit.selection import bitmaps as bits
from specfit.selection import search
from specfit.selection.bitmaps import AtlasBits, bitmaps
from specfit.selection.cost import CostModel
from specfit.selection.search import SubtreeSearch
from tests.selection.adversarial import FAMILIES
from tests.selection.pools import legal, masks, random_pool, random_tree, union_count

K = 7
BUDGETS = {"cheap bound": None, "coverage bound": 0, "one after the other": 9}
QUICK, ALL = 225, 1112  # of each of nine families: 2,025 pools, and 10,008


def check(family: str, count: int, seed: int) -> int:
    """Returns how many pools' answers hold a node."""
    rng = np.random.default_rng(seed)
    chosen = 0
    for i in range(count):
        pool, cost = FAMILIES[family](rng)
        k = K if i % 3 else int(rng.integers(0, K + 1))
        rows = pool.rows()
        top = 1 << 20
        longest = cost.predict_ns(k, int(rows.shape[1] * 64))
        for price in (None, float(rng.choice([0.0, 1.0, rng.random()])) * 2 * top / longest):
            every = SubtreeSearch(cost, k, prune=False).best(pool.tree, rows, price)
            for name, budget in BUDGETS.items():
                some = SubtreeSearch(cost, k, budget=budget).best(pool.tree, rows, price)
                assert some[:4] == every[:4], (family, i, name, price)
            chosen += bool(every.nodes)
    return chosen


@pytest.mark.parametrize("family", FAMILIES)
def test_pruning_changes_no_answer(family: str) -> None:
    """2,025 pools, the ratio and a price, three ways to search."""
    assert check(family, QUICK, seed=1) > QUICK // 8, "the pools exercise what they claim"


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_pruning_changes_no_answer_on_ten_thousand_pools(family: str) -> None:
    check(family, ALL, seed=2)


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"1,000 layers"}))
def test_a_price_finds_what_brute_force_finds(family: str) -> None:
    """Plain enumeration itself, for R - price x T: 320 pools of at most 8 nodes."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        pool, cost = FAMILIES[family](rng)
        pool = pool.prefix(min(len(pool.tree), 8))
        price = float(rng.random() * (1 << 20) / cost.predict_ns(0, 10))
        known = masks(pool.routes)
        ranked = []
        for nodes in legal(pool.tree, K):
            reward = PROBABILITY_ONE + sum(int(pool.tree.path_probs[n]) for n in nodes)
            demand = union_count(pool.routes, nodes, known)
            value = reward - price * cost.predict_ns(len(nodes), demand)
            assert cost.margin(reward, len(nodes), demand, price) == value
            ranked.append((-value, len(nodes), nodes, reward, demand))
        _, _, nodes, reward, demand = min(ranked)
        found = SubtreeSearch(cost, K, prune=False).best(pool.tree, pool.rows(), price)
        assert (found.nodes, found.reward, found.demand) == (nodes, reward, demand)


def large_pool(rng: np.random.Generator, nodes: int, layers: int) -> tuple[DraftTree, np.ndarray]:
    sizes = [4, 8, 8, 8, 8, 8, 8, 8]
    tree = random_tree(rng, sizes[: 1 + (nodes - 4) // 8])
    common = 1.5 * rng.standard_normal((1, layers, 64))
    scores = common + rng.standard_normal((1 + len(tree), layers, 64))
    ids = np.ascontiguousarray(np.argsort(-scores, axis=-1)[..., :6])
    return tree, bitmaps(Routes(ids[0], ids[1:]), 64)


def test_large_pools_with_many_legal_subtrees() -> None:
    """28 nodes, K = 8, realistic sharing: up to 1e6 legal subtrees each."""
    rng = np.random.default_rng(4)
    for _ in range(6):
        tree, rows = large_pool(rng, 28, 4)
        cost = CostModel((60 + rng.random(9)) * 1e3, 1e3 * float(rng.random() + 0.1))
        every = SubtreeSearch(cost, 8, prune=False).best(tree, rows)
        for budget in (None, 0, 500):
            assert SubtreeSearch(cost, 8, budget=budget).best(tree, rows)[:4] == every[:4]


def test_ties_do_not_undo_the_coverage_bound() -> None:
    """60 equal, disjoint nodes: 5e6 subtrees of the best size tie, and few are looked at."""
    nodes = 60
    ones = np.ones(nodes, dtype=np.int64)
    ids = np.arange(8 * (nodes + 1)).reshape(nodes + 1, 1, 8)
    tree = DraftTree(ones, -ones, ones, np.full(nodes, PROBABILITY_ONE // nodes))
    rows = bitmaps(Routes(ids[0], ids[1:]), 8 * (nodes + 1))
    for intercepts, best in (([1e3] * 5 + [0.0] + [1e3] * 11, 5), ([1e3] * 17, 0)):
        cost = CostModel(np.array(intercepts), 3.0)
        found = SubtreeSearch(cost, 16, budget=0).best(tree, rows)
        assert found.nodes == tuple(range(best))
        assert found.searched_subtrees < 200


def test_the_pool_may_be_larger_than_any_before() -> None:
    """Buffers grow with nodes and layers, in both searches, and never shrink."""
    rng = np.random.default_rng(5)
    cost = CostModel(np.full(K + 1, 40.0), 1.0)
    for budget in (None, 0):
        searcher = SubtreeSearch(cost, K, budget=budget)
        for nodes, layers in ((4, 2), (28, 2), (28, 5), (4, 5), (60, 1), (12, 3)):
            tree, rows = large_pool(rng, nodes, layers)
            fresh = SubtreeSearch(cost, K, budget=budget).best(tree, rows)
            assert searcher.best(tree, rows) == fresh


def test_k_above_any_stack_depth() -> None:
    """A chain of 3,000 nodes, K = 3,000: no recursion anywhere."""
    nodes = 3000
    index = np.arange(nodes)
    probs = np.maximum(PROBABILITY_ONE - 300 * index, 0)
    tree = DraftTree(index, index - 1, index + 1, probs)
    ids = np.zeros((nodes + 1, 1, 1), dtype=np.int64)
    rows = bitmaps(Routes(ids[0], ids[1:]), 2)
    cost = CostModel(1e3 + np.arange(nodes + 1.0), 1.0)
    for budget in (None, 100):
        found = SubtreeSearch(cost, nodes, budget=budget).best(tree, rows)
        assert found.nodes == tuple(range(len(found.nodes))) and 100 < len(found.nodes) < nodes


def test_no_array_is_allocated_after_the_first_call() -> None:
    """What Python makes in a call is the answer's few objects; buffers are kept."""
    pool = random_pool(np.random.default_rng(6), most=18)
    rows = pool.rows()
    cost = CostModel(np.full(K + 1, 40.0), 1.0)
    for budget in (None, 0):
        searcher = SubtreeSearch(cost, K, budget=budget)
        searcher.best(pool.tree, rows)
        tracemalloc.start()
        searcher.best(pool.tree, rows)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4096, "bytes"


@njit
def _nothing(*arguments: Any) -> int:
    return len(arguments)


@njit
def _array(*arguments: Any) -> Any:
    return np.zeros(len(arguments))


def _taken(kernel: Any, arguments: tuple[Any, ...]) -> int:
    """Blocks that numba's runtime gave out in one call; a header per array argument among them."""
    kernel(*arguments)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        kernel(*arguments)
        return int(rtsys.get_allocation_stats().alloc - before)
    finally:
        _nrt_python.memsys_disable_stats()


KERNELS = ((search, "_search"), (search, "search_covered"), (bits, "_load"))


@pytest.mark.parametrize(("module", "name"), KERNELS)
def test_compiled_code_allocates_nothing(
    module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the counters of numba's own runtime: a kernel takes what a function without a body takes
    for the same arguments, and one that makes an array takes more."""
    seen: list[tuple[Any, ...]] = []
    kernel = getattr(module, name)

    def watched(*arguments: Any) -> Any:
        seen.append(arguments)
        return kernel(*arguments)

    monkeypatch.setattr(module, name, watched)
    pool = random_pool(np.random.default_rng(6), most=18)
    cost = CostModel(np.full(K + 1, 40.0), 1.0)
    for budget in (None, 0):
        rows = AtlasBits(pool.experts).load(pool.routes)
        for price in (None, 1e-3):
            SubtreeSearch(cost, K, budget=budget).best(pool.tree, rows, price)
    assert seen
    for arguments in seen:
        assert _taken(kernel, arguments) == _taken(_nothing, arguments)
        assert _taken(_array, arguments) == _taken(_nothing, arguments) + 1
