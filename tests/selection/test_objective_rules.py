from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE, CycleRecord, SpecfitError
from specfit.selection.cost import CostModel
from specfit.selection.objective import LambdaRule
from specfit.selection.registry import SelectorArgs, selector_spec
from specfit.selection.search import SubtreeSearch
from specfit.selection.selectors import SpecFit
from tests.selection.pools import random_cost, random_pool

RECORD = CycleRecord(
    **dict.fromkeys(CycleRecord.columns(), 0)
    | {"request_id": "r", "stop_reason": None, "committed_tokens": 1, "cycle": 1}
)


def test_a_fixed_lambda_is_priced_in_reward_per_nanosecond() -> None:
    rule = LambdaRule(10.0)
    rule.update(5, 10**9)
    assert rule.price() == pytest.approx(10 * PROBABILITY_ONE / 1e9)


def test_the_online_lambda_is_the_throughput_so_far() -> None:
    rule = LambdaRule()
    assert rule.price() is None
    rule.update(3, 200_000_000)
    rule.update(1, 300_000_000)
    assert rule.price() == 4 * PROBABILITY_ONE / 500_000_000
    assert LambdaRule(None, 4, 500_000_000).price() == rule.price(), "a resumed run goes on"


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_a_lambda_that_is_no_rate_is_refused(wrong: float) -> None:
    with pytest.raises(SpecfitError, match="at least 0"):
        LambdaRule(wrong)


def test_specfit_follows_its_rule_and_prefill_is_no_cycle() -> None:
    rng = np.random.default_rng(0)
    differ = 0
    for _ in range(100):
        pool, cost = random_pool(rng), random_cost(rng, 7)
        selector = SpecFit(cost, pool.experts, rule=LambdaRule())
        ratio = SpecFit(cost, pool.experts).select(pool.tree, pool.routes)
        assert selector.select(pool.tree, pool.routes) == ratio, "no cycle timed yet"
        selector.observe(replace(RECORD, cycle=0, verify_ns=10, cycle_ns=10))
        assert selector.select(pool.tree, pool.routes) == ratio
        took = max(1, round(cost.predict_ns(0, 10) * rng.random()))
        selector.observe(replace(RECORD, verify_ns=took, cycle_ns=took))
        chosen = selector.select(pool.tree, pool.routes)
        search = SubtreeSearch(cost, 7, prune=False)
        best = search.best(pool.tree, pool.rows(), PROBABILITY_ONE / took)
        assert chosen.nodes == best.nodes and chosen.predicted_reward == best.reward
        differ += chosen.nodes != ratio.nodes
    assert differ > 10


def args(name: str, objective: str, k: int = 7) -> SelectorArgs:
    return SelectorArgs(name, k, True, 8, CostModel(np.full(k + 1, 50.0), 1.0), objective, 3.0)


def test_the_registry_makes_the_objective() -> None:
    made = selector_spec("specfit").make(args("specfit", "lambda"))
    assert isinstance(made, SpecFit) and made.rule is not None
    plain = selector_spec("specfit").make(args("specfit", "ratio"))
    assert isinstance(plain, SpecFit) and plain.rule is None
    with pytest.raises(SpecfitError, match="ratio, lambda"):
        selector_spec("specfit").make(args("specfit", "speed"))
    with pytest.raises(SpecfitError, match="objective=ratio"):
        selector_spec("closure").make(args("closure", "lambda"))
