"""Selectors by the name a config gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specfit.core import SpecfitError
from specfit.protocols import Selector
from specfit.selection.cost import CostModel
from specfit.selection.rules import LambdaRule
from specfit.selection.selectors import NoDraft, SpecFit, TopProbability

OBJECTIVES = ("ratio", "lambda")


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


@dataclass(frozen=True)
class Kind:
    make: Callable[[Choice], Selector]
    drafts: bool = True
    reads_routes: bool = False
    needs_cost: bool = False
    unlimited: bool = False  # `k` is the pool's size; its cost is `fit_affine`, priced up to there


def _no_draft(choice: Choice) -> Selector:
    return NoDraft(choice.name)


def _top_probability(choice: Choice) -> Selector:
    return TopProbability(choice.name, choice.k)


def _specfit(choice: Choice) -> Selector:
    assert choice.cost is not None, "the ratio rule needs a calibrated cost"
    return SpecFit(
        choice.cost, choice.num_experts, choice.k, choice.adaptive_depth, rule=_rule(choice)
    )


def _rule(choice: Choice) -> LambdaRule | None:
    """None: the ratio."""
    if choice.objective not in OBJECTIVES:
        raise SpecfitError(f"objective is {choice.objective!r}; use one of {', '.join(OBJECTIVES)}")
    return LambdaRule(choice.tokens_per_s) if choice.objective == "lambda" else None


def _closure(choice: Choice) -> Selector:
    from specfit.selection.closure import Closure  # ortools is loaded by who cuts

    assert choice.cost is not None, "the closure needs a calibrated cost"
    if _rule(choice) is not None:
        raise SpecfitError("selector=closure maximises the ratio; use objective=ratio")
    return Closure(choice.cost, choice.num_experts, choice.k, choice.adaptive_depth)


SELECTORS: dict[str, Kind] = {
    "ar": Kind(_no_draft, drafts=False),
    "ar_cache": Kind(_no_draft, drafts=False),
    "eagle3": Kind(_top_probability),
    "eagle3_cache": Kind(_top_probability),
    "specfit": Kind(_specfit, reads_routes=True, needs_cost=True),
    "closure": Kind(_closure, reads_routes=True, needs_cost=True, unlimited=True),
}


def kind_of(name: str) -> Kind:
    if name not in SELECTORS:
        raise SpecfitError(f"selector.name is {name!r}; use one of {', '.join(SELECTORS)}")
    return SELECTORS[name]
