"""The paper's selectors (sec. 4.1): which pool nodes one cycle verifies."""

from __future__ import annotations

from collections.abc import Callable

from specfit.base.interfaces import Selector
from specfit.base.types import CycleRecord, DraftTree, Routes, Selection, SpecfitError
from specfit.selection.cost import CostModel, LevelCost
from specfit.selection.cost_forms import Pricing, Union
from specfit.selection.forced_trees import most_probable
from specfit.selection.objective import LambdaRule
from specfit.selection.residency_cost import Resident, Weighted


class NoDraft(Selector):
    """`ar`, `ar_cache`: no drafter, every cycle verifies the root alone."""

    k = 0
    drafts = False
    reads_routes = False
    adaptive_depth = False

    def __init__(self, name: str = "ar") -> None:
        self.name = name

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        return Selection(())


class TopProbability(Selector):
    """`eagle3`, `eagle3_cache`: the K nodes of highest path probability of the full-depth pool."""

    drafts = True
    reads_routes = False
    adaptive_depth = False

    def __init__(self, name: str = "eagle3", k: int = 7) -> None:
        self.name = name
        self.k = k

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        return Selection(most_probable(tree, self.k))


class SpecFit(Selector):
    """The paper's rule (sec. 3.3): the legal subtree of highest R / T, exactly; with a `rule`, of
    highest R - lambda T (app. A.1).

    With `adaptive_depth` it selects after every level from the pool so far; `pricing` is the form
    of T, the paper's by default; with a `level` cost T is of a cycle that ends with this pool. Not
    safe for two threads at once.
    """

    drafts = True
    reads_routes = True

    def __init__(
        self,
        cost: CostModel,
        num_experts: int,
        k: int = 7,
        adaptive_depth: bool = True,
        name: str = "specfit",
        rule: LambdaRule | None = None,
        pricing: Callable[[CostModel, int, int], Pricing] = Union,
        level: LevelCost | None = None,
    ) -> None:
        if k > cost.k:
            raise SpecfitError(
                f"selector.k is {k} but the calibration prices at most {cost.k} nodes; "
                "calibrate again with this selector.k"
            )
        self.name = name
        self.k = k
        self.adaptive_depth = adaptive_depth
        self.rule = rule
        costs = [cost]
        if level is not None:
            costs = [level.spared(cost, drafted) for drafted in range(level.levels + 1)]
        self._pricings = [pricing(one, num_experts, k) for one in costs]  # by levels drafted

    def watch(self, resident: Resident) -> None:
        """Where a cost by residency asks which experts have slots."""
        for pricing in self._pricings:
            if isinstance(pricing, Weighted):
                pricing.watch(resident)

    def select(self, tree: DraftTree, routes: Routes | None) -> Selection:
        assert routes is not None and len(routes) == len(tree), "one route per pool node"
        price = None if self.rule is None else self.rule.price()
        found = self._pricings[min(tree.levels, len(self._pricings) - 1)].best(tree, routes, price)
        return Selection(
            found.nodes, found.reward, round(found.predicted_ns), found.searched_subtrees
        )

    def observe(self, record: CycleRecord) -> None:
        """A cycle ended. Prefill commits a token at no rate a selection has anything to do with."""
        if self.rule is not None and record.cycle > 0:
            self.rule.update(record.committed_tokens, record.cycle_ns)
