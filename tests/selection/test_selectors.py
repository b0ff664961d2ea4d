from __future__ import annotations

from threading import Thread

import numpy as np
import pytest

from specfit.base.interfaces import Selector
from specfit.base.types import DraftTree, Routes, SpecfitError
from specfit.selection import bitmaps as bitmaps_module
from specfit.selection import search as search_module
from specfit.selection.cost import CostModel
from specfit.selection.selectors import NoDraft, SpecFit, TopProbability
from tests.selection.pools import Pool, brute_force, random_cost, random_pool

COST = CostModel(np.full(8, 50.0), 1.0)


def test_selectors_keep_the_protocol_and_invariant_2() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        pool = random_pool(rng)
        selectors: list[Selector] = [
            NoDraft("ar"),
            NoDraft("ar_cache"),
            TopProbability("eagle3"),
            TopProbability("eagle3_cache", k=3),
            SpecFit(random_cost(rng, 7), pool.experts),
            SpecFit(random_cost(rng, 9), pool.experts, k=4, adaptive_depth=False),
        ]
        for selector in selectors:
            routes = pool.routes if selector.reads_routes else None
            selector.select(pool.tree, routes).check(pool.tree, selector.k)


def test_flags() -> None:
    flags = [(s.drafts, s.reads_routes, s.adaptive_depth) for s in (NoDraft(), TopProbability())]
    assert flags == [(False, False, False), (True, False, False)]
    assert (
        SpecFit(COST, 8).adaptive_depth
        and not SpecFit(COST, 8, adaptive_depth=False).adaptive_depth
    )
    assert NoDraft().select(DraftTree.empty(), None).nodes == ()


def test_specfit_is_pure_whatever_was_asked_before() -> None:
    """One instance over many interleaved cycles, grown level by level, equals brute force."""
    rng = np.random.default_rng(1)
    cost = random_cost(rng, 7)
    instances: dict[int, SpecFit] = {}
    for _ in range(150):
        pool = random_pool(rng)
        selector = instances.setdefault(pool.experts, SpecFit(cost, pool.experts))
        for level in range(1, pool.tree.levels + 1):
            part = pool.prefix(int((pool.tree.depths <= level).sum()))
            selection = selector.select(part.tree, part.routes)
            nodes, reward, _demand, count = brute_force(part, cost, 7)
            assert (selection.nodes, selection.predicted_reward) == (nodes, reward)
            assert selection.searched_subtrees is not None
            assert 1 <= selection.searched_subtrees <= count
            assert isinstance(selection.predicted_ns, int)


def test_new_routes_of_an_equal_tree_are_seen() -> None:
    pool = random_pool(np.random.default_rng(7), most=6)
    pool.tree.path_probs[:] = 1 << 19
    apart = Pool(pool.tree, pool.routes, pool.experts)
    same = Routes(pool.routes.root, np.repeat(pool.routes.root[None], len(pool.tree), 0))
    selector = SpecFit(CostModel(np.zeros(8), 1.0), pool.experts)
    first = selector.select(apart.tree, apart.routes)
    assert selector.select(apart.tree, same).nodes == tuple(range(min(7, len(pool.tree))))
    assert selector.select(apart.tree, apart.routes) == first


def test_compiled_before_the_first_selection_and_never_again() -> None:
    """Whatever dtype or layout arrives, no further type is compiled inside a request."""
    selector = SpecFit(COST, 128)
    kernels = [search_module._search, bitmaps_module._load]
    before = [len(kernel.signatures) for kernel in kernels]
    tree = DraftTree(*(np.array(v, dtype=np.int32) for v in ([5, 6], [-1, -1], [1, 1], [9, 8])))
    for dtype in (np.uint8, np.int32, np.int64):
        ids = np.asfortranarray(np.arange(24, dtype=dtype).reshape(3, 2, 4))
        ids.flags.writeable = False
        selector.select(tree, Routes(ids[0], ids[1:]))
    assert [len(kernel.signatures) for kernel in kernels] == before


def test_more_nodes_than_the_calibration_prices_is_refused() -> None:
    with pytest.raises(SpecfitError, match="calibrate again"):
        SpecFit(COST, 128, k=8)


def test_instances_in_two_threads_do_not_share_buffers() -> None:
    rng = np.random.default_rng(3)
    pools = [p for p in (random_pool(rng) for _ in range(60)) if len(p.tree)]
    cost = random_cost(rng, 7)
    expected = [brute_force(p, cost, 7)[0] for p in pools]
    wrong: list[int] = []

    def work() -> None:
        for i, pool in enumerate(pools):
            if SpecFit(cost, pool.experts).select(pool.tree, pool.routes).nodes != expected[i]:
                wrong.append(i)

    threads = [Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
