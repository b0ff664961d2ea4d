"""Selectors by the name a config gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specfit.base.interfaces import Selector
from specfit.base.plugins import named
from specfit.base.types import SpecfitError
from specfit.selection.baselines.cascade import Cascade
from specfit.selection.baselines.ecospec import EcoSpec
from specfit.selection.baselines.evict import Evict
from specfit.selection.baselines.fixed import ChainK, WholePool
from specfit.selection.baselines.moe_speq import LinkCosts, MoeSpeq
from specfit.selection.baselines.ratio_greedy import RatioGreedy
from specfit.selection.cost import CostModel, LevelCost
from specfit.selection.cost_forms import pricing_named
from specfit.selection.mean_by_size import BySize
from specfit.selection.objective import LambdaRule
from specfit.selection.selectors import NoDraft, SpecFit, TopProbability

OBJECTIVES = ("ratio", "lambda")
PAPER_K = 7
"""Most nodes that the paper verifies in one cycle (sec. 3.1)."""


@dataclass(frozen=True)
class SelectorArgs:
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
class SelectorSpec:
    make: Callable[[SelectorArgs], Selector]
    drafts: bool = True
    reads_routes: bool = False
    needs_cost: bool = False
    needs_sizes: bool = False  # the probes by node count; comes with needs_cost
    unlimited: bool = False  # `k` is the pool's size; its cost is `fit_affine`, priced up to there

    def probed(self, k: int) -> int:
        """Nodes of the largest calibration probe: K, or the paper's where a line goes on beyond."""
        return min(k, PAPER_K) if self.unlimited else k


def _no_draft(args: SelectorArgs) -> Selector:
    return NoDraft(args.name)


def _top_probability(args: SelectorArgs) -> Selector:
    return TopProbability(args.name, args.k)


def _specfit(args: SelectorArgs) -> Selector:
    assert args.cost is not None, "the ratio rule needs a calibrated cost"
    return SpecFit(
        args.cost,
        args.num_experts,
        args.k,
        args.adaptive_depth,
        rule=_rule(args),
        pricing=pricing_named(args.form),
        level=args.level,
    )


def _rule(args: SelectorArgs) -> LambdaRule | None:
    """None: the ratio."""
    if args.objective not in OBJECTIVES:
        raise SpecfitError(f"objective is {args.objective!r}; use one of {', '.join(OBJECTIVES)}")
    return LambdaRule(args.tokens_per_s) if args.objective == "lambda" else None


def _closure(args: SelectorArgs) -> Selector:
    from specfit.selection.min_cut import Closure  # ortools is loaded by who cuts

    assert args.cost is not None, "the closure needs a calibrated cost"
    _plain_only(args)
    return Closure(args.cost, args.num_experts, args.k, args.adaptive_depth)


def _greedy(args: SelectorArgs) -> Selector:
    assert args.cost is not None, "the ratio greedy needs a calibrated cost"
    _plain_only(args)
    return RatioGreedy(args.cost, args.num_experts, args.k, args.adaptive_depth)


def _evict(args: SelectorArgs) -> Selector:
    assert args.sizes is not None, "a cost by node count comes from calibration"
    _plain_only(args)
    return Evict(args.sizes, args.k, args.adaptive_depth)


def _moe_speq(args: SelectorArgs) -> Selector:
    assert args.sizes is not None, "demand by node count comes from calibration"
    _plain_only(args)
    if args.link is None:
        raise SpecfitError(
            "selector=moe_speq predicts time from gpu.link_gbps and gpu.fixed_ms, and this profile "
            "lacks one; set both, or use a profile that has them"
        )
    return MoeSpeq(args.sizes, args.link, args.k)


def _plain_only(args: SelectorArgs) -> None:
    if _rule(args) is not None:
        raise SpecfitError(f"selector={args.name} maximises a ratio; use objective=ratio")
    if args.form != "union":
        raise SpecfitError(f"selector={args.name} counts the union; use cost=union")
    if args.level is not None:
        raise SpecfitError(f"selector={args.name} prices full-depth cycles; use level_cost_ms=0")


SELECTORS: dict[str, SelectorSpec] = {
    "ar": SelectorSpec(_no_draft, drafts=False),
    "ar_cache": SelectorSpec(_no_draft, drafts=False),
    "eagle3": SelectorSpec(_top_probability),
    "eagle3_cache": SelectorSpec(_top_probability),
    "specfit": SelectorSpec(_specfit, reads_routes=True, needs_cost=True),
    "closure": SelectorSpec(_closure, reads_routes=True, needs_cost=True, unlimited=True),
    "chain_k": SelectorSpec(lambda args: ChainK(args.k)),
    "eagle3_full": SelectorSpec(lambda args: WholePool(args.k)),
    "evict": SelectorSpec(_evict, needs_cost=True, needs_sizes=True),
    "ecospec": SelectorSpec(lambda args: EcoSpec(args.num_experts, args.k), reads_routes=True),
    "cascade": SelectorSpec(lambda args: Cascade(args.k)),
    "moe_speq": SelectorSpec(_moe_speq, needs_cost=True, needs_sizes=True),
    "greedy": SelectorSpec(_greedy, reads_routes=True, needs_cost=True),
}


def selector_spec(name: str) -> SelectorSpec:
    """Ours, or package.module:name of another package."""
    what = "a specfit.selection.registry.SelectorSpec"
    return named(
        "selector.name", name, SELECTORS, lambda found: isinstance(found, SelectorSpec), what
    )
