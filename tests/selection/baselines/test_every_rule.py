"""What holds of every rival rule, on random pools."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from specfit.base.types import SpecfitError
from specfit.selection.registry import SELECTORS, SelectorArgs
from tests.selection.baselines.making import COST, LINK, RIVALS, SIZES, make, record
from tests.selection.pools import Pool, random_pool


def pools(count: int) -> Iterator[Pool]:
    rng = np.random.default_rng(5)
    yield from (random_pool(rng) for _ in range(count))


@pytest.mark.parametrize("name", RIVALS)
def test_selections_are_legal_and_at_most_k(name: str) -> None:
    taken = 0
    for i, pool in enumerate(pools(150)):
        selector = make(name, pool.experts, k=RIVALS[name] if name == "eagle3_full" else 1 + i % 7)
        assert selector.name == name
        for cycle in range(15):  # whatever it has seen before
            routes = pool.routes if selector.reads_routes else None
            selection = selector.select(pool.tree, routes)
            selection.check(pool.tree, selector.k)
            taken += len(selection.nodes)
            levels = selector.draft_levels()
            assert levels is None or 0 <= levels <= selector.k
            selector.observe(record(cycle, 1 + bool(levels), ns=9, verified=levels or 1))
    assert taken > 200, "a rule that never takes a node passes every other test"


@pytest.mark.parametrize("name", RIVALS)
def test_the_same_pool_gives_the_same_nodes(name: str) -> None:
    """Buffers are reused: what was selected before must not show."""
    for pool in pools(60):
        selector, other = make(name, pool.experts), make(name, pool.experts)
        routes = pool.routes if selector.reads_routes else None
        first = selector.select(pool.tree, routes)
        for part in (pool.prefix(i) for i in range(len(pool.tree))):
            if part.tree.levels:
                selector.select(part.tree, part.routes if selector.reads_routes else None)
        assert selector.select(pool.tree, routes) == first == other.select(pool.tree, routes)


def test_the_registry_says_what_a_rule_needs() -> None:
    needs = {name: SELECTORS[name] for name in RIVALS}
    routed = {name for name, kind in needs.items() if kind.reads_routes}
    priced = {name for name, kind in needs.items() if kind.needs_cost}
    sized = {name for name, kind in needs.items() if kind.needs_sizes}
    assert routed == {"ecospec", "greedy"}
    assert priced == {"evict", "moe_speq", "greedy"} and sized == {"evict", "moe_speq"}
    for name in RIVALS:
        made = make(name, 8)
        assert (made.reads_routes, made.drafts) == (needs[name].reads_routes, needs[name].drafts)


@pytest.mark.parametrize("name", ["evict", "moe_speq", "greedy"])
def test_rules_that_maximise_a_ratio_refuse_another_objective(name: str) -> None:
    args = SelectorArgs(name, 7, False, 8, COST, "lambda", 3.0, SIZES, LINK)
    with pytest.raises(SpecfitError, match="objective=ratio"):
        SELECTORS[name].make(args)


@pytest.mark.parametrize("name", ["evict", "moe_speq", "greedy"])
def test_a_k_beyond_the_calibration_is_refused(name: str) -> None:
    with pytest.raises(SpecfitError, match=r"selector\.k is 9"):
        make(name, 8, k=9)


def test_moe_speq_needs_a_link() -> None:
    with pytest.raises(SpecfitError, match=r"link_gbps and gpu\.fixed_ms"):
        SELECTORS["moe_speq"].make(SelectorArgs("moe_speq", 7, False, 8, COST, sizes=SIZES))
