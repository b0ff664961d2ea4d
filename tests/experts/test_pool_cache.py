"""One memory for all layers: by hand, against a dictionary, and against an engine's counts."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pandas as pd
import pytest

from specfit.base.paths import PACKAGE
from specfit.base.types import SpecfitError
from specfit.experts.cache import ExpertCache
from specfit.experts.pool_cache import (
    PoolCache,
    cliff_warning,
    cycle_bytes,
    pool_hits,
    slots_cliff,
)
from specfit.storage.foreign_traces import read_trace

SHIPPED = PACKAGE / "data" / "traces"


def plain_lru(passes, sizes, budget):
    """An ordered dictionary: what a person would write first."""
    held: OrderedDict[tuple[int, int], int] = OrderedDict()
    hits = lookups = 0
    for ids in passes:
        for layer in range(ids.shape[1]):
            last = {int(e): at for at, e in enumerate(ids[:, layer].ravel()) if e >= 0}
            batch = [(layer, e) for e in sorted(last, key=last.get)]
            hits += sum(key in held for key in batch)
            lookups += len(batch)
            for key in batch:
                held.pop(key, None)
                held[key] = sizes[layer]
            while sum(held.values()) > budget and next(iter(held)) not in batch:
                held.popitem(last=False)
    return hits, lookups


def test_hits_are_those_of_an_ordered_dictionary():
    rows = (5, 1, 1, 3, 1, 1, 1, 2, 1, 1)
    passes = [one.swapaxes(0, 1) for one in forwards(4, 12, 3, rows)]
    sizes = np.array([3, 5, 3, 4])
    for budget in (10, 40, 60, 100, 130):
        hits, lookups, _ = pool_hits(passes, sizes, 12, budget)
        assert (hits.sum(), lookups.sum()) == plain_lru(passes, sizes, budget), budget


def test_two_layers_by_hand():
    """Of two places the older goes, whichever layer it is of."""
    one = np.array([[[0], [0]]])
    two = np.array([[[1], [0]]])
    hits, lookups, read = pool_hits([one, two, one], np.array([1, 1]), 2, 3)
    assert hits.tolist() == [0, 1, 2] and lookups.tolist() == [2, 2, 2] and read.sum() == 3
    hits, _, _ = pool_hits([one, two, one], np.array([1, 1]), 2, 2)
    assert hits.tolist() == [0, 1, 1]
    hits, _, _ = pool_hits([one, two, one], np.array([1, 1]), 2, 1)
    assert hits.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("qwen", {500: "0.00", 1000: "35.14", 2000: "52.74", 3000: "65.86", 4000: "74.88"}),
        ("gemma", {4000: "76.78"}),
        ("gptoss", {3000: "32.41"}),
    ],
)
def test_an_engines_own_counts(name, rates):
    trace = read_trace(SHIPPED / f"{name}.route.csv.xz")
    for mib, said in rates.items():
        hits, lookups, _ = pool_hits(trace.passes(), trace.expert_bytes, 128, mib << 20)
        assert f"{100 * hits.sum() / lookups.sum():.2f}" == said


@pytest.mark.parametrize(
    ("policy", "kind", "per_layer"),
    [
        ("belady", "belady", False),
        ("lfu", "lfu", False),
        ("layer", "lru", True),
        ("layerlfu", "lfu", True),
    ],
)
def test_the_sources_other_policies(policy, kind, per_layer):
    curve = pd.read_csv(SHIPPED / "gptoss.curve.csv").set_index(["policy", "budget_mib"])
    trace = read_trace(SHIPPED / "gptoss.route.csv.xz")
    for mib in (500, 3000, 8000):
        hits, lookups, _ = pool_hits(
            trace.passes(), trace.expert_bytes, 128, mib << 20, kind, per_layer
        )
        said = curve.loc[(policy, mib)]
        assert round(100 * hits.sum() / lookups.sum(), 3) == said["hit_pct_cum"]
        decode = 100 * hits[1:].sum() / lookups[1:].sum()
        assert round(decode, 3) == said["hit_pct_decode"]


def test_the_cliff_is_one_token():
    trace = read_trace(SHIPPED / "qwen.route.csv.xz")
    cycle = cycle_bytes(trace.expert_bytes, trace.top_k)
    assert cliff_warning(cycle, cycle) is None
    assert "least recently used hits next to nothing" in cliff_warning(cycle - 1, cycle)
    assert slots_cliff(5, 48, 6, 10) and not slots_cliff(6, 48, 6, 10)
    assert slots_cliff(0, 48, 6, 10) is None, "without a cache nothing is expected of it"
    hits, _, _ = pool_hits(trace.passes(), trace.expert_bytes, 128, int(0.95 * cycle))
    assert hits[1:].sum() == 0
    hits, _, _ = pool_hits(trace.passes(), trace.expert_bytes, 128, int(1.05 * cycle))
    assert hits[1:].sum() > 0


# -- the cache of a replay -------------------------------------------------------------------------


def forwards(layers, experts, k, rows, seed=0):
    rng = np.random.default_rng(seed)
    for n in rows:
        yield np.argsort(rng.random((layers, n, experts)), axis=2)[:, :, :k]


def test_a_replays_pool_counts_as_the_trace_does():
    layers, experts, slots = 4, 12, 3
    routes = list(forwards(layers, experts, 3, (1,) * 20))
    cache = PoolCache(layers, experts, slots)
    traces = [cache.replay(one, 0, False) for one in routes]
    passes = [one.swapaxes(0, 1) for one in routes]
    hits, lookups, _ = pool_hits(passes, np.ones(layers, int), experts, layers * slots)
    assert [int(t.hits.sum()) for t in traces] == hits.tolist()
    assert [int((t.hits + t.misses).sum()) for t in traces] == lookups.tolist()


def test_one_layer_is_the_same_as_slots_of_its_own():
    """Apart from the order of recency within a forward, which one row leaves no room for."""
    pool, slots = PoolCache(1, 12, 5), ExpertCache(1, 12, 5)
    for routes in forwards(1, 12, 1, (1,) * 60):
        a, b = pool.replay(routes, 0, False), slots.replay(routes, 0, False)
        assert a.hits.tolist() == b.hits.tolist() and a.evictions.tolist() == b.evictions.tolist()


def test_the_budget_holds_and_a_large_batch_waits_for_staging():
    cache = PoolCache(2, 16, 2, staging_blocks=3)
    for routes in forwards(2, 16, 4, (6, 1, 4, 1)):
        trace = cache.replay(routes, 0, False)
        cache.check()
        assert cache.resident_mask().sum() <= 4
    wide = next(forwards(2, 16, 4, (12,)))
    trace = cache.replay(wide, 0, False)
    waits = trace.wait_for[1, : trace.misses[1]]
    assert (waits[4:] >= 0).all() and (np.diff(waits[4:]) == 1).all()


def test_state_is_put_back_whole():
    cache, again = PoolCache(3, 10, 2), PoolCache(3, 10, 2)
    routes = list(forwards(3, 10, 2, (1,) * 12, seed=4))
    for one in routes[:6]:
        cache.replay(one, 0, False)
    again.load_state(cache.state())
    for one in routes[6:]:
        assert (
            cache.replay(one, 0, False).hits.tolist() == again.replay(one, 0, False).hits.tolist()
        )
    with pytest.raises(SpecfitError, match="one pool"):
        PoolCache(3, 11, 2).load_state(cache.state())
