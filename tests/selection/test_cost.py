from __future__ import annotations

import json

import numpy as np
import pytest

from specfit.base.types import PROBABILITY_ONE, SpecfitError
from specfit.selection.cost import CostModel, ratio
from tests.selection.pools import plain_time


def test_one_expression_compiled_and_plain() -> None:
    """Bit for bit: a fused multiply-add in the compiled form would differ in about one of ten."""
    rng = np.random.default_rng(0)
    for _ in range(3000):
        cost = CostModel(rng.uniform(0, 1e8, 2), float(rng.uniform(0, 1e6)))
        reward, demand = int(rng.integers(PROBABILITY_ONE, 1 << 24)), int(rng.integers(1, 9999))
        compiled = ratio(reward, float(cost.intercepts_ns[1]), cost.expert_ns, demand)
        assert compiled == cost.ratio(reward, 1, demand) == reward / plain_time(cost, 1, demand)


def test_json_round_trip_is_exact() -> None:
    cost = CostModel(np.random.default_rng(0).uniform(0, 1e9, 8), 377592.123456789)
    again = CostModel.from_dict(json.loads(json.dumps(cost.to_dict())))
    assert np.array_equal(again.intercepts_ns, cost.intercepts_ns)
    assert again.expert_ns == cost.expert_ns and again.k == 7


def test_zero_time_ranks_by_reward() -> None:
    free = CostModel(np.zeros(3), 0.0)
    assert free.predict_ns(2, 10) == 1.0
    assert free.ratio(5, 2, 10) > free.ratio(4, 0, 1)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"intercepts_ns": [], "expert_ns": 1.0},
        {"intercepts_ns": [1.0, -1.0], "expert_ns": 1.0},
        {"intercepts_ns": [1.0], "expert_ns": float("nan")},
        {"intercepts_ns": ["x"], "expert_ns": 1.0},
        {"intercepts_ns": [1.0], "expert_ns": None},
    ],
)
def test_a_damaged_cost_model_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(SpecfitError):
        CostModel.from_dict(data)
