"""What `cost` names: how the exact search prices a selection. One file and one entry per form."""

from __future__ import annotations

from collections.abc import Callable

from specfit.base.plugins import named
from specfit.selection.cost import CostModel
from specfit.selection.expected_cost import ExpectedUnion
from specfit.selection.pricing import Pricing
from specfit.selection.residency_cost import HitMiss, Miss
from specfit.selection.union import Union

COSTS: dict[str, Callable[[CostModel, int, int], Pricing]] = {
    "union": Union,
    "expected_union": ExpectedUnion,
    "miss": Miss,
    "hit_miss": HitMiss,
}
"""Name in a config -> (coefficients, experts per layer, K) -> pricing."""


BY_RESIDENCY = ("miss", "hit_miss")
"""Forms with coefficients of their own, fitted on what probes missed."""


def pricing_named(name: str) -> Callable[[CostModel, int, int], Pricing]:
    """Ours, or package.module:name of somebody else's."""
    what = "a function (cost model, experts per layer, K) -> Pricing"
    return named("cost", name, COSTS, callable, what)
