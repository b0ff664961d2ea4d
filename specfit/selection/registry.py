"""Selectors by the name a config gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specfit.base.interfaces import Selector
from specfit.base.plugins import named
from specfit.base.types import SpecfitError
from specfit.selection.baselines.cascade import Cascade
from specfit.selection.baselines.chain import ChainK
from specfit.selection.baselines.ecospec import EcoSpec
from specfit.selection.baselines.evict import Evict
from specfit.selection.baselines.moe_speq import LinkCosts, MoeSpeq
from specfit.selection.baselines.ratio_greedy import RatioGreedy
from specfit.selection.baselines.whole import WholePool
from specfit.selection.cost import CostModel
from specfit.selection.costs import pricing_named
from specfit.selection.levels import LevelCost
from specfit.selection.mean_by_size import BySize
from specfit.selection.objective import LambdaRule
from specfit.selection.selectors import NoDraft, SpecFit, TopProbability

OBJECTIVES = ("ratio", "lambda")
PAPER_K = 7
"""Most nodes that the paper verifies in one cycle (sec. 3.1)."""


@dataclass(frozen=True)
class Choice:
    """What a selector may depend on."""

    name: str
    k: int
    adaptive_depth: bool
    num_experts: int
    cost: CostModel | None  # calibrated, for kinds that need it
    objective: str = "ratio"
    tokens_per_s: float | None = None  # lambda; None: the run's own throughput so far
    sizes: BySize | None = None  # of the same probes, for kinds that need it
    link: LinkCosts | None = None  # of the profile, where it has them
    form: str = "union"  # of the cost, for the rule that takes several
    level: LevelCost | None = None  # None: every T is a full-depth cycle's, as in the paper


@dataclass(frozen=True)
class Kind:
    make: Callable[[Choice], Selector]
    drafts: bool = True
    reads_routes: bool = False
    needs_cost: bool = False
    needs_sizes: bool = False  # the probes by node count; comes with needs_cost
    unlimited: bool = False  # `k` is the pool's size; its cost is `fit_affine`, priced up to there

    def probed(self, k: int) -> int:
        """Nodes of the largest calibration probe: K, or the paper's where a line goes on beyond."""
        return min(k, PAPER_K) if self.unlimited else k


def _no_draft(choice: Choice) -> Selector:
    return NoDraft(choice.name)


def _top_probability(choice: Choice) -> Selector:
    return TopProbability(choice.name, choice.k)


def _specfit(choice: Choice) -> Selector:
    assert choice.cost is not None, "the ratio rule needs a calibrated cost"
    return SpecFit(
        choice.cost,
        choice.num_experts,
        choice.k,
        choice.adaptive_depth,
        rule=_rule(choice),
        pricing=pricing_named(choice.form),
        level=choice.level,
    )


def _rule(choice: Choice) -> LambdaRule | None:
    """None: the ratio."""
    if choice.objective not in OBJECTIVES:
        raise SpecfitError(f"objective is {choice.objective!r}; use one of {', '.join(OBJECTIVES)}")
    return LambdaRule(choice.tokens_per_s) if choice.objective == "lambda" else None


def _closure(choice: Choice) -> Selector:
    from specfit.selection.min_cut import Closure  # ortools is loaded by who cuts

    assert choice.cost is not None, "the closure needs a calibrated cost"
    _plain_only(choice)
    return Closure(choice.cost, choice.num_experts, choice.k, choice.adaptive_depth)


def _greedy(choice: Choice) -> Selector:
    assert choice.cost is not None, "the ratio greedy needs a calibrated cost"
    _plain_only(choice)
    return RatioGreedy(choice.cost, choice.num_experts, choice.k, choice.adaptive_depth)


def _evict(choice: Choice) -> Selector:
    assert choice.sizes is not None, "a cost by node count comes from calibration"
    _plain_only(choice)
    return Evict(choice.sizes, choice.k, choice.adaptive_depth)


def _moe_speq(choice: Choice) -> Selector:
    assert choice.sizes is not None, "demand by node count comes from calibration"
    _plain_only(choice)
    if choice.link is None:
        raise SpecfitError(
            "selector=moe_speq predicts time from gpu.link_gbps and gpu.fixed_ms, and this profile "
            "lacks one; set both, or use a profile that has them"
        )
    return MoeSpeq(choice.sizes, choice.link, choice.k)


def _plain_only(choice: Choice) -> None:
    if _rule(choice) is not None:
        raise SpecfitError(f"selector={choice.name} maximises a ratio; use objective=ratio")
    if choice.form != "union":
        raise SpecfitError(f"selector={choice.name} counts the union; use cost=union")
    if choice.level is not None:
        raise SpecfitError(f"selector={choice.name} prices full-depth cycles; use level_cost_ms=0")


SELECTORS: dict[str, Kind] = {
    "ar": Kind(_no_draft, drafts=False),
    "ar_cache": Kind(_no_draft, drafts=False),
    "eagle3": Kind(_top_probability),
    "eagle3_cache": Kind(_top_probability),
    "specfit": Kind(_specfit, reads_routes=True, needs_cost=True),
    "closure": Kind(_closure, reads_routes=True, needs_cost=True, unlimited=True),
    "chain_k": Kind(lambda choice: ChainK(choice.k)),
    "eagle3_full": Kind(lambda choice: WholePool(choice.k)),
    "evict": Kind(_evict, needs_cost=True, needs_sizes=True),
    "ecospec": Kind(lambda choice: EcoSpec(choice.num_experts, choice.k), reads_routes=True),
    "cascade": Kind(lambda choice: Cascade(choice.k)),
    "moe_speq": Kind(_moe_speq, needs_cost=True, needs_sizes=True),
    "greedy": Kind(_greedy, reads_routes=True, needs_cost=True),
}


def kind_of(name: str) -> Kind:
    """Ours, or package.module:name of somebody else's."""
    what = "a specfit.selection.registry.Kind"
    return named("selector.name", name, SELECTORS, lambda found: isinstance(found, Kind), what)
